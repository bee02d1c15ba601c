"""Magy writes down in the repository that there is a worktree before it makes it, and strikes that
out after it has removed all of it: so none is ever left that nobody knows of.
"""

from __future__ import annotations

import os
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
    worktree. `made`: it is complete; until then no agent has worked in it."""

    session: str
    root: str
    place: str
    worktree: Worktree
    made: bool = False

    @property
    def name(self) -> str:
        """Returns what people call it."""
        return os.path.basename(self.worktree.path)


def folder(common: str) -> str:
    """Returns the directory of the records. `common`: the git directory that worktrees share."""
    return os.path.join(common, FOLDER, "worktrees")


def all_of(common: str) -> Sequence[Record]:
    """Returns the records, by name. Blocks."""
    names: list[str] = []
    with suppress(OSError):
        names = sorted(os.listdir(folder(common)))
    found = (_read(os.path.join(folder(common), name)) for name in names)
    return [record for record in found if record]


def of(common: str, worktree: Worktree) -> Record | None:
    """Returns the record of a worktree; None: there is nothing of it. Blocks."""
    return _read(_path(common, worktree))


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
    at = place
    while at != os.path.dirname(at):
        link = os.path.join(at, ".git")
        if os.path.lexists(link):
            common = _common(link)
            found = all_of(common) if common else ()
            return next((one.root for one in found if one.place == place), "")
        at = os.path.dirname(at)
    return ""


def _common(link: str) -> str:
    """The shared git directory that the `.git` of a linked worktree leads to; "" if it is none."""
    said = os.fsdecode(beginning(link))
    if not said.startswith("gitdir: "):
        return ""
    own = os.path.join(os.path.dirname(link), said.removeprefix("gitdir: ").strip())
    shared = os.fsdecode(beginning(os.path.join(own, "commondir"))).strip()
    return os.path.normpath(os.path.join(own, shared)) if shared else ""


def _path(common: str, worktree: Worktree) -> str:
    return os.path.join(folder(common), f"{os.path.basename(worktree.path)}.json")


def _read(path: str) -> Record | None:
    if not path.endswith(".json"):
        return None
    try:
        found = Record.model_validate_json(beginning(path))
    except ValidationError:
        return None
    return found if below(found.worktree.path, found.place) is not None else None
