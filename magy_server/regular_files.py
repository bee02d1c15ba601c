"""This module reads only regular files, and only up to a limit: a pipe blocks, a device never
ends."""

from __future__ import annotations

import os
import stat


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
