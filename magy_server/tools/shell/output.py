"""A command's output is cleaned as it arrives, kept in a temporary file, and read by page.

Offsets are characters of the cleaned text: UTF-8 (what is not becomes U+FFFD), without terminal
control sequences, and of a line that was overwritten (`\\r`) only what a terminal shows at last.
"""

from __future__ import annotations

import codecs
import os
import time
from bisect import bisect_right
from collections.abc import Callable

from magy_server.regex import regex

SHOWN = 30_000
"""Characters of an output that a model gets at once."""
HEAD = 10_000
"""Of these, the ones from the beginning when it is longer."""
KEPT = 64 << 20
"""Bytes kept in the temporary file; what comes after is counted, and only its end is kept."""
STORED = 8 << 20
"""Bytes stored for good: the beginning and the end of what is longer."""
LONGEST = 1 << 16
"""Characters of an unfinished line that are waited for."""
_STRIDE = 1 << 16
_ESCAPE = regex(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-Z\\-~])")
_CONTROL = regex(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_OVERSTRUCK = regex(r"[^\n]\x08")
_RETURNS = regex(r"\r+\n")


def clean(text: str) -> str:
    """Whole lines as a terminal would show them."""
    if not _CONTROL.search(text):
        return text
    text = _RETURNS.sub("\n", _ESCAPE.sub("", text))
    if "\r" in text:
        text = "\n".join(line[line.rfind("\r") + 1 :] for line in text.split("\n"))
    return _CONTROL.sub("", _OVERSTRUCK.sub("", text))


class Output:
    """Fed with bytes in any pieces; what it keeps in memory does not grow with the output."""

    def __init__(self) -> None:
        import tempfile  # with the first command

        self.chars = 0
        self.lines = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._line = ""  # unfinished
        self._announced = ""  # of it, cleaned, what `partial` gave away
        self._head = self._tail = ""
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed by `close`
        self._bytes = 0
        self.readable = 0
        """Characters that `page` can give."""
        self._marks = [(0, 0)]  # (characters, bytes) every now and then, to find offsets

    @property
    def waiting(self) -> bool:
        """Returns whether there is an unfinished line that `partial` has not given yet."""
        return bool(self._line) and clean(self._line) != self._announced

    def feed(self, data: bytes, *, final: bool = False) -> str:
        """What is new for who watches: the lines that are whole now."""
        text = self._line + self._decoder.decode(data, final)
        cut = len(text) if final or (len(text) > LONGEST and "\n" not in text) else (
            text.rfind("\n") + 1
        )  # fmt: skip
        whole, self._line = clean(text[:cut]), text[cut:]
        if not whole:
            return ""
        self._keep(whole)
        shown, self._announced = self._announced, ""
        return _continued(shown, whole)

    def partial(self) -> str:
        """What is new in the unfinished line: a prompt, a progress bar."""
        now = clean(self._line)
        shown, self._announced = self._announced, now
        return _continued(shown, now)

    def _keep(self, text: str) -> None:
        if len(self._head) < SHOWN:
            self._head += text[: SHOWN - len(self._head)]
        self._tail = (self._tail + text[-SHOWN:])[-SHOWN:]
        self.chars += len(text)
        self.lines += text.count("\n")
        data = text.encode()
        if self.readable + len(text) == self.chars and self._bytes + len(data) <= KEPT:
            if not self._write(data):
                return  # the disk is full: what follows is treated as too much
            self._bytes += len(data)
            self.readable = self.chars
            if self._bytes - self._marks[-1][1] >= _STRIDE:
                self._marks.append((self.readable, self._bytes))

    def _write(self, data: bytes) -> bool:
        try:
            return self._file.write(data) == len(data)
        except OSError:
            return False

    def page(self, offset: int, limit: int) -> str:
        """At most `limit` characters from `offset` on, of those that were kept."""
        if offset >= self.readable:
            return ""
        chars, at = self._marks[bisect_right(self._marks, (offset, self._bytes)) - 1]
        data = os.pread(self._file.fileno(), 4 * (offset - chars + limit), at)
        return data.decode("utf-8", "ignore")[offset - chars : offset - chars + limit]

    def summary(self, call: str) -> str:
        """All of it, or its beginning and end with a note on how to read the rest."""
        if self.chars <= SHOWN:
            return self._head
        head, tail = self._head[:HEAD], self._tail[HEAD - SHOWN :]
        head = head[: head.rfind("\n", HEAD // 2) + 1] or head
        tail = tail[tail.find("\n", 0, HEAD) + 1 :]
        lines = self.lines - head.count("\n") - tail.count("\n")
        what = f"{lines:,} lines" if lines else f"{self.chars - len(head) - len(tail):,} characters"
        how = f'read them with bash_output(call_id="{call}", offset={len(head)})'
        gap = "" if head.endswith("\n") else "\n"
        return f"{head}{gap}[... {what} omitted; {how}]\n{tail}"

    def stored(self) -> bytes:
        """Returns the output for the log: the whole, or beginning and end."""
        size = self._bytes
        if self.readable == self.chars and size <= STORED:
            return os.pread(self._file.fileno(), size, 0)
        head = os.pread(self._file.fileno(), STORED // 2, 0).decode("utf-8", "ignore")
        if self.readable == self.chars:
            end = os.pread(self._file.fileno(), STORED // 2, max(0, size - STORED // 2))
            tail = end.decode("utf-8", "ignore")
        else:
            tail = self._tail
        left = self.chars - len(head) - len(tail)
        return f"{head}\n[... {left:,} characters were not kept ...]\n{tail}".encode()

    def close(self) -> None:
        self._file.close()


def _continued(shown: str, now: str) -> str:
    return now[len(shown) :] if now.startswith(shown) else "\n" + now


class Live:
    """Passes output on to those who watch, but not more than a person and a wire can take."""

    RATE = 256_000
    """Characters a second."""

    def __init__(self, emit: Callable[[str], None]) -> None:
        self._emit = emit
        self._second = 0.0
        self._left = 0

    def __call__(self, text: str) -> None:
        if not text:
            return
        now = time.monotonic()
        if now - self._second >= 1:
            self._second, self._left = now, self.RATE
        if self._left <= 0:
            return
        self._left -= len(text)
        self._emit(text)
        if self._left <= 0:
            self._emit("\n[... too much to show live ...]\n")
