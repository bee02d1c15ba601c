"""The matching ladder, tier by tier: what each forgives, what it never does, and that the bytes
which the model did not mean to change stay."""

from __future__ import annotations

import pytest

from magy_server.edits.model import Hunk, Placed
from magy_server.edits.placing.omission import omission
from magy_server.edits.rebasing.diff import apply
from magy_server.edits.resolve import resolve

PYTHON = """\
import os


class Shop:
    def price(self, item):
        # the “net” price
        value = self.prices[item]
        return value * 2

    def total(self, items):
        value = sum(self.price(item) for item in items)
        return value
"""
GO = "func main() {\n\tfor i := 0; i < 3; i++ {\n\t\tfmt.Println(i)\n\t}\n}\n"


def placed(raw: str, old: str, new: str, **more: object) -> tuple[str, Placed]:
    """The text after one hunk of whole lines, and where it went."""
    found = resolve(raw, [Hunk(old, new, **{"lines": True, **more})])  # type: ignore[arg-type]
    assert not found.failures, found.failures[0].message
    return apply(raw, found.changes), found.placed[0]


def after(raw: str, old: str, new: str, **more: object) -> str:
    return placed(raw, old, new, **more)[0]


def code(raw: str, old: str, new: str, **more: object) -> str:
    found = resolve(raw, [Hunk(old, new, **{"lines": True, **more})])  # type: ignore[arg-type]
    assert found.failures, apply(raw, found.changes)
    return found.failures[0].code


def test_exact_text_anywhere_in_a_line() -> None:
    assert after("a = f(x, y)\n", "x, y", "y, x", lines=False) == "a = f(y, x)\n"


def test_a_text_of_words_that_cuts_a_word_is_another_text() -> None:
    assert code("x = 10\n", "x = 1", "x = 2", lines=False) == "not_found"
    assert after("get_user_by_id()\n", "get_user", "find_user", lines=False) == (
        "find_user_by_id()\n"
    )


def test_trailing_blanks_in_the_file_stay_where_nothing_changes() -> None:
    raw = "a = 1  \nb = 2\nc = 3\t\n"
    assert after(raw, "a = 1\nb = 2\nc = 3\n", "a = 1\nb = 5\nc = 3\n") == (
        "a = 1  \nb = 5\nc = 3\t\n"
    )


def test_trailing_blanks_of_the_model_do_not_get_in() -> None:
    raw = "a = 1\nb = 2\nc = 3\n"
    assert after(raw, "a = 1  \nb = 2  \nc = 3\n", "a = 1  \nb = 5  \nd = 4  \nc = 3\n") == (
        "a = 1\nb = 5\nd = 4\nc = 3\n"
    )
    assert after(raw, "a = 1  \nb = 2  \nc = 3\n", "a = 1\nb = 5\nc = 3\n") == (
        "a = 1\nb = 5\nc = 3\n"
    )


def test_typographic_punctuation_stays_where_the_model_did_not_change_it() -> None:
    old = '        # the "net" price\n        value = self.prices[item]\n'
    text, where = placed(PYTHON, old, old.replace("[item]", "[item.id]"))
    assert text == PYTHON.replace("[item]", "[item.id]")
    assert where.tier == "unicode"


def test_only_the_changed_word_of_a_line_changes() -> None:
    raw = "print(“one”, two)\nend\n"
    assert after(raw, 'print("one", two)\nend\n', 'print("one", three)\nend\n') == (
        "print(“one”, three)\nend\n"
    )


@pytest.mark.parametrize("cut", [4, 8])
def test_a_block_without_its_margin_is_put_back(cut: int) -> None:
    old = "        value = self.prices[item]\n        return value * 2\n"
    new = (
        "        value = self.prices[item]\n        if value:\n"
        "            value += 1\n        return value * 2\n"
    )
    bare_old, bare_new = ("".join(line[cut:] for line in t.splitlines(True)) for t in (old, new))
    assert after(PYTHON, bare_old, bare_new) == PYTHON.replace(old, new)


