"""The lines around the cursor that belong together, in languages of all kinds."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from magy_server.core.prompting.surroundings import ABOVE, FAR, LONG, block, definition, window

PYTHON = """\
import os

@decorated
# why
def one(
    a,
    b,
):
    if a:
        return 1

    return 2


class Two:
    x = 1

    async def three(self):
        for i in range(3):
            pass
        return i

y = 3
"""
C = """\
#include <stdio.h>

/* Adds. */
int add(int a,
        int b)
{
#ifdef X
    return a;
#endif
    if (a) {
        b++;
    } else {
        b--;
    }
    return b;
}

int main(void) {
    return add(1, 2);
}
"""
JAVASCRIPT = """\
const f = (a) => {
  return a.map((x) => {
    return x;
  });
};

class A {
  method(x) {
    return x;
  }
}
"""
LISP = """\
;;; x.el

;; Says why.
(defun foo (a)
  "Doc."
  (let ((b 1))
    b))

(defvar x 1)
"""
GO = """\
func (s *S) Run(ctx context.Context) error {
\tfor {
\t\tif err != nil {
\t\t\treturn err
\t\t}
\t}
}
"""
RUBY = """\
module M
  class C
    def foo
      bar
    end
  end
end
"""
RUST = """\
#[test]
pub(crate) fn it_works<T>(x: T) -> bool
where
    T: Copy,
{
    match x {
        _ => true,
    }
}
"""
SHELL = """\
greet() {
    echo hello
}

greet
"""
YAML = """\
server:
  port: 1
  hosts:
    - a

client: x
"""
CASES = [
    (PYTHON, 0, None),
    (PYTHON, 2, (2, 12)),
    (PYTHON, 3, (2, 12)),
    (PYTHON, 7, (2, 12)),
    (PYTHON, 9, (2, 12)),
    (PYTHON, 10, (2, 12)),
    (PYTHON, 12, None),
    (PYTHON, 15, (14, 21)),
    (PYTHON, 19, (17, 21)),
    (PYTHON, 22, None),
    (C, 0, None),
    (C, 2, (2, 16)),
    (C, 5, (2, 16)),
    (C, 7, (2, 16)),
    (C, 11, (2, 16)),
    (C, 15, (2, 16)),
    (C, 18, (17, 20)),
    (JAVASCRIPT, 2, (0, 5)),
    (JAVASCRIPT, 4, (0, 5)),
    (JAVASCRIPT, 8, (7, 10)),
    (JAVASCRIPT, 10, (6, 11)),
    (LISP, 2, (2, 7)),
    (LISP, 6, (2, 7)),
    (GO, 3, (0, 7)),
    (GO, 6, (0, 7)),
    (RUBY, 3, (2, 5)),
    (RUBY, 1, (1, 6)),
    (RUST, 0, (0, 9)),
    (RUST, 6, (0, 9)),
    (SHELL, 1, (0, 3)),
    (SHELL, 4, None),
    (YAML, 3, (0, 4)),
    (YAML, 5, None),
    ("# Title\n\nWords.\n", 2, None),
    ("", 0, None),
]


@pytest.mark.parametrize(("text", "at", "expected"), CASES)
def test_the_definition_around_a_line(text: str, at: int, expected: tuple[int, int] | None) -> None:
    assert definition(text.split("\n"), at) == expected


LINES = st.lists(
    st.sampled_from(
        ["", "def f():", "    x", "\tx", "}", "{", "class A {", "  end", "# c", "@d", "x = 1",
         "  if a:", "int f(a,", "public:", "#endif", "(defun x ()", "    );"]
    ) | st.text(max_size=8).map(lambda text: text.replace("\n", " ")),
    max_size=30,
)  # fmt: skip


@given(LINES, st.integers(0, 40))
@example(["#endif", "def f():"], 0)
def test_what_is_found_has_the_line_in_it(lines: list[str], at: int) -> None:
    found = definition(lines, at)
    if found:
        first, end = found
        assert 0 <= first < end <= len(lines)
        assert any(line.strip() for line in lines[first:end])
        # The line itself, or for one between things what begins right below it.
        line = min(at, len(lines) - 1)
        assert first <= line < end or not lines[line].strip()


PIECES = (
    " ", "\t", "}", "} ", ") ]", "const ", "static ", "pub(", "a ", "a<  ", "a.", "a-", "(", "f(x ",
    "= ", "=> ", "# ", "public ", "where ", "name: ", "let a = ", "(def", ";", "{",
)  # fmt: skip
GENERATED = 400_000
"""Characters of a line, and lines: what is not proportional to them does not end."""


@pytest.mark.parametrize("piece", PIECES)
def test_a_generated_line_costs_what_its_length_says(piece: str) -> None:
    """Only its beginning is looked at, so that what follows changes nothing."""
    for end in ("", "x", "!", "{"):
        line = piece * (GENERATED // len(piece)) + end
        for text in (line, f"const a{line}", f"public{line}", f"}}{line}", f"f{line}"):
            short = text[: LONG - 2]
            inside = definition(["def f():", f"  {text}"], 1)
            assert inside == definition(["def f():", f"  {short}"], 1)
            assert block([text, text], 0) == block([short, short], 0)


@pytest.mark.parametrize("piece", PIECES)
def test_generated_lines_that_stand_in_each_other(piece: str) -> None:
    """Each of them may be the head of all below it. What is found is near, and has the line in
    it."""
    deep = [" " * n + piece * (8_000 // len(piece)) + "x" for n in range(2_500)]
    closed = [line for n in range(1_900, 0, -1) for line in (" " * n + "def f():", " " * n + "}")]
    for lines, at in (
        (deep, len(deep) - 1),
        ([*closed, *deep], len(closed)),
        ([*deep, *closed], len(deep) + len(closed) - 1),
    ):
        first, end = definition(lines, at) or (at, at + 1)
        assert at - FAR - 2 * ABOVE <= first <= at < end <= at + FAR + ABOVE


def test_far_from_the_beginning_of_a_file() -> None:
    lines = [*["x = 1"] * GENERATED, *PYTHON.splitlines()]
    assert definition(lines, GENERATED + 9) == (GENERATED + 2, GENERATED + 12)
    assert block(lines, GENERATED + 4) == (GENERATED + 2, GENERATED + 12)


@given(LINES.filter(bool), st.data())
def test_a_block_begins_with_its_head_or_what_is_said_above(
    lines: list[str], data: st.DataObject
) -> None:
    head = data.draw(st.integers(0, len(lines) - 1))
    first, end = block(lines, head)
    assert 0 <= first <= head < end <= len(lines)


@given(st.integers(1, 100), st.integers(-5, 200), st.integers(0, 20))
def test_a_window_is_around_the_line(total: int, at: int, around: int) -> None:
    first, end = window(total, at, around)
    assert 0 <= first < end <= total and end - first <= 2 * around + 1
    assert first <= max(0, min(at, total - 1)) < end
