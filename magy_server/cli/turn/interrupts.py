"""Ctrl-C and other signals cancel the turn that is shown, or leave it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from magy_server.cli.screen.complaints import complain


class Interrupts:
    """Ctrl-C once cancels the turn, twice leaves at once; being asked to end (SIGTERM), or having
    lost the terminal, leaves too. What is left open can be resumed."""

    def __init__(self) -> None:
        self._cancel: Callable[[], None] | None = None
        self._restore: Callable[[], None] = lambda: None
        self.session = ""
        """The session that is worked in, once it is known."""
        self.left = 0
        """The signal that made the command leave."""
        self.resting = False
        """The command left no turn open."""
        self._asked = False
        self._task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._hear, number)

    def terminal(self, restore: Callable[[], None]) -> None:
        """`restore` puts the terminal back; it is called before the command leaves."""
        self._restore = restore

    @contextmanager
    def cancels(self, cancel: Callable[[], None]) -> Iterator[None]:
        """Within the block, Ctrl-C calls `cancel`. That still holds after an error: whoever handles
        the error cancels the turn as well, and only a second Ctrl-C cuts that short."""
        self._cancel = cancel
        yield
        self._cancel = None

    def _hear(self, number: int) -> None:
        if self.left:  # closing takes too long for somebody who asks a third time
            self._restore()
            os._exit(128 + number)
        if number == signal.SIGINT and self._cancel and not self._asked:
            self._asked = True
            self._cancel()
            return
        self.left = number
        self._restore()
        if self._task:
            self._task.cancel()


async def until_left(work: Callable[[Interrupts], Awaitable[int]]) -> int:
    """Runs a command that shows a turn, and returns the exit code; it says how to go on when
    somebody leaves it."""
    interrupts = Interrupts()
    try:
        return await work(interrupts)
    except asyncio.CancelledError:
        if id := interrupts.session:
            resume, run = f"magy sessions resume {id}", f'magy run --resume {id} "..."'
            complain(f"left; continue with `{run if interrupts.resting else resume}`.")
        else:
            complain("left before anything happened.")
        return 128 + (interrupts.left or signal.SIGINT)
