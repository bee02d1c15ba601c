"""A mark tells whether a file may have changed, without opening it: while the mark stays, so does
the file.

Size, identity and times of a file say so, if the clock of its file system has gone on since it was
last changed: what is changed again in the same tick has the same times. A program may set the time
of the last change to what it was; the other one (`ctime`) only the kernel sets.

But a program that keeps the file mapped into its memory to write (`mmap`, shared) is missed: the
kernel sets the times when such a page is first written to, and not again until it has been on the
disk. So is who sets the clock of the machine back, or writes to the disk beneath the file system.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Sequence

Mark = tuple[int, ...]
NOTHING: Mark = ()
"""No file is there."""
TICK = 2_000_000_000
"""Nanoseconds between two times that any file system tells apart."""


def marks_of(paths: Sequence[str]) -> list[Mark | None]:
    """Blocks. None: there is a directory, what cannot be looked at, or a file that was changed a
    moment ago, so a later mark could be the same after another change."""
    before = time.time_ns() - TICK
    return [_mark(path, before) for path in paths]


def _mark(path: str, before: int) -> Mark | None:
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return NOTHING
    except (OSError, ValueError):
        return None
    if stat.S_ISDIR(found.st_mode) or found.st_ctime_ns >= before:
        return None
    return (
        found.st_dev, found.st_ino, found.st_mode, found.st_size,
        found.st_mtime_ns, found.st_ctime_ns,
    )  # fmt: skip
