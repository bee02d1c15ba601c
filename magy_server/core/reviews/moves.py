"""A moved file is two changes, one at each path; this module finds which belong together."""

from __future__ import annotations

from collections.abc import Iterable

from magy_server.core.values import FileChange


def moves(changes: Iterable[FileChange]) -> dict[str, str]:
    """Returns the path that each moved file had, by the path that it gets, where both ends are
    among `changes`."""
    changes = tuple(changes)
    gone = {change.path for change in changes if change.after is None}
    come = (change for change in changes if change.before is None and change.after is not None)
    return {change.path: change.moved_from for change in come if change.moved_from in gone}
