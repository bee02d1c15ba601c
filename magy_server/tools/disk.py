"""Closed files: read by page in bounded memory, replaced whole or not at all.

Everything here blocks and is called in a thread. Errors are ToolErrors that say what to do.
"""

from __future__ import annotations

import codecs
import io
import os
import secrets
import stat
from collections.abc import Iterator

from magy_server.core.errors import ToolError
from magy_server.tools.paths import Place, directory, listing
from magy_server.tools.text import Encoding, binary, digest, sniff

EDIT_LIMIT = 10_000_000
"""Bytes of the largest file that is edited."""
CHUNK = 1 << 20
SNIFF = 1 << 16
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a fifo must not block
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def _open(fd: int, name: str, place: Place) -> io.FileIO:
    opened = os.open(name, _READ, dir_fd=fd)
    mode = os.fstat(opened).st_mode
    if stat.S_ISREG(mode):
        return io.FileIO(opened)
    os.close(opened)
    if stat.S_ISDIR(mode):
        raise ToolError(f"{place.name} is a directory. It has: {listing(place.path)}")
    raise ToolError(f"{place.name} is not a regular file; use bash if it is really meant.")


def read(place: Place) -> bytes | None:
    """The whole file, for editing; None when there is none. Raises ToolError above `EDIT_LIMIT`."""
    if place.name == ".":
        raise ToolError(f"{place.root} is a directory. It has: {listing(place.root)}")
    if not os.path.lexists(place.path):
        return None
    with directory(place) as (fd, name), _open(fd, name, place) as file:
        size = os.fstat(file.fileno()).st_size
        if size > EDIT_LIMIT:
            raise ToolError(
                f"{place.name} has {size:,} bytes; files above {EDIT_LIMIT:,} are not edited "
                "here. Change it with a command (sed, a script) instead."
            )
        return file.readall()


def stream(place: Place) -> Iterator[str]:
    """The plain text in pieces of about a megabyte. Raises ToolError for binary data; a byte that
    does not fit the encoding becomes U+FFFD."""
    if place.name == ".":
        raise ToolError(f"{place.root} is a directory. It has: {listing(place.root)}")
    with directory(place) as (fd, name), _open(fd, name, place) as file:
        head = file.read(SNIFF) or b""
        encoding = sniff(head, whole=len(head) < SNIFF)
        size = os.fstat(file.fileno()).st_size
        if encoding is None:
            raise ToolError(binary(head, size, place.name))
        decoder = _decoder(encoding)
        yield decoder.decode(head[len(encoding.mark) :])
        while chunk := file.read(CHUNK):
            if b"\0" in chunk and encoding.codec in ("utf-8", "cp1252"):
                raise ToolError(binary(head, size, place.name))
            yield decoder.decode(chunk)
        yield decoder.decode(b"", final=True)


def _decoder(encoding: Encoding) -> io.IncrementalNewlineDecoder:
    inner = codecs.getincrementaldecoder(encoding.codec)("replace")
    return io.IncrementalNewlineDecoder(inner, translate=True)


def check_writable(place: Place) -> None:
    """Raises ToolError when it is known beforehand that `replace` cannot work."""
    try:
        mode = os.lstat(place.path).st_mode
    except OSError:
        return
    # a superuser may write everything, but a file without any write bit is meant to stay
    if not mode & 0o222 or not os.access(place.path, os.W_OK):
        raise ToolError(
            f"{place.name} is read-only (mode {stat.S_IMODE(mode):04o}); nothing was changed. "
            "Ask the user before changing its mode."
        )


def replace(place: Place, data: bytes, expected: str | None) -> None:
    """The file reads `data` from now on, durably, or stays as it is and ToolError is raised.

    `expected` is the hash of what it must hold until then (None: it must not exist). Mode is
    kept, owner where that is allowed. Missing directories are made.
    """
    check_writable(place)
    with directory(place, create=expected is None) as (fd, name):
        before = _stat(fd, name)
        spare = f".magy-{secrets.token_hex(8)}.tmp"
        with io.FileIO(os.open(spare, _CREATE, 0o666, dir_fd=fd), "w") as file:
            try:
                _fill(file, data, before)
                _check_unchanged(fd, name, place, expected)
                os.replace(spare, name, src_dir_fd=fd, dst_dir_fd=fd)
            except BaseException:
                os.unlink(spare, dir_fd=fd)
                raise
        os.fsync(fd)


def _fill(file: io.FileIO, data: bytes, before: os.stat_result | None) -> None:
    if before is not None:
        os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode) & 0o700)  # private until it is whole
    view = memoryview(data)
    while view:
        view = view[file.write(view) or 0 :]
    if before is not None:
        now = os.fstat(file.fileno())
        if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
            _own(file.fileno(), before)
        os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))
    os.fsync(file.fileno())


def _own(fd: int, before: os.stat_result) -> None:
    for owner, group in ((before.st_uid, before.st_gid), (-1, before.st_gid)):
        try:
            os.fchown(fd, owner, group)
        except PermissionError:
            continue  # only a superuser gives files away
        return


def _stat(fd: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _check_unchanged(fd: int, name: str, place: Place, expected: str | None) -> None:
    now: str | None = None
    if _stat(fd, name) is not None:
        with _open(fd, name, place) as file:
            now = digest(file.readall())
    if now != expected:
        what = "was created" if expected is None else "was changed" if now else "was removed"
        raise ToolError(
            f"{place.name} {what} by someone else at this moment; nothing was written. "
            "Read it again and redo the edit on what it holds now."
        )
