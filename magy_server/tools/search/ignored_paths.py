"""This module tells at which files a search would look, whether they are there or not, by the
ignore rules of the tree.

ripgrep is asked, about a copy of the tree that holds these files, empty, and the ignore files that
are for them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

from magy_server.core.errors import ToolError
from magy_server.tools.files.disk import beginning
from magy_server.tools.search.ripgrep_queries import Answer, FilePattern, Finder
from magy_server.tools.stoppable_thread import in_thread
from magy_server.tools.temporary import temporary

_RULES = (".gitignore", ".ignore", ".rgignore", ".git", ".git/info/exclude")
MEMORY = "/dev/shm"
"""Files are made many times faster here than on a disk; where it is not there, they are made in the
usual place."""
_LARGEST = 1 << 20
"""Bytes of an ignore file that count."""


async def searched(
    finder: Finder, root: str, paths: Collection[str], wanted: FilePattern | None = None
) -> set[str]:
    """Returns those of the `paths`, all below `root`, at which a search in `root` would look.
    Raises ToolError."""
    if not paths:
        return set()
    answer = Answer()
    try:
        memory = MEMORY if os.access(MEMORY, os.W_OK) else None
        async with temporary(memory) as folder:
            top = os.path.realpath(folder)
            await in_thread(lambda check: _lay(top, paths, check))
            await finder.files(top + root, answer, wanted)
    except OSError as error:
        raise ToolError(f"A temporary directory is needed: {error.strerror}.") from None
    return {path[len(top) :] for path in answer.files}


def _lay(top: str, paths: Collection[str], check: Callable[[], None]) -> None:
    """A path that cannot be, because it is too long or a file is in its way, is left out."""
    done = {"/"}  # whose rules count wherever the copy lies
    for path in paths:
        check()
        folder = os.path.dirname(path)
        with suppress(OSError):
            os.makedirs(top + folder, exist_ok=True)
            open(top + path, "ab").close()  # it may be an ignore file that is there already
        while folder not in done:
            done.add(folder)
            _copy_rules(folder, top)
            folder = os.path.dirname(folder)


def _copy_rules(folder: str, top: str) -> None:
    if os.path.isdir(f"{folder}/.git"):
        with suppress(OSError):
            os.makedirs(f"{top}{folder}/.git/info", exist_ok=True)
    for name in _RULES:
        path = f"{folder}/{name}"
        with suppress(OSError):
            Path(top + path).write_bytes(beginning(path, _LARGEST))
