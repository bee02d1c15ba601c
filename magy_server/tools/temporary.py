"""This module makes temporary directories, and removes those that a killed process left.

Each is locked by who made it, and the kernel frees the lock however that process ends: a directory
that can be locked is nobody's.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from magy_server.regex import regex

_PREFIX = "magy-temporary-"
_OURS = regex(rf"{_PREFIX}[a-z0-9_]{{8}}")
_swept: set[str] = set()
"""Where this process has looked for what others left."""


@asynccontextmanager
async def temporary(within: str | None = None) -> AsyncIterator[str]:
    """A directory for as long as the block lasts; `within` another than the usual one. Raises
    OSError."""
    parent = within or tempfile.gettempdir()
    if parent not in _swept:
        _swept.add(parent)
        await asyncio.to_thread(_sweep, parent)
    path, lock = _make(parent)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


def _make(parent: str) -> tuple[str, int]:
    while True:
        path = tempfile.mkdtemp(prefix=_PREFIX, dir=parent)
        try:
            return path, _locked(path, fcntl.LOCK_SH)
        except (FileNotFoundError, BlockingIOError):  # swept before it was locked
            continue
        except OSError:  # a file system without locks: nobody can sweep it either
            return path, os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _sweep(parent: str) -> None:
    names: list[str] = []
    with suppress(OSError):  # who may make something there need not be allowed to list it
        names = os.listdir(parent)
    for name in names:
        path = os.path.join(parent, name)
        with suppress(OSError):
            if not _OURS.fullmatch(name) or os.lstat(path).st_uid != os.geteuid():
                continue
            lock = _locked(path, fcntl.LOCK_EX)
            shutil.rmtree(path, ignore_errors=True)
            os.close(lock)


def _locked(path: str, how: int) -> int:
    """The descriptor that holds the lock. Raises OSError, BlockingIOError if it is another's."""
    lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, how | fcntl.LOCK_NB)
        os.stat(path)  # it may be gone by now
    except OSError:
        os.close(lock)
        raise
    return lock
