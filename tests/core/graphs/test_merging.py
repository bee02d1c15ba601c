"""What several wrote becomes one text: nothing is lost, and what was done is said."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.core.graphs.merging import SHOWN, Piece, merged

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
        'north and south contradict each other: "A ton costs 30 dollars." and "A ton costs 40 '
        'dollars.".',
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


def both(one: str, other: str) -> Sequence[str]:
    return merged([Piece("a", one), Piece("b", other)]).notes


@pytest.mark.req("C019", "C025")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The port is 8080 by default.", "the port is 9090 by default"),
        ("It is safe to delete it.", "It isn't safe to delete it."),
        ("Es gibt Fehler im Parser.", "Es gibt keine Fehler im Parser."),
        ("Le cache est vidé après.", "Le cache n'est pas vidé après."),
        ("El archivo existe en disco.", "El archivo no existe en disco."),
        ("这个函数是安全的。", "这个函数不是安全的。"),
        ("配置文件有默认值。", "配置文件没有默认值。"),
        ("- **Timeout** of one call: 30 s", "Timeout of one call: 60 s"),
        ("It costs 1,500 in all.", "It costs 1,400 in all."),
    ],
)
def test_who_says_the_opposite_is_named_wherever_it_stands(one: str, other: str) -> None:
    for first, second in ((one, other), (f"# A\n\nFirst. {one}", f"Other words.\n\n{other}")):
        (note,) = both(first, second)
        assert note.startswith("a and b contradict each other: ")
    assert not both(one, one)[1:] and "kept once" in both(one, one)[0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The cache is emptied.", "The index is not emptied."),
        ("Yes, 3.", "Yes, 4."),
        ("Nobody reads it at all.", "Somebody reads it at all."),
        ("```\nlimit of calls is 30\n```", "```\nlimit of calls is 40\n```"),
    ],
)
def test_what_is_of_other_things_is_no_contradiction(one: str, other: str) -> None:
    assert not both(one, other)


CODE = "```python\ndef limit(n):\n    if n {sign} 5:\n        return 1\n{indent}return 2\n```"


@pytest.mark.req("C025")
def test_two_versions_of_one_function_are_named_and_both_kept() -> None:
    one = CODE.format(sign="<", indent="    ")
    for other in (CODE.format(sign=">", indent="    "), CODE.format(sign="<", indent="        ")):
        found = merged([Piece("a", f"## Code\n\n{one}"), Piece("b", f"## Code\n\n{other}")])
        assert one in found.text and other in found.text
        assert found.notes[-1] == "a and b give different code for `limit`."
    assert "kept once" in both(f"## Code\n\n{one}", f"## code:\n{one}\n")[0]


LONG = {
    "en": "The server reads its file and then it writes the log before it answers. ",
    "de": "Der Server liest seine Datei und schreibt danach das Protokoll, bevor er antwortet. ",
    "fr": "Le serveur lit son fichier et écrit ensuite le journal avant de répondre. ",
    "es": "El servidor lee su archivo y luego escribe el registro antes de responder. ",
    "zh": "服务器读取它的文件，然后在回答之前写入日志。",
}
NOT = {"en": "not", "de": "nicht", "fr": "pas", "es": "no", "zh": "不"}


@pytest.mark.req("C025")
@pytest.mark.parametrize("language", LONG)
def test_likeness_hides_no_word_in_any_language(language: str) -> None:
    """However long a text is: one word, and it says the opposite."""
    text = LONG[language] * 12
    middle = len(LONG[language]) * 6
    for word in (NOT[language], "7", "<"):
        other = f"{text[:middle]}{word} {text[middle:]}"
        found = merged([Piece("a", f"## 1. É\n{text}"), Piece("b", f"# **E\u0301**:\n{other}")])
        assert 'say different things under "1. É"' in found.notes[0], word
        assert text.strip() in found.text and other.strip() in found.text
    quoted = f"{text[:middle]}{LONG[language].upper()}{text[middle:]}"
    found = merged([Piece("a", f"## X\n{text}"), Piece("b", f"## X\n{quoted}")])
    assert found.notes == ('a says under "X" what b says; it is kept once.',)
    assert quoted.strip() in found.text


def test_a_heading_that_is_there_twice_is_known_by_what_it_is_under() -> None:
    one = "# Read\n\n## Example\n\nread a\n\n# Write\n\n## Example\n\nwrite a"
    other = one.replace("write a", "write b")
    found = merged([Piece("a", one), Piece("b", other)])
    assert found.text == (
        "# Read\n\n## Example\n\nread a\n\n# Write\n\n## Example\n\n### a\n\nwrite a\n\n### b"
        "\n\nwrite b"
    )
    assert found.notes == (
        'b says under "Example" what a says; it is kept once.',
        'a, b say different things under "Example"; all of it is kept, under their names.',
    )


def test_headings_may_be_underlined_and_numbered_in_chinese() -> None:
    one = "Prices\n======\n\nThirty.\n\n- item\n---\nrest\n\n一、地点\n---\n\n北方。"
    found = merged([Piece("a", one), Piece("b", "# prices\n\nForty.\n\n## 地点：\n\n南方。")])
    assert [note.split('"')[1] for note in found.notes] == ["Prices", "一、地点"]
    assert "- item\n---\nrest" in found.text


def test_what_stands_before_all_headings_is_under_the_names_of_who_wrote_it() -> None:
    found = merged([
        Piece("a", "I looked.\n\n# H\n\nOne."), Piece("b", "I read.\n\n# H\n\nOne."),
        Piece("c", "I looked.\n\n# H\n\nOne."),
    ])  # fmt: skip
    assert found.text == "**a:** I looked.\n\n**b:** I read.\n\n# H\n\nOne."
    assert found.notes[0] == "c says at the beginning what a says; it is kept once."


def test_much_is_compared_quickly_and_little_of_it_is_shown() -> None:
    pieces = [Piece(f"t{n}", "\n".join(f"Value of the item x{i}y is {n}." for i in range(500)))
              for n in range(20)]  # fmt: skip
    notes = merged(pieces).notes
    assert len(notes) == SHOWN + 1 and notes[-1] == "There are 9,480 more contradictions."


@given(st.lists(st.text("ab#`~=-* \n1不:", max_size=60), max_size=4))
def test_no_word_is_lost(texts: list[str]) -> None:
    found = merged([Piece(f"t{n}", text) for n, text in enumerate(texts)])
    for text in texts:
        for word in text.split():
            if set(word) <= set("ab1不"):
                assert word in found.text.split() or word in found.text
