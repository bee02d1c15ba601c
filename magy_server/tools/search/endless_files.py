"""This module finds files that git and ripgrep read by themselves and that never end: a pipe where
a `.gitignore` is looked for is waited for, a device or a file of gigabytes fills the memory."""

from __future__ import annotations

import os
import stat
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

IGNORING = (".gitignore", ".ignore", ".rgignore")
"""What ripgrep reads of a tree."""
_IN_TREE = (*IGNORING, ".gitattributes", ".gitmodules")
_IN_GIT = (
    "HEAD", "config", "config.worktree", "index", "packed-refs", "commondir", "gitdir", "shallow",
    "info/exclude", "info/attributes", "info/sparse-checkout", "info/grafts", "logs/HEAD",
    "objects/info/alternates", "MERGE_HEAD", "FETCH_HEAD", "ORIG_HEAD",
)  # fmt: skip
LARGEST = 32 << 20
"""Bytes of one that people write."""
FOLDERS = 500
SECONDS = 0.2
"""What is looked through of a tree; behind that, the time limits of the programs hold."""
_NO_FOLDERS = 2
"""So many links has a folder without folders in it: the name in the one above, and its own `.`. It
may hold a hundred files, and looking at each took longer than the search. Where a file system
counts otherwise, there is one link (all is looked at), or the time limits hold."""


def endless(folder: str, names: Sequence[str] = _IN_TREE) -> str | None:
    """Returns the path of such a file around, in or below `folder`; `names`: those that may be read
    in any directory. It blocks, but not on what it finds."""
    return next((path for path in _read(folder, names) if _never_ends(path)), None)


def why(path: str) -> str:
    """Returns a sentence for whoever asked for what cannot be read because of `path`."""
    return f"{path} is a pipe, a device or endless, and reading it would never end. Tell the user."


def _read(folder: str, names: Sequence[str]) -> Iterator[str]:
    for above in (folder, *map(str, Path(folder).parents)):
        yield from (os.path.join(above, name) for name in names)
        store = os.path.join(above, ".git")
        yield store
        if os.path.isdir(store):
            yield from (os.path.join(store, name) for name in _IN_GIT)
            yield from _branch(store)
    yield from _below(folder, names)


def _branch(store: str) -> Iterator[str]:
    """Returns the file of the branch that HEAD names."""
    head = os.path.join(store, "HEAD")
    if not _never_ends(head) and os.path.isfile(head):
        with open(head, "rb") as file:
            said = os.fsdecode(file.read(4096))
        name = said.removeprefix("ref:").strip()
        if said.startswith("ref:") and name and "\0" not in name:
            yield os.path.join(store, name)


def _below(folder: str, names: Sequence[str]) -> Iterator[str]:
    until = time.monotonic() + SECONDS
    todo = deque([folder])
    for _ in range(FOLDERS):
        if not todo or time.monotonic() > until:
            return
        here = todo.popleft()
        try:
            if os.stat(here).st_nlink == _NO_FOLDERS:
                yield from [path for name in names if os.access(path := f"{here}/{name}", os.F_OK)]
                continue
            with os.scandir(here) as entries:
                for entry in entries:
                    if entry.name in names:
                        yield entry.path
                    elif entry.name != ".git" and entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
        except OSError:
            continue


def _never_ends(path: str) -> bool:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return False
    if stat.S_ISREG(found.st_mode):
        return found.st_size > LARGEST and os.path.basename(path) not in ("index", "packed-refs")
    if stat.S_ISCHR(found.st_mode):
        return found.st_rdev != os.stat(os.devnull).st_rdev
    return stat.S_ISFIFO(found.st_mode) or stat.S_ISBLK(found.st_mode)
