"""Magy writes down in the repository that there is a worktree before it makes it, and strikes that
out after it has removed all of it: so none is ever left that nobody knows of.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from contextlib import suppress

from pydantic import ValidationError

from magy_server.core.values import Value, Worktree
from magy_server.tools.files.paths import below
from magy_server.tools.git.hostile_config import beginning

FOLDER = "magy"
"""In the git directory that all worktrees of a repository share."""


class Record(Value):
    """`root`: the workspace root of the session that it is for. `place`: the same directory in the
    worktree. `made`: it is complete; until then no agent has worked in it. `proposed`: the commit
    of which all was proposed to the person; once they have decided it, nothing of it is missed."""

    session: str
    root: str
    place: str
    worktree: Worktree
    made: bool = False
    proposed: str = ""

    @property
    def name(self) -> str:
        """Returns what people call it."""
        return os.path.basename(self.worktree.path)


def ending(session: str) -> str:
    """Returns what the name of a worktree for this session ends in, but for a number."""
    return f"-{hashlib.sha256(session.encode()).hexdigest()[:8]}"


def folder(common: str) -> str:
    """Returns the directory of the records. `common`: the git directory that worktrees share."""
    return os.path.join(common, FOLDER, "worktrees")


def all_of(common: str) -> Sequence[Record]:
    """Returns the records, by name. Blocks."""
    names: list[str] = []
    with suppress(OSError):
        names = sorted(os.listdir(folder(common)))
    found = (_read(common, os.path.join(folder(common), name)) for name in names)
    return [record for record in found if record]


def of(common: str, worktree: Worktree) -> Record | None:
    """Returns the record of a worktree; None: there is nothing of it. Blocks."""
    return _read(common, _path(common, worktree))


def keep(common: str, record: Record) -> None:
    """Writes a record, whole or not at all. Blocks. Raises OSError."""
    path = _path(common, record.worktree)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    part = f"{path}.part"
    with open(part, "w", encoding="utf-8") as file:
        file.write(record.model_dump_json())
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def strike(common: str, worktree: Worktree) -> None:
    """Removes the record, once there is nothing of it any more. Blocks. Raises OSError."""
    with suppress(FileNotFoundError):
        os.remove(_path(common, worktree))


def project_of(place: str) -> str:
    """Returns the workspace root that a directory stands for, if Magy has made a worktree there; ""
    for any other directory. Blocks."""
    common = _around(place)
    found = all_of(common) if common else ()
    return next((one.root for one in found if one.place == place), "")


def _common(link: str) -> str:
    """The git directory, shared by all worktrees, that a `.git` is or leads to; "" for none."""
    if os.path.isdir(link):
        return os.path.realpath(link)
    said = os.fsdecode(beginning(link))
    if not said.startswith("gitdir: "):
        return ""
    own = os.path.join(os.path.dirname(link), said.removeprefix("gitdir: ").strip())
    shared = os.fsdecode(beginning(os.path.join(own, "commondir"))).strip()
    return os.path.realpath(os.path.join(own, shared))


def _path(common: str, worktree: Worktree) -> str:
    return os.path.join(folder(common), f"{os.path.basename(worktree.path)}.json")


def _read(common: str, path: str) -> Record | None:
    """None: it is no record, or one that Magy has not written."""
    if not path.endswith(".json"):
        return None
    try:
        found = Record.model_validate_json(beginning(path))
    except ValidationError:
        return None
    return found if _is_own(common, found) else None


def _is_own(common: str, record: Record) -> bool:
    """Whether Magy can have made it. An unpacked archive brings a `.git` along, and what that says
    must not have directories removed that lie elsewhere, or are somebody's."""
    tree = record.worktree
    name = os.path.basename(tree.path)
    if tree.path != os.path.join(tree.directory, name) or below(tree.path, record.place) is None:
        return False
    if not re.search(rf"{ending(record.session)}(-\d+)?\Z", name):
        return False
    return os.path.realpath(tree.path) == tree.path and _around(tree.directory) == (
        os.path.realpath(common)
    )


def _around(place: str) -> str:
    """The git directory, shared by all worktrees, of the repository around a directory, which need
    not be there; "" for none."""
    while place != os.path.dirname(place):
        link = os.path.join(place, ".git")
        if os.path.lexists(link):
            return _common(link)
        place = os.path.dirname(place)
    return ""
