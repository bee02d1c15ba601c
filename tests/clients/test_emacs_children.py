"""Child agents in a real Emacs at the real server, with a scripted model.

An agent spawns two children; a person watches one live, speaks to it, answers what it asks, spawns
another from the tree, and closes them.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from test_emacs_e2e import ask, go, idle, said, shop, started

from tests.clients.driven import Driven, installed, letters, lisp
from tests.thorough import one_of

__all__ = ["shop"]

SCRIPT = """\
prompt: look into the prices
text: Two agents look into it.
call: spawn_agent {"agent": "general", "task_name": "Taxes",
  "prompt": "Find out where taxes are added."}
call: spawn_agent {"agent": "explore", "task_name": "Functions",
  "prompt": "Count the functions of prices.py."}
---
text: They are on their way.
---
text: The first has told me.
---
text: The second has told me.
---
text: The third has told me.
---
text: The fourth has told me.

prompt: Find out where taxes are added
text: I look for the taxes.
call: bash {"command": "touch taxes"}
---
text: I go on looking.
call: bash {"command": "sleep 600", "timeout": 600}
---
text: Never said.

prompt: only the gross
text: It is **gross** alone.

prompt: Count the functions
text: I read it.
call: read_file {"path": "prices.py"}
---
text: There are four of them.

prompt: And the lines
text: Eighteen lines.

prompt: Write a summary
text: A summary of prices.

prompt:
text: The model has nothing to say to that.
"""

TREE = "(with-current-buffer (magy-agents-tree--buffer (magy-driven-project)) (buffer-string))"
WINDOWS = '(mapconcat (lambda (window) (buffer-name (window-buffer window))) (window-list) " ")'


@pytest.fixture
def init() -> Path:
    return installed(Path(os.environ["HOME"]), SCRIPT)


def row(one: Driven, *words: str) -> None:
    """Waits until a line of the tree has these words, in their order."""
    one.until(f"(string-match-p {lisp('.*'.join(words))} {TREE})")


@pytest.mark.req("E117", "E118", "E121")
@pytest.mark.parametrize("kind", one_of(["terminal", "window"], 2))
def test_a_day_with_agents(kind: str, init: Path, shop: Path) -> None:
    with started(kind, init, shop) as one:
        one.ask(f"(find-file {lisp(str(shop / 'prices.py'))}) t")
        spawned(one)
        asked_and_answered(one, shop)
        interrupted(one)
        more_work(one)
        another_one(one)
        closed(one)
        told(one)


def spawned(one: Driven) -> None:
    """One answer lets the agent spawn two; the window that a person works in stays theirs, and a
    prompt that is open stays the only one."""
    ask(one, "look into the prices")
    one.until("(magy-permission--all)")
    said(one, "? Spawn general: Taxes")
    # Neither is agreed to unseen, and neither is there yet.
    said(one, "agent · general  Taxes\nFind out where taxes are added.\n")
    said(one, "agent · explore  Functions\nCount the functions of prices.py.\n")
    one.keys("C-c m y", "C-c m J", "C-c m y", "y")
    said(one, "They are on their way.")
    assert one.ask(WINDOWS) == "prices.py *magy tree: shop*"
    assert one.ask("(buffer-modified-p)") is None
    one.keys("C-c m J")
    row(one, "├ . general  Taxes")
    row(one, "└ ✓ explore  Functions +completed")
    said(one, "The first has told me.")


def asked_and_answered(one: Driven, shop: Path) -> None:
    """What a child asks is seen above it, names both, and is answered from the tree."""
    row(one, "general  Taxes +waiting +1")
    said(one, "? Run touch taxes  (asked by general “Taxes”, a child of build)")
    assert "[Magy asks 1]" in one.ask("(magy-modeline)")
    assert not (shop / "taxes").exists()
    go(one, "general")
    one.keys("a", "y")
    row(one, "general  Taxes +running")
    assert "allow once" not in (one.ask("(current-message)") or "")
    said(one, "? Run touch taxes  allow")
    assert "1 agent works" in one.ask(
        "(with-current-buffer (magy-project-buffer (magy-driven-project)) (magy-transcript-header))"
    )


def interrupted(one: Driven) -> None:
    """Its live transcript: a word of the person's ends what it does."""
    one.keys("RET")
    one.until('(string-search "I go on looking." (buffer-string))')
    assert "↑ build · Taxes" in one.ask("(magy-transcript-header)")
    assert "TASK ❯ Find out where taxes are added." in one.ask("(buffer-string)")
    one.keys(letters("only the gross"), "C-u", "C-u", "C-c C-c")
    one.until('(string-search "gross** alone" (buffer-string))')
    said(one, "The second has told me.")
    idle(one)


def more_work(one: Driven) -> None:
    """A child that was done does more."""
    one.keys("C-c m J")
    row(one, "general  Taxes +completed")
    go(one, "explore  Functions")
    one.keys("m", letters("And the lines"), "RET")
    said(one, "The third has told me.")
    row(one, "explore  Functions +completed", "Eighteen lines")


def another_one(one: Driven) -> None:
    """The person has a child of their own begin; its result waits for the next prompt."""
    go(one, "build")
    one.keys("+")
    one.until("(> (minibuffer-depth) 0)")
    one.keys(letters("explore"), "RET")
    one.until(
        '(and (active-minibuffer-window) (string-search "Task for explore" (with-current-buffer'
        " (window-buffer (active-minibuffer-window)) (buffer-string))) t)"
    )
    one.keys(letters("Write a summary"), "RET")
    row(one, "explore  Write a summary +completed")
    said(one, "result ✓ explore  Write a summary")


def closed(one: Driven) -> None:
    for name in ("general  Taxes", "explore  Functions", "explore  Write"):
        go(one, name)
        one.keys("k")
        row(one, f"▪ {name}.* closed")


def told(one: Driven) -> None:
    """The transcript of the parent has it all, in short."""
    text = one.ask("(magy-driven-transcript)")
    assert text.count("\nagent ▪ ") == 2
    assert text.count("\nresult ") == 5, text


@pytest.mark.req("E091", "E093", "F012")
def test_agents_outlive_the_server(init: Path, shop: Path) -> None:
    """Killed while one of two children asks: both are listed as they were, with the same ids, what
    they did and what came of it; the question is asked again, and its answer goes on from there."""
    with started("terminal", init, shop) as one:
        one.ask(f"(find-file {lisp(str(shop / 'prices.py'))}) t")
        spawned(one)
        row(one, "general  Taxes +waiting +1")
        children = (
            "(sort (hash-table-keys (magy-project-children (magy-driven-project))) #'string<)"
        )
        before = one.ask(f'(string-join {children} " ")')
        os.kill(
            one.ask(
                "(process-id (jsonrpc--process (magy-project-connection (magy-driven-project))))"
            ),
            signal.SIGKILL,
        )
        row(one, "build .* off")
        row(one, "general  Taxes +off")
        one.keys("g")
        row(one, "general  Taxes +waiting +1")
        row(one, "explore  Functions +completed", "There are four of them")
        assert one.ask(f'(string-join {children} " ")') == before
        go(one, "general")
        one.until("(magy-project-questions (magy-driven-project))")
        one.keys("a", "y")
        row(one, "general  Taxes +running")
        one.keys("RET")
        one.until('(string-search "I go on looking." (buffer-string))')
        assert "TASK ❯ Find out where taxes are added." in one.ask("(buffer-string)")
        assert (shop / "taxes").exists()