def test_a_block_that_lost_the_margin_of_its_first_line_only() -> None:
    old = "value = self.prices[item]\n        return value * 2\n"
    new = "value = self.prices[item]\n        log(value)\n        return value * 2\n"
    assert after(PYTHON, old, new) == PYTHON.replace(old, new)
    new = "first()\n        value = self.prices[item]\n        return value * 2\n"
    assert after(PYTHON, old, new) == PYTHON.replace(old, new)


def test_a_single_line_without_margin_that_becomes_a_block() -> None:
    raw = "if a:\n    x = f()\n    y = 2\n"
    relative = "if b:\n    x = f()\n"
    absolute = "if b:\n        x = f()\n"
    expected = "if a:\n    if b:\n        x = f()\n    y = 2\n"
    for new in (relative, absolute):
        assert after(raw.replace("x = f()", "x =  f()"), "x = f()\n", new) == (
            expected.replace("x = f()", "x =  f()")
        )


@pytest.mark.parametrize("width", [2, 4, 8])
def test_spaces_for_tabs(width: int) -> None:
    old, new = GO, GO.replace("\t\tfmt", "\t\tif i > 1 {\n\t\t\tbreak\n\t\t}\n\t\tfmt")
    spaced = [text.replace("\t", " " * width) for text in (old, new)]
    text, where = placed(GO, *spaced)
    assert text == new
    assert "tabs" in where.note


@pytest.mark.parametrize("width", [2, 4])
def test_tabs_for_spaces(width: int) -> None:
    raw = GO.replace("\t", " " * width)
    new = GO.replace("\t\tfmt", "\t\tif i > 1 {\n\t\t\tbreak\n\t\t}\n\t\tfmt")
    assert after(raw, GO, new) == new.replace("\t", " " * width)


def test_two_spaces_for_four() -> None:
    raw = "class A:\n    def f(self):\n        return 1\n"
    old = "class A:\n  def f(self):\n    return 1\n"
    new = "class A:\n  def f(self):\n    if x:\n      return 2\n    return 1\n"
    assert after(raw, old, new) == (
        "class A:\n    def f(self):\n        if x:\n            return 2\n        return 1\n"
    )


def test_white_space_within_lines() -> None:
    raw = "const   x = f(a,b)\nconst y = 2\n"
    assert after(raw, "const x = f(a, b)\nconst y = 2\n", "const x = f(a, b)\nconst y = 3\n") == (
        "const   x = f(a,b)\nconst y = 3\n"
    )
    assert after(raw, "x = f(a, b)", "x = f(a, c)", lines=False) == (
        "const   x = f(a,c)\nconst y = 2\n"
    )


NUMBERED = [
    "7\t        value = self.prices[item]\n8\t        return value * 2\n",
    "     7\t        value = self.prices[item]\n     8\t        return value * 2\n",
    "7 |         value = self.prices[item]\n8 |         return value * 2\n",
    "7:        value = self.prices[item]\n8:        return value * 2\n",
    "     7→        value = self.prices[item]\n     8→        return value * 2\n",
]


@pytest.mark.parametrize("old", NUMBERED)
def test_line_numbers_are_not_part_of_the_file(old: str) -> None:
    assert after(PYTHON, old, old.replace("* 2", "* 3")) == PYTHON.replace("* 2", "* 3")


def test_line_numbers_tell_which_of_two_places() -> None:
    raw = "a:\n  x: 1\nb:\n  x: 1\n"
    assert after(raw, "4:  x: 1\n", "4:  x: 2\n") == "a:\n  x: 1\nb:\n  x: 2\n"


def test_a_code_fence_is_not_part_of_the_file() -> None:
    assert after(PYTHON, "```python\nimport os\n```\n", "```python\nimport re\n```\n") == (
        PYTHON.replace("import os", "import re")
    )


