"""Models behind simple servers put thinking into their text: between `<think>` tags at the very
beginning, and nowhere else. This module finds it without I/O; what is fed may be cut anywhere."""

from __future__ import annotations

from typing import Literal

_THINK, _THOUGHT = "<think>", "</think>"


class Thoughts:
    """Tells the thinking at the beginning of a text from the rest."""

    def __init__(self) -> None:
        self._state: Literal["start", "inside", "gap", "after"] = "start"
        self._pending = ""
        self._thought = False

    def feed(self, text: str) -> tuple[str, str]:
        """Takes more text, and returns (thinking, text) that is sure by now."""
        self._pending += text
        thinking = ""
        if self._state == "start":
            begun = self._pending.lstrip()
            if _THINK.startswith(begun[: len(_THINK)]) and len(begun) < len(_THINK):
                return "", ""
            self._state = "inside" if begun.startswith(_THINK) else "after"
            if self._state == "inside":
                self._pending = begun[len(_THINK) :]
        if self._state == "inside":
            if not self._thought:
                self._pending = self._pending.lstrip("\n")
            self._thought = bool(self._pending)
            thinking, closed, rest = self._pending.partition(_THOUGHT)
            if not closed:
                keep = _overlap(thinking, _THOUGHT)
                self._pending = thinking[len(thinking) - keep :]
                return thinking[: len(thinking) - keep], ""
            self._state, self._pending = "gap", rest
        rest, self._pending = self._pending, ""
        if self._state == "gap" and (rest := rest.lstrip()):
            self._state = "after"
        return thinking, rest

    def finish(self) -> tuple[str, str]:
        """Returns (thinking, text) of what was not sure until the end."""
        rest, self._pending = self._pending, ""
        return (rest, "") if self._state == "inside" else ("", rest)


def _overlap(text: str, mark: str) -> int:
    """Returns how many characters at the end of the text may be the beginning of the mark."""
    return next((n for n in range(len(mark) - 1, 0, -1) if text.endswith(mark[:n])), 0)
