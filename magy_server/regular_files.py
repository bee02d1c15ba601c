"""This module reads only regular files, and only up to a limit: a pipe blocks, a device never
ends."""

from __future__ import annotations

import os
import stat

from magy_server.core.errors import InvalidConfig


def beginning(path: str | os.PathLike[str], most: int, *, linked: bool = True) -> bytes | None:
    """Returns all of a file that has no more than `most` bytes, and one more byte of another; None
    for what is no regular file. `linked`: the path may be a link to one. Raises OSError."""
    follow = 0 if linked else os.O_NOFOLLOW
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | follow)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        with open(fd, "rb", closefd=False) as file:
            return file.read(most + 1)
    finally:
        os.close(fd)


def text(path: str, most: int, advice: str, within: str | None = None) -> str:
    """The text of a regular file of `most` bytes at most, which is not a link that leads out of the
    directory `within`. Raises InvalidConfig; `advice` says what to do with a larger one."""
    if within and not os.path.realpath(path).startswith(os.path.realpath(within) + os.sep):
        raise InvalidConfig(
            f"{path} is a symbolic link that leads out of {within}; put the file itself there."
        )
    try:
        data = beginning(path, most)
    except OSError as error:
        raise InvalidConfig(f"{path} cannot be read: {error.strerror}.") from None
    if data is None:
        raise InvalidConfig(f"{path} is not a file.")
    if len(data) > most:
        raise InvalidConfig(f"{path} is larger than {most >> 10} KiB; {advice}.")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidConfig(f"{path}:{line}: not UTF-8 text; save it as UTF-8.") from None
