"""A screen writes to a terminal, a pipe or a file. A reader that is slow, or a terminal that is
stopped with Ctrl-S, holds up the output and nothing else: keys and signals are still heard."""

from __future__ import annotations

import asyncio
import os
import queue
import select
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress

from magy_server.cli.screen.text import UNICODE, Marks, Span, coloured, marks, plain
from magy_server.core.errors import MagyError
from magy_server.core.text.columns import shortened
from magy_server.core.text.sanitizing import harmless

CLEAR = "\r\x1b[K"
ECHO = 4
"""Columns left free at the end of the passing line, for the `^C` that the terminal adds."""


class OutputError(MagyError):
    """The output cannot be written. `quiet`: whoever read it went away, and that is no error."""

    reason = "output"

    def __init__(self, message: str, *, quiet: bool) -> None:
        super().__init__(message)
        self.quiet = quiet


class Output:
    """Writes to a descriptor in a thread of its own, past the buffers of `sys.stdout`."""

    def __init__(self, descriptor: int, encoding: str) -> None:
        self.descriptor = descriptor
        self.encoding = encoding
        self._jobs: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    async def write(self, text: str) -> None:
        """Writes, and returns when it is written. Raises OutputError."""
        if not text:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="output", daemon=True)
            self._thread.start()
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._jobs.put((text.encode(self.encoding, "backslashreplace"), done))
        await done

    def _work(self) -> None:
        while True:
            data, done = self._jobs.get()
            error: OutputError | None = None
            try:
                write_all(self.descriptor, data)
            except OSError as failure:
                error = _output_error(failure)
            with suppress(RuntimeError):  # the loop has ended: nobody waits any more
                done.get_loop().call_soon_threadsafe(_settle, done, error)


def _settle(done: asyncio.Future[None], error: OutputError | None) -> None:
    if done.done():
        return
    if error:
        done.set_exception(error)
    else:
        done.set_result(None)


def write_all(descriptor: int, data: bytes) -> None:
    """Writes all of the data, also to a descriptor that somebody has made non-blocking. Raises
    OSError."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:
            select.select([], [descriptor], [])


def write_text(output: Output, text: str) -> None:
    """Writes text without a loop. Raises OutputError."""
    try:
        write_all(output.descriptor, text.encode(output.encoding, "backslashreplace"))
    except OSError as failure:
        raise _output_error(failure) from None


def _output_error(error: OSError) -> OutputError:
    quiet = isinstance(error, BrokenPipeError)
    return OutputError(f"The output cannot be written: {error.strerror}.", quiet=quiet)


def standard_output() -> Output:
    """Returns standard output. Raises OutputError when it is closed."""
    if sys.stdout is None:
        raise OutputError("Standard output is closed; Magy cannot write its output.", quiet=False)
    return Output(sys.stdout.fileno(), sys.stdout.encoding)


class Screen:
    """Spans on an output. On a terminal they have colours, unless NO_COLOR is set, and a passing
    line at the bottom says what is under way; a dumb terminal has neither."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self.terminal = os.isatty(output.descriptor)
        able = self.terminal and os.environ.get("TERM", "") not in ("", "dumb")
        self._colours = able and not os.environ.get("NO_COLOR")
        self.passing = able
        self._below = self._wipe = ""
        """What is passing, and what takes it away."""
        self.marks: Marks = marks(output.encoding)

    @property
    def renders(self) -> bool:
        """Markdown can be shown as what it means."""
        return self.passing and self._colours and self.marks is UNICODE

    @property
    def width(self) -> int | None:
        """Returns how many columns there are now; None when it is no terminal."""
        return max(20, self._size().columns or 80) if self.terminal else None

    @property
    def height(self) -> int | None:
        """Returns how many rows there are now; None when it is no terminal."""
        return self._size().lines or 24 if self.terminal else None

    def _size(self) -> os.terminal_size:
        """Returns zeros where the terminal does not say it."""
        try:
            return os.get_terminal_size(self._output.descriptor)
        except OSError:
            return os.terminal_size((0, 0))

    async def write(
        self, spans: Sequence[Span], live: str = "", draft: Sequence[Span] = ()
    ) -> None:
        """Writes `spans`, and below them what is only passing: `draft`, lines that fit on a screen
        and are not final, or the line `live`. Raises OutputError."""
        text = self._drawn(spans)
        if not self.passing:
            return await self._output.write(text)
        live = shortened(live, (self.width or 80) - ECHO, self.marks.cut)
        below = self._drawn(draft or [(live, "dim")] if draft or live else [])
        if not text and below == self._below:
            return None
        wipe, self._below = self._wipe, below
        rows = plain(draft).count("\n")
        self._wipe = "" if not below else f"\r\x1b[{rows}A\x1b[J" if rows else CLEAR
        return await self._output.write(wipe + text + below)

    def _drawn(self, spans: Sequence[Span]) -> str:
        """Whatever is shown passes here: only Magy's own colours are sequences."""
        spans = [(harmless(text), style) for text, style in spans]
        return coloured(spans) if self._colours else plain(spans)

    async def prompt(self, text: str) -> None:
        """Asks a question on the line where the answer is typed."""
        if self.passing:
            await self.write([], text)
        else:
            await self._output.write(text)
