"""This module reads the version at a path (links and executable bits, too), and puts one there
whole or not at all.

This knows all kinds of `core.values.Version`, and does not follow a link in the last part of a path
either: the link is what is looked at. Everything here blocks and is called in a thread.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress

from magy_server.core.errors import EditRefused, ToolError
from magy_server.core.values import NO_FILE, Kind, Version, digest
from magy_server.tools.files import disk
from magy_server.tools.files.paths import Place, below, directory, explain
from magy_server.tools.tracking import known_changes
from magy_server.tools.tracking.known_changes import Told

_GONE = (errno.ENOENT, errno.ENOTDIR)


def look(root: str, path: str, without: Collection[str] | None = None) -> tuple[Version, bytes]:
    """What is at `path` (canonical but for a last part that may be a link) below `root`, and its
    bytes; of a link, its target. With `without`, a directory that has no files but these is
    nothing. Raises ToolError: a directory, fifo, device or socket, larger than `disk.EDIT_LIMIT`,
    not readable, or behind a link."""
    place = placed(root, path)
    if not _exists(place):
        return NO_FILE, b""
    try:
        with _folder(place) as (fd, name):
            if without is not None and _hollow(fd, name, place, without):
                return NO_FILE, b""
            there = _look(fd, name, place)
    except FileNotFoundError:  # gone at this moment
        return NO_FILE, b""
    return there.version, there.data


def put(
    root: str,
    path: str,
    expected: Version,
    now: Version,
    data: bytes,
    *,
    like: Place | None = None,
    prune: bool = False,
) -> None:
    """Makes `path` hold `now`, whose bytes are `data`, durably; or leaves it as it is and raises.
    EditRefused: there is something else than `expected`; ToolError: it cannot be done.

    Mode, owner and extended attributes of a file are kept, but for the executable bits when `now`
    is of another kind; a new file has those of `like`, if that is given, else the mode of `now`,
    where that is known. A file with several names is the same by all of them afterwards. Missing
    directories are made; a directory without files makes way for a new one. With `prune`, those
    that a removal leaves empty are removed.
    """
    place = placed(root, path)
    if now.hash is None:
        _remove(place, expected)
        if prune:
            _prune(place)
        return
    if digest(data) != now.hash:
        raise ValueError("the bytes are not those of the version")
    if now.kind == "link" and (not data or b"\0" in data):
        raise ToolError(f"{place.name} cannot be a link to {data!a}: that names nothing.")
    if expected.hash is not None and not _exists(place):
        raise _refusal(place, expected, NO_FILE)
    if expected.hash is not None and expected.kind != "link":
        disk.check_writable(place)
    try:
        with _folder(place, create=expected.hash is None) as (fd, name):
            if expected.hash is None and _hollow(fd, name, place):
                _make_way(fd, name)
            _replace(fd, name, place, expected, now, data, like)
    except FileNotFoundError:
        raise _refusal(place, expected, NO_FILE) from None


def kind_of(mode: int) -> Kind | None:
    """Returns the kind for a `st_mode`, also for one that git keeps; None for what has no
    version."""
    if stat.S_ISLNK(mode):
        return "link"
    if not stat.S_ISREG(mode):
        return None
    return "executable" if mode & 0o111 else "file"


def placed(root: str, path: str) -> Place:
    """Raises ToolError for a path outside, or one that is not canonical."""
    name = below(root, path)
    if name is None or "\0" in path or os.path.normpath(path) != path:
        raise ToolError(f"outside the workspace: {path!a} is no path below {root}.")
    return Place(root, path, name)


def _exists(place: Place) -> bool:
    try:
        os.lstat(place.path)
    except OSError as error:
        if error.errno in _GONE:
            return False
        raise ToolError(_explain(error, place)) from None
    return True


@contextmanager
def _folder(place: Place, *, create: bool = False) -> Iterator[tuple[int, str]]:
    """As `paths.directory`; but a link as the last part is none that was put there meanwhile, and
    a FileNotFoundError of the body is raised as it is."""
    missing: FileNotFoundError | None = None
    with directory(place, create=create) as (fd, name):
        try:
            yield fd, name
        except FileNotFoundError as error:
            missing = error
        except OSError as error:
            raise ToolError(_explain(error, place)) from None
    if missing is not None:
        raise missing


def _explain(error: OSError, place: Place) -> str:
    return explain(error, Place(place.root, os.path.dirname(place.path), place.name))


def _look(fd: int, name: str, place: Place) -> Told:
    """Raises FileNotFoundError."""
    found = os.stat(name, dir_fd=fd, follow_symlinks=False)
    if stat.S_ISLNK(found.st_mode):
        target = os.fsencode(os.readlink(name, dir_fd=fd))
        return Told(Version(hash=digest(target), kind="link"), target)
    with disk.opened(fd, name, place) as file:
        found = os.fstat(file.fileno())
        data = file.read(disk.EDIT_LIMIT + 1) or b""
    if len(data) > disk.EDIT_LIMIT:
        raise ToolError(
            f"{place.name} has {found.st_size:,} bytes; Magy does not compare files above "
            f"{disk.EDIT_LIMIT:,}."
        )
    kind, mode = kind_of(found.st_mode) or "file", stat.S_IMODE(found.st_mode)
    return Told(Version(hash=digest(data), kind=kind, mode=mode), data)


def _hollow(fd: int, name: str, place: Place, without: Collection[str] = ()) -> bool:
    """It is a directory, and no files are in it but these."""
    if not _is(stat.S_ISDIR, fd, name):
        return False
    parent = os.path.dirname(place.path)
    return all(
        os.path.join(parent, at, entry) in without
        for at, folders, files, here in os.fwalk(name, dir_fd=fd, onerror=_raise)
        for entry in (*files, *(one for one in folders if _is(stat.S_ISLNK, here, one)))
    )


def _is(kind: Callable[[int], bool], fd: int, name: str) -> bool:
    try:
        return kind(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _raise(error: OSError) -> None:
    raise error


def _make_way(fd: int, name: str) -> None:
    """Only empty directories can be removed so, whatever came into them meanwhile."""
    for _, folders, _, here in os.fwalk(name, topdown=False, dir_fd=fd, onerror=_raise):
        for folder in folders:
            os.rmdir(folder, dir_fd=here)
    os.rmdir(name, dir_fd=fd)


def _now(fd: int, name: str, place: Place) -> Told:
    try:
        return _look(fd, name, place)
    except FileNotFoundError:
        return Told()


def _checked(fd: int, name: str, place: Place, expected: Version) -> Told:
    """What is there. Raises EditRefused: it is not what was expected."""
    found = _now(fd, name, place)
    if not _same(found.version, expected):
        raise _refusal(place, expected, found.version)
    return found


def _replace(
    fd: int,
    name: str,
    place: Place,
    expected: Version,
    now: Version,
    data: bytes,
    like: Place | None,
) -> None:
    spare = f".magy-{secrets.token_hex(8)}.tmp"
    there = _now(fd, name, place).version
    if there.hash is not None and there.kind != "link":
        kept = disk.like_of(fd, name)
        if kept is not None and kept.linked and now.kind != "link":
            _overwrite(fd, name, place, expected, now, data)
            return
    elif like is not None:
        kept = disk.like_of(None, like.path)
    else:
        kept = None if now.mode is None else disk.Like(now.mode)
    try:
        if now.kind == "link":
            os.symlink(data, os.fsencode(spare), dir_fd=fd)
        else:
            disk.create(fd, spare, data, kept, now.kind == "executable")
        # what counts is the last look: the spare may have taken its time
        with known_changes.turn:
            was = _checked(fd, name, place, expected)
            os.replace(spare, name, src_dir_fd=fd, dst_dir_fd=fd)
            known_changes.tell(place.path, was, Told(now, data))
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(spare, dir_fd=fd)
        raise
    os.fsync(fd)


def _overwrite(
    fd: int, name: str, place: Place, expected: Version, now: Version, data: bytes
) -> None:
    """A file with other names, which shall be the same file afterwards."""
    with known_changes.turn:
        was = _checked(fd, name, place, expected)
        disk.overwrite(fd, name, data, now.kind == "executable")
        known_changes.tell(place.path, was, Told(now, data))


def _remove(place: Place, expected: Version) -> None:
    if not _exists(place):
        if expected.hash is not None:
            raise _refusal(place, expected, NO_FILE)
        return
    with _folder(place) as (fd, name):
        with known_changes.turn:
            was = _checked(fd, name, place, expected)
            if was.version.hash is None:
                return
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=fd)
            known_changes.tell(place.path, was, known_changes.UNKNOWN)
        os.fsync(fd)


def _prune(place: Place) -> None:
    name = os.path.dirname(place.name)
    while name:
        folder = Place(place.root, os.path.join(place.root, name), name)
        try:
            with _folder(folder) as (fd, last):
                os.rmdir(last, dir_fd=fd)
                os.fsync(fd)
        except (ToolError, FileNotFoundError):
            return  # not empty, or not ours to remove
        name = os.path.dirname(name)


def _same(found: Version, expected: Version) -> bool:
    """Nothing has no kind."""
    return found.hash == expected.hash and (found.hash is None or found.kind == expected.kind)


def _refusal(place: Place, expected: Version, found: Version) -> EditRefused:
    what = "was changed"
    if found.hash is None:
        what = "was removed"
    elif expected.hash is None:
        what = "was created"
    return EditRefused(
        f"{place.name} {what} by someone else in the meantime; nothing was written. Look at its "
        "present text, and decide again.",
        reason="stale",
    )
