"""These functions show what happened to files, or would: as counts of lines, and as a diff."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from magy_server.core.reviews.undo_merge import Contents, There, net, version
from magy_server.core.values import FileChange
from magy_server.dataclass import dataclass
from magy_server.edits.rebasing.diff import counts, unified

Action = Literal["create", "change", "remove", "nothing"]


@dataclass(frozen=True, slots=True)
class FileCount:
    """What a turn did to a file, in lines; for a file that is no text, 0 and 0. `state`: whether it
    still does."""

    path: str
    added: int
    removed: int
    state: Literal["applied", "undone", "partly"] = "applied"


@dataclass(frozen=True, slots=True)
class FileChanged:
    """What going back does to a file. With a `conflict`, a sentence, it is left alone."""

    path: str
    action: Action
    diff: str = ""
    """Unified; "" for what is no text."""
    added: int = 0
    removed: int = 0
    conflict: str = ""


def counted(changes: Sequence[FileChange], contents: Contents) -> tuple[FileCount, ...]:
    added, removed = Counter[str](), Counter[str]()
    for one in net([changes]):
        old, new = (_text(contents.there(side), contents) for side in (one.before, one.after))
        more, less = counts(old, new) if old is not None and new is not None else (0, 0)
        added[one.path] += more
        removed[one.path] += less
    return tuple(FileCount(path, added[path], removed[path]) for path in sorted(added))


def _text(there: There | None, contents: Contents) -> str | None:
    """ "" of nothing; None of what is no text."""
    if there is None or there.version.kind == "link":
        return None
    return contents.text(there.data) if there.version.hash else ""


def shown(change: FileChange, contents: Contents, name: str) -> FileChanged:
    before = contents.there(version(change.before, change.was))
    after = contents.there(version(change.after, change.now))
    old, new = _text(before, contents), _text(after, contents)
    action: Action = "change"
    if change.before is None:
        action = "create"
    elif change.after is None:
        action = "remove"
    if old is None or new is None:
        return FileChanged(change.path, action)
    diff = unified(old if change.before else None, new if change.after else None, name)
    added, removed = counts(old, new)
    return FileChanged(change.path, action, diff, added, removed)
