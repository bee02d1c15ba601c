"""This module keeps the bytes of files in a work tree as they are at one moment, and tells whether
they still hold. It has nothing to do with the snapshots of sessions.

Everything here blocks and is called in a thread.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Mapping
from dataclasses import field

from magy_server.core.errors import ToolError
from magy_server.core.values import NO_FILE, Version
from magy_server.dataclass import dataclass
from magy_server.regex import regex
from magy_server.tools.files.versions import look
from magy_server.tools.tracking.known_changes import LARGEST, UNSURE, Stamp, stamped

ALL = 50_000_000
"""Bytes of all that is kept of a work tree, and of what one command changed."""
SPARE = regex(r"\.magy-[0-9a-f]{16}\.tmp")
"""Files that are about to replace another (`disk`, `versions`)."""


@dataclass(frozen=True, slots=True)
class Held:
    """What was at a path. `problem`: why that is not known or not kept. With `sure`, the same stamp
    later proves the same bytes. `stamp` None: there was nothing, or nobody looked."""

    version: Version = NO_FILE
    data: bytes = field(default=b"", repr=False)
    problem: str = ""
    stamp: Stamp | None = None
    sure: bool = True


ABSENT = Held()


def plain(name: bytes) -> bool:
    """Whether a name can be told to others: UTF-8 without control characters."""
    try:
        text = name.decode()
    except UnicodeDecodeError:
        return False
    return not any(ord(char) < 32 or ord(char) == 127 for char in text)


def spare(name: bytes) -> bool:
    return bool(SPARE.fullmatch(os.path.basename(os.fsdecode(name))))


def stamps(root: str, names: Iterable[bytes]) -> dict[bytes, Stamp | None]:
    """Returns what can be seen of the files without reading them; None where nothing is."""
    return {name: stamped(_path(root, name))[0] for name in names}


def hold(
    root: str, names: Iterable[bytes], known: Mapping[bytes, Held], room: int = ALL
) -> dict[bytes, Held]:
    """What is there, for these names below `root`. What is `known` is not read again while its
    stamp proves it. Beyond `room` bytes nothing is kept."""
    found: dict[bytes, Held] = {}
    for name in names:
        held, at = known.get(name), stamped(_path(root, name))[0]
        if held is None or held.problem or held.stamp != at or not held.sure:
            held = _read(root, name, at, room)
        elif len(held.data) > room:
            held = _too_much(at)
        room -= len(held.data)
        found[name] = held
    return found


def _read(root: str, name: bytes, at: Stamp | None, room: int) -> Held:
    if at is None:
        return ABSENT
    mode, size = at[2], at[3]
    if stat.S_ISDIR(mode):
        return Held(stamp=at)  # what is in it has names of its own
    if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
        return Held(problem="not a regular file", stamp=at)
    if size > LARGEST:
        return Held(problem=f"{size:,} bytes", stamp=at)
    if size > room:
        return _too_much(at)
    began = time.time_ns()
    try:
        version, data = look(root, _path(root, name))
    except ToolError:
        folder = os.path.dirname(_path(root, name))
        if os.path.realpath(folder) != folder:
            return ABSENT  # it is another directory's file that is seen through the link
        return Held(problem="it cannot be read", stamp=at)
    return Held(version, data, stamp=at, sure=began - at[-1] > UNSURE)


def _too_much(at: Stamp | None) -> Held:
    return Held(problem=f"more than {ALL // 1_000_000} MB in all", stamp=at)


def _path(root: str, name: bytes) -> str:
    return os.path.join(root, os.fsdecode(name))
