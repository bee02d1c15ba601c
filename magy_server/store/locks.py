"""Leases are kernel file locks: they end with the process that holds them, however it ends."""

from __future__ import annotations

import fcntl
import hashlib
import os
from contextlib import suppress

from magy_server.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class FileLock:
    path: str
    descriptor: int

    def free(self) -> None:
        """Unlocks, and removes the file while nobody else can hold it."""
        with suppress(OSError):
            if _is_at(self.descriptor, self.path):
                os.unlink(self.path)
        os.close(self.descriptor)


def take(directory: str, name: str) -> FileLock | None:
    """Locks the file for `name` (any text) in `directory`; None when another holder lives, be it
    in this process. Raises OSError when the file cannot be made.

    The descriptor is closed in programs that this process starts (PEP 446), so a tool that
    outlives its Magy does not keep the lease.
    """
    path = os.path.join(directory, hashlib.sha256(name.encode()).hexdigest())
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError:
            os.close(descriptor)
            raise
        if _is_at(descriptor, path):
            return FileLock(path, descriptor)
        os.close(descriptor)  # the last holder removed the file between our open and our lock


def _is_at(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
