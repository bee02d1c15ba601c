"""This module checks that the database is still the file that was opened.

SQLite goes on writing into a file that was removed, or whose side files were: all of that is lost
when the last process closes it, and nobody is told.
"""

from __future__ import annotations

import os
from contextlib import suppress

from magy_server.core.errors import StoreCorrupt, StoreUnavailable

Identity = tuple[int, int]


class DatabaseFile:
    """The file at `path` with its `-wal` and `-shm` files, and a `-used` file which notes that the
    database has sessions."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._mark = f"{path}-used"
        self._known: dict[str, Identity] = {}
        self._size = 0
        self._marked = False

    def begin(self, new: bool) -> None:
        """Looks at the file before SQLite opens it. `new`: the caller has just made it. Raises
        OSError, and StoreCorrupt if somebody has emptied the file."""
        if new:
            with suppress(FileNotFoundError):
                os.unlink(self._mark)
        elif os.path.getsize(self.path) == 0 and os.path.exists(self._mark):
            raise StoreCorrupt(
                f"{self.path} is empty, but it held sessions before. Restore a copy of it, or, to "
                "start with an empty database, remove the file together with its -wal and -shm "
                "files."
            )

    def written(self) -> None:
        """Notes that the file has sessions from now on. If the note cannot be made now, a later
        call makes it."""
        if not self._marked:
            with suppress(OSError):
                os.close(os.open(self._mark, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
                self._marked = True

    def check(self) -> None:
        """Raises StoreUnavailable when the file at the path is not the one that was opened."""
        for name in (self.path, f"{self.path}-wal", f"{self.path}-shm"):
            try:
                found = os.stat(name)
            except FileNotFoundError:
                if name in self._known:
                    raise self._gone(name, "was removed") from None
                continue
            except OSError as error:
                raise self._gone(name, f"cannot be reached ({error.strerror})") from error
            identity = found.st_dev, found.st_ino
            if self._known.setdefault(name, identity) != identity:
                raise self._gone(name, "was replaced by another file")
            if name == self.path:
                if found.st_size < self._size:
                    raise self._gone(name, "was emptied or cut")
                self._size = found.st_size

    def _gone(self, name: str, what: str) -> StoreUnavailable:
        return StoreUnavailable(
            f"{name} {what} while Magy was using it. Magy writes nothing more, because it would be "
            "lost. Put the file back, together with its -wal and -shm files, or restart Magy."
        )
