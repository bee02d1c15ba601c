"""Markdown as it streams: styled, and wrapped between words. Nothing is hidden: what was written
can be copied again, so a reader of the raw text and a reader of the terminal read the same."""

from __future__ import annotations

import re

from magy_server.cli.screen.text import Span, plain, width_of

_TOKEN = re.compile(r"\n|[ \t]+|[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]|"
                    r"[^\s\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]+|\s")  # fmt: skip
"""A line end, blanks, a character that a line may end at, or a word."""
_FENCE = re.compile(r"`{3,}|~{3,}")
_HEADING = re.compile(r"#{1,6}\Z")
_BULLET = re.compile(r"(?:[-*+]|\d{1,3}[.)])\Z")
_HELD = 60
"""Characters of an unfinished word that are held back to see whether it fits on the line."""


class Prose:
    """`feed` gives what can be written now; `close` the rest. All of it is final: there is no
    `draft`."""

    under_way = False

    def __init__(self) -> None:
        self._pending = ""
        self._blank = ""
        self._column = 0
        self._hang = 0
        self._begun = False
        """A word of this line was written."""
        self._fence = ""
        self._line = ""
        """The style of the whole line."""
        self._bold = self._code = False

    def feed(self, text: str, width: int | None) -> list[Span]:
        """Takes more text, and returns what can be written now. With `width` None it wraps no
        lines."""
        self._pending += text
        tokens = _TOKEN.findall(self._pending)
        self._pending = ""
        if tokens and not tokens[-1].isspace() and len(tokens[-1]) < _HELD:
            self._pending = tokens.pop()
        return [span for token in tokens for span in self._token(token, width)]

    def close(self, width: int | None) -> list[Span]:
        """Returns the rest; nobody feeds anything after that."""
        spans = self._token(self._pending, width) if self._pending else []
        return [*spans, (self._blank, "")] if self._blank else spans

    def draft(self, width: int | None, height: int | None) -> list[Span]:
        return []

    def _token(self, token: str, width: int | None) -> list[Span]:
        if token == "\n":
            return self._end_line()
        if token.isspace():
            self._blank += token
            return []
        if not self._begun:
            self._begin_line(token)
        spans: list[Span] = []
        size = width_of(token)
        if self._overflows(size, width):
            spans.append(("\n" + " " * self._hang, ""))
            self._column = self._hang
        elif self._blank:
            spans.append((self._blank, ""))
            self._column += len(self._blank)
        self._blank = ""
        self._column += size
        spans += self._styled(token)
        self._begun = True
        return spans

    def _overflows(self, size: int, width: int | None) -> bool:
        if width is None or self._fence or not self._begun or self._column <= self._hang:
            return False
        return self._column + len(self._blank) + size > width

    def _end_line(self) -> list[Span]:
        spans: list[Span] = [(f"{self._blank}\n", "")]
        self._blank = self._line = ""
        self._column = self._hang = 0
        self._begun = self._bold = self._code = False
        return spans

    def _begin_line(self, word: str) -> None:
        indent = len(self._blank.expandtabs())
        self._hang = indent
        fence = _FENCE.match(word)
        if fence and "`" in word[fence.end() :]:
            fence = None  # code within the line, in three backticks
        if self._fence:
            self._line = "code"
            if fence and fence.group() == word and word.startswith(self._fence):
                self._fence, self._line = "", "dim"
        elif fence:
            self._fence, self._line = fence.group(), "dim"
        elif _HEADING.match(word):
            self._line = "heading"
        elif word.startswith(">"):
            self._line, self._hang = "dim", indent + 2
        elif _BULLET.match(word):
            self._hang = indent + len(word) + 1

    def _styled(self, word: str) -> list[Span]:
        """Sets inline code and bold, unless the line has a style of its own."""
        if self._line:
            return [(word, self._line)]
        spans: list[Span] = []
        for piece in re.split(r"(`|\*\*)", word):
            if piece == "`":
                spans.append((piece, "code"))
                self._code = not self._code
            elif piece == "**" and not self._code:
                spans.append((piece, "bold"))
                self._bold = not self._bold
            elif piece:
                spans.append((piece, "code" if self._code else "bold" if self._bold else ""))
        return spans


def filled(text: str, width: int | None, first: str = "") -> str:
    """The lines of `text`, wrapped between words, below each other behind `first`."""
    indent = " " * width_of(first)
    lines = "".join(f"{indent}{line}\n" for line in text.strip("\n").split("\n"))
    prose = Prose()
    return first + plain(prose.feed(lines, width) + prose.close(width))[len(indent) :]
