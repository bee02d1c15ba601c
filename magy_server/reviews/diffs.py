"""These functions show what happened to files, or would: as counts of lines, and as a diff."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Literal

from magy_server.core.reviews.moves import moves
from magy_server.core.reviews.undo_merge import Contents, There, net, version
from magy_server.core.values import FileChange
from magy_server.dataclass import dataclass
from magy_server.edits.rebasing.diff import counts, unified

Action = Literal["create", "change", "remove", "rename", "nothing"]


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
    """What going back does to a file. With a `conflict`, a sentence, it is left alone.

    A file that is renamed is said once, by the path that it gets; `moved_from` is the other."""

    path: str
    action: Action
    moved_from: str = ""
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


def shown(
    changes: Iterable[FileChange], contents: Contents, name: Callable[[str], str]
) -> list[FileChanged]:
    """`name`: how a path is called in a diff."""
    changes = tuple(changes)
    at = {change.path: change for change in changes}
    origins = moves(changes)
    told = set(origins.values())
    return [
        _shown(change, at.get(origins.get(change.path, "")), contents, name)
        for change in changes
        if change.path not in told
    ]


def _shown(
    change: FileChange, origin: FileChange | None, contents: Contents, name: Callable[[str], str]
) -> FileChanged:
    source = origin or change
    before = contents.there(version(source.before, source.was))
    after = contents.there(version(change.after, change.now))
    old, new = _text(before, contents), _text(after, contents)
    found = FileChanged(change.path, _action(change, origin), origin.path if origin else "")
    if old is None or new is None:
        return found
    called, was = name(change.path), name(source.path)
    body = unified(old if source.before else None, new if change.after else None, called, old=was)
    head = _head(was, called) if origin else ""
    added, removed = counts(old, new)
    return replace(found, diff=head + body, added=added, removed=removed)


def _head(was: str, called: str) -> str:
    """As git has it above the diff of a renamed file."""
    # With it come all formats of edits, which a turn may never need.
    from magy_server.edits.formats.diff_names import quoted

    return f"rename from {quoted(was)}\nrename to {quoted(called)}\n"


def _action(change: FileChange, origin: FileChange | None) -> Action:
    if origin:
        return "rename"
    if change.before is None:
        return "create"
    return "remove" if change.after is None else "change"
