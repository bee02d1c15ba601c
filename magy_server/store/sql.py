"""These plain functions are the SQL of the store: they append, read, list and delete entries, and
write and read snapshots, over one sqlite3 connection and on its thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import orjson

from magy_server.core.agents.tree import Stream
from magy_server.core.errors import Conflict, NotFound, StoreCorrupt
from magy_server.core.events import Entry
from magy_server.core.ports import Head, Page, Snapshot, StreamInfo
from magy_server.core.values import Hash, digest
from magy_server.store.append_rules import Draft, Placement, Position, Standing, place
from magy_server.store.decoding import check_gaps, entry_of
from magy_server.store.schema import writing

Outcome = list[Entry] | Conflict | ValueError
_LAST = 2**63 - 1
_STANDING = "root, head, created, updated, summary"


def has_streams(db: sqlite3.Connection) -> bool:
    """Returns whether the store has any stream. Raises sqlite3.Error."""
    return bool(db.execute("SELECT EXISTS (SELECT 1 FROM streams)").fetchone()[0])


def commit(db: sqlite3.Connection, drafts: Sequence[Draft], now: float) -> list[Outcome]:
    """Writes the appends of many callers in one transaction. An append that cannot be placed fails
    alone; when the transaction fails, none of them happened. Raises sqlite3.Error."""
    view = _View(db)
    with writing(db):
        outcomes = [_take(view, draft, now) for draft in drafts]
        view.write()
    return outcomes


def _take(view: _View, draft: Draft, now: float) -> Outcome:
    try:
        placed = place(draft, view, now)
    except (Conflict, ValueError) as error:
        return error
    view.accept(placed)
    return placed.entries


class _View:
    """The database as it will be with the appends accepted so far in this transaction."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._accepted: list[Placement] = []
        self._stored: dict[str, Standing | None] = {}
        self._standings: dict[Stream, Standing] = {}
        self._blobs: dict[Hash, bytes] = {}

    def standing(self, stream: Stream) -> Standing | None:
        if stream not in self._stored:
            self._stored[stream] = _standing(self._db, stream)
        return self._standings.get(stream) or self._stored[stream]

    def epoch(self, root: str) -> int:
        return _epoch(self._db, root)

    def holds(self, hash: Hash) -> bool:
        query = "SELECT 1 FROM blobs WHERE hash = ?"
        return hash in self._blobs or self._db.execute(query, (hash,)).fetchone() is not None

    def accept(self, placed: Placement) -> None:
        self._accepted.append(placed)
        self._standings.update(placed.standings)
        self._blobs.update(placed.blobs)

    def write(self) -> None:
        if not self._accepted:
            return
        db = self._db
        db.executemany(
            "INSERT INTO entries (stream, seq, at, opens, body) VALUES (?, ?, ?, ?, ?)",
            [line for placed in self._accepted for line in placed.lines],
        )
        self._write_standings()
        if self._blobs:
            db.executemany("INSERT OR IGNORE INTO blobs VALUES (?, ?)", self._blobs.items())
        if refs := [ref for placed in self._accepted for ref in placed.refs]:
            db.executemany("INSERT OR IGNORE INTO refs VALUES (?, ?)", refs)

    def _write_standings(self) -> None:
        """Writes the standings. It updates rows whose root stays in place, which leaves the index
        alone."""
        changed: list[tuple[int, float, bytes, str]] = []
        placed: list[tuple[str, str | None, int, float, float, bytes]] = []
        for stream, now in self._standings.items():
            before = self._stored.get(stream)
            if before is not None and before.root == now.root:
                changed.append((now.head, now.updated, now.summary, stream))
            else:
                placed.append((stream, now.root, now.head, now.created, now.updated, now.summary))
        self._db.executemany(
            "UPDATE streams SET head = ?, updated = ?, summary = ? WHERE stream = ?", changed
        )
        self._db.executemany(
            f"INSERT OR REPLACE INTO streams (stream, {_STANDING}) VALUES (?, ?, ?, ?, ?, ?)",
            placed,
        )


def _standing(db: sqlite3.Connection, stream: Stream) -> Standing | None:
    query = f"SELECT {_STANDING} FROM streams WHERE stream = ?"
    row = db.execute(query, (stream,)).fetchone()
    return Standing(*row) if row else None


