"""This check says what takes how much of the state directory, and how to have less there."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from magy_server.doctor.finding import Finding, note, ok

if TYPE_CHECKING:
    import sqlite3

SECONDS = 10.0
"""The seconds that counting may take."""
MUCH, SPARE = 2 * 2**30, 64 * 2**20
"""Bytes from which on something is to be done: of all, and of pages that nothing uses."""
_STEPS = 10_000
_PARTS = (
    ("events", "SELECT total(length(body)) FROM entries"),
    ("texts and outputs that events name", "SELECT total(length(data)) FROM blobs"),
    ("snapshots of sessions", "SELECT total(length(body)) FROM snapshots"),
)


def check(db: sqlite3.Connection, path: Path) -> list[Finding]:
    """`path` is that of the database, which has this Magy's tables."""
    import sqlite3

    until = time.monotonic() + SECONDS
    db.set_progress_handler(lambda: int(time.monotonic() > until), _STEPS)
    try:
        parts = [(name, int(db.execute(query).fetchone()[0])) for name, query in _PARTS]
        (unused,) = db.execute("PRAGMA freelist_count").fetchone()
        (page,) = db.execute("PRAGMA page_size").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        return []  # the look through all of it says that it is too large
    finally:
        db.set_progress_handler(None, 0)
    spare = unused * page
    parts += [("pages that nothing uses", spare), *_beside(path, until)]
    total = sum(size for _, size in parts)
    listed = ", ".join(f"{name} {_shown(size)}" for name, size in parts if size)
    return [ok(f"{path.parent} holds: {listed or 'nothing yet'}."), *_to_do(path, total, spare)]


def _to_do(path: Path, total: int, spare: int) -> Iterator[Finding]:
    if spare >= SPARE:
        what = f"{_shown(spare)} of {path} are free for what Magy writes next."
        yield note(what, f"To have them back, close every Magy, and run `sqlite3 {path} VACUUM`.")
    if total - spare >= MUCH:
        what = f"{path.parent} has grown to {_shown(total)}."
        mend = (
            "`magy sessions prune --older-than 30d --dry-run` says which sessions nobody has used "
            "for so long, and how much goes with them; without --dry-run it deletes them."
        )
        yield note(what, mend)


def _beside(path: Path, until: float) -> Iterator[tuple[str, int]]:
    """The directories and files beside the database, by name; as many as there is time for."""
    for one in sorted(path.parent.iterdir()):
        if one == path or time.monotonic() > until:
            continue
        yield one.name, _size(str(one)) + sum(map(_size, _below(one)))


def _below(path: Path) -> Iterator[str]:
    for directory, _, names in os.walk(path):
        yield from (os.path.join(directory, name) for name in names)


def _size(path: str) -> int:
    """Of a directory, and of what is gone, 0."""
    try:
        found = os.lstat(path)
    except OSError:
        return 0
    return 0 if os.path.isdir(path) else found.st_size


def _shown(size: int) -> str:
    return f"{size / 2**20:.1f} MiB"
