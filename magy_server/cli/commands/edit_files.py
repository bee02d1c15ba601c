"""This module reads and writes the files of `magy edit`: it writes either all of them or none."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from magy_server.api.edits.files_in_memory import File
from magy_server.core.errors import MagyError, ToolError
from magy_server.core.values import NO_FILE, Version, digest
from magy_server.tools.files import disk, versions
from magy_server.tools.files.encodings import decode
from magy_server.tools.files.paths import Place, directory, explain


def load(place: Place) -> File:
    """Returns the file. Raises ToolError when it is a directory, is not a file, is too large, or
    cannot be read."""
    was, data = versions.look(place.root, place.path)
    if was.hash is None:
        return File(place, was, data, 0)
    file = File(place, was, data, stat.S_IMODE(os.lstat(place.path).st_mode))
    try:
        text, file.encoding = decode(data, place.name)
    except ToolError:
        text, file.readable = "", False
    file.before = file.after = text
    return file


# --- writing --------------------------------------------------------------------------------------

Undo = Callable[[], None]
ORDER = {"rename": 0, "delete": 2}


def write(files: Sequence[File]) -> None:
    """Writes all files or none: when something goes wrong, it takes back what it has done. Raises
    ToolError, which names what it could not take back."""
    for file in files:
        disk.check_writable((file.moved_from or file).place)
    done: list[tuple[str, Undo]] = []
    try:
        for file in sorted(files, key=lambda file: ORDER.get(file.op, 1)):
            for undo in _steps(file):
                done.append((file.place.name, undo))
    except BaseException as error:
        left = _take_back(done)
        if not isinstance(error, MagyError | OSError):
            raise
        why = error.message if isinstance(error, MagyError) else f"{error.strerror}."
        stays = f" These files could not be restored and stay changed: {', '.join(left)}."
        raise ToolError(why + (stays if left else "")) from None


def _take_back(done: Sequence[tuple[str, Undo]]) -> list[str]:
    """Takes the steps back, and returns the names of the files where that failed."""
    left = []
    for name, undo in reversed(done):
        try:
            undo()
        except (MagyError, OSError):
            left.append(name)
    return left


def _steps(file: File) -> Iterator[Undo]:
    """Does one thing after the other, and gives for each what takes it back."""
    place, data = file.place, file.content
    there = NO_FILE if file.moved_to else file.was
    if origin := file.moved_from:
        _rename(origin.place, place)
        there = origin.was
        yield lambda: _rename_back(place, origin.place)
    if file.after is None:
        versions.put(place.root, place.path, there, NO_FILE, b"", prune=True)
        yield lambda: _restore(file)
        return
    kind = there.kind if there.hash else "file"
    now = Version(hash=digest(data), kind=kind)
    if now != there:
        versions.put(place.root, place.path, there, now, data)
        yield lambda: versions.put(
            place.root, place.path, now, there, file.data, prune=there.hash is None
        )


def _restore(file: File) -> None:
    versions.put(file.place.root, file.place.path, NO_FILE, file.was, file.data)
    os.chmod(file.place.path, file.mode)


def _rename(old: Place, new: Place) -> None:
    """Renames the file itself, with its mode and owner. Raises ToolError."""
    with directory(old) as (old_fd, old_name), directory(new, create=True) as (new_fd, new_name):
        with suppress(FileNotFoundError):
            os.stat(new_name, dir_fd=new_fd, follow_symlinks=False)
            raise ToolError(f"{new.name} was created by another program at the same moment.")
        try:
            os.rename(old_name, new_name, src_dir_fd=old_fd, dst_dir_fd=new_fd)
        except OSError as error:
            raise ToolError(explain(error, old)) from None
        os.fsync(new_fd)
        os.fsync(old_fd)


def _rename_back(new: Place, old: Place) -> None:
    _rename(new, old)
    versions.put(new.root, new.path, NO_FILE, NO_FILE, b"", prune=True)