def test_escapes_that_were_written_twice() -> None:
    raw = 'print("a\\n")\nlog("b")\n'
    assert after(raw, 'log(\\"b\\")\n', 'log(\\"c\\")\n') == 'print("a\\n")\nlog("c")\n'
    assert after("a\n\tb\nc\n", "a\\n\\tb\\n", "a\\n\\tB\\n", lines=False) == "a\n\tB\nc\n"
    assert after("if a < b && c:\n", "if a &lt; b &amp;&amp; c:\n", "if a &lt; d:\n") == (
        "if a < d:\n"
    )


def test_elisions_keep_what_they_stand_for() -> None:
    old = "    def price(self, item):\n        ...\n        return value * 2\n"
    new = "    def price(self, item, n):\n        ...\n        return value * n\n"
    assert after(PYTHON, old, new) == (
        PYTHON.replace("item):", "item, n):", 1).replace("* 2", "* n")
    )


def test_an_elision_that_new_lacks_deletes_nothing() -> None:
    old = "    def price(self, item):\n        ...\n        return value * 2\n"
    assert code(PYTHON, old, "    def price(self, item):\n        return 2\n") == "not_found"


def test_an_elision_between_parts_that_are_there_twice_is_refused() -> None:
    raw = "begin()\nx = 1\nend()\nx = 2\nend()\n"
    assert code(raw, "begin()\n...\nend()\n", "begin()\n...\nfinish()\n") == "not_found"


def test_an_elision_ends_in_the_block_that_it_begins_in() -> None:
    raw = "def a():\n    x()\n    return 1\n\n\ndef b():\n    x()\n    return 1\n"
    old = "def a():\n    ...\n    return 1\n"
    assert after(raw, old, old.replace("1", "2")) == raw.replace("1", "2", 1)


def test_empty_lines_that_the_model_left_out_stay() -> None:
    old = "        return value * 2\n    def total(self, items):\n"
    new = "        return value * 3\n    def total(self, items):\n"
    assert after(PYTHON, old, new) == PYTHON.replace("* 2", "* 3")


def test_empty_lines_that_the_model_made_up_do_not_get_in() -> None:
    old = "class Shop:\n\n    def price(self, item):\n"
    new = "class Shop:\n\n    def price(self, item, n):\n"
    assert after(PYTHON, old, new) == PYTHON.replace("item):", "item, n):", 1)


@pytest.mark.parametrize(
    ("put", "expected"),
    [
        ("\ndef new():\n    pass\n", "\ndef new():\n    pass\n\n"),
        ("def new():\n    pass\n\n", "\ndef new():\n    pass\n\n"),
        ("\ndef new():\n    pass\n\n", "\ndef new():\n    pass\n\n"),
        ("    return 2\n", "    return 2\n\n"),
        ("@cached\n", "\n@cached\n"),
        ("# about b\n", "\n# about b\n"),
    ],
)
def test_new_lines_beside_an_empty_line_that_was_left_out(put: str, expected: str) -> None:
    raw = "def a():\n    x = 1\n\ndef b():\n    y = 1\n"
    old = "def a():\n    x = 1\ndef b():\n    y = 1\n"
    text = after(raw, old, old.replace("def b", f"{put}def b"))
    assert text == f"def a():\n    x = 1\n{expected}def b():\n    y = 1\n"


def test_new_lines_whose_side_of_an_empty_line_is_not_clear_are_refused() -> None:
    assert (
        code("a()\n\nb()\nlast()\n", "a()\nb()\nlast()\n", "a()\nc()\nb()\nlast()\n") == "not_found"
    )


def test_a_link_is_no_attribute_of_what_follows() -> None:
    raw = "[one](https://one.example)\n\n*fd* is a simple program\n"
    old = raw.replace("\n\n", "\n")
    new = old.replace("\n", "\n[two](https://two.example)\n", 1)
    assert code(raw, old, new) == "not_found"
    assert after(raw, old, new.replace("two](https://two.example)", "two]")) == raw.replace(
        "\n\n", "\n\n[two]\n"
    )


def test_which_of_more_empty_lines_than_old_has_is_replaced_is_not_clear() -> None:
    old = "int first_one(int);\n\nint second_one(int);\n"
    assert (
        code(old.replace("\n\n", "\n\n\n"), old, old.replace("\n\n", "\nint c();\n")) == "not_found"
    )


