"""Results of read calls are given again while nothing is known to have changed.

Several agents that look at the same thing get one answer. An answer holds for the seconds that its
tool declares, and less: whatever Magy itself changes, runs or is told by a person drops all of
them, and a file that was named is looked at again (its time, size and identity) before an old
answer about it is given.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import Protocol

from magy_server.core.tool import Result, Tool, ToolContext
from magy_server.core.values import Call
from magy_server.dataclass import dataclass

MOST = 128
LARGEST = 256 * 1024
"""Characters or bytes; what is larger is not kept."""
_ENCODE = json.JSONEncoder(sort_keys=True).encode


class Asking(ToolContext, Protocol):
    """Who runs the tool."""

    @property
    def basis(self) -> Hashable | None:
        """What the answer depends on besides call and files: what this agent may do, as far as it
        is remembered, and which text of which file the editor shows. None: commands run in the
        background, and may change anything."""


@dataclass(slots=True)
class _Entry:
    """`lock`: whoever asks the same meanwhile waits for the one answer."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    result: Result | None = None
    until: float = 0.0


class Results:
    """Shared by all sessions of a process. `now` gives seconds on a clock that never goes back."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._changing = 0

    async def of(self, call: Call, tool: Tool, context: Asking) -> Result:
        """Runs the tool, or gives what the same call gave a moment ago."""
        arguments = tool.arguments(call.arguments)
        if tool.effect not in ("read", "agent"):
            with self._change():
                return await tool.run(context, **arguments)
        proposing = context.review == "propose"  # what is proposed is not on the disk
        if not tool.fresh or self._changing or proposing or (basis := context.basis) is None:
            return await tool.run(context, **arguments)
        key = _key(call, context, basis)
        entry = self._entries.setdefault(key, _Entry())
        self._entries.move_to_end(key)
        while len(self._entries) > MOST:
            self._entries.popitem(last=False)
        async with entry.lock:
            if entry.result is None or self._now() >= entry.until:
                began = self._now()
                entry.result = _kept(result := await tool.run(context, **arguments))
                entry.until = began + tool.fresh
                return result
            return entry.result

    def forget(self) -> None:
        """Something may have changed."""
        self._entries.clear()

    @contextmanager
    def _change(self) -> Iterator[None]:
        """While something runs that can change files, old answers prove nothing."""
        self._changing += 1
        self.forget()
        try:
            yield
        finally:
            self._changing -= 1
            self.forget()


def _key(call: Call, context: Asking, basis: Hashable) -> Hashable:
    """All that the answer depends on, as far as it can be known without running the tool."""
    subjects = tuple((r.subject, _stamp(r.subject)) for r in context.facts.resources)
    arguments = _ENCODE(call.arguments)
    return (context.root, call.name, arguments, subjects, basis)


def _stamp(path: str) -> Hashable:
    if not path.startswith("/"):
        return None  # a command, an address
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)


def _kept(result: Result) -> Result | None:
    size = len(result.for_model) + len(result.for_user) + len(result.output or b"")
    size += sum(map(len, result.blobs.values()))
    return result if size <= LARGEST and not result.events else None
