"""Questions in a real Emacs in a terminal, with the real server: what a person sees there, and
which keys allow."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from test_emacs_e2e import ask, said, shop, started

from tests.clients.driven import Driven, installed, lisp
from tests.patience import PATIENCE

__all__ = ["shop"]

TWO = "ls -la\nrm -rf precious"
LONG = "\n".join(["echo begin", *(f"echo {n} {'x' * 30}" for n in range(60)), "rm -rf precious"])


def emacs_with(command: str, place: Path) -> Path:
    (place / "precious").write_text("mine")
    script = f"prompt: go\ncall: bash {json.dumps({'command': command})}\n---\ntext: Over.\n"
    return installed(Path(os.environ["HOME"]), script)


def seen(one: Driven, *texts: str) -> str:
    """The screen with its long lines, as soon as all of these are on it."""
    end = time.monotonic() + PATIENCE
    while not all(text in (screen := unwrapped(one.screen())) for text in texts):
        assert time.monotonic() < end, one.screen()
        time.sleep(0.05)
    return screen


def unwrapped(screen: str) -> str:
    return screen.replace("\\\n", "")


@pytest.mark.req("G022")
def test_what_runs_is_seen_before_it_is_allowed_and_nothing_else_allows(shop: Path) -> None:
    with started("terminal", emacs_with(TWO, shop), shop) as one:
        one.ask(f"(find-file {lisp(str(shop / 'prices.py'))}) t")
        ask(one, "go")
        one.until("(magy-permission--all)")
        seen(one, "Magy asks: Run ls -la ⏎ rm -rf precious")
        said(one, "? Run ls -la ⏎ rm -rf precious")
        for keys in (("RET", "C-g"), ("ESC", "ESC", "ESC"), ("SPC", "C-g"), ("TAB", "C-g")):
            one.keys("C-c m y")
            seen(
                one,
                "Run ls -la ⏎ rm -rf precious  (asked by build)",
                "a lasting answer would allow: bash `ls -la`",
                "(n) refuse, (y) allow once, ",
            )
            one.keys(*keys)
            one.until("(= 0 (minibuffer-depth))")
            assert one.ask("(and (magy-permission--all) t)"), f"{keys} leave it open"
        assert (shop / "precious").exists()
        one.keys("C-c m y", "n")
        seen(one, "Why not?")
        one.keys("RET")
        said(one, "Over.")
        assert (shop / "precious").exists()


def test_all_of_a_long_command_is_one_key_away(shop: Path) -> None:
    with started("terminal", emacs_with(LONG, shop), shop) as one:
        one.ask(f"(find-file {lisp(str(shop / 'prices.py'))}) t")
        ask(one, "go")
        one.until("(magy-permission--all)")
        one.keys("C-c m y")
        begin, end = "Run echo begin ⏎ echo 0 xxx", "⏎ rm -rf precious"
        seen(one, begin, " … (+2,056 characters, 54 lines) … ", end, "(v)iew all:")
        one.keys("v")
        seen(one, "    echo begin\n", f"    echo 3 {'x' * 30}\n", "C-M-v scrolls:")
        one.keys("C-M-v")
        seen(one, f"    echo 20 {'x' * 30}\n")
        assert one.ask("(and (magy-permission--all) t)")
        one.keys("n")
        seen(one, "Why not?")
        one.keys("RET")
        said(one, "Over.")
        assert (shop / "precious").exists()