def test_a_slip_in_a_line_around_the_change_is_not_written_back() -> None:
    old = (
        "    def price(slef, item):\n        # the “net” price\n        value = self.prices[item]\n"
    )
    text, where = placed(PYTHON, old, old.replace("[item]", "[item.id]"))
    assert text == PYTHON.replace("[item]", "[item.id]")
    assert where.tier == "resembling"
    assert "5" in where.note


def test_a_slip_that_the_new_text_does_not_have() -> None:
    old = (
        "    def price(slef, item):\n        # the “net” price\n        value = self.prices[item]\n"
    )
    new = old.replace("[item]", "[item.id]").replace("slef", "self")
    assert after(PYTHON, old, new) == PYTHON.replace("[item]", "[item.id]")


def test_a_line_around_the_change_that_has_changed_since() -> None:
    raw = PYTHON.replace("def total(self, items)", "def total(self, items, tax=0)")
    old = (
        "    def total(self, items):\n"
        "        value = sum(self.price(item) for item in items)\n        return value\n"
    )
    assert after(raw, old, old.replace("return value", "return round(value)")) == raw.replace(
        "return value\n", "return round(value)\n"
    )


def test_the_line_that_is_replaced_must_be_what_was_quoted() -> None:
    raw = PYTHON.replace("return value * 2", "return value * 7")
    old = "        value = self.prices[item]\n        return value * 2\n"
    assert code(raw, old, old.replace("* 2", "* 3")) == "not_found"


def test_a_sibling_of_a_block_that_is_gone_is_left_alone() -> None:
    raw = (
        "def test_a():\n    server = start()\n    assert server.get('/a') == 1\n    server.stop()\n"
    )
    old = raw.replace("test_a", "test_b").replace("'/a') == 1", "'/b') == 2")
    assert code(raw, old, old.replace("== 2", "== 3")) == "not_found"


def test_a_block_of_another_file_is_refused() -> None:
    old = "    for row in rows:\n        print(row)\n    return value\n"
    assert code(PYTHON, old, old.replace("print", "log")) == "not_found"


def test_the_line_before_which_to_insert_must_be_there() -> None:
    assert code("a()\nother()\n}\n", "begin()\n}\n", "begin()\nmore()\n}\n") == "not_found"


TWICE = "def a():\n    log()\n    return 1\n\n\ndef b():\n    log()\n    return 1\n"


@pytest.mark.req("G013")
def test_several_equal_places_are_never_guessed() -> None:
    assert code(TWICE, "    log()\n", "    warn()\n") == "ambiguous"
    assert code(TWICE, "    log()\n    return 1\n", "    return 1\n") == "ambiguous"
    assert code(TWICE, "log()\nreturn 1\n", "return 2\n") == "ambiguous"


def second(text: str) -> str:
    head, tail = text.split("def b")
    return f"{head}def b{tail.replace('log', 'warn')}"


def test_anchors_decide() -> None:
    assert after(TWICE, "    log()\n", "    warn()\n", anchors=("def b():",)) == second(TWICE)
    assert after(TWICE, "    log()\n", "    warn()\n", anchors=("def a():",)) == (
        TWICE.replace("log", "warn", 1)
    )
    methods = TWICE.replace("def", "class A:\n    def", 1)
    assert code(methods, "    log()\n", "    warn()\n", anchors=("nowhere",)) == "ambiguous"


def test_stacked_anchors_decide() -> None:
    raw = "class A:\n    def f(self):\n        go()\n\n\nclass B:\n    def f(self):\n        go()\n"
    text = after(
        raw, "        go()\n", "        stop()\n", anchors=("class B:", "    def f(self):")
    )
    assert text == raw[: raw.index("class B")] + raw[raw.index("class B") :].replace("go", "stop")


def test_a_text_above_its_anchor_is_refused() -> None:
    raw = "x = 1\ndef f():\n    pass\n"
    assert code(raw, "x = 1\n", "x = 2\n", anchors=("def f():",)) == "not_found"


