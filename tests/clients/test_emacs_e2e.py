"""Whole journeys through a real Emacs with the real server: in batch, in a terminal, in a window.

The model is scripted; everything else is what a person has who did what the guide says.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from test_emacs import emacs as run_emacs
from test_emacs import missing

from tests.clients.driven import Driven, emacs, installed, letters, lisp, xvfb
from tests.clients.shop import PRICES, TYPED, script
from tests.thorough import one_of

SCRIPT = script(thinking=0.4)


@pytest.fixture(autouse=True)
def needs_emacs() -> None:
    for program in ("emacs", "emacsclient"):
        if shutil.which(program) is None:
            missing(f"{program} is not installed (Debian: apt install emacs-lucid)")


@pytest.fixture
def init() -> Path:
    return installed(Path(os.environ["HOME"]), SCRIPT)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A project with one file and an old directory."""
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / "build").mkdir()
    (root / "prices.py").write_text(PRICES)
    return root


@contextmanager
def started(kind: str, init: Path, shop: Path) -> Iterator[Driven]:
    with ExitStack() as stack:
        display = ""
        if kind == "terminal" and shutil.which("tmux") is None:
            missing("tmux is not installed")
        if kind == "window":
            if shutil.which("Xvfb") is None:
                missing("Xvfb is not installed")
            if run_emacs("--eval", "(princ (fboundp 'x-create-frame))").stdout != "t":
                missing("this Emacs has no graphical display (Debian: apt install emacs-lucid)")
            display = stack.enter_context(xvfb())
        yield stack.enter_context(emacs(kind, init, shop, display))


SESSION = "(magy-project-session (magy-driven-project))"
STATE = "(magy-project-state (magy-driven-project))"


def idle(one: Driven) -> None:
    one.until(f'(and (equal "idle" {STATE}) (null (magy-project-unsent (magy-driven-project))))')


def said(one: Driven, text: str) -> None:
    one.until(f"(string-search {lisp(text)} (magy-driven-transcript))")


def shown(one: Driven) -> str:
    """The text of the buffer in the selected window."""
    return str(one.ask("(buffer-substring-no-properties (point-min) (point-max))"))


def go(one: Driven, text: str) -> None:
    one.ask(
        f"(goto-char (point-min)) (search-forward {lisp(text)}) (set-window-point nil (point)) t"
    )


def pending(one: Driven, count: int) -> None:
    """Waits until so many changes of the buffer, as it is now, are drawn."""
    one.until(
        f"(and (= {count} (seq-count (lambda (one) (overlay-get one 'magy-hunk))"
        " (overlays-in (point-min) (1+ (point-max)))))"
        " (magy-review--current-p magy-review--files))"
    )


def ask(one: Driven, text: str) -> None:
    """C-c m m: a prompt without context."""
    one.keys("C-c m m", letters(text), "RET")


@pytest.mark.req("F005", "G006")
@pytest.mark.parametrize("kind", one_of(["batch", "terminal", "window"]))
def test_a_day_with_magy(kind: str, init: Path, shop: Path) -> None:
    with started(kind, init, shop) as one:
        one.ask(f"(find-file {lisp(str(shop / 'prices.py'))}) (buffer-enable-undo) t")
        prompted_and_answered(one)
        typed_while_edits_land(one)
        reviewed(one)
        undone(one)
        rewritten(one)
        killed(one, shop)


def prompted_and_answered(one: Driven) -> None:
    """A prompt with what is at point; a question that takes nothing; its answer, by a key."""
    go(one, "def gross")
    one.keys("C-c m p", letters("tidy the prices"), "RET")
    one.until("(magy-permission--all)")
    assert one.ask("(buffer-name)") == "prices.py", "no window was taken"
    assert "[Magy asks 1]" in one.ask("(magy-modeline)")
    said(one, "? Run rm -rf build")
    said(one, "I look at **prices.py**")
    one.keys("C-c m y", "y")


def typed_while_edits_land(one: Driven) -> None:
    """Each key is a change of its own, until all edits are in the buffer; neither side loses."""
    go(one, "sum(prices)\n")
    typed = ""
    while "name.strip()" not in shown(one):
        letter = TYPED[len(typed)] if len(typed) < len(TYPED) else "."
        one.keys(letters(letter))
        typed += letter
    one.keys("RET")
    typed = typed.rstrip(" ")  # Emacs takes away what is blank at the end of a line that is ended
    idle(one)
    said(one, "The prices are tidy")
    expected = PRICES.replace("return price\n", "return round(price, 2)\n", 1)
    expected = expected.replace("price * 1.19", "round(price * 1.19, 2)")
    one.until(f'(string-suffix-p {lisp(typed)} (string-trim-right (buffer-string) "\\n+"))')
    assert shown(one) == expected.replace("name\n", "name.strip()\n") + typed + "\n", one.report()


