"""The store on disk is one SQLite file that all processes of a user on a machine share."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import NamedTuple

from magy_server.core.agents.tree import Stream
from magy_server.core.errors import StoreError, StoreUnavailable
from magy_server.core.events import Entry
from magy_server.core.ports import Batch, Head, Lease, Page, Snapshot, StreamInfo
from magy_server.core.values import Hash
from magy_server.store import locks, sql
from magy_server.store.append_rules import Draft, draft, lost, position
from magy_server.store.database import Database, create_directory, create_file, unavailable
from magy_server.store.file_identity import DatabaseFile
from magy_server.store.known_heads import KnownHeads


class _Waiting(NamedTuple):
    draft: Draft
    done: asyncio.Future[list[Entry]]


class _Held(NamedTuple):
    lease: Lease
    lock: locks.FileLock


class SqliteStore:
    """`SqliteStore.open(directory)` opens `magy.db` there.

    Two connections, each with its own thread: reads do not wait for a commit's fsync. Appends that
    wait at the same time share one transaction, so their number costs little. An append whose task
    is cancelled may have happened all the same; the log tells.
    """

    def __init__(
        self,
        directory: str,
        writer: Database,
        reader: Database,
        clock: Callable[[], float],
        version: int,
        file: DatabaseFile,
    ) -> None:
        self.path = file.path
        self._file = file
        self._locks = os.path.join(directory, "locks")
        self._writer = writer
        self._reader = reader
        self._heads = KnownHeads(writer)
        self._clock = clock
        self._held: dict[str, _Held] = {}
        self._waiting: list[_Waiting] = []
        self._wake = asyncio.Event()
        self._closed = False
        self._version = version
        self._writing = asyncio.create_task(self._write(), name="store writer")

    @classmethod
    async def open(
        cls,
        directory: str | os.PathLike[str],
        *,
        clock: Callable[[], float] = time.time,
        busy_timeout: float = 10.0,
    ) -> SqliteStore:
        """Makes directory and file where needed, only for their owner (0700, 0600), and brings an
        older file up to date. `clock`: seconds since the epoch, UTC. `busy_timeout`: seconds to
        wait for another process's transaction.

        Raises StoreCorrupt, StoreNewer, StoreUnavailable.
        """
        directory = os.path.abspath(directory)
        path = os.path.join(directory, "magy.db")
        try:
            create_directory(directory)
            create_directory(os.path.join(directory, "locks"))
            file = DatabaseFile(path)
            file.begin(create_file(path))
        except OSError as error:
            raise unavailable(error, path) from error
        async with AsyncExitStack() as undo:
            writer = await Database.connect(path, busy_timeout)
            undo.push_async_callback(writer.close)
            reader = await Database.connect(path, busy_timeout)
            undo.push_async_callback(reader.close)
            version = await writer.run(sql.data_version)
            if await writer.run(sql.has_streams):
                file.written()
            file.check()
            undo.pop_all()
        return cls(directory, writer, reader, clock, version, file)

    async def append(self, batches: Sequence[Batch], lease: Lease | None = None) -> list[Entry]:
        """See `Store.append`. Raises ValueError for what no correct caller does: see `place`."""
        self._check_open()
        drafted = draft(batches, lease)
        if lease is not None and not self._holds(lease):
            raise lost(lease)
        waiting = _Waiting(drafted, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._wake.set()
        return await waiting.done

    async def read(
        self, stream: Stream, *, after: int = 0, before: int | None = None, limit: int | None = None
    ) -> list[Entry]:
        self._check_open()
        work = partial(sql.read, stream=stream, after=after, before=before, limit=limit)
        return await self._reader.run(work)

    async def turn_starts(self, stream: Stream, last: int, before: int | None = None) -> list[int]:
        self._check_open()
        work = partial(sql.turn_starts, stream=stream, last=last, before=before)
        return await self._reader.run(work)

    async def head(self, stream: Stream) -> int:
        info = await self.info(stream)
        return info.head if info else 0

    async def info(self, stream: Stream) -> StreamInfo | None:
        self._check_open()
        return await self._reader.run(partial(sql.info, stream=stream))

    async def streams(
        self,
        prefix: str,
        *,
        first_root: str | None = None,
        root: str | None = None,
        flat: bool = False,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page:
        self._check_open()
        work = partial(
            sql.list_streams,
            names=sql.Names(prefix, flat),
            first_root=first_root,
            root=root,
            start=position(cursor),
            limit=max(1, limit),
        )
        return await self._reader.run(work)

    async def below(self, stream: Stream) -> list[StreamInfo]:
        self._check_open()
        return await self._reader.run(partial(sql.below, stream=stream))

    async def heads(self, prefix: str) -> Sequence[Head]:
        self._check_open()
        return await self._heads.below(prefix)

    async def blob(self, hash: Hash) -> bytes:
        return (await self.blobs([hash]))[hash]

    async def blobs(self, hashes: Sequence[Hash]) -> dict[Hash, bytes]:
        """Raises NotFound when one of them is missing."""
        self._check_open()
        work = partial(sql.read_blobs, hashes=tuple(hashes), path=self.path)
        return await self._reader.run(work)

    async def keep(self, stream: Stream, snapshot: Snapshot) -> None:
        self._check_open()
        self._file.check()
        await self._writer.run(partial(sql.keep, stream=stream, snapshot=snapshot))

    async def snapshot(self, stream: Stream) -> Snapshot | None:
        self._check_open()
        return await self._reader.run(partial(sql.snapshot, stream=stream))

    async def delete(self, stream: Stream, *, before: float | None = None) -> bool:
        self._check_open()
        self._file.check()
        self._heads.forget()
        return await self._writer.run(partial(sql.delete, stream=stream, before=before))

    async def weigh(self, streams: Sequence[Stream]) -> int:
        self._check_open()
        return await self._reader.run(partial(sql.weigh, streams=streams))

    async def lease(self, root: str) -> Lease | None:
        self._check_open()
        self._file.check()
        try:
            lock = locks.take(self._locks, root)
        except OSError as error:
            raise unavailable(error, self.path) from error
        if lock is None:
            return None
        try:
            lease = Lease(root, await self._writer.run(partial(sql.next_epoch, root=root)))
            self._held[root] = _Held(lease, lock)
        finally:
            if root not in self._held:
                lock.free()
        return lease

    async def release(self, lease: Lease) -> None:
        if self._holds(lease):
            self._held.pop(lease.root).lock.free()

    async def changed(self) -> bool:
        self._check_open()
        # Asked on the connection that writes: its own commits do not count, all others do.
        version, self._version = self._version, await self._writer.run(sql.data_version)
        return version != self._version

    async def close(self) -> None:
        """Writes the appends that wait, frees the leases, and closes the file."""
        if self._closed:
            return
        self._closed = True
        self._wake.set()
        try:
            await self._writing
        finally:
            for held in self._held.values():
                held.lock.free()
            self._held.clear()
            try:
                await self._reader.close()
            finally:
                await self._writer.close()

    def _holds(self, lease: Lease) -> bool:
        held = self._held.get(lease.root)
        return held is not None and held.lease == lease

    def _check_open(self) -> None:
        if self._closed or self._writing.done():
            raise StoreUnavailable(f"The store {self.path} is closed; open it again.")

    async def _write(self) -> None:
        """Writes as the only writer: it takes whatever waits, commits it as one transaction, and
        begins again."""
        group: list[_Waiting] = []
        try:
            while self._waiting or not self._closed:
                await self._wake.wait()
                self._wake.clear()
                group, self._waiting = self._waiting, []
                await self._commit([waiting for waiting in group if not waiting.done.done()])
        finally:
            # Only left with appends still waiting when this task was cancelled or has a bug.
            for waiting in group + self._waiting:
                if not waiting.done.done():
                    waiting.done.set_exception(
                        StoreUnavailable(f"The store {self.path} was closed; open it again.")
                    )

    async def _commit(self, group: list[_Waiting]) -> None:
        drafts = [waiting.draft for waiting in group]
        outcomes: Sequence[sql.Outcome | StoreError]
        try:
            self._file.check()
            self._heads.moved({batch.stream for draft in drafts for batch in draft.batches})
            work = partial(sql.commit, drafts=drafts, now=self._clock())
            outcomes = await self._writer.run(work)
            self._file.written()
        except StoreError as error:
            # One each: a shared exception would collect the tracebacks of all who raise it.
            outcomes = [type(error)(error.message) for _ in group]
        for waiting, outcome in zip(group, outcomes, strict=True):
            if waiting.done.done():  # its task was cancelled meanwhile
                continue
            if isinstance(outcome, list):
                waiting.done.set_result(outcome)
            else:
                waiting.done.set_exception(outcome)
