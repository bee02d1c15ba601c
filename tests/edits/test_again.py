"""Edits that were made before, brackets that close something else, and lines that lost their
indentation."""

from __future__ import annotations

import pytest

from magy_server.edits.formats import parse
from magy_server.edits.model import Failure, Hunk, Resolved
from magy_server.edits.rebasing.diff import apply
from magy_server.edits.resolve import resolve

from .writing import edit_of, write


def made(raw: str, old: str, new: str, lines: bool = True, line: int | None = None) -> Resolved:
    return resolve(raw, [Hunk(old, new, lines, line=line)])


def after(raw: str, old: str, new: str, lines: bool = True) -> str:
    found = made(raw, old, new, lines)
    assert not found.failures, found.failures[0].message
    return apply(raw, found.changes)


def refused(raw: str, old: str, new: str, line: int | None = None) -> Failure:
    found = made(raw, old, new, line=line)
    assert found.failures, apply(raw, found.changes)
    return found.failures[0]


WITH = "def f():\n    with a as file:\n        file.write(doc)\n    message = '%s' % path\n"
WRAPPED = WITH.replace("file.write", "if enabled:\n            file.write")


@pytest.mark.parametrize(
    ("raw", "old", "new"),
    [
        (WRAPPED, "".join(WITH.splitlines(True)[2:]), "".join(WRAPPED.splitlines(True)[2:])),
        (
            "x = 1\n\nif enabled:\n    import warnings\n\nwarn(x)\n",
            "\nimport warnings\n\n",
            "\nif enabled:\n    import warnings\n\n",
        ),
        (
            "int f() {\n  if (a) {\n    call(b);\n  }\n  return 1;\n}\n",
            "  call(b);\n  return 1;\n",
            "  if (a) {\n    call(b);\n  }\n  return 1;\n",
        ),
    ],
)
def test_lines_around_others_are_not_put_there_again(raw: str, old: str, new: str) -> None:
    assert refused(raw, old, new).code == "already_applied"


def test_other_lines_around_them_are_put_there() -> None:
    raw = WITH.replace("file.write", "if other:\n            file.write")
    new = "    if enabled:\n        file.write(doc)\n"
    wanted = raw.replace(
        "            file.write(doc)", "            if enabled:\n                file.write(doc)"
    )
    assert after(raw, "    file.write(doc)\n", new) == wanted


TWINS = (
    "def a():\n    x = load(args)\n    return compute(x)\n\n\n"
    "def b():\n    x = load(args)\n    return compute(x, 2)\n"
)
OLD = "    x = load(args)\n    return compute(x)\n"
NEW = "    x = load(args)\n    return compute(x, 2)\n"


def test_what_was_made_at_its_line_is_not_made_at_another() -> None:
    failure = refused(TWINS, OLD, NEW, line=7)
    assert (failure.code, failure.lines) == ("already_applied", (7,))


@pytest.mark.parametrize("line", [None, 1, 2, 4, 40])
def test_a_line_that_names_no_such_place_is_a_hint(line: int | None) -> None:
    found = made(TWINS, OLD, NEW, line=line)
    assert apply(TWINS, found.changes).count("compute(x, 2)") == 2


def test_a_bracket_at_another_depth_closes_something_else() -> None:
    raw = "    if (a) {\n      } else {\n        push(name)\n    }\n    done()\n"
    failure = refused(raw, "        push(name)\n      }\n", "        push(name)\n")
    assert "closes a different block" in failure.message
    moved = after(raw, "    push(name)\n}\n", "    push(name, 1)\n}\n")
    assert moved == raw.replace("name", "name, 1")


LOOP = "def f(x):\n    for y in x:\n        process(y)\n    return x\n"


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize(
    ("new", "there"),
    [
        ("check(y)\nprocess(y)", "        check(y)\n        process(y)\n"),
        ("process(y)\nlog(y)", "        process(y)\n        log(y)\n"),
        ("if y:\n    process(y)", "        if y:\n            process(y)\n"),
        ("if y:\n            process(y)", "        if y:\n            process(y)\n"),
        ("process(y)\n#if A\n#endif", "        process(y)\n#if A\n#endif\n"),
        ('s = """\na\n"""', '        s = """\na\n"""\n'),
    ],
)
def test_a_line_without_its_indentation(new: str, there: str, end: str) -> None:
    wanted = LOOP.replace("        process(y)\n", there)
    assert after(LOOP, f"process(y){end}", f"{new}{end}", lines=False) == wanted


def test_what_follows_the_last_line_of_a_block_may_stand_at_the_margin() -> None:
    new = "return x\n\n\ndef g():\n    pass"
    assert after(LOOP, "return x", new, lines=False) == LOOP.replace("return x", new)


def test_a_block_that_lost_its_indentation_closes_where_it_began() -> None:
    raw = "   one line\n   another line of words\n   the last\n"
    new = "call(67) {\n    do_it()\n}\nanother line of words\n"
    wanted = raw.replace("   another", "   call(67) {\n       do_it()\n   }\n   another")
    assert after(raw, "another line of words\n", new) == wanted


def test_a_difference_is_found_again_in_a_text_without_an_end() -> None:
    before, wanted = "a\na\na\na", "\na\na\na\na"
    (edit,) = parse("v4a", write("v4a", [edit_of(before, wanted, "f")]))
    found = resolve(before, edit.hunks)
    assert apply(before, found.changes) == wanted


def test_what_is_there_beside_another_line_is_not_made_at_a_place_of_another_depth() -> None:
    made_there = "  if a then\n    stop(log)\n    reply()\n"
    raw = f"if b then\n  reply()\nend\n{made_there.replace('then', 'then -- now')}end\n"
    raw += made_there.replace("  if", "if").replace("    ", "  ")
    old = "  if a then\n    reply()\n"
    assert refused(raw.replace("b then", "a then"), old, made_there).code == "already_applied"