def _epoch(db: sqlite3.Connection, root: str) -> int:
    row = db.execute("SELECT epoch FROM leases WHERE root = ?", (root,)).fetchone()
    return int(row[0]) if row else 0


def next_epoch(db: sqlite3.Connection, root: str) -> int:
    with writing(db):
        epoch = _epoch(db, root) + 1
        db.execute("INSERT OR REPLACE INTO leases VALUES (?, ?)", (root, epoch))
    return epoch


def read(
    db: sqlite3.Connection, stream: Stream, after: int, before: int | None, limit: int | None
) -> list[Entry]:
    last = limit is not None and before is not None and after <= 0
    rows = db.execute(
        "SELECT seq, at, body FROM entries WHERE stream = ? AND seq > ? AND seq < ?"
        f" ORDER BY seq {'DESC' if last else 'ASC'} LIMIT ?",
        (
            stream,
            after,
            _LAST if before is None else before,
            _LAST if limit is None else max(0, limit),
        ),
    ).fetchall()
    if last:
        rows.reverse()
    return check_gaps([entry_of(stream, seq, at, body) for seq, at, body in rows])


def turn_starts(db: sqlite3.Connection, stream: Stream, last: int, before: int | None) -> list[int]:
    rows = db.execute(
        "SELECT seq FROM entries WHERE stream = ? AND opens = 1 AND seq < ?"
        " ORDER BY seq DESC LIMIT ?",
        (stream, _LAST if before is None else before, max(0, last)),
    ).fetchall()
    return [seq for (seq,) in reversed(rows)]


def info(db: sqlite3.Connection, stream: Stream) -> StreamInfo | None:
    standing = _standing(db, stream)
    return standing.info(stream) if standing else None


class Names(NamedTuple):
    """The streams whose names begin with `prefix`; with `flat`, only those that have no `/` after
    it."""

    prefix: str
    flat: bool

    def conditions(self) -> tuple[list[str], list[object]]:
        """Returns the conditions as a range, so that SQLite does not even look at rows outside of
        it."""
        conditions, values = ["stream >= ?"], list[object]([self.prefix])
        if end := _after(self.prefix):
            conditions.append("stream < ?")
            values.append(end)
        if self.flat:
            conditions.append("instr(substr(stream, ?), '/') = 0")
            values.append(len(self.prefix) + 1)
        return conditions, values


def _after(prefix: str) -> str:
    """Returns the least text that is greater than all that begin with `prefix`, or "" if there is
    none. SQLite compares UTF-8 byte by byte, which is the order of code points."""
    kept = prefix.rstrip("\U0010ffff")
    last = ord(kept[-1]) + 1 if kept else 0
    return kept and kept[:-1] + chr(0xE000 if last == 0xD800 else last)


def list_streams(
    db: sqlite3.Connection,
    names: Names,
    first_root: str | None,
    root: str | None,
    start: Position | None,
    limit: int,
) -> Page:
    found: list[tuple[Position, StreamInfo]] = []
    for group in (0, 1) if first_root is not None else (0,):
        if len(found) <= limit and (start is None or start.group <= group):
            after = start if start and start.group == group else None
            rows = _group(db, names, (group, first_root), root, after, limit + 1 - len(found))
            found += [(Position(group, info.updated, info.stream), info) for info in rows]
    more = len(found) > limit
    return Page([info for _, info in found[:limit]], found[limit - 1][0].cursor() if more else None)


def _group(
    db: sqlite3.Connection,
    names: Names,
    group: tuple[int, str | None],
    root: str | None,
    after: Position | None,
    limit: int,
) -> Iterator[StreamInfo]:
    """Returns one of the two groups of `Position`, in order."""
    conditions, values = names.conditions()
    number, first_root = group
    if first_root is not None:
        conditions.append("root IS NOT ?" if number else "root = ?")
        values.append(first_root)
    if root is not None:
        conditions.append("root = ?")
        values.append(root)
    if after is not None:
        conditions.append("(updated < ? OR updated = ? AND stream > ?)")
        values += [after.updated, after.updated, after.stream]
    query = (
        f"SELECT stream, {_STANDING} FROM streams WHERE {' AND '.join(conditions)}"
        " ORDER BY updated DESC, stream LIMIT ?"
    )
    for stream, *row in db.execute(query, (*values, limit)).fetchall():
        yield Standing(*row).info(stream)


