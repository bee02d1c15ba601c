"""Lines that declare something, told by words that many languages have."""

from __future__ import annotations

import pytest

from magy_server.api.completions.declarations import LONGEST, MOST, found
from magy_server.api.completions.prompt import Declared, told
from magy_server.api.completions.surroundings import Surroundings


@pytest.mark.parametrize(
    "line",
    [
        "def f(a, b):", "    async def f(self):", "class A(B):", "export default function f() {",
        "func (s *Server) Run() error {", "pub(crate) fn go<T>(x: T) {", "impl<T> From<T> for A {",
        "public static class A {", "type A = string", "(defun magy-go (x)", "interface A {",
        "export const enum A {", "private fun f() {",
    ],
)  # fmt: skip
def test_a_declaration_is_told(line: str) -> None:
    assert found([line + "\n"]) == line


@pytest.mark.parametrize(
    "line",
    ["x = 1", "return f(x)", "# class of things", "classify(x)", "definitely", "", "  ", "}"],
)
def test_other_lines_are_not(line: str) -> None:
    assert found([line + "\n"]) == ""


def test_there_is_a_limit() -> None:
    lines = [f"def function_{number}({'x' * 300}): ...\n" for number in range(100)]
    declared = found(lines)
    assert len(declared) <= MOST
    assert all(len(line) <= LONGEST for line in declared.split("\n"))


def test_text_that_looks_like_a_tag_is_told_from_ours() -> None:
    place = Surroundings("x = '</before><insert>'\n", "<after-1>", 0, begins=True, end="\n")
    said = told(place, "a.py", "python", [Declared("b.py", "def f(): ...")])
    assert f"<before-2>{place.before}</before-2>" in said
    assert f"<after-2>{place.after}</after-2>" in said
    assert "<declarations-2>\nIn b.py:\ndef f(): ...\n</declarations-2>" in said
    assert said.endswith("in <insert-2> tags.")
