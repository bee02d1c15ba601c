"""A suggestion goes on to hold for who types it, at its place and nowhere else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from magy_server.api.completions.known_suggestions import MOST, TELLING, KnownSuggestions
from magy_server.api.completions.surroundings import Surroundings

URI, MODEL = "file:///a.py", "mine/small"
TEXTS = st.text("ab\n 😀", max_size=30)
LONG = "value = 1\n" * 100


def place(before: str, after: str = "", *, begins: bool = True) -> Surroundings:
    return Surroundings(before, after, 0, begins, "\n")


@given(TEXTS, TEXTS, TEXTS.filter(bool), st.booleans(), st.data())
def test_who_types_it_gets_the_rest(
    before: str, after: str, text: str, long: bool, data: st.DataObject
) -> None:
    known = KnownSuggestions()
    before = LONG + before if long else before
    begins = not long
    known.keep(URI, MODEL, place(before, after, begins=begins), text)
    typed = data.draw(st.integers(0, len(text) - 1))
    here = place(before + text[:typed], after, begins=begins)
    assert known.find(URI, MODEL, here) == text[typed:]


@given(TEXTS, TEXTS, TEXTS.filter(bool), TEXTS)
def test_who_types_something_else_gets_nothing(
    before: str, after: str, text: str, typed: str
) -> None:
    known = KnownSuggestions()
    known.keep(URI, MODEL, place(before, after), text)
    found = known.find(URI, MODEL, place(before + typed, after))
    assert found == (text[len(typed) :] if text.startswith(typed) and typed != text else None)


def test_what_was_nothing_is_known_to_be_nothing() -> None:
    known = KnownSuggestions()
    known.keep(URI, MODEL, place("a"), "")
    assert known.find(URI, MODEL, place("a")) == ""
    assert known.find(URI, MODEL, place("ab")) is None


def test_it_holds_for_one_document_and_one_model_until_that_is_closed() -> None:
    known = KnownSuggestions()
    known.keep(URI, MODEL, place("a"), "bc")
    assert known.find("file:///b.py", MODEL, place("ab")) is None
    assert known.find(URI, "mine/other", place("ab")) is None
    assert known.find(URI, MODEL, place("ab", "c")) is None
    known.forget(URI)
    assert known.find(URI, MODEL, place("a")) is None


def test_a_long_document_is_told_by_what_is_near() -> None:
    known = KnownSuggestions()
    known.keep(URI, MODEL, place("x" * 5 + LONG, LONG, begins=False), "then")
    far = place("y" * 9 + LONG + "th", LONG + "z", begins=False)
    assert known.find(URI, MODEL, far) == "en"
    assert known.find(URI, MODEL, place(LONG[:TELLING] + "th", LONG, begins=False)) == "en"
    assert known.find(URI, MODEL, place("th", LONG)) is None


def test_it_is_bounded() -> None:
    known = KnownSuggestions()
    for number in range(MOST + 5):
        known.keep(URI, MODEL, place(f"{number}("), "x")
    found = [known.find(URI, MODEL, place(f"{number}(")) for number in range(MOST + 5)]
    assert found == [None] * 5 + ["x"] * MOST
