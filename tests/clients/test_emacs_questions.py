"""Questions in a real Emacs in a terminal, with the real server: what a person sees there, and
which keys allow."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from test_emacs_e2e import ask, said, shop, started

from tests.clients.driven import Driven, installed, letters, lisp
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
                "a lasting yes would allow: bash `ls -la`",
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


@pytest.mark.req("G022")
def test_a_question_that_an_older_emacs_left_open_is_found_and_answered(shop: Path) -> None:
    init = emacs_with("touch told", shop)
    find = f"(find-file {lisp(str(shop / 'prices.py'))}) t"
    with started("terminal", init, shop) as one:
        one.ask(find)
        ask(one, "go")
        one.until("(magy-permission--all)")
        one.keys("C-c m U")
        seen(one, "A question is open: answer it or cancel the turn first, then undo it.")
        one.keys("C-x C-c")
        seen(one, "Magy asks in shop: that stays open, and Magy asks it again.  Leave Emacs?")
        one.keys(*letters("no").split(), "RET")
        assert one.ask("(and (magy-permission--all) t)")
    with started("terminal", init, shop) as one:
        one.ask(find)
        one.keys("C-c m y")
        seen(one, "Run touch told", "(n) refuse, (y) allow once, ")
        one.keys("y")
        said(one, "Over.")
        assert (shop / "told").exists()
        one.keys("C-c m y")
        seen(one, "No question is open in shop")


@pytest.mark.req("G023")
def test_what_was_allowed_for_good_is_listed_and_withdrawn(shop: Path) -> None:
    with started("terminal", emacs_with("touch told", shop), shop) as one:
        one.ask(f"(find-file {lisp(str(shop / 'prices.py'))}) t")
        ask(one, "go")
        one.until("(magy-permission--all)")
        one.keys("C-c m y", "p")
        said(one, "Over.")
        one.keys("C-c m Y")
        seen(one, "this project", "touch told", "withdraws one: then Magy asks again")
        one.ask('(goto-char (point-min)) (search-forward " bash ") (beginning-of-line) t')
        one.keys("w")
        seen(one, "Withdrawn: bash touch told; Magy asks again")
        one.until("(= 1 (length tabulated-list-entries))")
        ask(one, "go")
        one.until("(magy-permission--all)")


def test_a_question_says_why_it_offers_no_lasting_yes(shop: Path) -> None:
    with started("terminal", emacs_with("bash -c ls", shop), shop) as one:
        one.ask(f"(find-file {lisp(str(shop / 'prices.py'))}) t")
        ask(one, "go")
        one.until("(magy-permission--all)")
        said(one, "\n    no lasting yes: Magy cannot tell what it would allow\n")
        one.keys("C-c m y")
        seen(one, "no lasting yes: Magy cannot tell what it would allow", "(y) allow once, ")
        one.keys("C-g")
