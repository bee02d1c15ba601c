"""This module writes each diagnostic as one line, as compilers do."""

from __future__ import annotations

from magy_server.core.knowledge import Problem
from magy_server.core.text.sanitizing import one_line

WIDTH = 400
"""Characters of a message or a line of text."""


def said(problem: Problem, name: str) -> str:
    """`name:line:column: severity: message [source code]`; `name` is the file's."""
    tail = " ".join(part for part in (problem.source, problem.code) if part)
    where = f"{name}:{problem.at.line}:{problem.column}"
    return f"{where}: {problem.severity}: {line(problem.message)}" + (
        f" [{line(tail)}]" * bool(tail)
    )


def line(text: str) -> str:
    """On one line, not too long a one, and nothing in it that steers who shows it."""
    text = one_line(text)
    return text if len(text) <= WIDTH else f"{text[:WIDTH]}…"
