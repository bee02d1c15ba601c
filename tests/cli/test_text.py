"""Text for a terminal: harmless, measured, styled; Markdown as it streams."""

from __future__ import annotations

import asyncio
import json
import os
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magy_server.cli.screen.complaints import complain
from magy_server.cli.screen.terminal import Output, Screen
from magy_server.cli.screen.text import ASCII, UNICODE, Stream, coloured, marks, plain, record
from magy_server.cli.screen.written_markdown import Written
from magy_server.core.text.columns import shortened, width_of, wrapped
from magy_server.core.text.sanitizing import harmless
from tests.thorough import examples

NASTY = st.text(
    st.sampled_from("\x1b[]0;31mKH\x07\x9b\\P?2J\r\nab \u202e\u2066\x00\x7f\x85\ufeff日é`*#-~>")
)
CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]52;c;aGk=\x1b\\text", "text"),
        ("\x1b]8;;http://x\x07link\x1b]8;;\x07", "link"),
        ("\x1bPq#0\x1b\\text", "text"),
        ("\x1b[2J\x1b[H\x1b(B", ""),
        ("a\r\nb\rc", "a\nb\nc"),
        ("bell\x07", "bell<U+0007>"),
        ("\x9b31m", "<U+009B>31m"),
        ("if a\u202e b", "if a<U+202E> b"),
        ("tab\tstays", "tab\tstays"),
        ("\x1b", "<U+001B>"),
        ("half \ud800", "half <U+D800>"),
        ("日本 ✓ é", "日本 ✓ é"),
    ],
)
def test_what_could_harm_a_terminal_is_taken_out_or_shown(text: str, shown: str) -> None:
    assert harmless(text) == shown


@given(NASTY)
def test_nothing_harmful_is_left(text: str) -> None:
    assert not CONTROLS.search(harmless(text))


@given(st.lists(NASTY))
def test_text_in_pieces_is_as_harmless_as_the_whole(pieces: list[str]) -> None:
    stream = Stream()
    shown = "".join(stream.feed(piece) for piece in pieces) + stream.close()
    assert not CONTROLS.search(shown)
    assert shown == harmless("".join(pieces))


@settings(max_examples=examples(20))  # each begins a thread and a loop
@given(st.lists(NASTY, min_size=5))
def test_nothing_that_controls_a_terminal_is_written(texts: list[str]) -> None:
    """Whoever hands it over may have forgotten to make it harmless."""
    reader, writer = os.pipe()
    try:
        asyncio.run(Screen(Output(writer, "utf-8")).write([(text, "red") for text in texts]))
    finally:
        os.close(writer)
    with open(reader, encoding="utf-8", newline="") as file:
        assert not CONTROLS.search(file.read())


@given(NASTY)
def test_json_controls_no_terminal_and_is_the_same(text: str) -> None:
    line = record({"text": text})
    assert not CONTROLS.search(line) and json.loads(line) == {"text": text}


def test_a_complaint_controls_no_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    complain("it said \x1b]0;title\x07\x9b31m no")
    assert capfd.readouterr().err == "magy: it said <U+009B>31m no\n"


def test_an_endless_sequence_is_not_waited_for() -> None:
    stream = Stream()
    assert len(stream.feed("\x1b]0;" + "x" * 1000)) > 500


@pytest.mark.parametrize(
    ("text", "columns", "shown"),
    [
        ("short", 5, "short"),
        ("longer", 5, "long…"),
        ("日本語", 5, "日本…"),
        ("日本語", 4, "日…"),
        ("e\u0301e\u0301e\u0301", 3, "e\u0301e\u0301e\u0301"),
        ("ab", 1, "…"),
        ("ab", 0, ""),
    ],
)
def test_a_line_is_shortened_by_columns(text: str, columns: int, shown: str) -> None:
    assert shortened(text, columns) == shown
    assert width_of(shown) <= columns


def test_colours_never_reach_over_a_line_end() -> None:
    assert coloured([("a\n\nb", "red"), ("c", "")]) == "\x1b[31ma\x1b[0m\n\n\x1b[31mb\x1b[0mc"


@pytest.mark.parametrize(("encoding", "found"), [("utf-8", UNICODE), ("latin-1", ASCII),
                                                 ("ascii", ASCII), (None, ASCII),
                                                 ("no-such", ASCII)])  # fmt: skip
def test_marks_are_those_that_can_be_written(encoding: str | None, found: object) -> None:
    assert marks(encoding) is found


# --- Markdown -----------------------------------------------------------------------------------

PIECES = [
    "# Head", "```", "```python", "x = 1", "- item", "1. one", "> said", "**bold**", "`code`",
    "word", "a-very-long-word-" * 5, "日本語の文", " ", "  ", "\n", "\t",
]  # fmt: skip
MARKDOWN = st.lists(st.sampled_from(PIECES))


def prose(pieces: list[str], width: int | None) -> str:
    writer = Written()
    spans = [span for piece in pieces for span in writer.feed(piece, width)]
    return plain(spans + writer.close(width))


@given(st.lists(st.text()) | MARKDOWN)
def test_without_a_width_not_a_character_is_changed(pieces: list[str]) -> None:
    assert prose(pieces, None) == "".join(pieces)


@given(MARKDOWN, st.integers(20, 60))
def test_wrapping_changes_only_blanks(pieces: list[str], width: int) -> None:
    assert prose(pieces, width).split() == "".join(pieces).split() or (
        # a line may end between two Chinese characters, where no blank was
        "".join(prose(pieces, width).split()) == "".join("".join(pieces).split())
    )


@given(st.lists(st.sampled_from(["word ", "and ", "another-one ", "日本語 ", "\n"])))
def test_wrapped_lines_fit(pieces: list[str]) -> None:
    assert all(width_of(line.rstrip()) <= 20 for line in prose(pieces, 20).split("\n"))


def test_how_text_came_does_not_matter() -> None:
    text = (
        "# A *head*\n\nSome **bold words** and `code`, then\n```py\nx  =  1\n```\n"
        "- an item that is long"
    )
    whole, one = Written(), Written()
    spans = one.feed(text, 24) + one.close(24)
    letters = [span for letter in text for span in whole.feed(letter, 24)] + whole.close(24)
    assert plain(spans) == plain(letters)


def test_the_line_under_way_is_a_draft_that_fits() -> None:
    """A terminal can take it away again; nothing is held back where it cannot."""
    writer = Written()
    assert plain(writer.feed("a whole line\n# half", 20)) == "a whole line\n"
    assert plain(writer.draft(20, 24)) == "# half"
    long = f"{'word ' * 30}{'x' * 50}"
    assert writer.feed(f" {long}", 20) == []
    rows = plain(writer.draft(20, 6)).split("\n")
    assert len(rows) == 4 and all(width_of(row) <= 20 for row in rows) and rows[-1][-1] == "x"
    assert plain(writer.close(20)).split() == ["#", "half", *long.split()]
    assert plain(Written(wraps=False).feed("# half", 20)) == "# half"


@given(MARKDOWN, st.integers(20, 60))
def test_rows_that_may_divide_words_all_fit(pieces: list[str], width: int) -> None:
    line = "".join(pieces).replace("\n", " ").replace("\t", " ")
    rows = wrapped(line, width, long=True)
    assert all(width_of(row) <= width for row in rows)
    assert "".join("".join(rows).split()) == "".join(line.split())


def test_lists_hang_and_code_is_not_wrapped() -> None:
    text = "- one two three four five six\n```\none two three four five six seven\n```\n"
    assert prose([text], 20) == (
        "- one two three four\n  five six\n```\none two three four five six seven\n```\n"
    )
