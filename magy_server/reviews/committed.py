"""This module finds the hunks that were committed to git: they count as accepted."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Sequence

from magy_server.core.errors import ToolError
from magy_server.edits.rebasing.diff import blocks
from magy_server.edits.text import plain, split
from magy_server.reviews.current_review import Now
from magy_server.reviews.file_review import Side
from magy_server.reviews.review_store import ReviewStore
from magy_server.reviews.views import HunkInfo


class Commits:
    """Looks once for each commit and what is pending of a review: a program that writes the file
    may be in the middle of it."""

    def __init__(self, store: ReviewStore) -> None:
        self._store = store
        self._looked: dict[str, tuple[str, int, frozenset[str]]] = {}

    async def accepted(self, now: Now) -> tuple[str, ...]:
        """The hunks that the checked out commit has, and those did not that were checked out when
        the hunks were made: what was in a commit before anybody could see it says nothing."""
        held = now.held
        if held.proposed or not now.hunks or now.unreadable:
            return ()
        head = await self._store.files.head(held.root, held.path)
        if head is None:
            return ()
        seen = head, now.seq, frozenset(hunk.id for hunk in now.hunks)
        if self._looked.get(held.path) == seen:
            return ()
        left = [hunk for hunk in now.hunks if head not in _commits(hunk)]
        left = await self._among(now, left, head) if left else []
        for commit in {commit for hunk in left for commit in _commits(hunk)}:
            about = [hunk for hunk in left if commit in _commits(hunk)]
            had = {hunk.id for hunk in await self._among(now, about, commit, unknown=True)}
            left = [hunk for hunk in left if hunk.id not in had]
        if not left:
            self._looked[held.path] = seen
        return tuple(hunk.id for hunk in left)

    async def _among(
        self, now: Now, hunks: Sequence[HunkInfo], commit: str, unknown: bool = False
    ) -> list[HunkInfo]:
        """Those that a commit has; all (`unknown`) or none when that cannot be said."""
        held = now.held
        try:
            found = await self._store.files.committed(held.root, held.path, commit)
        except ToolError:
            return list(hunks) if unknown else []
        return await asyncio.to_thread(_has, hunks, self._store.side(found), now.live)


def _commits(hunk: HunkInfo) -> set[str]:
    return {origin.commit for origin in hunk.origins if origin.commit}


def _has(hunks: Sequence[HunkInfo], there: Side, live: Side) -> list[HunkInfo]:
    lines = _lines(there, live)
    return [hunk for hunk in hunks if (_whole(hunk, there, live) if hunk.whole else lines(hunk))]


def _whole(hunk: HunkInfo, there: Side, live: Side) -> bool:
    match hunk.kind:
        case "create" | "rename":
            return there.exists
        case "remove":
            return not there.exists
        case "mode":
            return there.exists and there.version.kind == live.version.kind
        case _:
            return there.version == live.version and there.exists


def _lines(there: Side, live: Side) -> Callable[[HunkInfo], bool]:
    """Whether the committed text has the lines of a hunk, or lacks those that were removed."""
    if not (there.exists and live.exists) or there.lines is None or live.lines is None:
        same = there.exists is live.exists and there.data == live.data
        return lambda hunk: same
    changes = blocks(split(plain("".join(there.lines))), [plain(line) for line in live.lines])
    ends = [d for _, _, _, d in changes]

    def test(hunk: HunkInfo) -> bool:
        for number in range(bisect_left(ends, hunk.start), len(changes)):
            _, _, c, d = changes[number]
            if c > hunk.end:
                break
            if hunk.start == hunk.end:
                return False
            if max(c, hunk.start) < min(d, hunk.end) or hunk.start < c == d < hunk.end:
                return False
        return True

    return test
