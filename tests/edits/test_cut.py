"""A text that is quoted up to the middle of a line, or from there, while the new one has the line
in full: nothing of the line stands there twice. What is only a part of a line stays one."""

from __future__ import annotations

import pytest

from magy_server.edits.model import Hunk, Resolved
from magy_server.edits.rebasing.diff import apply
from magy_server.edits.resolve import resolve

CODE = "function a() {\n  if (x && !y) {\n    go();\n  }\n}\n"


def made(text: str, old: str, new: str, *, lines: bool = False) -> Resolved:
    return resolve(text, [Hunk(old, new, lines=lines)])


def after(text: str, old: str, new: str, *, lines: bool = False) -> str:
    found = made(text, old, new, lines=lines)
    assert not found.failures, found.failures
    return apply(text, found.changes)


@pytest.mark.parametrize("before", ["", "  ", "function a() {\n  "])
def test_old_ends_within_a_line(before: str) -> None:
    old, new = f"{before}if (x && !", f"{before}if (x && !z) {{"
    assert after(CODE, old, new) == CODE.replace("!y", "!z")
    found = made(CODE, old, new)
    assert found.placed[0].note == "old had only a part of line 2; new was taken for all of it"
    assert after(CODE, f"{old}\n", f"{new}\n", lines=True) == CODE.replace("!y", "!z")


@pytest.mark.parametrize(
    ("line", "old", "new"),
    [
        ("if x and not y:", "if x and not", "if x and not z:"),
        ("const a = foo(b);", "const a = fo", "const a = bar(b);"),
        ("const a = 1;", "const a = 1", "const a = 2;"),
        (
            'const N: &\'static str = "a.yaml";',
            "const N: &'static str = \"a.",
            'const N: &str = "b.yaml";',
        ),
        ('a += "```" + b.join("\\n");', 'a += "```" + b.join', 'a += b.join("\\n");'),
        ("x = foo_bar(b)", "x = foo_", "x = foo_baz(b)"),
        ('print("hello")', 'print("hel', 'print("hello world")'),
        ("  return 1", "return 1", "  return 2"),
        ("  return 1", "return 1", "  x = 2\n  return x"),
        ("f(a, b)", "f(a,", "g(a)"),
        ("Map<A, B> m = new Tree<B>();", "Map<A", "Map<A, C> m = new Tree<C>();"),
    ],
)
def test_the_line_is_there_once(line: str, old: str, new: str) -> None:
    lead = "" if new.startswith(" ") or not line.startswith(" ") else "  "
    assert after(f"{line}\nnext();\n", old, new) == f"{lead}{new}\nnext();\n"


def test_old_begins_within_a_line() -> None:
    want = CODE.replace("!y", "!z").replace("go()", "go(1)")
    new = "  if (x && !z) {\n    go(1);"
    assert after(CODE, "x && !y) {\n    go();", new) == want
    assert after(CODE, "!y) {\n    go();", new.lstrip()) == want


@pytest.mark.parametrize(
    ("line", "old", "new"),
    [
        ("x = foo(b)", "foo(b)", "bar(foo(b))"),
        ("x = foo(b)", "x = ", "y = "),
        ("x = foo(b)", "x =", "x = await"),
        ("    foo(b)  # c", "    foo(b)", "    bar(b)"),
        ('s = "say "', 's = "say', 's = "say \\"hi\\"'),
        ("f(a)", "a", "g(a)"),
        ("f()", "f", "f()"),
        ("items.map(x => f(x));", "items.map(", "items.filter(Boolean).map("),
        ("a = b;", "a = b", "a = c"),
        ("    return 1", "return 1", "    return 1"),
        ("int a = b + c;", "int a =", "long a = (long)"),
        ("if (a) {", "if (a", "if (a || b"),
        ("<td> total", "<td>", "<td> the agent's"),
        ("see http://a.b/c, too", "see http://a.b", "see https://x.y"),
    ],
)
def test_a_part_of_a_line_stays_a_part(line: str, old: str, new: str) -> None:
    assert after(f"{line}\n", old, new) == f"{line}\n".replace(old, new)


@pytest.mark.parametrize(
    ("line", "old", "new"),
    [
        ("return a + b", "return a +", "return a + c"),
        ("foo(a);", "foo(", "foo(b)"),
        ("foo, bar,", "foo", "foo, baz,"),
    ],
)
def test_what_is_not_clear_is_refused(line: str, old: str, new: str) -> None:
    (failure,) = made(f"{line}\n", old, new).failures
    assert "old ends in the middle of a line" in failure.message
    assert "quote the whole line" in failure.message


def test_a_line_that_is_longer_is_another_line() -> None:
    (failure,) = made("x = 10\n", "x = 1\n", "x = 2\n", lines=True).failures
    assert failure.code == "not_found"
    (failure,) = made("x = 10\n", "x = 1", "x = 2").failures
    assert failure.code == "not_found"


def test_a_line_that_was_completed_already() -> None:
    text = CODE.replace("!y", "!z")
    (failure,) = made(text, "  if (x && !", "  if (x && !z) {").failures
    assert failure.code == "already_applied"
