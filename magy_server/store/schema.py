"""This module opens the database file, makes its tables, and brings an older file up to date."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from magy_server.core.errors import StoreCorrupt, StoreNewer

APPLICATION_ID = 0x4D616779
"""The header of the file has this number, `Magy` in ASCII. Magy never migrates another program's
database."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        # A log is read in order of seq: without rowid, its entries are neighbours on disk.
        """CREATE TABLE entries (
            stream TEXT NOT NULL, seq INTEGER NOT NULL, at REAL NOT NULL,
            opens INTEGER NOT NULL, body BLOB NOT NULL,
            PRIMARY KEY (stream, seq)) WITHOUT ROWID""",
        "CREATE INDEX turns ON entries (stream, seq) WHERE opens = 1",
        """CREATE TABLE streams (
            stream TEXT NOT NULL PRIMARY KEY, root TEXT, head INTEGER NOT NULL,
            created REAL NOT NULL, updated REAL NOT NULL, summary BLOB NOT NULL) WITHOUT ROWID""",
        # No index holds what every append changes (`updated`): listing sorts one root's streams,
        # and each append writes two pages fewer.
        "CREATE INDEX streams_by_root ON streams (root)",
        "CREATE TABLE blobs (hash TEXT NOT NULL PRIMARY KEY, data BLOB NOT NULL)",
        # Who keeps which blob alive: a blob goes with the last stream that refers to it.
        """CREATE TABLE refs (
            stream TEXT NOT NULL, hash TEXT NOT NULL,
            PRIMARY KEY (stream, hash)) WITHOUT ROWID""",
        "CREATE INDEX refs_by_hash ON refs (hash)",
        """CREATE TABLE leases (
            root TEXT NOT NULL PRIMARY KEY, epoch INTEGER NOT NULL) WITHOUT ROWID""",
    ),
    (
        """CREATE TABLE snapshots (
            stream TEXT NOT NULL PRIMARY KEY, seq INTEGER NOT NULL, code TEXT NOT NULL,
            body BLOB NOT NULL)""",
    ),
)
"""Step n brings `user_version` n to n + 1. A step that was released never changes."""


@contextmanager
def writing(db: sqlite3.Connection) -> Iterator[None]:
    """Opens a transaction that takes the write lock at once, so that what it reads is what it
    changes. Whatever goes wrong, a failing COMMIT included, the file stays as it was."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


@contextmanager
def reading(db: sqlite3.Connection) -> Iterator[None]:
    """Opens a transaction in which all that is read is of one moment, whatever others commit."""
    db.execute("BEGIN")
    try:
        yield
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def open_database(path: str, busy_timeout: float) -> sqlite3.Connection:
    """Opens an existing file, empty or ours, brings it up to date, and returns the connection.
    `busy_timeout` is in seconds. Raises sqlite3.Error, StoreCorrupt (someone else's file),
    StoreNewer."""
    with ExitStack() as undo:
        # It moves to its own thread once it is open.
        db = sqlite3.connect(
            path, timeout=busy_timeout, isolation_level=None, check_same_thread=False
        )
        undo.callback(db.close)
        _configure(db, busy_timeout)
        migrate(db, path)
        undo.pop_all()
    return db


def _configure(db: sqlite3.Connection, busy_timeout: float) -> None:
    _use_wal(db, busy_timeout)
    db.execute("PRAGMA synchronous = FULL")  # an answered append survives a power cut
    db.execute("PRAGMA fullfsync = ON")  # macOS: its fsync alone does not reach the disk
    db.execute("PRAGMA wal_autocheckpoint = 4000")  # pages; each checkpoint costs two more fsyncs
    db.execute("PRAGMA journal_size_limit = 67108864")
    db.execute("PRAGMA trusted_schema = OFF")
    db.execute("PRAGMA cell_size_check = ON")


def _use_wal(db: sqlite3.Connection, busy_timeout: float) -> None:
    """Switches the file to a write-ahead log. The first process to open a new file does so; SQLite
    does not wait for the lock that this takes when two are the first, so this function waits."""
    deadline = time.monotonic() + busy_timeout
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > deadline:
                raise
        time.sleep(0.01)


def migrate(
    db: sqlite3.Connection, path: str, steps: tuple[tuple[str, ...], ...] = MIGRATIONS
) -> None:
    """Brings the file to the version of `steps`; either all steps happen or none."""
    with reading(db):
        version = _version(db, path, len(steps))
    if version == len(steps):
        return
    with writing(db):
        for step in steps[_version(db, path, len(steps)) :]:
            for statement in step:
                db.execute(statement)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {len(steps)}")


def _version(db: sqlite3.Connection, path: str, known: int) -> int:
    """Needs a transaction: another process may just be making the tables."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != APPLICATION_ID and (version or tables):
        raise StoreCorrupt(
            f"{path} is the database of another program. Move it elsewhere, and start Magy again."
        )
    if version > known:
        raise StoreNewer(
            f"{path} was written by a newer Magy (format {version}, this one knows {known}). "
            "Update Magy; nothing was changed."
        )
    return int(version)
