"""Mirrors are files of sessions beside the database: append-only JSON lines, never read back.

    projects/<sha1 of the root>/SESSION.jsonl
    projects/<sha1 of the root>/SESSION/agent-jobs/KEY.jsonl      a child; its own likewise below it
    SESSION.jsonl                                                 a session without a root

A listener says which sessions have grown; one task copies what is new from the store. A file that
lags behind or was removed is completed, whichever process writes to it next. A deleted session
takes its files along.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import logging
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from magy_server.core import codec
from magy_server.core.agents.tree import SESSIONS, Stream, id_of, stream_of
from magy_server.core.errors import MagyError
from magy_server.core.events import Entry
from magy_server.core.ports import Bus, Store
from magy_server.core.state.state import State
from magy_server.core.text.log_lines import header, line
from magy_server.core.values import Hash
from magy_server.engine.trees import DELETED
from magy_server.tasks import Tasks

LOG = logging.getLogger(__name__)
PAGE = 200
"""Entries that are copied at once."""


def place(directory: Path, root: str | None, session: str) -> Path:
    """The file of a session."""
    parts = [
        quote(part, safe="").replace(".", "%2E", part[:1] == ".") for part in session.split("/")
    ]
    if root is not None:
        directory = directory / "projects" / hashlib.sha1(os.fsencode(root)).hexdigest()
    for part in parts[:-1]:
        directory = directory / part / "agent-jobs"
    return directory / f"{parts[-1]}.jsonl"


class Mirror:
    """A listener. Entries that it does not hear of come with the next that it does."""

    def __init__(self, store: Store, directory: Path) -> None:
        self._store = store
        self._directory = directory
        self._grown: dict[Stream, Path] = {}
        self._gone: set[str] = set()
        self._moved = asyncio.Event()
        self._over = False
        self._written: defaultdict[str, set[Hash]] = defaultdict(set)

    def __call__(self, state: State, entries: Sequence[Entry]) -> None:
        if state.stream.startswith(SESSIONS):
            self._grown[state.stream] = place(self._directory, state.root, state.id)
            self._moved.set()

    def forget(self, deleted: Mapping[str, Any]) -> None:
        self._gone.add(deleted["session"])
        self._moved.set()

    async def follow(self) -> None:
        """Copies until `end` is called, and then what is left."""
        while not self._over:
            await self._moved.wait()
            self._moved.clear()
            await self._catch_up()

    def end(self) -> None:
        self._over = True
        self._moved.set()

    async def _catch_up(self) -> None:
        while self._grown or self._gone:
            while self._grown:
                stream, file = self._grown.popitem()
                try:
                    await self._copy(stream, file)
                except (OSError, ValueError, MagyError) as error:
                    LOG.error("The session file %s cannot be written: %s", file, error)
            while self._gone:
                session = self._gone.pop()
                try:
                    await asyncio.to_thread(self._remove, session)
                except OSError as error:
                    LOG.error("The files of session %s cannot be removed: %s", session, error)

    async def _copy(self, stream: Stream, file: Path) -> None:
        fd, after = await asyncio.to_thread(_open, file)
        try:
            while entries := await self._store.read(stream, after=after, limit=PAGE):
                lines = [] if after else [header(id_of(stream))]
                for entry in entries:
                    new = set(codec.blobs(entry.event)) - self._written[stream]
                    self._written[stream] |= new
                    lines.append(line(entry, await self._store.blobs(list(new)) if new else {}))
                text = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in lines)
                await asyncio.to_thread(_write, fd, text.encode("utf-8", "surrogatepass"))
                after = entries[-1].seq
        finally:
            os.close(fd)

    def _remove(self, session: str) -> None:
        """Its project is not said; its name is nobody else's."""
        self._written.pop(stream_of(session), None)
        below = place(Path(), None, session)
        for file in (self._directory / below, *self._directory.glob(f"projects/*/{below}")):
            file.unlink(missing_ok=True)
            for empty in list(file.parents)[: 2 * session.count("/")]:
                if empty.exists() and not any(empty.iterdir()):
                    empty.rmdir()


def _open(file: Path) -> tuple[int, int]:
    """The file, locked for its end, and the seq of its last entry; 0: it is empty. A line that was
    not written whole is cut off. Raises OSError, and ValueError for what is no such file."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        return fd, _end(fd)
    except BaseException:
        os.close(fd)  # and with it the lock
        raise


def _end(fd: int) -> int:
    size, tail, step = os.fstat(fd).st_size, b"", 1 << 16
    while tail.count(b"\n") < 2 and len(tail) < size:
        tail = os.pread(fd, min(step, size), max(0, size - step))
        step *= 2
    whole = tail[: tail.rfind(b"\n") + 1]
    if len(whole) < len(tail):
        os.ftruncate(fd, size - len(tail) + len(whole))
    last = json.loads(whole.splitlines()[-1]) if whole else {}
    if not isinstance(last, dict) or type(seq := last.get("seq", 0)) is not int:
        raise ValueError("its last line is no entry of a session")
    return seq


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


@asynccontextmanager
async def mirroring(store: Store, bus: Bus, directory: Path) -> AsyncIterator[Mirror]:
    mirror = Mirror(store, directory)
    stop = bus.subscribe(DELETED, mirror.forget)
    tasks = Tasks()
    tasks.begin(mirror.follow())
    try:
        yield mirror
    finally:
        stop()
        mirror.end()
        await tasks.settle()
