"""What was deleted leaves pages in the database file that nothing uses. What is written next takes
them; here they go back to the file system."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import NamedTuple

from magy_server.store.database import explain
from magy_server.store.schema import open_database

LEAST = 0.1
"""Of the pages. For fewer, the whole file is not written anew."""
PATIENCE = 1.0
"""Seconds to wait for another process, which may just be leaving."""
_STEPS = 1_000
"""SQLite runs this many steps of its virtual machine between two questions whether to stop."""
_WHY = {
    sqlite3.SQLITE_BUSY: "another Magy uses the database",
    sqlite3.SQLITE_LOCKED: "another Magy uses the database",
    sqlite3.SQLITE_FULL: "the disk has no room for the copy that this takes",
    sqlite3.SQLITE_INTERRUPT: "it was interrupted",
}


class Shrunk(NamedTuple):
    """`given`: bytes by which the file is shorter. `spare`: bytes in it that nothing uses. `why`
    they stay there: "" when nothing kept them from going, but their number."""

    given: int
    spare: int
    why: str = ""


def shrink(path: str, stopped: Callable[[], bool]) -> Shrunk:
    """Writes the database anew without the pages that nothing uses, if these are many and no other
    process has it open. `stopped`: asked now and then, in this thread. Killed in between, the file
    is as it was. Raises StoreError."""
    try:
        with closing(open_database(path, PATIENCE)) as db:
            return _shrunk(db, stopped)
    except sqlite3.Error as error:
        raise explain(error, path) from error


def _shrunk(db: sqlite3.Connection, stopped: Callable[[], bool]) -> Shrunk:
    before, spare = _sizes(db)
    if spare < LEAST * before:
        return Shrunk(0, spare)
    try:
        if not _alone(db):
            return Shrunk(0, spare, _WHY[sqlite3.SQLITE_BUSY])
        db.set_progress_handler(lambda: int(stopped()), _STEPS)
        db.execute("VACUUM")
    except sqlite3.OperationalError as error:
        why = _WHY.get(error.sqlite_errorcode & 0xFF)
        if why is None:
            raise
        return Shrunk(0, spare, why)
    finally:
        db.set_progress_handler(None, 0)
    after, left = _sizes(db)
    return Shrunk(before - after, left)


def _alone(db: sqlite3.Connection) -> bool:
    """Keeps all others out until `db` is closed. Others that have the database open would find
    their file cut, so SQLite is asked: it leaves the write-ahead log only for who is alone. Who
    comes next waits in `open_database`, which turns it on again. Raises sqlite3.OperationalError
    (busy)."""
    db.execute("PRAGMA journal_mode = DELETE")
    db.execute("PRAGMA locking_mode = EXCLUSIVE")
    db.execute("BEGIN EXCLUSIVE")
    db.execute("COMMIT")
    (mode,) = db.execute("PRAGMA journal_mode").fetchone()
    return bool(mode == "delete")


def _sizes(db: sqlite3.Connection) -> tuple[int, int]:
    """Bytes of all pages, and of those that nothing uses."""
    (page,) = db.execute("PRAGMA page_size").fetchone()
    (all_pages,) = db.execute("PRAGMA page_count").fetchone()
    (unused,) = db.execute("PRAGMA freelist_count").fetchone()
    return all_pages * page, unused * page
