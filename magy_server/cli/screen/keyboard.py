"""This module reads keys and typed lines of the terminal without making the loop wait.

The module changes the terminal only while it awaits a key, and puts it back as it was; Ctrl-C and
Ctrl-Z keep their meaning all the time.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import termios
import tty
from contextlib import suppress
from typing import Any

from magy_server.core.listeners import Listeners
from magy_server.regex import regex

TOGETHER = 0.1
"""What follows within so many seconds is no answer to what is on the screen: it is the rest of a
sequence, of a paste, or of what somebody types blindly."""
_PASTE = b"\x1b[200~"
_PASTED = regex(rb"\x1b\[200~.*?\x1b\[201~", re.DOTALL)
_SEQUENCE = regex(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[ -~]|[^\[O])", re.DOTALL)
"""Arrows, function keys and keys with Alt send these; none of them means the letter it ends in."""
_UNFINISHED = regex(rb"\x1b(?:\[[0-?]*[ -/]*|O)?\Z")


def _keys(data: bytes) -> tuple[bytes, bytes]:
    """Returns the single keys in it, and a sequence or a paste whose end has not come."""
    data = _PASTED.sub(b"", data)
    before, paste, pasted = data.partition(_PASTE)
    keys = _SEQUENCE.sub(b"", before)
    if paste:
        return keys, paste + pasted
    found = _UNFINISHED.search(keys)
    cut = found.start() if found else len(keys)
    return keys[:cut], keys[cut:]


class Keyboard:
    """Use as a context manager."""

    def __init__(self, descriptor: int, *, owned: bool) -> None:
        self.gone = False
        """The terminal was closed."""
        self.typed: Listeners[[]] = Listeners()
        """Hear that something was typed."""
        self._descriptor = descriptor
        self._owned = owned
        self._found: list[Any] = termios.tcgetattr(descriptor)
        self._mode = ""
        self._typed = self._begun = b""
        """What was typed; what of a sequence has come."""
        self._alone = False
        """What was typed last is a single key."""
        self._read_at = 0.0

    @classmethod
    def open(cls) -> Keyboard | None:
        """Opens standard input or, when that is a pipe, the terminal of the output. Returns None
        when there is none, or this process may not read from it."""
        if sys.stdin is None or sys.stdout is None or not os.isatty(sys.stdout.fileno()):
            return None
        try:
            if os.isatty(sys.stdin.fileno()):
                return cls(sys.stdin.fileno(), owned=False)
            # By its own name: polling `/dev/tty` does not work everywhere.
            name = os.ttyname(sys.stdout.fileno())
            descriptor = os.open(name, os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
        except (OSError, termios.error):
            return None
        return cls(descriptor, owned=True)

    def __enter__(self) -> Keyboard:
        return self

    def __exit__(self, *exc: object) -> None:
        self.rest()
        if self._owned:
            os.close(self._descriptor)

    def listen(self, mode: str) -> None:
        """Listens from now on: "key" by key, or for a whole "line" that the terminal lets people
        edit. It forgets what was typed before anybody asked."""
        if self._mode == mode or self.gone:
            return
        fresh = not self._mode
        if fresh:
            loop = asyncio.get_running_loop()
            loop.add_reader(self._descriptor, self._read)
            loop.add_signal_handler(signal.SIGCONT, self._continued)
        self._mode = mode
        self._set(flush=fresh)

    def rest(self) -> None:
        """Puts the terminal back as it was found."""
        if self._mode:
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._descriptor)
            loop.remove_signal_handler(signal.SIGCONT)
        self._mode, self._typed, self._begun = "", b"", b""
        self.restore()

    def restore(self) -> None:
        """Puts back only the terminal's mode. Callers may call it at any time."""
        with suppress(termios.error):
            termios.tcsetattr(self._descriptor, termios.TCSANOW, self._found)

    def _continued(self) -> None:
        """Sets the mode again when the process was stopped and goes on: the shell has put back its
        own."""
        self._set(flush=self._mode == "key")

    def _set(self, *, flush: bool) -> None:
        with suppress(termios.error):
            if flush:
                self._typed = self._begun = b""
                termios.tcflush(self._descriptor, termios.TCIFLUSH)
            termios.tcsetattr(self._descriptor, termios.TCSANOW, self._found)
            if self._mode == "key":
                tty.setcbreak(self._descriptor, termios.TCSANOW)

    def _read(self) -> None:
        try:
            data = os.read(self._descriptor, 4096)
        except OSError:
            data = b""
        if not data and self._mode == "key":
            self.gone = True
        if self._mode == "key":
            self._typed += self._plain(data)
        else:
            self._typed += data or b"\n"  # Ctrl-D on an empty line: nothing to say
        if self.gone:
            self.rest()
        self.typed()

    def _plain(self, data: bytes) -> bytes:
        """Returns the text without sequences, which may come in pieces."""
        loop = asyncio.get_running_loop()
        apart = loop.time() - self._read_at > TOGETHER
        if apart and not self._begun.startswith(_PASTE):
            self._begun = b""  # the key Esc
        self._read_at = loop.time()
        keys, self._begun = _keys(self._begun + data)
        self._alone = apart and len(keys) == 1
        loop.call_later(TOGETHER * 1.1, self.typed)
        return keys

    def key(self) -> str:
        """Returns the key that was pressed, in lower case; "" if there is none, or more may follow.
        Keys that came together are no answer; only what they say after an `n` stays, as a line."""
        if asyncio.get_running_loop().time() - self._read_at <= TOGETHER:
            return ""
        first, rest = self._typed[:1].lower(), self._typed[1:]
        self._typed = rest if first == b"n" else b""
        return first.decode("latin-1") if self._alone or first == b"n" else ""

    def line(self) -> str | None:
        """Returns the line, when somebody has ended it."""
        text, end, rest = self._typed.partition(b"\n")
        if not end:
            return None
        self._typed = rest
        return text.decode("utf-8", "replace").strip()
