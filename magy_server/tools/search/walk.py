"""Walking a tree as ripgrep does: what is ignored is left out, links are not followed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from magy_server.tools.search.ignores import Level, level


def files(root: bytes, failed: Callable[[], None]) -> Iterator[bytes]:
    """Absolute paths of the regular files below the absolute `root`, in order. What cannot be
    listed is left out and `failed` is called."""
    above = level(os.path.dirname(root))
    stack = [_entries(root, above, failed)]
    while stack:
        for path, here in stack[-1]:
            if here is not None:
                stack.append(_entries(path, here, failed))
                break
            yield path
        else:
            stack.pop()


def _entries(
    folder: bytes, above: Level, failed: Callable[[], None]
) -> Iterator[tuple[bytes, Level | None]]:
    """(path, None) of files and (path, level of this folder) of folders that are not ignored."""
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError:
        failed()
        return
    here = above.below(folder, frozenset(entry.name for entry in entries))
    for entry in entries:
        is_folder = entry.is_dir(follow_symlinks=False)
        if not is_folder and not entry.is_file(follow_symlinks=False):
            continue
        if not here.ignores(entry.path, entry.name, is_folder):
            yield entry.path, here if is_folder else None
