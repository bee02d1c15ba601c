"""How deep new lines stand when old and new tell different things of it, and that what stands
there already, or in a place that is as good, is seen."""

from __future__ import annotations

import pytest

from tests.edits.test_siblings import after, refused

SPACED = 'describe "all" do\n  one\n  \n  xspecify "two" do\n    \n    get 404\n  end\nend\n'
QUOTED = '3|\n4|xspecify "two" do\n5|  \n6|  get 404\n'


def test_blanks_in_empty_lines_that_are_not_quoted_as_they_are_stay() -> None:
    new = '  \n  specify "two" do\n    \n    get 404\n'
    assert after(SPACED, QUOTED, new) == SPACED.replace("xspecify", "specify")
    assert after(SPACED, QUOTED, new.replace(" \n", "\n")) == SPACED.replace("xspecify", "specify")


def test_blanks_in_empty_lines_that_are_quoted_as_they_are_can_go() -> None:
    old = '  \n  xspecify "two" do\n    \n    get  404\n'
    new = '\n  specify "two" do\n\n    get  404\n'
    assert after(SPACED, old, new) == SPACED.replace("  \n", "\n", 1).replace(
        "    \n", "\n", 1
    ).replace("xspecify", "specify")


LUA = (
    "M = {\n  lsp = function()\n    if has then\n      local all = get(0)\n"
    "      for _, one in all do\n        count(one)\n      end\n    end\n    return all\n  end\n}\n"
)
SHOWN = "lsp = function()\n  if has then\n    local all = get(0)\n    for _, one in all do\n"
OF_FILE = "  lsp = function()\n    local all = get(0)\n    for _, one in all do\n"


def test_lines_that_stay_as_quoted_and_lines_as_in_the_file_tell_nothing_together() -> None:
    failure = refused(LUA, SHOWN, OF_FILE)
    assert "some lines of new are indented like old, some like the file" in failure.message
    head, rest = SHOWN.split("\n", 1)
    assert after(LUA, f"  {head}\n{rest}".replace("\n", "\n  ").removesuffix("  "), OF_FILE)


def test_a_closing_line_at_an_edge_that_is_as_in_the_file_tells_nothing_with_the_others() -> None:
    raw = (
        "func f() {\n\tif a {\n\t\treturn b\n\t}\n\tif old(c) {\n\t\tlog(c)\n"
        "\t\tif d(c) {\n\t\t\tfail(c)\n\t\t}\n\t}\n}\n"
    )
    old = "}\nif old(c) {\n\tlog(c)\n\tif d(c) {\n\t\tfail(c)\n\t}\n}\n"
    new = "\t}\n\tif d(c, 1) {\n\t\tfail(c)\n\t}\n"
    assert "some lines of new are indented like old" in refused(raw, old, new).message


def test_most_of_the_lines_that_stay_tell_how_new_is_indented() -> None:
    raw = "class A:\n    def f():\n        one()\n        two()\n    def g():\n        one()\n"
    old = "def f():\n    one()\n    two()\n"
    # one line is there as it is quoted, too: it is that of another depth
    new = "    def f():\n        two()\n    one()\n        three()\n"
    assert after(raw, old, new) == raw.replace(
        "        one()\n        two()\n", "        two()\n    one()\n        three()\n", 1
    )


def test_closing_lines_tell_nothing_of_the_depth() -> None:
    raw = "a {\n    b {\n        if x {\n            c();\n        }\n    }\n}\n"
    old = "b {\n    if x {\n        c();\n    }\n}\n"
    new = "    b {\n        c();\n    }\n"
    assert after(raw, old, new) == f"a {{\n{new}}}\n"


def test_a_line_of_a_patch_to_the_letter_tells_that_added_lines_are_as_they_are() -> None:
    raw = "def f():\n    one_by_one()\n    two_by_two()\n    three()\n"
    old = "    one_by_one()\n   two_by_two()\n"
    assert after(raw, old, f"{old}    four(a,\n         b)\n") == raw.replace(
        "two()\n", "two()\n    four(a,\n         b)\n"
    )


def test_whether_a_patch_or_a_text_lacks_a_blank_is_not_told_by_one_line() -> None:
    raw = "= 1.0\n\n * Fix the indentation. (R. Dupret)\n\n * Take views into account.\n"
    raw += " * More\n   of it.\n * And more\n   of it.\n"
    old = "* Fix the indentation. (R. Dupret)\n\n* Take views into account.\n"
    new = old.replace("\n\n", "\n\n * Recalculate the length\n   for handlers.\n\n")
    assert "how far to indent" in refused(raw, old, new).message


def test_what_is_added_and_stands_there_beside_a_changed_line_is_not_added_again() -> None:
    raw = "first_of_all()\nsecond_by_now()  # yes\nthird_at_last()\nfourth_thing()\n"
    old = "first_of_all()\nsecond_by_now()\nfourth_thing()\n"
    new = "first_of_all()\nsecond_by_now()\nthird_at_last()\nfourth_thing()\n"
    assert refused(raw, old, new).code == "already_applied"
    other = raw.replace("third_at_last()\n", "")
    assert after(other, old, new) == raw