def test_the_line_decides_when_it_is_clearly_nearest() -> None:
    assert after(TWICE, "    log()\n", "    warn()\n", line=7) == second(TWICE)
    assert after(TWICE, "    log()\n", "    warn()\n", line=8) == second(TWICE)
    assert code(TWICE, "    log()\n", "    warn()\n", line=5) == "ambiguous"
    assert code(TWICE, "    log()\n", "    warn()\n", line=900) == "ambiguous"


def test_the_end_of_the_file_decides() -> None:
    assert after(TWICE, "    return 1\n", "    return 2\n", at_end=True).endswith("return 2\n")


def test_the_order_of_the_hunks_decides() -> None:
    hunks = [
        Hunk("def b():\n", "def c():\n", lines=True),
        Hunk("    return 1\n", "    return 2\n", lines=True),
    ]
    found = resolve(TWICE, hunks)
    assert apply(TWICE, found.changes) == TWICE.replace("def b", "def c")[:-9] + "return 2\n"


def test_as_many_equal_hunks_as_places() -> None:
    hunk = Hunk("    log()\n", "    warn()\n", lines=True)
    assert apply(TWICE, resolve(TWICE, [hunk, hunk]).changes) == TWICE.replace("log", "warn")


def test_a_text_that_leaves_something_out_is_refused() -> None:
    old = "        value = self.prices[item]\n        return value * 2\n"
    assert code(PYTHON, old, "        # ... rest of the code\n") == "placeholder"
    assert code(PYTHON, old, "        # existing code here\n        return 3\n") == "placeholder"


@pytest.mark.parametrize(
    "line",
    [
        "// ... existing code ...", "/* ... rest of methods ... */", "... rest of the file ...",
        "<!-- ... existing content ... -->", "# (rest of the function remains the same)",
        "# Existing imports...", "// ... keep the other methods as before",
        "' rest of the code", "! remaining methods unchanged", '" the rest stays as it was',
        "#rest of the file is unchanged", "--existing code remains the same",
        "// No changes below this line", "# lines 10-40 unchanged",
    ],
)  # fmt: skip
def test_words_that_stand_for_code(line: str) -> None:
    assert omission(["a", "b"], ["x", f"    {line}"], []) == line
    assert omission(["a", line], ["x", line], []) is None
    assert omission(["a", "b"], ["a", "b", line], [line]) is None
    assert omission(["a", "b"], ["x", line], [line]) == line  # which the hunk did not quote


@pytest.mark.parametrize(
    "line",
    [
        "  --ignore-file <path>...    Add a custom ignore-file", "# handle existing users",
        "# load the file...", "...rest,", "[...existing, x]", "foo(...args)", "    ...",
        "// Wait for the existing connection to close...", "# unchanged files are skipped",
        "' rest of the code'", "--no-changes", "#unchanged", "* The rest of the file is unchanged",
    ],
)  # fmt: skip
def test_words_that_do_not(line: str) -> None:
    assert omission(["a", "b"], ["x", line], []) is None


def test_already_applied() -> None:
    done = PYTHON.replace("return value * 2", "return value * 3")
    old = "        value = self.prices[item]\n        return value * 2\n"
    assert code(done, old, old.replace("* 2", "* 3")) == "already_applied"
    with_import = PYTHON.replace("import os\n", "import os\nimport reprlib\n")
    assert code(with_import, "import os\n", "import os\nimport reprlib\n") == "already_applied"
    assert code(PYTHON, old, old) == "no_change"


@pytest.mark.parametrize("end", ["\r\n", "\r"])
@pytest.mark.parametrize(
    "old", ["value = self.prices[item]\n        return value * 2\n", NUMBERED[0]]
)
def test_other_tiers_keep_line_ends_too(end: str, old: str) -> None:
    raw = PYTHON.replace("\n", end)
    assert after(raw, old, old.replace("* 2", "* 3")) == raw.replace("* 2", "* 3")


