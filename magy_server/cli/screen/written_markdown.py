"""Markdown stays as the model wrote it on pipes and on terminals without colours: nothing else
would tell code from text there."""

from __future__ import annotations

from magy_server.cli.screen.text import Span
from magy_server.core.text.columns import wrapped
from magy_server.regex import regex

_FENCE = regex(r"\s*(`{3,}|~{3,})([^`]*)\Z")


class Written:
    """`feed` gives what can be written for good; `close` the rest; `draft` the line under way.
    Lines are wrapped between words, but for code. Without `wraps`, or a width, all is written as
    it comes."""

    def __init__(self, *, wraps: bool = True) -> None:
        self._wraps = wraps
        self._pending = ""
        self._fence = ""

    @property
    def under_way(self) -> bool:
        return bool(self._pending)

    def feed(self, text: str, width: int | None) -> list[Span]:
        if width is None or not self._wraps:
            return [(text, "")]
        *lines, self._pending = (self._pending + text).split("\n")
        return [(f"{row}\n", "") for line in lines for row in self._rows(line, width)]

    def close(self, width: int | None) -> list[Span]:
        rest, self._pending = self._pending, ""
        return [("\n".join(self._rows(rest, width)), "")] if rest and width else []

    def draft(self, width: int | None, height: int | None) -> list[Span]:
        """The rows of the line under way that fit on a screen of `height`."""
        if not self._pending or width is None:
            return []
        rows = wrapped(self._pending.expandtabs(4), width, long=True)
        return [("\n".join(rows[-max(1, (height or 24) - 2) :]), "")]

    def _rows(self, line: str, width: int | None) -> list[str]:
        fence = _FENCE.match(line)
        if self._fence:
            if fence and fence[1].startswith(self._fence) and not fence[2].strip():
                self._fence = ""
            return [line]
        if fence:
            self._fence = fence[1]
        return [line] if fence or width is None else wrapped(line, width)