def below(db: sqlite3.Connection, stream: Stream) -> list[StreamInfo]:
    conditions, values = Names(f"{stream}/", flat=False).conditions()
    rows = db.execute(
        f"SELECT stream, {_STANDING} FROM streams WHERE {' AND '.join(conditions)} ORDER BY stream",
        values,
    )
    return [Standing(*row).info(name) for name, *row in rows.fetchall()]


def heads(
    db: sqlite3.Connection, prefix: str, known: int | None
) -> tuple[int, Sequence[Head] | None]:
    """Returns the data version and the heads at it, or a moment later. None in place of them: no
    other connection has committed anything since the data version `known`."""
    version = data_version(db)
    if version == known:
        return version, None
    conditions, values = Names(prefix, flat=False).conditions()
    rows = db.execute(
        f"SELECT stream, head, created FROM streams WHERE {' AND '.join(conditions)}"
        " ORDER BY updated DESC, stream",
        values,
    )
    return version, [Head(*row) for row in rows.fetchall()]


def read_blobs(db: sqlite3.Connection, hashes: Sequence[Hash], path: str) -> dict[Hash, bytes]:
    found: dict[Hash, bytes] = {}
    for hash in hashes:
        row = db.execute("SELECT data FROM blobs WHERE hash = ?", (hash,)).fetchone()
        if row is None:
            raise NotFound(f"There is no blob {hash}: its session may have been deleted.")
        if digest(row[0]) != hash:
            raise StoreCorrupt(
                f"The blob {hash} in {path} does not match its hash. Run `magy doctor` to see what "
                "else is damaged."
            )
        found[hash] = row[0]
    return found


def keep(db: sqlite3.Connection, stream: Stream, snapshot: Snapshot) -> None:
    with writing(db):
        db.execute(
            "INSERT OR REPLACE INTO snapshots (stream, seq, code, body)"
            " SELECT stream, ?, ?, ? FROM streams WHERE stream = ? AND head >= ?",
            (*snapshot, stream, snapshot.seq),
        )


def snapshot(db: sqlite3.Connection, stream: Stream) -> Snapshot | None:
    query = "SELECT seq, code, body FROM snapshots WHERE stream = ?"
    row = db.execute(query, (stream,)).fetchone()
    return Snapshot(*row) if row else None


def delete(db: sqlite3.Connection, stream: Stream, before: float | None) -> bool:
    first = f"{stream}/"
    names = {"stream": stream, "first": first, "end": _after(first), "before": before}
    gone = "(stream = :stream OR stream >= :first AND stream < :end)"
    refs = f"SELECT hash FROM refs WHERE {gone}"
    with writing(db):
        if (
            before is not None
            and db.execute(
                f"SELECT 1 FROM streams WHERE {gone} AND updated >= :before LIMIT 1", names
            ).fetchone()
        ):
            return False
        if not db.execute(f"DELETE FROM streams WHERE {gone}", names).rowcount:
            return False
        db.execute(f"DELETE FROM entries WHERE {gone}", names)
        db.execute(f"DELETE FROM snapshots WHERE {gone}", names)
        db.execute(
            f"DELETE FROM blobs WHERE hash IN ({refs}) AND hash NOT IN"
            f" (SELECT hash FROM refs WHERE NOT {gone} AND hash IN ({refs}))",
            names,
        )
        db.execute(f"DELETE FROM refs WHERE {gone}", names)
    return True


_GONE = "WITH gone (stream) AS MATERIALIZED (SELECT value FROM json_each(?))"
_WEIGHED = (
    f"{_GONE} SELECT total(length(body)) FROM gone CROSS JOIN entries USING (stream)",
    f"{_GONE} SELECT total(length(body)) FROM gone CROSS JOIN snapshots USING (stream)",
    f"""{_GONE} SELECT total(length(data)) FROM blobs
        WHERE hash IN (SELECT hash FROM gone CROSS JOIN refs USING (stream)) AND NOT EXISTS
        (SELECT 1 FROM refs WHERE refs.hash = blobs.hash AND stream NOT IN gone)""",
)


def weigh(db: sqlite3.Connection, streams: Sequence[Stream]) -> int:
    names = (orjson.dumps(streams).decode(),)
    return sum(int(db.execute(query, names).fetchone()[0]) for query in _WEIGHED)


def data_version(db: sqlite3.Connection) -> int:
    """Returns a number that changes when another connection has committed, and only then."""
    (version,) = db.execute("PRAGMA data_version").fetchone()
    return int(version)