def reviewed(one: Driven) -> None:
    """Three changes: one accepted, one rejected with a reason, one after it was typed into."""
    one.ask("(goto-char (point-min)) (set-window-point nil (point)) t")
    pending(one, 3)
    one.keys("C-c m ]")
    one.until("(= 2 (line-number-at-pos))")
    one.keys("a")
    pending(one, 2)
    assert one.ask("(line-number-at-pos)") == 6, "deciding goes on to the next"
    one.keys("C-u C-c m -", letters("taxes are rounded later"), "RET")
    pending(one, 1)
    one.until('(string-search "return price * 1.19" (buffer-string))')
    go(one, "name.strip()")
    one.keys(letters(".title()"))
    one.until('(string-search "name.strip().title()" (buffer-string))')
    pending(one, 1)
    one.keys("C-c m +")
    one.until("(null (magy-project-reviews (magy-driven-project)))")
    pending(one, 0)
    assert "return name.strip().title()\n" in shown(one)
    assert "return round(price, 2)\n" in shown(one)


def undone(one: Driven) -> None:
    """Another turn is undone as a whole; what was typed stays, the prompt can be said anew."""
    before = shown(one)
    ask(one, "shout")
    said(one, "It shouts")
    idle(one)
    assert "# TOTAL" in shown(one)
    one.keys("C-c m U")
    one.until('(string-prefix-p "*magy undo" (buffer-name))')
    assert "-    return sum(prices)  # TOTAL" in shown(one)
    one.keys("y")
    one.until('(with-current-buffer "prices.py" (not (string-search "TOTAL" (buffer-string))))')
    said(one, "shout  (undone)")
    transcript = "(magy-project-buffer (magy-driven-project))"
    assert one.ask(f"(with-current-buffer {transcript} (magy-input-text))") == "shout"
    one.ask('(switch-to-buffer "prices.py") t')
    assert shown(one) == before


def rewritten(one: Driven) -> None:
    """The function at point, in its place, while something is typed above it."""
    go(one, "def total")
    one.keys("C-c m w", letters("in one line"), "RET")
    seen = one.until(
        '(and magy-rewrite--all (string-search "# the sum" (or (overlay-get'
        ' (magy-rewrite-overlay (car magy-rewrite--all)) \'after-string) ""))'
        ' (if (string-search "# the sum" (buffer-string)) "text" "draft"))'
    )
    assert seen == "draft", "a draft is no text yet"
    one.ask("(goto-char (point-min)) (set-window-point nil (point)) t")
    one.keys("#", "RET")
    one.until("(null magy-rewrite--all)")
    text = shown(one)
    assert text.startswith("#\ndef net")
    assert "    return round(sum(prices), 2)\n" in text
    pending(one, 1)
    one.keys("C-c m ]", "a")
    pending(one, 0)


def killed(one: Driven, shop: Path) -> None:
    """Nothing that was said is lost; the wish to answer starts the server, which asks again."""
    ask(one, "tell me a long story")
    one.until("(magy-permission--all)")
    said(one, "And it lived")
    said(one, "tool · Run touch told")
    before = one.ask("(magy-driven-transcript)")
    os.kill(
        one.ask("(process-id (jsonrpc--process (magy-project-connection (magy-driven-project))))"),
        signal.SIGKILL,
    )
    said(one, "Interrupted")
    assert one.ask("(null (magy-permission--all))")
    one.keys("C-c m y")
    one.until("(magy-permission--all)")
    one.keys("C-c m y", "y")
    said(one, "That was the story")
    idle(one)
    assert (shop / "told").exists()
    story = one.ask("(magy-driven-transcript)")
    assert story.startswith(before[: before.index("tool · Run touch told")])
    assert story.count("Once upon a time") == story.count("And it lived") == 1


@pytest.mark.req("G003")
def test_two_emacsen_on_one_session(init: Path, shop: Path) -> None:
    """What is asked in a window is answered in a terminal; both show the same to the last line."""
    with started("window", init, shop) as one, started("terminal", init, shop) as other:
        for each in (one, other):
            each.ask(f"(find-file {lisp(str(shop / 'prices.py'))}) t")
        ask(one, "tell me a long story")
        one.until("(magy-permission--all)")
        other.keys("C-c m R")
        other.until("(> (minibuffer-depth) 0)")
        other.keys("RET")
        other.until("(magy-permission--all)")
        assert one.ask(SESSION) == other.ask(SESSION)
        other.keys("C-c m y")
        other.keys("y")
        for each in (one, other):
            said(each, "That was the story")
            idle(each)
            each.until("(null (magy-permission--all))")
        ask(other, "shout")
        for each in (one, other):
            said(each, "It shouts")
            idle(each)
        assert "# TOTAL" in shown(one) + shown(other), "in the buffer of one of them, or of both"
        assert one.ask("(magy-driven-transcript)") == other.ask("(magy-driven-transcript)")
