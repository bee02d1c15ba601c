"""This module tells the client when something under review has changed: after decisions and edits,
of this process or another, and when the person pauses typing. Never at every keystroke."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

from magy_server.api.connected import Connected
from magy_server.api.places import named_paths
from magy_server.api.reviews.view import View
from magy_server.core.listeners import Listeners

PAUSE = 0.1
"""Seconds without a keystroke after which hunks are derived again."""
TOGETHER = 0.02
"""Seconds in which changes are gathered: a turn may touch many files at once."""


class ReviewNews:
    """`told` is called with the paths after the client was told of them, or would have been."""

    def __init__(self, at: Connected, view: View) -> None:
        self.told = Listeners[Collection[str]]()
        self._view = view
        self._notify = at.notify if at.draws else None
        self._spawn = at.spawn
        self._loop = asyncio.get_running_loop()
        self._typed: set[str] = set()
        self._last = 0.0
        self._pause: asyncio.TimerHandle | None = None
        self._changed: dict[str, str] = {}
        """Root by path: what is to be told."""
        self._telling: asyncio.Task[None] | None = None
        self._stop = view.reviews.watch(self.changed)

    def close(self) -> None:
        self._stop()
        if self._pause:
            self._pause.cancel()

    def touched(self, uri: str) -> None:
        """A document was opened, changed or closed. On the way of every keystroke."""
        self._typed.add(uri)
        self._last = self._loop.time()
        if self._pause is None:
            self._pause = self._loop.call_at(self._last + PAUSE, self._paused)

    def changed(self, paths: Sequence[str]) -> None:
        self._view.forget(paths)
        for path in paths:
            if root := self._view.root_of(path):  # else of a project that nobody looks at here
                self._changed[path] = root
        self._tell()

    def _paused(self) -> None:
        due = self._last + PAUSE
        if self._loop.time() < due:  # there was another keystroke since
            self._pause = self._loop.call_at(due, self._paused)
            return
        self._pause = None
        typed, self._typed = self._typed, set()
        for path in (path for uri in typed for path in named_paths(uri)):
            root = self._view.root_of(path)
            if root is not None and self._view.reviews.under(path):
                self._changed[path] = root
        self._tell()

    def _tell(self) -> None:
        if self._changed and (self._telling is None or self._telling.done()):
            self._telling = self._spawn(self._gathered())

    async def _gathered(self) -> None:
        while self._changed:
            await asyncio.sleep(TOGETHER)
            changed, self._changed = self._changed, {}
            if self._notify:
                from magy_server.api.reviews.changed_files import changed_files

                told = await changed_files(self._view, changed)
                params = told.model_dump(mode="json", by_alias=True)
                self._notify("magy/review/changed", params)
            self.told(changed)
