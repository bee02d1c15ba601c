"""This check reads the database and writes nothing: it tells whether the database is whole, and
whether this Magy knows its version."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from magy_server.doctor import sizes
from magy_server.doctor.finding import Around, Finding, note, ok, problem, warning
from magy_server.doctor.project import reading

if TYPE_CHECKING:
    import sqlite3

SECONDS = 20.0
"""The seconds that the look through all of the database may take."""
LARGE_LOG = 256 * 2**20
_STEPS = 10_000
"""SQLite runs this many steps of its virtual machine between two looks at the clock."""


def check(around: Around) -> list[Finding]:
    import sqlite3

    from magy_server.config import layers

    path = layers.state_dir() / "magy.db"
    if not os.path.lexists(path):
        return [ok("There is no database yet.")]
    try:
        with reading(str(path)) as db:
            found = [*_version(db, path), *_whole(db, path)]
            if all(one.status == "ok" for one in found) and _made(db):
                found += sizes.check(db, path)
            return [*found, *_times(db), *_log_size(path)]
    except sqlite3.OperationalError as error:
        if (error.sqlite_errorcode & 0xFF) not in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_IOERR):
            mend = f"Make yourself the owner of {path} and its directory, with read permission."
            return [problem(f"{path} cannot be opened: {error}.", mend)]
        return [_damaged(path, str(error))]
    except sqlite3.DatabaseError as error:
        return [_damaged(path, str(error))]


def _damaged(path: Path, why: str) -> Finding:
    mend = (
        f"Close every Magy, then save what is readable with `sqlite3 {path} .recover`, or move "
        "the file and its -wal and -shm files away to start with an empty database."
    )
    return problem(f"{path} is damaged, or is not Magy's database: {why}.", mend)


def _version(db: sqlite3.Connection, path: Path) -> list[Finding]:
    from magy_server.store.schema import APPLICATION_ID, MIGRATIONS

    (version,) = db.execute("PRAGMA user_version").fetchone()
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if not tables:
        return [ok(f"{path} is empty; Magy creates its tables when it starts.")]
    if application != APPLICATION_ID:
        what = f"{path} is the database of another program."
        return [problem(what, "Move it elsewhere, or set MAGY_STATE_DIR to another directory.")]
    if version > len(MIGRATIONS):
        what = f"{path} was written by a newer Magy (format {version}; known: {len(MIGRATIONS)})."
        return [problem(what, "Update Magy; no session is lost until then.")]
    if version < len(MIGRATIONS):
        what = f"{path} has an older format ({version} of {len(MIGRATIONS)})."
        mend = "Start Magy: it updates the file. Older versions of Magy cannot read it afterwards."
        return [note(what, mend)]
    return []


def _whole(db: sqlite3.Connection, path: Path) -> list[Finding]:
    """Has SQLite look through all of the database. If it is too large to do so now, the finding
    says so."""
    import sqlite3

    until = time.monotonic() + SECONDS
    db.set_progress_handler(lambda: int(time.monotonic() > until), _STEPS)
    megabytes = path.stat().st_size / 2**20
    try:
        (said,) = db.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        what = f"{path} ({megabytes:.0f} MiB) is too large to check in {SECONDS:g} s."
        mend = f"Check it when you have time: `sqlite3 -readonly {path} 'PRAGMA quick_check'`."
        return [note(what, mend)]
    finally:
        db.set_progress_handler(None, 0)
    if said != "ok":
        return [_damaged(path, said)]
    return [ok(f"{path} ({megabytes:.1f} MiB) is intact.")]


def _made(db: sqlite3.Connection) -> bool:
    """Whether it has Magy's tables already."""
    query = "SELECT 1 FROM sqlite_master WHERE name = 'streams'"
    return db.execute(query).fetchone() is not None


def _times(db: sqlite3.Connection) -> list[Finding]:
    if not _made(db):
        return []
    (newest,) = db.execute("SELECT max(updated) FROM streams").fetchone()
    if newest is None or newest < time.time() + 3600:
        return []
    when = datetime.fromtimestamp(newest, UTC).isoformat(" ", "minutes")
    what = (
        f"The newest entry is dated in the future ({when}), so sessions are listed in the wrong "
        "order."
    )
    return [warning(what, "Set the clock of this computer.")]


def _log_size(path: Path) -> list[Finding]:
    try:
        size = os.stat(f"{path}-wal").st_size
    except FileNotFoundError:
        return []
    if size < LARGE_LOG:
        return []
    what = f"The log of writes beside {path} has grown to {size // 2**20} MiB."
    mend = "Close every Magy once: the last one to exit merges that log into the database."
    return [note(what, mend)]
