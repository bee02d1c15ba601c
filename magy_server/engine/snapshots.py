"""`Snapshots` keeps the state of a long session in the store now and then, so that who loads the
session folds only what came since.

A snapshot is only a shortcut: one that is missing, damaged, or of another Magy costs a fold from
the start, and nothing else.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pydantic

from magy_server import core, dataclass
from magy_server.core.agents.tree import Stream
from magy_server.core.errors import StoreError
from magy_server.core.events import Entry
from magy_server.core.ports import Snapshot, Store
from magy_server.core.state.state import State

LOG = logging.getLogger(__name__)

EVERY = 2000
"""Entries between one snapshot of a session and the next: folding so many takes 0.1 s."""

_BEGAN = time.time()


class Snapshots:
    """The snapshots of one session."""

    __slots__ = ("_last", "_store", "_stream")

    def __init__(self, store: Store, stream: Stream) -> None:
        self._store = store
        self._stream = stream
        self._last = 0

    async def latest(self, recent: int) -> tuple[State, Sequence[Entry]] | None:
        """Returns the state that was kept last, and the `recent` entries up to it; None if there is
        none that this Magy made of this very log. Raises StoreError."""
        found = await self._store.snapshot(self._stream)
        state = await asyncio.to_thread(_opened, found) if found else None
        if state is None or state.stream != self._stream:
            return None
        after, before = max(0, state.seq - recent), state.seq + 1
        entries = await self._store.read(self._stream, after=after, before=before)
        if not entries or (entries[-1].seq, entries[-1].at) != (state.seq, state.at):
            return None
        self._last = state.seq
        return state, entries

    async def missing(self) -> bool:
        """Returns whether one can be made, and none is there that this Magy made. Raises
        StoreError."""
        code = await asyncio.to_thread(_code)
        found = await self._store.snapshot(self._stream) if code else None
        return bool(code) and (found is None or found.code != code)

    def due(self, state: State) -> bool:
        """Returns whether enough has come since the last one."""
        return state.seq - self._last >= EVERY

    async def keep(self, state: State) -> None:
        """Makes it besides everything else, and stores it."""
        self._last = state.seq  # also if it fails: the next one is tried later
        made = await asyncio.to_thread(_made, state)
        if made is None:
            return
        try:
            await self._store.keep(self._stream, made)
        except StoreError as error:
            LOG.info("No snapshot of %s was kept: %s", self._stream, error)


def _opened(found: Snapshot) -> State | None:
    if found.code != _code():
        return None
    from magy_server.engine import snapshot_format

    try:
        return snapshot_format.load(found.body)
    except ValueError as error:
        LOG.warning("A snapshot is not used, the whole log is folded instead: %s", error)
        return None


def _made(state: State) -> Snapshot | None:
    from magy_server.engine import snapshot_format

    code = _code()
    return Snapshot(state.seq, code, snapshot_format.dump(state)) if code else None


@cache
def _code() -> str:
    """Returns the digest of all that decides how a log is folded and what its state is made of;
    "" when it cannot be told, because it was changed after this process had begun to load it."""
    from magy_server.engine import snapshot_format  # few sessions are long enough for one

    own = sorted(Path(core.__file__).parent.rglob("*.py"))
    sources = [*own, Path(dataclass.__file__), Path(snapshot_format.__file__)]
    if not own or any(source.stat().st_ctime >= _BEGAN for source in sources):
        return ""
    found = hashlib.sha256(f"{sys.version} {pydantic.VERSION}".encode())
    for source in sources:
        text = source.read_bytes()
        found.update(f"\n{source.name} {len(text)}\n".encode() + text)
    return found.hexdigest()
