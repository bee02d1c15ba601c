"""A question in a terminal shows all that would run, and only a key that was typed for it answers
it."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from magy_server.cli.screen.keyboard import TOGETHER, Keyboard
from tests.cli.harness import Magy, Terminal, terminal
from tests.mcp.test_servers import HERE
from tests.patience import PATIENCE

pytestmark = pytest.mark.needs("tmux", "bash")

TWO = "ls -la\nrm -rf precious"
LONG = "\n".join(["echo begin", *(f"echo {n} {'x' * 30}" for n in range(60)), "rm -rf precious"])


def calling(*commands: str) -> str:
    calls = "".join(f"call: bash {json.dumps({'command': one})}\n" for one in commands)
    return f"prompt: go\n{calls}---\ntext: Over.\n"


def unwrapped(screen: str) -> str:
    return screen.replace("\n", "")


@pytest.mark.req("G022")
def test_all_that_runs_stands_above_the_keys(magy: Magy) -> None:
    magy.script(calling(TWO))
    with terminal(magy) as one:
        one.run("run", "go")
        screen = one.see("[n] no  [y] once")
        assert "? Run ls -la ⏎ rm -rf precious\n    │ ls -la\n    │ rm -rf precious\n" in screen
        one.press("n", "Enter")
        one.see("✗ Run ls -la ⏎ rm -rf precious", "[0]")


def test_of_a_long_command_both_ends_and_the_rest_by_a_key(magy: Magy) -> None:
    magy.script(calling(LONG))
    with terminal(magy, size="90x30") as one:
        one.run("run", "go")
        screen = one.see("[v] all of it")
        title = unwrapped(screen)
        assert "? Run echo begin ⏎ echo 0 xxx" in title and "⏎ rm -rf precious" in title
        assert " … (+2,056 characters, " in title and " lines) … " in title
        one.press("v")
        screen = one.see("│ echo 59 ", "    │ rm -rf precious", "[v] all of it")
        one.press("n", "Enter")
        one.see("[0]")


def test_nothing_hides_in_a_command(magy: Magy) -> None:
    magy.script(calling("ls \x1b]0;; rm -rf precious;\x07 \u202e\u200b\x1b[2K\x1b[1A"))
    with terminal(magy) as one:
        one.run("run", "go")
        screen = unwrapped(one.see("[n] no  [y] once"))
        shown = (
            "Run ls <U+001B>]0;; rm -rf precious;<U+0007> <U+202E><U+200B><U+001B>[2K<U+001B>[1A"
        )
        assert f"? {shown}" in screen
        one.press("n", "Enter")
        one.see("[0]")


def test_one_question_at_a_time_and_keys_typed_ahead_answer_none(magy: Magy) -> None:
    """Both calls of a reply are asked about; what stands above the keys is what they answer."""
    magy.script(calling("touch first", "touch second"))
    with terminal(magy) as one:
        one.run("run", "go")
        screen = one.see("? Run touch first", "[n] no")
        assert "touch second" not in screen
        one.press("y", "y", "y", "y")
        screen = settled(one)
        if "? Run touch second" not in screen:  # they came together, and counted for nothing
            one.press("y")
            screen = one.see("? Run touch second", "[n] no")
        assert screen.index("? Run touch first") < screen.index("allowed")
        assert screen.index("allowed") < screen.index("? Run touch second")
        assert not (magy.root / "second").exists()
        one.press("n", "Enter")
        one.see("Over.", "[0]")
        assert not (magy.root / "second").exists()


def settled(one: Terminal) -> str:
    """The screen, when a key that came after all others has been answered."""
    end = time.monotonic() + PATIENCE
    while "Ctrl-C  stop the whole turn" not in (screen := one.screen()):
        assert time.monotonic() < end, screen
        one.press("?")  # one that comes too soon counts for nothing, either
        with suppress(pytest.fail.Exception):
            one.see("Ctrl-C  stop the whole turn", seconds=1)
    return screen


@pytest.mark.req("G022")
def test_a_form_of_an_mcp_server_is_filled_in_line_by_line(magy: Magy) -> None:
    done = magy("mcp", "add", "rude", sys.executable, "--", str(HERE / "rude_server.py"))
    assert done.returncode == 0, done.stderr
    settings = magy.state.parent / "magy.toml"
    allowed = settings.read_text().replace("[permission]", '[permission]\nmcp__rude = "allow"')
    settings.write_text(allowed)
    magy.script('prompt: go\ncall: call_tool {"name": "mcp__rude__form"}\n---\ntext: Over.\n')
    with terminal(magy) as one:
        while True:  # a slow machine may not have connected in the first turn
            one.run("run", "go")
            screen = one.see("mcp__rude__form")
            while "fill it in" not in screen and "Over." not in screen:
                screen = one.screen()
            if "Over." not in screen:
                break
        assert "    │ size (one of these, may be left out)\n    │     - small\n" in screen
        one.press("y")
        one.see("\nbranch (text):")
        one.press("Enter")
        one.see("branch is missing: text.")
        one.press("main", "Enter")
        one.see("\npush (yes or no; Enter: no):")
        one.press("perhaps", "Enter")
        one.see("push: 'perhaps' is not yes or no.")
        one.press("Enter")
        one.see("size (one of these; Enter: leave it out):")
        one.press("large", "Enter")
        one.see("allowed", "Over.", "[0]")


OTHER_KEYS = [
    ("Enter",), ("Escape",), ("Space",), ("C-d",), ("C-g",), ("BSpace",), ("M-y",), ("M-s",),
    ("F1",), ("Up",), ("-H", "1b", "4f", "70"), ("-H", "1b", "5b", "31", "3b", "32", "53"),
    ("-H", *(f"{byte:02x}" for byte in b"\x1b[200~y\x1b[201~")),
]  # fmt: skip


@pytest.mark.long
def test_no_other_key_allows(magy: Magy) -> None:
    magy.script(calling("touch made"))
    with terminal(magy) as one:
        one.run("run", "go")
        one.see("? Run touch made", "[n] no")
        for keys in OTHER_KEYS:
            one.press(*keys)
            assert "allowed" not in settled(one), keys
            one.clear()
        one.press("n", "Enter")
        one.see("Over.", "[0]")
    assert not (magy.root / "made").exists()


@pytest.mark.parametrize(
    ("typed", "key"),
    [
        (b"y", "y"), (b"Y", "y"), (b"n", "n"), (b"yes please", ""), (b"many y", ""),
        (b"\x1b[200~y\x1b[201~", ""), (b"\x1b[200~y", ""), (b"\x1bOp", ""),
        (b"\x1b[A\x1b[By", "y"), (b"\x1by", ""), (b"\x1b", ""),
    ],
)  # fmt: skip
@pytest.mark.parametrize("whole", [True, False])
async def test_what_counts_as_a_key(typed: bytes, key: str, whole: bool) -> None:
    """What is pasted or comes in one breath is no answer, in however many pieces it is read; a
    sequence is none of the letters in it."""
    async with listening() as (person, keyboard):
        for piece in [typed] if whole else [typed[n : n + 1] for n in range(len(typed))]:
            await pressed(person, keyboard, piece)
        assert keyboard.key() == "", "more may come"
        await asyncio.sleep(1.5 * TOGETHER)
        if not whole and typed.startswith(b"\x1b[A"):
            return  # what follows in pieces at once may be anything
        assert keyboard.key() == key
        assert keyboard.key() == ""
        await pressed(person, keyboard, b"p")
        await asyncio.sleep(1.5 * TOGETHER)
        assert keyboard.key() == ("" if typed == b"\x1b[200~y" else "p"), "the next one counts"


async def test_what_follows_a_no_is_its_reason() -> None:
    async with listening() as (person, keyboard):
        await pressed(person, keyboard, b"not now\n")
        await asyncio.sleep(1.5 * TOGETHER)
        assert (keyboard.key(), keyboard.line()) == ("n", "ot now")


async def test_what_was_typed_before_anybody_listened_is_forgotten() -> None:
    person, terminal = pty.openpty()
    with Keyboard(terminal, owned=True) as keyboard:
        os.write(person, b"y\ny")
        keyboard.listen("key")
        await pressed(person, keyboard, b"n")
        await asyncio.sleep(1.5 * TOGETHER)
        assert (keyboard.key(), keyboard.key()) == ("n", "")
    os.close(person)


@asynccontextmanager
async def listening() -> AsyncIterator[tuple[int, Keyboard]]:
    """Where a person types, and the keyboard that hears it."""
    person, terminal = pty.openpty()
    with Keyboard(terminal, owned=True) as keyboard:
        keyboard.listen("key")
        yield person, keyboard
    os.close(person)


async def pressed(person: int, keyboard: Keyboard, keys: bytes) -> None:
    """They are typed, and read."""
    woken = asyncio.Event()
    unheard = keyboard.typed.add(woken.set)
    os.write(person, keys)
    await asyncio.wait_for(woken.wait(), PATIENCE)
    unheard()
