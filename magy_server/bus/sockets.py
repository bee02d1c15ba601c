"""The processes of the mesh find each other by socket files, one for each, in a private place."""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import os
import secrets
import socket
import stat
import struct
import sys
from contextlib import ExitStack, suppress

from magy_server.core.errors import InvalidConfig

_SUFFIX = ".sock"
_LONGEST = 103
"""Bytes of a socket's path, by the smallest `sun_path` (macOS: 104 with the final NUL)."""


def new_id() -> str:
    """Returns a name for this process in the mesh: its pid, for people, and letters that make it
    unique."""
    return f"{os.getpid()}-{secrets.token_hex(4)}"


def prepare(directory: str) -> str:
    """Makes the directory, for its owner only, and returns a path to it that is short enough for
    socket addresses. Raises InvalidConfig when the directory is someone else's, and OSError."""
    os.makedirs(directory, mode=0o700, exist_ok=True)
    found = os.stat(directory)
    if found.st_uid != os.geteuid():
        raise InvalidConfig(
            f"{directory} belongs to another user, so this process cannot be reached through it "
            "safely. Remove it, or set another state directory."
        )
    if found.st_mode & 0o077:
        os.chmod(directory, stat.S_IMODE(found.st_mode) & ~0o077)
    longest = os.path.join(directory, f"{2**22}-{'0' * 8}{_SUFFIX}")
    return directory if len(os.fsencode(longest)) <= _LONGEST else _short(directory)


def _short(directory: str) -> str:
    """Returns a link to the directory. The place of the link does not follow TMPDIR: processes that
    were started in different environments have to come to the same one. If somebody removes the
    link, the sockets remain, since they live in the directory itself."""
    name = hashlib.sha256(os.fsencode(directory)).hexdigest()[:16]
    link = f"/tmp/magy-{os.geteuid()}-{name}"
    with suppress(FileExistsError):
        os.symlink(directory, link)
    found = os.lstat(link)
    ours = stat.S_ISLNK(found.st_mode) and found.st_uid == os.geteuid()
    if not ours or os.readlink(link) != directory:
        raise InvalidConfig(
            f"{link} should be this user's link to {directory}, but is not. Remove it, or set a "
            "state directory with a shorter path."
        )
    return link


def address(place: str, id: str) -> str:
    return os.path.join(place, id + _SUFFIX)


def enter(place: str, id: str) -> tuple[socket.socket, list[str]]:
    """Returns a listening socket of this process, and the ids of all processes that were there
    before. Raises OSError.

    The lock makes entering one step: of two processes exactly one sees the other and connects, and
    a socket that somebody sees does listen, unless its process is gone. Waiting for the lock
    blocks, for microseconds.
    """
    with ExitStack() as undo:
        lock = os.open(os.path.join(place, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        undo.callback(os.close, lock)
        fcntl.flock(lock, fcntl.LOCK_EX)
        others = [
            name.removesuffix(_SUFFIX) for name in os.listdir(place) if name.endswith(_SUFFIX)
        ]
        with ExitStack() as undo_socket:
            listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            undo_socket.callback(listening.close)
            listening.bind(address(place, id))
            os.chmod(address(place, id), 0o600)
            listening.listen(128)
            undo_socket.pop_all()
    return listening, others


def user_behind(connection: socket.socket) -> int | None:
    """Returns the user id of the process at the other end, as the kernel noted it when the
    connection was made; None when the kernel does not say."""
    try:
        if sys.platform == "linux":
            size = struct.calcsize("3i")
            said = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
            user: int = struct.unpack("3i", said)[1]
            return user
        return _getpeereid(connection.fileno())
    except (OSError, AttributeError):
        return None


def _getpeereid(descriptor: int) -> int | None:
    """Reads that user id on macOS and the BSDs."""
    user, group = ctypes.c_uint32(), ctypes.c_uint32()
    library = ctypes.CDLL(None, use_errno=True)
    failed = library.getpeereid(descriptor, ctypes.byref(user), ctypes.byref(group))
    return None if failed else user.value


def remove(place: str, id: str) -> None:
    """Removes the socket file of a process that left or died."""
    with suppress(FileNotFoundError):
        os.unlink(address(place, id))
