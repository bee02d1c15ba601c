"""The parser finds the simple commands in tokens of bash: in lists, pipelines, groups, `if`,
`while` and `for`. Other constructs raise `Unclear`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field

from magy_server.core.shell.lexer import Redirect, Token, Unclear, Word, lex
from magy_server.dataclass import dataclass

OPENING = frozenset({"if", "while", "until", "{"})
MIDDLE = frozenset({"then", "elif", "else", "do", "!"})
CLOSING = frozenset({"fi", "done", "}"})
UNREAD = frozenset({"case", "esac", "select", "function", "coproc", "in", "[[", "]]"})
RESERVED = OPENING | MIDDLE | CLOSING | UNREAD | {"for"}


@dataclass(slots=True)
class Simple:
    """A simple command. `before` and `after` are the operators around it, "" at either end."""

    words: list[Word] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    before: str = ""
    after: str = ""


def read(text: str, home: str | None = None) -> tuple[list[Simple], bool]:
    """The simple commands in order, and whether they form one straight line: joined by `&&` and
    pipes alone, without groups and keywords. `home` is what an unquoted `~` stands for.

    Raises Unclear.
    """
    reader = _Reader(iter(lex(text, home)))
    reader.run()
    inner = [c.after for c in reader.commands[:-1]] + [c.before for c in reader.commands[1:]]
    straight = not reader.grouped and all(op in ("&&", "|", "|&") for op in inner)
    return reader.commands, straight


class _Reader:
    """Follows where bash looks for a command name, and gathers the words from there on."""

    def __init__(self, tokens: Iterator[Token]) -> None:
        self.tokens = tokens
        self.commands: list[Simple] = []
        self.current: Simple | None = None
        self.closed = False
        """Right after `)`, `}`, `fi` or `done`."""
        self.last = ""
        self.grouped = False

    def run(self) -> None:
        for token in self.tokens:
            if isinstance(token, str):
                self._operator(token)
            elif isinstance(token, Redirect):
                if self.closed:
                    raise Unclear("redirects a whole group")
                self._command().redirects.append(token)
            elif self.current is None and token.unquoted and token.value in RESERVED:
                self._keyword(token.value)
            elif self.closed:
                raise Unclear("has a word after the end of a group")
            else:
                self._command().words.append(token)

    def _command(self) -> Simple:
        if self.current is None:
            self.current = Simple(before=self.last)
            self.commands.append(self.current)
        return self.current

    def _operator(self, operator: str) -> None:
        if operator == "(":
            if self.current is not None or self.closed:
                raise Unclear("has a function or a stray parenthesis")
            if self.last == "(":
                raise Unclear("may hold arithmetic")
            self.grouped = True
            self.last = "("
            return
        if operator in (";;", ";&", ";;&"):
            raise Unclear("has a `case` branch")
        empty = self.current is None and not self.closed
        if empty and operator not in ("\n", ")"):
            raise Unclear(f"has nothing before `{operator}`")
        if self.current is not None:
            self.current.after = operator
        if not (empty and operator == "\n"):
            self.last = operator
        self.current = None
        self.closed = operator == ")"

    def _keyword(self, value: str) -> None:
        self.grouped = True
        if value in UNREAD:
            raise Unclear(f"uses `{value}`")
        if self.closed and value not in MIDDLE | CLOSING:
            raise Unclear("has a word after the end of a group")
        self.last = value
        self.closed = value in CLOSING
        if value == "for":
            self._for()

    def _for(self) -> None:
        name = next(self.tokens, None)
        if not isinstance(name, Word) or not re.fullmatch("[a-z]|_", name.raw):
            # A loop may set any variable, PATH too; short names are nobody's setting.
            raise Unclear("sets a variable in a loop")
        first = next(self.tokens, None)
        if not isinstance(first, Word) or first.raw != "in":
            raise Unclear("has a loop without `in`")
        for token in self.tokens:
            if isinstance(token, str) and token in (";", "\n"):
                self.last = token
                return
            if not isinstance(token, Word):
                raise Unclear("has a loop that is not plain")
        raise Unclear("has a loop without a body")
