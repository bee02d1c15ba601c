"""Markdown rendered as it streams: nothing is lost, and how it came does not matter."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.cli.screen.rendered_markdown import Rendered
from magy_server.cli.screen.text import coloured, plain
from magy_server.core.text.columns import width_of

PIECES = st.lists(
    st.sampled_from(
        ["word ", "and\n", "\n", "# ", "- item ", "  - ", "1. ", "> ", "\n```\n", "\n```py\n",
         "`code` ", "**bold** ", "| a | b |\n", "| --- | --- |\n", "Vec<T> ", "<b>",
         "[x](http://y/z) ", "![p](q.png) ", "<http://auto/> ", "    ", "[1]: http://w\n",
         "---\n", "日本語 ", "~~no~~ ", "&amp; ", "\\* ", "<!-- c -->\n"]
    ),
    max_size=25,
)  # fmt: skip
MARKS = re.compile(r"[^\w日本語]+|\b(?:amp)\b")


def rendered(pieces: list[str], width: int = 60) -> str:
    writer = Rendered()
    spans = [span for piece in pieces for span in writer.feed(piece, width)]
    return coloured(spans + writer.close(width))


def words(text: str) -> list[str]:
    """But those after three backticks, which name a language, and numbers of items. A line may end
    after every Chinese character."""
    without = re.sub(r"\x1b\[[\d;]*m", "", re.sub(r"```.*|~~~.*", "", text))
    without = re.sub("[日本語]", r"\g<0> ", without)
    return sorted(word for word in MARKS.split(without) if word and not word.isdigit())


@given(PIECES)
def test_no_word_is_lost(pieces: list[str]) -> None:
    assert words(rendered(pieces)) == words("".join(pieces))


@given(PIECES)
def test_how_text_came_does_not_matter(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert rendered(pieces) == rendered([text]) == rendered(list(text))


@given(PIECES, st.integers(20, 50))
def test_no_word_is_broken(pieces: list[str], width: int) -> None:
    assert words(rendered(pieces, width)) == words(rendered(pieces, 200))


@given(st.lists(st.sampled_from(["word ", "another-one ", "日本語 ", "\n", "- ", "> "])))
def test_lines_fit(pieces: list[str]) -> None:
    writer = Rendered()
    lines = plain(writer.feed("".join(pieces), 20) + writer.close(20)).split("\n")
    assert all(width_of(line) <= 20 for line in lines if not re.match(r"[ •▌]{9}", line))


@given(PIECES, st.integers(3, 12))
def test_a_draft_fits_on_the_screen(pieces: list[str], height: int) -> None:
    writer = Rendered()
    for piece in pieces:
        writer.feed(piece, 60)
        draft = plain(writer.draft(60, height))
        assert draft.count("\n") <= height - 3 and not draft.endswith("\n")
        assert all(width_of(line) <= 60 for line in draft.split("\n"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("one\ntwo", "one\ntwo\n"),
        ("one\n\n\ntwo", "one\n\ntwo\n"),
        ("# Head\ntext", "Head\ntext\n"),
        ("- a\n- b\n  - c", " • a\n • b\n    • c\n"),
        ("9. a\n10. b", " 9. a\n10. b\n"),
        ("> said\n> so", "▌ said\n▌ so\n"),
        ("```\n  x  =  1\n\ny\n```", "  x  =  1\n\ny\n"),
        ("![shot](a.png) <http://x.y>", "shot (a.png) http://x.y\n"),
        ("a < b, List<int>, <div>", "a < b, List<int>, <div>\n"),
        ("x" * 70, "x" * 70 + "\n"),
        ("```\n" + "x " * 40 + "x\n```", "x " * 40 + "x\n"),
    ],
)
def test_what_it_comes_to(text: str, shown: str) -> None:
    writer = Rendered()
    assert plain(writer.feed(text, 60) + writer.close(60)) == shown
