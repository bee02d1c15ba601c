"""These functions read files on disk in bounded memory, and write them with mode, owner and
attributes kept.

Everything here blocks and is called in a thread. Errors are ToolErrors that say what to do.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import field

from magy_server.core.errors import ToolError
from magy_server.dataclass import dataclass
from magy_server.tools.files.encodings import binary, sniff
from magy_server.tools.files.paths import Place, directory, listing

EDIT_LIMIT = 10_000_000
"""Bytes of the largest file that is edited."""
CHUNK = 1 << 20
SNIFF = 1 << 16
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a fifo must not block
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OVERWRITE = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Like:
    """What a new file takes over from another. `owner`: user and group; None: its maker's.
    `attributes`: the extended ones, with access lists among them."""

    mode: int
    owner: tuple[int, int] | None = None
    attributes: Mapping[str, bytes] = field(default_factory=dict)
    linked: bool = False
    """The file has more names than one."""


def opened(fd: int, name: str, place: Place) -> io.FileIO:
    """Opens the regular file `name` in the directory `fd`, to read. Raises ToolError for anything
    else, OSError."""
    found = os.open(name, _READ, dir_fd=fd)
    mode = os.fstat(found).st_mode
    if stat.S_ISREG(mode):
        return io.FileIO(found)
    os.close(found)
    if stat.S_ISDIR(mode):
        raise ToolError(f"{place.name} is a directory. It has: {listing(place.path)}")
    raise ToolError(f"{place.name} is not a regular file; only a command can use it.")


def beginning(path: str, most: int) -> bytes:
    """The first `most` bytes of a regular file, links followed. Raises OSError: also of what is no
    such file."""
    fd = os.open(path, _READ & ~os.O_NOFOLLOW)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "Not a regular file")
        return os.read(fd, most)
    finally:
        os.close(fd)


def read(place: Place) -> bytes | None:
    """Reads the whole file, for editing; returns None when there is none. Raises ToolError above
    `EDIT_LIMIT`."""
    if place.name == ".":
        raise ToolError(f"{place.root} is a directory. It has: {listing(place.root)}")
    if not os.path.lexists(place.path):
        return None
    with directory(place) as (fd, name), opened(fd, name, place) as file:
        size = os.fstat(file.fileno()).st_size
        if size > EDIT_LIMIT:
            raise ToolError(
                f"{place.name} has {size:,} bytes; files above {EDIT_LIMIT:,} cannot be edited "
                "with this tool. Change it with a command (sed, a script) instead."
            )
        return file.readall()


def stream(place: Place) -> Iterator[str]:
    """Gives the plain text in pieces of about a megabyte. Raises ToolError for binary data; a byte
    that does not fit the encoding becomes U+FFFD."""
    if place.name == ".":
        raise ToolError(f"{place.root} is a directory. It has: {listing(place.root)}")
    with directory(place) as (fd, name), opened(fd, name, place) as file:
        head = file.read(SNIFF) or b""
        encoding = sniff(head, whole=len(head) < SNIFF)
        size = os.fstat(file.fileno()).st_size
        if encoding is None:
            raise ToolError(binary(head, size, place.name))
        inner = codecs.getincrementaldecoder(encoding.codec)("replace")
        decoder = io.IncrementalNewlineDecoder(inner, translate=True)
        yield decoder.decode(head[len(encoding.mark) :])
        while chunk := file.read(CHUNK):
            if b"\0" in chunk and encoding.codec in ("utf-8", "cp1252"):
                raise ToolError(binary(head, size, place.name))
            yield decoder.decode(chunk)
        yield decoder.decode(b"", final=True)


def check_writable(place: Place) -> None:
    """Raises ToolError when it is known beforehand that the file cannot be replaced."""
    try:
        mode = os.lstat(place.path).st_mode
    except OSError:
        return
    # a superuser may write everything, but a file without any write bit is meant to stay
    if not mode & 0o222 or not os.access(place.path, os.W_OK):
        raise ToolError(
            f"{place.name} is read-only (mode {stat.S_IMODE(mode):04o}); nothing was changed. "
            "Somebody may want to protect it: do not change its mode unless asked."
        )


def overwrite(fd: int, name: str, data: bytes, executable: bool) -> None:
    """The file `name` in the directory `fd` itself reads `data` from now on, durably, by all its
    names; when that fails, what it did before. Unlike `create` and a rename this is not all at
    once: who dies in the middle leaves it to what is on record of the file to put it right."""
    with io.FileIO(os.open(name, _OVERWRITE, dir_fd=fd), "r+") as file:
        before = file.readall()
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        try:
            _rewrite(file, data)
            if (wanted := _runnable(mode, executable)) != mode:  # only the owner may
                os.fchmod(file.fileno(), wanted)
        except BaseException:
            with suppress(OSError):
                _rewrite(file, before)
            raise


def _rewrite(file: io.FileIO, data: bytes) -> None:
    file.seek(0)
    _write(file, data)
    file.truncate()
    os.fsync(file.fileno())


def _write(file: io.FileIO, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[file.write(view) or 0 :]


def create(fd: int, name: str, data: bytes, like: Like | None, executable: bool) -> None:
    """A new file in the directory `fd`, durable, with mode, owner and attributes of `like`, but for
    whether it can be run. When that fails there is none."""
    with io.FileIO(os.open(name, _CREATE, 0o666, dir_fd=fd), "w") as file:
        try:
            _fill(file, data, like, executable)
        except BaseException:
            os.unlink(name, dir_fd=fd)
            raise


def _fill(file: io.FileIO, data: bytes, like: Like | None, executable: bool) -> None:
    fd = file.fileno()
    if like is not None:
        os.fchmod(fd, like.mode & 0o700)  # private until it is whole
    _write(file, data)
    now = os.fstat(fd)
    if like is not None and like.owner not in (None, (now.st_uid, now.st_gid)):
        _own(fd, *like.owner)
    mode = stat.S_IMODE(now.st_mode) if like is None else like.mode
    os.fchmod(fd, _runnable(mode, executable))
    for name, value in like.attributes.items() if like else ():
        with suppress(OSError):  # not everybody may set all, nor on every file system
            os.setxattr(fd, name, value)
    os.fsync(fd)


def _runnable(mode: int, executable: bool) -> int:
    """By whom it can be read, unless it can be run already."""
    if not executable:
        return mode & ~0o111
    return mode if mode & 0o111 else mode | (mode & 0o444) >> 2


def _own(fd: int, owner: int, group: int) -> None:
    for who in (owner, -1):
        try:
            os.fchown(fd, who, group)
        except PermissionError:
            continue  # only a superuser gives files away
        return


def like_of(fd: int | None, name: str) -> Like | None:
    """Returns what a file in the place of this one takes over from it; None when there is none."""
    try:
        found = os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return None
    attributes = _attributes(fd, name) if stat.S_ISREG(found.st_mode) else {}
    owner = (found.st_uid, found.st_gid)
    return Like(stat.S_IMODE(found.st_mode), owner, attributes, found.st_nlink > 1)


def _attributes(fd: int | None, name: str) -> dict[str, bytes]:
    if not hasattr(os, "listxattr"):
        return {}
    found: dict[str, bytes] = {}
    with suppress(OSError):
        file = os.open(name, _READ, dir_fd=fd)
        try:
            for attribute in os.listxattr(file):
                with suppress(OSError):
                    found[attribute] = os.getxattr(file, attribute)
        finally:
            os.close(file)
    return found
