"""The text around a cursor, as it is cut out of a document."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.api.completions.surroundings import STEP, Surroundings, around
from magy_server.api.positions import split_lines, units
from magy_server.edits.text import plain

PIECES = st.sampled_from(["a", "bc ", "\n", "\r\n", "\r", "😀", "é", "\ud83d", "\u2028", "\t"])
TEXTS = st.lists(PIECES, max_size=60).map("".join)
ENCODINGS = st.sampled_from(["utf-8", "utf-16", "utf-32"])


def cut(
    text: str, number: int, character: int, encoding: str = "utf-16", **most: int
) -> Surroundings:
    lines = split_lines(text)
    sizes = {"before": 500, "after": 500, **most}
    return around(
        lambda n: lines[n] if n < len(lines) else "", number, character, encoding, **sizes
    )


@given(TEXTS, ENCODINGS, st.data())
def test_all_of_a_short_document_is_there(text: str, encoding: str, data: st.DataObject) -> None:
    lines = split_lines(text)
    number = data.draw(st.integers(0, len(lines) - 1))
    content = lines[number].rstrip("\r\n")
    at = data.draw(st.integers(0, len(content)))
    place = cut(text, number, units(content[:at], encoding), encoding)
    whole = "".join(lines[:number]) + content[:at]
    shown = (plain(one).replace("\ud83d", "\ufffd") for one in (whole, text[len(whole) :]))
    # Two halves of a pair may meet in one text, and never do here: there are only first halves.
    assert (place.before, place.after) == tuple(shown)
    assert place.begins and place.first == 0


@given(
    TEXTS, ENCODINGS, st.integers(0, 70), st.integers(0, 70), st.integers(1, 9), st.integers(0, 9)
)
def test_there_is_never_more_than_asked_for_and_all_of_it_can_be_sent(
    text: str, encoding: str, number: int, character: int, before: int, after: int
) -> None:
    place = cut(text, number, character, encoding, before=before, after=after)
    assert len(place.before) <= before and len(place.after) <= after
    (place.before + place.after).encode()
    assert place.end in ("\n", "\r\n", "\r")


def test_the_middle_of_a_character_is_after_it() -> None:
    place = cut("a😀b", 0, 2)
    assert (place.before, place.after) == ("a😀", "b")


def test_the_beginning_stays_where_it_is_while_one_types() -> None:
    """A model server that has read the prompt goes on from there."""
    lines = [f"line {number} of them\n" for number in range(400)]
    texts = {count: "".join(lines[:count]) for count in range(200, 300)}
    firsts = [cut(text, count, 0, before=2_000).first for count, text in texts.items()]
    assert len(set(firsts)) <= len(firsts) // STEP + 2
    assert all(first % STEP == 0 for first in firsts)


def test_a_long_line_is_cut_where_the_room_ends() -> None:
    place = cut("x" * 5_000 + "y" * 5_000, 0, 5_000)
    assert (place.before, place.after) == ("x" * 500, "y" * 500)
    assert not place.begins


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_line_end_is_that_of_the_document(end: str) -> None:
    assert cut(f"a{end}b", 1, 1).end == end
    assert cut("a", 0, 1).end == "\n"
