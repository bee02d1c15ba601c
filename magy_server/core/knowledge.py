"""An editor knows the code; these are the questions that it may be asked, and its answers.

Files are canonical absolute paths, lines count from 1. An answer is as good as the editor: it may
be out of date, and may name any file.
"""

from __future__ import annotations

from typing import Generic, Literal, TypeVar

from magy_server.dataclass import dataclass

A = TypeVar("A")
Knowledge = Literal["diagnostics", "definition", "references", "symbols", "eval"]


class Question(Generic[A]):
    """A question for the editor; A is the type of its answer."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Answers(Generic[A]):
    """What the editor answered. `more`: it has more than these. `unclear`: how many of its answers
    make no sense."""

    items: tuple[A, ...]
    more: bool = False
    unclear: int = 0


@dataclass(frozen=True, slots=True)
class Spot:
    """Lines `line` to `last` of a file; `path` None: `uri` names no file on this machine. `text` is
    the first of these lines, as the editor has it."""

    path: str | None
    uri: str
    line: int
    last: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """A diagnostic. `column` counts from 1 in units of the editor's encoding; `code` is the tool's
    name for this kind of problem."""

    at: Spot
    column: int
    severity: Literal["error", "warning", "information", "hint"]
    message: str
    source: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True)
class Symbol:
    """`kind` in the editor's own word: "function", "class". `container`: what it is defined in."""

    at: Spot
    name: str
    kind: str
    container: str = ""


@dataclass(frozen=True, slots=True)
class Evaluated:
    value: str
    output: str
    error: str | None


@dataclass(frozen=True, slots=True)
class Diagnostics(Question[Answers[Problem]]):
    """One file; None: all that are open."""

    path: str | None


@dataclass(frozen=True, slots=True)
class Definition(Question[Answers[Spot]]):
    """Where `name`, which stands in this line behind `before`, is defined."""

    path: str
    line: int
    before: str
    name: str


@dataclass(frozen=True, slots=True)
class References(Question[Answers[Spot]]):
    """Where `name` is used; the fields are those of `Definition`."""

    path: str
    line: int
    before: str
    name: str


@dataclass(frozen=True, slots=True)
class Symbols(Question[Answers[Symbol]]):
    """The outline of one file, or those of the workspace (None) whose name has `query` in it."""

    path: str | None
    query: str = ""


@dataclass(frozen=True, slots=True)
class Evaluation(Question[Evaluated]):
    """Runs `code` in the editor, which gives up after `seconds`."""

    code: str
    seconds: float
