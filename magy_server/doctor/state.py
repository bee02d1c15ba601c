"""These checks look at the state directory: they tell whether Magy can keep its log there, and who
else uses it."""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from magy_server.doctor.finding import Around, Finding, note, ok, problem, warning
from magy_server.regex import regex

LITTLE, TOO_LITTLE = 500 * 2**20, 50 * 2**20
"""Bytes of free space."""
NETWORK = frozenset({
    "9p", "afs", "beegfs", "ceph", "cifs", "davfs", "drvfs", "fuse.sshfs", "gfs2", "glusterfs",
    "lustre", "ncpfs", "nfs", "nfs4", "smb2", "smb3", "smbfs", "vboxsf", "webdav",
})  # fmt: skip
"""On these file systems, locks and shared memory do not reach every process that sees the file."""
_LEFTOVER = regex(r"\.magy-[0-9a-f]{16}\.tmp")
"""An edit writes a file of this name before that takes the edited file's place
(tools/files/disk.py)."""
_NOT_LOOKED_INTO = frozenset({".git", "node_modules", ".venv", "__pycache__"})
_LOOKED_FOR = 2.0
"""The seconds that the doctor spends on looking for leftovers."""


def check(around: Around) -> list[Finding]:
    from magy_server.config import layers

    path = layers.state_dir()
    if not os.path.lexists(path):
        return [_to_be_made(path)]
    if not path.is_dir():
        what = f"{path}, where Magy keeps its sessions, is not a directory."
        return [problem(what, "Move the file away, or set MAGY_STATE_DIR to a directory.")]
    mine = _owner(path)
    return [*mine, *_use(path), *_space(path), *_disk(path), *_leftovers(around.root)]


def _to_be_made(path: Path) -> Finding:
    parent = next(above for above in path.parents if above.exists())
    if os.access(parent, os.W_OK | os.X_OK):
        return ok(f"{path} will be created when Magy first starts.")
    what = f"{path}, where Magy keeps its sessions, cannot be created: {parent} is not writable."
    return problem(what, f"Make {parent} writable, or set MAGY_STATE_DIR to another directory.")


def _owner(path: Path) -> list[Finding]:
    found = path.stat()
    if found.st_uid != os.geteuid():
        what = f"{path} belongs to {_user(found.st_uid)}, not to you."
        return [
            problem(what, f"Make yourself its owner: `sudo chown -R {_user(os.geteuid())} {path}`.")
        ]
    if mode := stat.S_IMODE(found.st_mode) & 0o077:
        what = f"Other users of this machine can read {path}, with all your sessions"
        return [warning(f"{what} (mode {mode:03o}).", f"Exclude them: `chmod 700 {path}`.")]
    return []


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _use(path: Path) -> list[Finding]:
    """Does there what Magy does: it makes a database with a write-ahead log, and a lock."""
    import sqlite3

    try:
        with tempfile.TemporaryDirectory(prefix=".doctor-", dir=path) as scratch:
            _lock(os.path.join(scratch, "lock"))
            _write(os.path.join(scratch, "trial.db"))
    except (OSError, sqlite3.Error) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        what = f"Magy cannot keep its sessions in {path}: {why}."
        mend = (
            "Make yourself the owner of the directory and its files, with write permission, or "
            "set MAGY_STATE_DIR."
        )
        return [problem(what, mend)]
    return [ok(f"{path} is yours and writable, and file locks work there.")]


def _lock(path: str) -> None:
    with open(path, "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _write(path: str) -> None:
    import sqlite3

    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise sqlite3.OperationalError("SQLite cannot use a write-ahead log there")
        db.execute("CREATE TABLE t (x)")
        db.execute("INSERT INTO t VALUES (1)")


def _space(path: Path) -> list[Finding]:
    free = shutil.disk_usage(path).free
    if free >= LITTLE:
        return []
    what = f"Only {free // 2**20} MiB are free where Magy keeps its sessions ({path})."
    say = problem if free < TOO_LITTLE else warning
    return [say(what, "Free some space on that disk.")]


def _disk(path: Path) -> list[Finding]:
    kind = _file_system(os.path.realpath(path))
    if kind not in NETWORK:
        return []
    what = (
        f"{path} is on a network file system ({kind}): locks may fail there, and two machines that "
        "write to one database damage it."
    )
    return [warning(what, "Set MAGY_STATE_DIR to a directory on a local disk.")]


def _file_system(path: str) -> str:
    """Returns the type of the file system that holds a path; "" when it cannot find that out."""
    import psutil

    best, kind = "", ""
    for part in psutil.disk_partitions(all=True):
        inside = os.path.commonpath([part.mountpoint, path]) == part.mountpoint
        if inside and len(part.mountpoint) >= len(best):
            best, kind = part.mountpoint, part.fstype
    return kind


def _leftovers(root: str) -> list[Finding]:
    """Returns the files that an edit left when its process was killed in the middle of it."""
    found = list(_spare_files(root))
    if not found:
        return []
    what = f"Edits that were killed left {len(found)} temporary files in this project"
    mend = "Delete them: nothing reads files named `.magy-*.tmp`."
    return [note(f"{what}, such as {found[0]}.", mend)]


def _spare_files(root: str) -> Iterator[str]:
    until = time.monotonic() + _LOOKED_FOR
    for directory, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in _NOT_LOOKED_INTO]
        for name in names:
            path = os.path.join(directory, name)
            if _LEFTOVER.fullmatch(name) and _age(path) > 600:
                yield path
        if time.monotonic() > until:
            return


def _age(path: str) -> float:
    """Returns the seconds since a file was written; 0 for a file that is gone."""
    try:
        return time.time() - os.lstat(path).st_mtime
    except OSError:
        return 0.0


def processes(around: Around) -> list[Finding]:
    from magy_server.config import layers

    alive, dead = _peers(layers.state_dir() / "bus")
    if alive:
        others = f"{len(alive)} other Magy process{'es' * (len(alive) > 1)}"
        findings = [ok(f"{others} on these sessions: {', '.join(alive)}.")]
    else:
        findings = [ok("No other Magy process uses these sessions.")]
    if dead:
        what = f"{dead} Magy process{'es' * (dead > 1)} ended without cleaning up."
        mend = "Do nothing: the next Magy that starts removes what they left."
        findings.append(note(what, mend))
    return findings


def _peers(directory: Path) -> tuple[list[str], int]:
    """Returns the other processes whose sockets are in the mesh's directory, and how many of them
    are gone. It knows them by their number and the time they started: to connect would disturb
    them."""
    import psutil

    alive, dead = [], 0
    for file in sorted(directory.glob("*.sock")):
        number = file.name.partition("-")[0]
        if number == str(os.getpid()):
            continue  # the server that was asked for this
        try:
            process = psutil.Process(int(number))
            there = process.create_time() <= file.lstat().st_mtime + 1
            command = " ".join(process.cmdline()[-2:]) if there else ""
        except FileNotFoundError:
            continue
        except (ValueError, psutil.Error):
            there, command = False, ""
        if there:
            alive.append(f"{number} ({os.path.basename(command) or 'magy'})")
        else:
            dead += 1
    return alive, dead
