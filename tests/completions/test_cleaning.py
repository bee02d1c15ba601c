"""What of a model's reply is inserted: nothing that stands there already, and no more than was
begun."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.api.completions.cleaning import cleaned, wanted
from magy_server.api.completions.surroundings import Surroundings

GO, PYTHON = "go", "python"


def at(text: str) -> Surroundings:
    """`|` is the cursor."""
    before, _, after = text.partition("|")
    return Surroundings(before, after, 0, begins=True, end="\n")


def inserted(text: str, reply: str, language: str = PYTHON, *, complete: bool = True) -> str:
    return cleaned(reply, at(text), language, complete=complete)


@pytest.mark.parametrize(
    "reply",
    [
        "<insert>x + 1</insert>", "x + 1", "x + 1\n", "<insert>x + 1", "<insert-2>x + 1</insert-2>",
        "Sure:\n<insert>x + 1</insert>\nThis adds one.", "```python\nx + 1\n```",
        "Here:\n```\nx + 1\n```\nThat is it.", "<insert>\n```py\nx + 1\n```\n</insert>",
        "    return x + 1", "return x + 1", "def f(x):\n    return x + 1",
        "<insert>x + 1\x1b\x07\u202e</insert>", "x + 1\n\n\ndef g():\n    pass",
    ],
)  # fmt: skip
def test_only_the_text_is_taken(reply: str) -> None:
    assert inserted("def f(x):\n    return |\n", reply) == "x + 1"


def test_a_fence_may_be_meant_where_people_write_text() -> None:
    assert inserted("Run\n\n|\n", "```sh\nmake\n```", "markdown") == "```sh\nmake\n```"


@pytest.mark.parametrize(
    ("text", "reply", "wanted"),
    [
        ("print(|)", "f(x)", "f(x)"),
        ("print(|)", "f(x))", "f(x)"),
        ("print(|)", "print(f(x))", "f(x)"),
        ("print('|')", "hello')", "hello"),
        ("f(|, key=1)", "a, key=1)", "a"),
        ("f(a|b)", "a, ", "a, "),
        ("f(|)", "\na\n", "a"),
        ("x = [|];", "1, 2];", "1, 2"),
    ],
)
def test_within_a_line_it_ends_where_the_line_goes_on(text: str, reply: str, wanted: str) -> None:
    assert inserted(text, reply) == wanted


@pytest.mark.parametrize(
    ("text", "reply", "wanted"),
    [
        ("    ret|", "urn x", "urn x"),
        ("    ret|", "return x", "urn x"),
        ("x = |", "\n5", "5"),
        ("def f():|", "\n    pass", "\n    pass"),
        ("def f():\n    |", "    pass", "pass"),
        ("def f():\n\t|", "pass", "pass"),
        ("def f():\n|", "    pass", "    pass"),
        ("a = 1\nlonger_name = 2\nc|", "a = 1\nlonger_name = 2\nc = 3", " = 3"),
        ("0,\n0,\n|", "0,\n0,", "0,\n0,"),
    ],
)
def test_what_stands_before_the_cursor_is_not_repeated(text: str, reply: str, wanted: str) -> None:
    assert inserted(text, reply) == wanted


@pytest.mark.parametrize(
    ("text", "reply", "wanted"),
    [
        # what follows is there already
        ("if x {|\n}\n", "\n\tgo()\n}", "\n\tgo()"),
        ("a = 1\n|\nc = 3\nd = 4\n", "b = 2\nc = 3\nd = 4", "b = 2"),
        ("a = 1\n|\nc = 3\n", "c = 3", ""),
        # a brace of the new block is not the one that closes the outer block
        ("func f() {\n\tif x {|\n}\n", "\n\t\tgo()\n\t}", "\n\t\tgo()\n\t}"),
        # the block ends
        ("def f():|\n", "\n    a()\n\n    b()\n\ndef g():\n    pass", "\n    a()\n\n    b()"),
        ("def f():\n    |\n", "a()\n    b()\nc()", "a()\n    b()"),
        ("def f():\n    |\n", "a()\n\n    b()", "a()"),
        ("func f() {\n\t|\n", "a()\n\tb()\n}\n\nfunc g() {\n}", "a()\n\tb()\n}"),
        ("if a; then\n  |\n", "b\nfi\nc", "b\nfi"),
    ],
)
def test_it_ends_with_the_block(text: str, reply: str, wanted: str) -> None:
    assert inserted(text, reply, GO) == wanted


def test_indentation_is_that_of_the_document() -> None:
    assert inserted("\ta\nif x:|", "\n    a\n        b") == "\n\ta\n\t\tb"
    assert inserted("  a\nif x:|", "\n\ta\n\t\tb") == "\n  a\n    b"
    assert inserted("\ta\n  b\nif x:|", "\n    a") == "\n    a"  # it has both


def test_half_a_line_at_the_end_is_left_out() -> None:
    assert inserted("def f():|", "\n    a = 1\n    b =", complete=False) == "\n    a = 1"
    assert inserted("x = |", "some_call(", complete=False) == "some_call("


@pytest.mark.parametrize(
    "reply", ["", " \n ", "<insert></insert>", "<insert>\n</insert>", "```\n```"]
)
def test_nothing_is_nothing(reply: str) -> None:
    assert inserted("x = |", reply) == ""


@pytest.mark.parametrize(
    ("text", "wants"),
    [
        ("f(|)", True), ("x = |", True), ("x = |  \n", True), ('f("|");', True), ("if (|) {", True),
        ("|x = 1", False), ("fo|o()", False), ("|", False), (" \n|\n ", False), ("f(|a)", False),
    ],
)  # fmt: skip
def test_unasked_nothing_is_suggested_in_the_middle_of_code(text: str, wants: bool) -> None:
    assert wanted(at(text)) is wants


def test_no_text_takes_long() -> None:
    """Each of these would take minutes if the patterns went back over what they have matched."""
    blanks = " " * 2_000
    assert not wanted(at(f"f(|{blanks}x"))
    many = 20_000
    for sign in (" ", ")", "`", "\n", "<insert>", "(", "a"):
        reply = sign * many
        for place in ("def f():\n    |\n", f"x = {sign * 2_000}|\n", "f(|)\n"):
            assert len(inserted(place, reply)) <= len(reply)
            assert len(inserted(place, f"```\n{reply}b\n")) <= len(reply) + 5


PIECES = st.sampled_from(
    ["<insert>", "</insert>", "```", "```py\n", "\n", "\n\n", "    ", "\t", "x", "return x", "(",
     ")", "}", "{", "def f():", "😀", "\r\n", "\r", "\x1b[31m", "\ud800", " "]
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=20).map("".join)
LINES = st.lists(PIECES.filter(lambda piece: "\r" not in piece), max_size=20).map("".join)


@given(TEXTS, LINES, LINES, st.booleans())
def test_whatever_a_model_writes_the_answer_is_text_for_this_place(
    reply: str, before: str, after: str, complete: bool
) -> None:
    place = Surroundings(before, after, 0, begins=True, end="\n")
    found = cleaned(reply, place, PYTHON, complete=complete)
    assert found == "" or found.strip()
    assert not {"\r", "\x1b", "\ud800"} & set(found)
    if place.within_line:
        assert "\n" not in found
    else:
        assert found == found.rstrip()


NAMES = st.from_regex(r"[a-z]{3,8}", fullmatch=True)


@given(st.lists(NAMES, min_size=1, max_size=4), NAMES, NAMES)
def test_a_reply_that_repeats_the_line_says_the_same(
    lines: list[str], name: str, rest: str
) -> None:
    text = "".join(f"{one} = 1\n" for one in lines) + f"{name} = "
    assert inserted(f"{text}|\n", f"{name} = {rest}") == inserted(f"{text}|\n", rest) == rest
