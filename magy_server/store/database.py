"""`Database` runs a SQLite connection on a thread of its own, and turns its failures into
sentences."""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from magy_server.core.errors import NotText, StoreCorrupt, StoreError, StoreUnavailable
from magy_server.store.schema import open_database
from magy_server.tasks import to_end

if TYPE_CHECKING:
    from aiosqlite import Connection

T = TypeVar("T")


class Database:
    def __init__(self, connection: Connection, path: str) -> None:
        self._connection = connection
        self._path = path

    @classmethod
    async def connect(cls, path: str, busy_timeout: float) -> Database:
        """`busy_timeout`: seconds to wait for another process's transaction. Raises StoreError.
        Cancelled in between, it closes what it has opened, and leaves no thread that speaks to a
        loop which may be gone by then."""
        opening = asyncio.ensure_future(cls._open(path, busy_timeout))
        try:
            return await to_end(opening)
        except asyncio.CancelledError:
            if opening.exception() is None:
                await opening.result().close()
            raise

    @classmethod
    async def _open(cls, path: str, busy_timeout: float) -> Database:
        import aiosqlite

        try:
            # Opened elsewhere: when that fails there, aiosqlite waits for its thread no more.
            db = await asyncio.to_thread(open_database, path, busy_timeout)
            return cls(await aiosqlite.Connection(lambda: db, 64), path)
        except sqlite3.Error as error:
            raise explain(error, path) from error

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Runs `work` on the connection's thread: one hop there and back, however many statements
        it has. Raises StoreError, NotText, and whatever `work` itself raises."""
        # aiosqlite's public methods hop once per statement; a grouped append would pay for ten.
        connection: Any = self._connection
        try:
            result: T = await connection._execute(work, connection._conn)
        except sqlite3.Error as error:
            raise explain(error, self._path) from error
        except UnicodeEncodeError as error:  # file names can be any bytes
            raise NotText(error.object) from None
        return result

    async def close(self) -> None:
        """Raises StoreError when the last checkpoint fails; the log is complete all the same."""
        try:
            await to_end(self._connection.close())
        except sqlite3.Error as error:
            raise explain(error, self._path) from error


def create_file(path: str) -> bool:
    """Makes an empty file that only its owner may read, unless there is one, and returns whether it
    made it. SQLite gives its side files the same mode. This function does not open an existing
    file: closing it again would drop the locks that this process holds on it through SQLite (POSIX
    fcntl locks). Raises OSError."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        return True
    except FileExistsError:
        # SQLite would open a read-only file, and leave side files behind that are read-only, too.
        effective = os.access in os.supports_effective_ids
        if not os.access(path, os.R_OK | os.W_OK, effective_ids=effective):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path) from None
        narrow(path)
        return False


def create_directory(path: str) -> None:
    """Makes a directory that only its owner may enter. Raises OSError."""
    os.makedirs(path, mode=0o700, exist_ok=True)
    narrow(path)


def narrow(path: str) -> None:
    """Takes away what group and others may do. Raises OSError."""
    mode = os.stat(path).st_mode & 0o7777
    if mode & 0o077:
        os.chmod(path, mode & ~0o077)


_DAMAGED = {
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_ERROR,  # our SQL does not fit the file: a table is missing or another one
    sqlite3.SQLITE_MISMATCH,
}
_ADVICE = {
    sqlite3.SQLITE_FULL: "the disk is full. Free some space; nothing was half-written",
    sqlite3.SQLITE_READONLY: "it is read-only. Make the file and its directory writable",
    sqlite3.SQLITE_PERM: "access was refused. Make yourself the owner of the file and "
    "its directory",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened. Check that its directory exists and is writable",
    sqlite3.SQLITE_BUSY: "another process kept it locked. Find who uses the file, then try again",
    sqlite3.SQLITE_LOCKED: "another process kept it locked. Find who uses the file, then try again",
    sqlite3.SQLITE_IOERR: (
        "the disk failed to read or write the data. Check its space, quota and health; nothing was "
        "half-written"
    ),
}


def explain(error: sqlite3.Error, path: str) -> StoreError:
    """Returns a sentence that says what failed, where, and what to do about it."""
    code = getattr(error, "sqlite_errorcode", None)
    primary = None if code is None else code & 0xFF  # the upper bits are SQLite's details
    if primary in _DAMAGED:
        return StoreCorrupt(
            f"The database {path} is damaged or not Magy's ({error}). Run `magy doctor`; to start "
            "with an empty database, move the file away together with its -wal and -shm files."
        )
    advice = _ADVICE.get(primary or 0, "SQLite refused. Run `magy doctor`")
    return StoreUnavailable(f"The database {path} cannot be used: {advice} ({error}).")


def unavailable(error: OSError, path: str) -> StoreUnavailable:
    """Returns the same kind of sentence for a failing system call."""
    return StoreUnavailable(
        f"{error.filename or path} cannot be used: {error.strerror or error}. Check that the disk "
        f"has space and that {os.path.dirname(path)} is yours and writable."
    )