def test_a_block_that_is_like_another_in_another_way_is_ambiguous() -> None:
    """One differs from what was quoted in its indentation, one in an empty line."""
    raw = "    first_call()\n    second_call()\n\n\nfirst_call()\n\nsecond_call()\n"
    assert code(raw, "first_call()\nsecond_call()\n", "first_call()\nsecond_call(1)\n") == (
        "ambiguous"
    )


def test_a_like_block_is_left_alone_when_the_quoted_one_has_changed() -> None:
    """All around the change is there to the letter, with another line in it."""
    raw = "begin(1)\n  step(2)\nfinish(3)\n\nif x:\n    begin(1)\n      step(9)\n    finish(3)\n"
    old = "    begin(1)\n      step(2)\n    finish(3)\n"
    assert code(raw, old, old.replace("step(2)", "step(4)")) == "not_found"


GLUED = "class A:\n    def f(self):\n        return 1\n\n    def g(self):\n        return 2\n"


@pytest.mark.parametrize("sign", ["|", "→", "\t", ":", " │", "| ", ": ", " | ", " → "])
@pytest.mark.parametrize("lines", [(3, 3), (2, 3), (2, 5)])
def test_numbers_that_are_glued_to_old_only(sign: str, lines: tuple[int, int]) -> None:
    first, last = lines
    block = GLUED.split("\n")[first - 1 : last]
    old = "\n".join(f"{first + n}{sign}{line}" for n, line in enumerate(block))
    new = "\n".join(block).replace("        return 1", "        x = 1\n        return x")
    assert after(GLUED, old, new) == GLUED.replace("return 1", "x = 1\n        return x")


@pytest.mark.parametrize("old", ["3|return 1", "3: return 1", "2|def f(self):\n3|    return 1"])
def test_indentation_that_went_with_the_numbers(old: str) -> None:
    head = "    def f(self):\n" if "def" in old else ""
    new = f"{head}        x = 1\n        return x"
    assert after(GLUED, old, new) == GLUED.replace("return 1", "x = 1\n        return x")


def test_numbers_that_are_shown_otherwise() -> None:
    want = GLUED.replace("return 1", "return 9")
    new = "    def f(self):\n        return 9\n"
    assert after(GLUED, "2     def f(self):\n3         return 1\n", new) == want
    assert after(GLUED, "2-    def f(self):\n3:        return 1\n", new) == want
    empty = "3|        return 1\n\n5|    def g(self):\n"
    assert after(GLUED, empty, "        return 9\n\n    def g(self):\n") == want


def test_a_number_in_new_is_what_it_says() -> None:
    assert after("one\n\ntwo\n", "2|\n3|two\n", "2\n\ntwo\n") == "one\n2\n\ntwo\n"


@pytest.mark.parametrize("form", ["{}|{}", "{:6}\t{}", "{}→{}", "{}: {}"])
def test_numbers_in_new_only_are_refused(form: str) -> None:
    old = "    def f(self):\n        return 1\n"
    lines = ["    def f(self):", "        x = 1", "        return x"]
    new = "\n".join(form.format(2 + n, line) for n, line in enumerate(lines)) + "\n"
    assert code(GLUED, old, new) == "parse"
    assert code(GLUED, "        return 1", "3|        return 9") == "parse"
    assert after("a\nb\n", "a\nb\n", "1. a\n2. b\n") == "1. a\n2. b\n", "a list"
    assert after("x = {\n}\n", "x = {\n", "x = {\n1: 2,\n") == "x = {\n1: 2,\n}\n"


def test_of_lines_that_differ_in_spaces_the_one_as_written_is_taken() -> None:
    old = "one(a)\n#  endif\n# endif\n#endif\n\n/* Test whether it is posted. */\n"
    quoted = old.replace("# endif\n", "")
    new = quoted.replace("\n#endif\n", "\n#endif /* A */\n")
    want = old.replace("\n#endif\n", "\n#endif /* A */\n")
    head, tail = "int before;\n", "int after;\n"
    assert after(head + old + tail, quoted, new) == head + want + tail
