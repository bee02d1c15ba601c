"""What new lines look like where they are put: their quotes, their depth, the empty lines beside
them; and that none is put twice."""

from __future__ import annotations

import pytest

from tests.edits.test_siblings import after, refused

QUOTED = "a = \"x\"\nprint('hi')\nb = 2\n"


@pytest.mark.parametrize(
    ("new", "wanted"),
    [
        ("a = “x”\nprint(‘hi’)\nprint(‘there’)\n", "a = \"x\"\nprint('hi')\nprint('there')\n"),
        ("a = “x”\nprint(‘hi’, “ho”)\n", 'a = "x"\nprint(\'hi\', "ho")\n'),
        ("print(“new”)\na = “x”\nprint(‘hi’)\n", 'print("new")\na = "x"\nprint(\'hi\')\n'),
        ("a = “x”\nprint(‘hi’)\nc = 1 – 2\n", "a = \"x\"\nprint('hi')\nc = 1 – 2\n"),
    ],
)
def test_typographic_quotes_for_plain_ones_are_plain_in_new_lines_too(
    new: str, wanted: str
) -> None:
    assert after(QUOTED, "a = “x”\nprint(‘hi’)\n", new) == f"{wanted}b = 2\n"


def test_other_quotes_of_the_kind_and_pieces_of_lines() -> None:
    assert after("a = 'x'\n", "a = ‘x’\n", "a = ‘x’\nb = “y”\n") == "a = 'x'\nb = \"y\"\n"
    assert after("if a == 'x': go(1)\n", "a == ‘x’", "a == ‘y’ or “z”", lines=False) == (
        "if a == 'y' or \"z\": go(1)\n"
    )


def test_typographic_quotes_that_the_file_has_stay() -> None:
    raw = "say “hi”\nsay 'ho'\n"
    assert after(raw, "say “hi”\n", "say “hi”\nsay “he”\n") == "say “hi”\nsay “he”\nsay 'ho'\n"
    assert after(raw, "say “hi”\nsay ’ho’\n", "say “hi”\nsay “he”\nsay ’ho’\n") == (
        "say “hi”\nsay “he”\nsay 'ho'\n"
    )


def test_no_break_spaces_for_blanks_are_blanks_in_new_lines_too() -> None:
    quoted = "\u00a0\u00a0\u00a0 a = 1\n"
    assert after("def f():\n    a = 1\n", quoted, f"{quoted}\u00a0\u00a0\u00a0 b\u00a0= 1\n") == (
        "def f():\n    a = 1\n    b = 1\n"
    )


@pytest.mark.parametrize(
    ("raw", "old", "new"),
    [
        ("def a():\n\n    one()\n    two()\n    three()\n",
         "def a():\n    one()\n", "def a():\n    one()\n    two()\n"),
        ("import os\n\nimport re\nimport sys\n", "import os\nimport re\n",
         "import os\nimport re\nimport sys\n"),
        ("def a(x):\n    one_by_one()\n    two()\n    three()\n",
         "def a():\n    one_by_one()\n", "def a():\n    one_by_one()\n    two()\n"),
        ("@cached\ndef a(x):\n    one_by_one()\n    return 1\n",
         "def a(x):\n    one_by_one()\n    return 2\n",
         "@cached\ndef a(x):\n    one_by_one()\n    return 2\n"),
        ("one_by_one()\n\n\ntwo()\nthree()\n", "one_by_one()\n", "one_by_one()\n\ntwo()\n"),
        ("one_by_one()\ntwo()", "one_by_one()\n", "one_by_one()\ntwo()\n"),
        ("first()\r\n\r\none_by_one()\r\ntwo()\r\n", "first()\none_by_one()\n",
         "first()\none_by_one()\ntwo()\n"),
    ],
)  # fmt: skip
def test_an_insertion_that_is_there_already_is_not_made_again(raw: str, old: str, new: str) -> None:
    assert refused(raw, old, new).code == "already_applied"


def test_a_line_that_the_edit_shows_may_come_twice() -> None:
    assert after("x = 1\nfoo(a)\nz = 1\n", "foo(a)\nz = 1\n", "foo(a)\nfoo(a)\nz = 1\n") == (
        "x = 1\nfoo(a)\nfoo(a)\nz = 1\n"
    )
    assert after("if a {\n    b\n}\n}\n", "    b\n}\n", "    b\n}\nif c {\n    d\n}\n") == (
        "if a {\n    b\n}\nif c {\n    d\n}\n}\n"
    )


METHOD = "class A:\n    def f(self, a,b):\n        if a:\n            return b\n        return a\n"
LOGGED = METHOD.replace("        if a", "        if c:\n            log()\n        if a")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    def f(self, a, b):\n      if a:\n        return b\n",
         "    def f(self, a, b):\n      if c:\n        log()\n      if a:\n        return b\n"),
        ("    def f(self, a, b):\n      if a:\n",
         "    def f(self, a, b):\n      if c:\n        log()\n      if a:\n"),
        ("def f(self, a, b):\n  if a:\n", "def f(self, a, b):\n  if c:\n    log()\n  if a:\n"),
        ("def f(self, a, b):\n", "def f(self, a, b):\n  if c:\n    log()\n"),
        ("    def f(self, a, b):\n", "    def f(self, a, b):\n      if c:\n        log()\n"),
        ("def f(self, a, b):\n", "def f(self, a, b):\n    if c:\n        log()\n"),
        ("def f(self, a, b):\n        if a:\n",
         "def f(self, a, b):\n        if c:\n            log()\n        if a:\n"),
        ("\tdef f(self, a, b):\n\t\tif a:\n",
         "\tdef f(self, a, b):\n\t\tif c:\n\t\t\tlog()\n\t\tif a:\n"),
    ],
)  # fmt: skip
def test_a_respaced_line_and_a_body_with_other_steps(old: str, new: str) -> None:
    assert after(METHOD, old, new) == LOGGED


ALIGNED = "if x:\n    y = fooo(a,\n             b,\n             c)\n    z()\n"


@pytest.mark.parametrize("added", ["             bb,\n", "            bb,\n"])
def test_lines_that_are_aligned_keep_their_column_though_a_blank_was_lost(added: str) -> None:
    old = "   y = fooo(a,\n            b,\n"
    assert after(ALIGNED, old, old + added) == ALIGNED.replace(
        "             c", "             bb,\n             c"
    )


def test_lines_of_which_nothing_tells_the_column_are_refused() -> None:
    failure = refused(ALIGNED, "   z()\n", "   z()\n   w(a,\n     b)\n")
    assert "how far to indent" in failure.message
    assert after(ALIGNED, "   z()\n", "   z()\n    w()\n").endswith("    z()\n    w()\n")


def test_an_empty_line_that_was_left_out_below_stays_below() -> None:
    raw = "# one\n# two of the\n# three\n\nmkdir -p out\n"
    old = "# one\n# two of the\n# three\nmkdir -p out\n"
    new = "# one\n# twoo (and more)\n# of the\n# three, too\nmkdir -p out\n"
    assert after(raw, old, new) == new.replace("mkdir", "\nmkdir")


def test_an_empty_line_that_was_left_out_above_stays_above() -> None:
    raw = "import os\n\n# one of the\n# two\nmain()\n"
    old = "import os\n# one of the\n# two\nmain()\n"
    new = "import os\n# some, or\n# one of all the\n# two\nmain()\n"
    assert after(raw, old, new) == new.replace("os\n", "os\n\n")
