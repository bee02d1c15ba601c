"""This module keeps CASPER's emotional log in the workspace: one file for its owner alone, replaced
whole, by one process at a time.

What lies there may be from anybody: links are not followed, and a file that cannot be read is
neither used nor written, but said.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from magy_server.core.errors import InvalidRequest
from magy_server.core.magi.emotional_log import (
    FILE,
    FOLDER,
    LARGEST,
    Log,
    Unreadable,
    parsed,
    written,
)

PATH = f"{FOLDER}/{FILE}"
PATIENCE = 10.0
"""Seconds that another process may have the file."""
_PART = ".casper-"
"""Begins the names of files that are not whole yet."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def read(root: str) -> Log:
    """Returns the log of a workspace; one that is not there is empty. Raises InvalidRequest, with
    file and line."""
    try:
        folder = os.open(os.path.join(root, FOLDER), _FOLDER)
    except FileNotFoundError:
        return Log()
    except OSError as error:
        raise _unusable(root, f" cannot be read: {error.strerror}") from None
    try:
        return _read(root, folder)
    finally:
        os.close(folder)


def change(root: str, how: Callable[[Log], Log]) -> Log:
    """Puts what `how` makes of the log in its place, and returns that. Raises InvalidRequest."""
    try:
        with _alone(root) as folder:
            was = _read(root, folder)
            now = how(was)
            if now != was:
                _write(folder, written(now))
            return now
    except OSError as error:
        raise _unusable(root, f" cannot be written: {error.strerror}") from None


def clear(root: str) -> bool:
    """Removes the file, whatever is in it; returns whether it was there. Raises InvalidRequest."""
    if not os.path.lexists(os.path.join(root, PATH)):
        return False
    try:
        with _alone(root) as folder:
            os.unlink(FILE, dir_fd=folder)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _unusable(root, f" cannot be removed: {error.strerror}") from None
    return True


def _read(root: str, folder: int) -> Log:
    try:
        descriptor = os.open(FILE, _READ, dir_fd=folder)
    except FileNotFoundError:
        return Log()
    except OSError as error:
        raise _unusable(root, f" cannot be read: {error.strerror}") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _unusable(root, " is no file")
        with open(descriptor, "rb", closefd=False) as file:
            return parsed(file.read(LARGEST + 1))
    except Unreadable as error:
        raise _unusable(root, str(error)) from None
    finally:
        os.close(descriptor)


def _write(folder: int, data: bytes) -> None:
    name = f"{_PART}{os.urandom(8).hex()}"
    descriptor = os.open(name, _NEW, 0o600, dir_fd=folder)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(name, FILE, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)
        raise


@contextmanager
def _alone(root: str) -> Iterator[int]:
    """Opens the folder, which is made if it is not there, for this process alone."""
    path = os.path.join(root, FOLDER)
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)
    folder = os.open(path, _FOLDER)
    try:
        _lock(root, folder)
        for left in os.listdir(folder):  # of who was killed while it wrote
            if left.startswith(_PART):
                with suppress(OSError):
                    os.unlink(left, dir_fd=folder)
        yield folder
    finally:
        os.close(folder)


def _lock(root: str, folder: int) -> None:
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise _unusable(root, " is being written by another process") from None
            time.sleep(0.02)


def _unusable(root: str, why: str) -> InvalidRequest:
    path = os.path.join(root, PATH)
    return InvalidRequest(
        f"CASPER's emotional log {path}{why}. It is left alone: mend it, or remove it with "
        f"`magy magi log clear`."
    )
