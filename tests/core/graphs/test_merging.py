"""What several wrote becomes one text: nothing is lost, and what was done is said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.core.graphs.merging import Piece, merged

ONE = "## Prices\n\nA ton costs 30 dollars.\n\n## Places\n\nIn the north."
OTHER = "# Market\n\n### 1. **Prices**\n\nA ton costs 40 dollars.\n\n## Weather\n\nRain."


@pytest.mark.req("C019", "C025")
def test_two_that_write_one_section_differently_are_both_kept_and_named() -> None:
    found = merged([Piece("north", ONE), Piece("south", OTHER)])
    assert found.text == (
        "## Prices\n\n### north\n\nA ton costs 30 dollars.\n\n### south\n\nA ton costs 40 dollars."
        "\n\n## Places\n\nIn the north.\n\n# Market\n\n## Weather\n\nRain."
    )
    assert found.notes == (
        'north, south say different things under "Prices"; all of it is kept, under their names.',
    )


@pytest.mark.req("C025")
def test_what_two_write_alike_is_kept_once() -> None:
    long = "The market opens at nine and closes at five. " * 8
    longer = long.replace("closes at five", "closes again at five", 1)
    found = merged([
        Piece("a", f"## Hours\n\n{long}\n\n## Same\n\nYes."),
        Piece("b", f"## hours:\n{longer}\n## Same\n\nYes. "),
    ])  # fmt: skip
    assert longer.strip() in found.text and found.text.count("The market") == 8
    assert found.text.count("Yes.") == 1
    assert found.notes == (
        'a says under "Hours" what b says; it is kept once.',
        'b says under "Same" what a says; it is kept once.',
    )


@pytest.mark.parametrize("change", [("nine", "ten"), ("9", "8")])
def test_likeness_does_not_hide_a_number_or_a_short_answer(change: tuple[str, str]) -> None:
    long = "The market opens at 9 and closes at 17 on each day but the last. " * 5
    text = long if change[0] == "9" else "It opens at nine."
    pieces = [Piece("a", f"## H\n{text}"), Piece("b", f"## H\n{text.replace(*change, 1)}")]
    assert "different things" in merged(pieces).notes[0]


def test_texts_without_a_common_heading_stand_one_after_the_other() -> None:
    code = "```\n## Prices\n```"
    found = merged(
        [Piece("a", ONE), Piece("b", code), Piece("c", ""), Piece("d", code), Piece("e", code)]
    )
    assert found.text == f"## a\n\n{ONE}\n\n## b\n\n{code}"
    assert found.notes == ("d, e say what b says; it is kept once.",)


def test_one_text_is_as_it_is() -> None:
    assert merged([Piece("a", "  as it is\n")]).text == "  as it is\n"
    assert merged([]).text == ""


@given(st.lists(st.text("ab#`~ \n1", max_size=60), max_size=4))
def test_no_word_is_lost(texts: list[str]) -> None:
    found = merged([Piece(f"t{n}", text) for n, text in enumerate(texts)])
    for text in texts:
        for word in text.split():
            if set(word) <= set("ab1"):
                assert word in found.text.split() or word in found.text