def test_a_line_like_one_that_is_quoted_is_not_added_again() -> None:
    old = "#endif\n  }\n  if (options & SORTED) sort();\n  if (options & ASCII) print();\n"
    new = old.replace("}\n", "}\n#endif\n")
    raw = "#ifndef WIN\n#ifdef TTY\n" + new.replace("print();", "print(); // walrus")
    assert refused(raw, old, new).code == "already_applied"


def test_what_is_there_to_the_letter_is_not_made_where_only_the_depth_differs() -> None:
    old = "  * explicit protection\n  * deprecate the old redirect\n  * fix the status\n"
    new = old.replace("  * deprecate", "  * catch all errors\n  * deprecate")
    made = new.replace("the status", "the status (again)")
    log = f"4.0\n===\n{made}\n3.14\n====\n{old}".replace(old, old.replace("  *", " *"))
    assert refused(log, old, new).code == "already_applied"
    assert after(f"3.14\n{old.replace('  *', ' *')}", old, new).count(" * catch") == 1


POM = "<dependency>\n  <artifactId>base</artifactId>\n  <version>7.4.2</version>\n</dependency>"


def test_a_line_with_a_remark_behind_is_not_taken_for_the_next_one_that_is_like_it() -> None:
    old = POM.split("\n", 1)[1] + "\n"
    copy = old.replace("  <version", "  a_line_between()\n  <version")
    other = POM.replace("base", "core").replace("7.4", "9.1")
    raw = f"{POM}  # with a long remark behind it\n{other}\n\n{copy}"
    assert refused(raw, old, old.replace("7.4.2", "7.5.0")).code == "ambiguous"


JOB = "  {}:\n    runs-on: ubuntu\n{}    steps:\n      - uses: checkout@1\n      - name: Set up\n"


@pytest.mark.parametrize("word", ["with", "lantern", "using"])
def test_a_line_more_is_no_better_than_a_line_with_another_word(word: str) -> None:
    java = "        {}: actions/setup-java@f2beeb24\n"
    raw = JOB.format("one", "") + java.format(word) + JOB.format("two", "\n") + java.format("uses")
    old = JOB.split("\n", 1)[1].format("") + java.format("uses")
    assert refused(raw, old, old.replace("@1", "@2")).code == "ambiguous"


@pytest.mark.parametrize(
    "remark", ["-- LuaFormatter on", "# fmt: on", "// #endregion", "// luacheck: pop"]
)
def test_a_remark_that_ends_what_one_above_began_stays_above_the_empty_line(remark: str) -> None:
    raw = "a = {\n  b\n}\n\nfirst_of_all = {\n"
    old = "}\nfirst_of_all = {\n"
    assert after(raw, old, f"}}\n{remark}\nfirst_of_all = {{\n") == raw.replace(
        "}\n", f"}}\n{remark}\n"
    )
    leading = after(raw, old, "}\n/// Of what follows.\nfirst_of_all = {\n")
    assert leading == raw.replace("first", "/// Of what follows.\nfirst")
    for line in ("# x", "#define X"):
        unclear = refused(raw, old, old.replace("\n", f"\n{line}\n", 1))
        assert "not clear on which side" in unclear.message


def test_a_line_in_full_but_for_the_blank_behind_it_leaves_nothing_of_it() -> None:
    raw = '(one)\n    (testing "set to false" \n      (two))\n'
    got = after(raw, 't to false" ', '    (testing "set to false"', lines=False)
    assert got == raw.replace('" \n', '"\n')


def test_a_word_that_begins_like_the_one_left_out_is_another() -> None:
    raw = "(def f\n  (or (oref obj description)\n      (name obj)))\n"
    old = "(oref obj description)\n      (name obj)))"
    new = "  (or (next obj)\n      (name obj)))"
    assert after(raw, old, new, lines=False) == raw.replace("oref obj description", "next obj")


def test_a_text_that_begins_with_the_indentation_of_the_line_has_all_of_it() -> None:
    raw = "if a {\n    local ok, one = call(load_it,\n        name, true)\n}\n"
    new = "    local ok, one = call(require, name)"
    got = after(raw, "load_it,\n        name, true)", new, lines=False)
    assert got == f"if a {{\n{new}\n}}\n"


def test_numbers_that_are_not_those_of_the_lines_are_what_new_lines_say() -> None:
    raw = "# head\n" * 39 + "- match: a\n  captures:\n    1: one\n    0: zero\n"
    old = "40:- match: a\n41:  captures:\n42:    1: one\n43:    0: zero\n"
    new = "- match: b\n  captures:\n    1: one\n    0: zero\n"
    assert after(raw, old, new) == raw.replace("match: a", "match: b")
    numbered = "40:- match: b\n41:  captures:\n42:    1: one\n43:    0: zero\n"
    assert after(raw, old, numbered) == raw.replace("match: a", "match: b")
