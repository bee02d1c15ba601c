"""A place that is rewritten while somebody types: where it is by now, and what a model's answer
comes to there."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.edits.model import EditError
from magy_server.edits.selection import LONGEST_START, Argument, Rewrite, carried

BASE = "a = 1\nb = 2\nc = 3\nd = 4\n"
B = BASE.index("b"), BASE.index("c")
TEXTS = st.text(alphabet="ab\n", max_size=8)


def where(live: str, place: tuple[int, int] = B) -> str | None:
    """What stands before it now."""
    now = carried(BASE, live, place)
    if now is None:
        return None
    assert live[slice(*now)] == BASE[slice(*place)]
    return live[: now[0]]


# --- where it is --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("live", "before"),
    [
        (BASE, "a = 1\n"),
        (f"new\n{BASE}", "new\na = 1\n"),
        (BASE + "new\n", "a = 1\n"),
        (f"new\n{BASE}new\n", "new\na = 1\n"),
        (BASE.replace("a = 1\n", "").replace("d", "D"), ""),
        (BASE.replace("b", "\nb"), "a = 1\n\n"),
        (BASE.replace("c", "\nc").replace("a", "A"), "A = 1\n"),
    ],
)
def test_it_moves_with_what_is_typed_elsewhere(live: str, before: str) -> None:
    assert where(live) == before


@pytest.mark.parametrize(
    "live",
    [
        BASE.replace("2", "two"),
        BASE.replace("b = 2\n", ""),
        BASE.replace("b = 2\n", "b = 2 + 2\n").replace("a", "A"),
        "",
    ],
)
def test_it_is_gone_once_it_was_typed_in(live: str) -> None:
    assert where(live) is None


def test_within_a_line_only_the_characters_count() -> None:
    two = BASE.index("2"), BASE.index("2") + 1
    assert where(BASE.replace("b =", "bee ="), two) == "a = 1\nbee = "
    assert where(f"new\n{BASE.replace('b =', 'bee =')}", two) == "new\na = 1\nbee = "
    assert where(f"new\n{BASE.replace('2', '3')}", two) is None


@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_what_is_typed_on_one_side_never_takes_it_away(
    before: str, place: str, after: str, typed: str
) -> None:
    base, at = before + place + after, (len(before), len(before) + len(place))
    for live in (typed + place + after, before + place + typed):
        now = carried(base, live, at)
        assert now is not None and live[slice(*now)] == place


@given(TEXTS, TEXTS)
def test_what_is_found_reads_as_it_did(base: str, live: str) -> None:
    for start in range(len(base) + 1):
        for end in range(start, len(base) + 1):
            now = carried(base, live, (start, end))
            assert now is None or live[slice(*now)] == base[start:end]


# --- the answer ---------------------------------------------------------------------------------


def fitted(text: str, base: str = BASE, old: str = "b = 2\n", prose: bool = False) -> str:
    start = base.index(old)
    return Rewrite(base, (start, start + len(old)), prose).fitted(text)


@pytest.mark.parametrize("text", ["b = 5\n", "b = 5", "b = 5\r\n", "```\nb = 5\n```",
                                  "```python\nb = 5\n```\n", "\n~~~\nb = 5\n~~~\n\n"])  # fmt: skip
def test_whole_lines_stay_whole_lines_and_one_fence_goes(text: str) -> None:
    assert fitted(text) == "b = 5\n"


@pytest.mark.parametrize("text", ["5", "5\n"])
def test_a_part_of_a_line_stays_one(text: str) -> None:
    assert fitted(text, old="2") == "5"


def test_nothing_is_a_text_as_well() -> None:
    assert fitted("") == ""


@pytest.mark.parametrize(
    "text",
    [
        "Here it is:\n```python\nb = 5\n```\n",
        "```python\nb = 5\n```\nThat is better.",
        "```python\nb = 5\n",
        "```\nb = 5\n```\nor\n```\nb = 6\n```",
    ],
)
def test_what_cannot_be_told_apart_is_refused(text: str) -> None:
    with pytest.raises(EditError, match="without fences or words around it"):
        fitted(text)


def test_fences_that_belong_into_the_file_stay() -> None:
    asked = "Like this:\n\n```python\nb = 5\n```\n"
    assert fitted(asked, prose=True) == asked
    assert fitted("```\nb = 5\n```\n", prose=True) == "```\nb = 5\n```\n"
    assert fitted("```markdown\nb = 5\n```\n", prose=True) == "b = 5\n"
    assert fitted(asked, base=f'{BASE}"""\n```\nx\n```\n"""\n') == asked
    block = "```\nb = 2\n```\n"
    assert fitted("```\nb = 5\n```\n", base=f"a\n{block}", old=block) == "```\nb = 5\n```\n"


def test_indentation_before_the_selection_is_not_there_twice() -> None:
    base = "if a:\n    b = 2\n    c = 3\n"
    assert fitted("    b = 5\n    c = 6", base, "b = 2\n    c = 3") == "b = 5\n    c = 6"
    assert fitted("    b = 5\n", base, "    b = 2\n") == "    b = 5\n"


@pytest.mark.parametrize(
    ("at", "text"), [(0, "x\n"), (len("a = 1"), "x"), (len(BASE), "x"), (len("a"), "x")]
)
def test_an_insertion_is_whole_lines_at_the_beginning_of_one(at: int, text: str) -> None:
    for sent in ("x", "x\n"):
        assert Rewrite(BASE, (at, at)).fitted(sent) == text


# --- while it streams ---------------------------------------------------------------------------


@given(st.text(), st.booleans(), st.integers(1, 7))
def test_an_argument_grows_as_its_json_streams(text: str, escaped: bool, step: int) -> None:
    streamed = json.dumps({"text": text}, ensure_ascii=escaped)
    argument = Argument("text")
    for at in range(0, len(streamed), step):
        argument.feed(streamed[at : at + step])
        assert text.startswith(argument.text)
    assert argument.text == text


def test_half_a_surrogate_pair_and_another_argument_do_no_harm() -> None:
    argument = Argument("text")
    argument.feed('{"text": "a\\ud83d b"}')
    assert argument.text == "a\ufffd b"
    other = Argument("text")
    other.feed('{"why": "because", "text": "a"}')
    assert other.text == ""


def test_an_argument_that_does_not_begin_is_given_up() -> None:
    """Else all that has come would be searched again at each bit of it."""
    argument = Argument("text")
    argument.feed("{" + " " * LONGEST_START)
    argument.feed('"text": "a"}')
    assert argument.text == ""
    argument = Argument("text")
    argument.feed("{" + " " * (LONGEST_START - 1))
    argument.feed('"text": "a"}')
    assert argument.text == "a"


def test_whole_lines_are_shown_and_no_fence() -> None:
    rewrite = Rewrite(BASE, B)
    sent = "```python\nb = 5\nb += 1\n```\n"
    shown = [rewrite.so_far(sent[:at]) for at in range(len(sent) + 1)]
    assert list(dict.fromkeys(shown)) == ["", "b = 5\n", "b = 5\nb += 1\n"]
