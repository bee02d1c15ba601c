"""The live document against a naive model: one string, every position worked out anew from the
whole text, one character at a time. Random edits of every kind, also those that no editor should
send."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magy_server.api.positions import column, split_lines
from magy_server.lsp.documents import LiveDocument
from tests.thorough import examples

ENCODINGS = ["utf-8", "utf-16", "utf-32"]
WIDTHS = {
    "utf-8": lambda char: len(char.encode("utf-8", "surrogatepass")),
    "utf-16": lambda char: len(char.encode("utf-16-le", "surrogatepass")) // 2,
    "utf-32": lambda char: 1,
}
ALPHABET = "ab\té\u2028\x0c\x85\r\r\r\n\n\n\ufffd😋𝄞\ud83d"
"""Mostly line ends, and what only looks like one; the last is half a surrogate pair, as JSON can
hold it."""
TEXT = st.text(st.sampled_from(ALPHABET), max_size=24)
POSITION = st.tuples(st.integers(0, 9), st.integers(0, 14))
Change = tuple[tuple[int, int] | None, tuple[int, int], str]
CHANGE = st.one_of(
    st.tuples(POSITION, POSITION, TEXT),
    st.tuples(POSITION, POSITION, st.sampled_from(["", "\r", "\n", "\r\n", "\n\r"])),
    st.tuples(st.none(), POSITION, TEXT),
)
"""(start, end, text); start None: the whole text."""


class Naive:
    """What the protocol says, and nothing else."""

    def __init__(self, text: str, encoding: str) -> None:
        self.text = text
        self._width = WIDTHS[encoding]

    def offset(self, line: int, character: int) -> int:
        ends = list(re.finditer(r"\r\n|\r|\n", self.text))
        if line > len(ends):
            return len(self.text)
        at = ends[line - 1].end() if line else 0
        stop = ends[line].start() if line < len(ends) else len(self.text)
        seen = 0
        while at < stop and seen < character:
            seen += self._width(self.text[at])
            at += 1
        return at

    def change(self, change: Change) -> None:
        first, last, new = change
        if first is None:
            self.text = new
            return
        start, end = sorted((first, last))
        a, b = self.offset(*start), self.offset(*end)
        self.text = self.text[:a] + new + self.text[b:]


def document(text: str, encoding: str) -> LiveDocument:
    return LiveDocument("file:///x", text, 1, encoding)


def apply(live: LiveDocument, change: Change) -> None:
    first, last, new = change
    if first is None:
        live.change(new)
        return
    live.change((first, last, new))


@pytest.mark.parametrize("encoding", ENCODINGS)
@settings(max_examples=examples(150))
@given(text=TEXT, batches=st.lists(st.lists(CHANGE, min_size=1, max_size=4), max_size=6))
def test_any_edits_give_the_naive_text(
    encoding: str, text: str, batches: Sequence[Sequence[Change]]
) -> None:
    """Positions past ends, reversed, in the middle of characters; changes that join a CR and an LF
    or part them; several in one notification, looked at only now and then."""
    naive, live = Naive(text, encoding), document(text, encoding)
    for batch in batches:
        for change in batch:
            naive.change(change)
            apply(live, change)
        assert live.source == naive.text
    assert list(live.lines) == split_lines(naive.text)
    assert "".join(live.lines) == naive.text


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(text=st.text(max_size=40), character=st.integers(0, 200))
def test_a_column_is_what_counting_gives(encoding: str, text: str, character: int) -> None:
    line = re.split(r"[\r\n]", text)[0]
    naive = Naive(line, encoding)
    assert column(line + "\r\n", character, encoding) == naive.offset(0, character)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("seed", range(3))
def test_a_long_life(encoding: str, seed: int) -> None:
    """Many edits one after the other in one larger document: an error would not heal."""
    random_ = random.Random(seed)
    start = "".join(random_.choices(ALPHABET + "words of code", k=3000))
    naive, live = Naive(start, encoding), document(start, encoding)
    for _ in range(400):
        line = random_.randrange(len(live.lines) + 2)
        first = (line, random_.randrange(12))
        last = (line + random_.choice([0, 0, 0, 1, 5]), random_.randrange(12))
        new = "".join(random_.choices(ALPHABET, k=random_.choice([0, 1, 1, 1, 2, 9])))
        naive.change((first, last, new))
        apply(live, (first, last, new))
        assert list(live.lines) == split_lines(naive.text)
    assert live.source == naive.text


def test_a_keystroke_leaves_the_other_lines_alone() -> None:
    """Whatever the file's length: all lines but the one that was typed in are the same objects, and
    nobody has put the whole text together."""
    live = document("".join(f"line {n}\n" for n in range(10_000)), "utf-16")
    before = list(live.lines)
    apply(live, ((5000, 4), (5000, 4), "x"))
    apply(live, ((5000, 5), (5000, 5), "\n"))
    after = list(live.lines)
    assert after[5000:5002] == ["linex\n", " 5000\n"]
    kept = before[:5000] + before[5001:]
    assert all(a is b for a, b in zip(kept, after[:5000] + after[5002:], strict=True))
    assert live._joined is None
