"""The restorer puts files back, and tells beforehand what that would do.

What is going to be done is in the log first (`Restoring`), file by file. Doing it looks at each
of them again, so that it can be begun anew at any point, by another process, too.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import PurePath

from magy_server.core.errors import EditorError, EditRefused, ToolError
from magy_server.core.ports import Files, Found, Put, Store
from magy_server.core.reviews.undo_merge import Contents, Run, Taken, There, paths, take_back
from magy_server.core.values import NO_FILE, FileChange, Hash, Version
from magy_server.dataclass import dataclass

ATTEMPTS = 20
"""How often a file is looked at again because somebody changed it at this very moment."""


@dataclass(frozen=True, slots=True)
class Plan:
    """`live`: what is there now; `taken`: what it would become. `problems`: paths that cannot even
    be looked at, with a sentence."""

    live: Mapping[str, Found]
    taken: Sequence[Taken]
    problems: Mapping[str, str]
    contents: Contents

    @property
    def conflicts(self) -> dict[str, str]:
        return {**self.problems, **{t.path: t.problem for t in self.taken if t.problem}}

    @property
    def changes(self) -> list[FileChange]:
        return [
            change_of(self.live[taken.path], taken.now.version, taken.moved_from)
            for taken in self.taken
            if taken.now.version != self.live[taken.path].version
        ]

    @property
    def blobs(self) -> dict[Hash, bytes]:
        """The bytes before and after."""
        return bytes_of(side for taken in self.taken for side in (taken.now, self.live[taken.path]))


@dataclass(slots=True)
class Performed:
    """`changes`: what each file was right before, and what it is now."""

    changes: list[FileChange] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    blobs: dict[Hash, bytes] = field(default_factory=dict)


class Restorer:
    """Restores the files below one workspace root."""

    def __init__(self, files: Files, store: Store, root: str) -> None:
        self._files = files
        self._store = store
        self._removed: Mapping[str, Collection[Hash | None]] = {}
        self.root = root

    def name(self, path: str) -> str:
        """Below the root, for people and models."""
        return os.path.relpath(path, self.root)

    async def plan(self, runs: Sequence[Run], moves: Run = ()) -> Plan:
        """What taking these changes back would do now. `moves`: as `take_back` wants them."""
        self._removed = _removed(runs)
        contents = await self.contents(change for run in runs for change in run)
        without = _below(paths(runs))
        while True:
            live, problems = await self._all(paths(runs), without)
            there = {path: _there(found) for path, found in live.items()}
            taken = await asyncio.to_thread(take_back, runs, there, contents, moves)
            gone = {one.path for one in taken if one.now.version == NO_FILE}
            if without <= gone:
                return Plan(live, taken, problems, contents)
            without &= gone  # what stays leaves no room for a file

    async def _all(
        self, paths: Sequence[str], without: Collection[str]
    ) -> tuple[dict[str, Found], dict[str, str]]:
        """What is there, and why it cannot be said."""
        live: dict[str, Found] = {}
        problems: dict[str, str] = {}
        for path in paths:
            try:
                held = self._removed.get(path)
                live[path] = await self._look(path, held or (), None if held is None else without)
            except ToolError as error:
                problems[path] = error.message
        return live, problems

    async def perform(self, planned: Sequence[FileChange], label: str) -> Performed:
        """Makes the changes of a plan; those already made are found so. Of a move both ends are
        made, or neither."""
        done = Performed()
        contents = await self.contents(planned)
        left = {change.path: change for change in planned}
        ends = _ends(planned)
        order = turns({change.path: change.after is None for change in planned})
        for path in sorted(left, key=order.__getitem__):
            change = left.pop(path, None)
            if change is None:
                continue  # made with the other end of its move
            other = left.pop(ends.get(path, ""), None)
            if other is None:
                await self._make(change, contents, label, done)
            elif other.after is None:
                await self._move(change, other, contents, label, done)
            else:
                await self._move(other, change, contents, label, done)
        return done

    async def _move(
        self, to: FileChange, source: FileChange, contents: Contents, label: str, done: Performed
    ) -> None:
        problem = await self._stuck(source, contents)
        nested = _below([to.path, source.path])
        first, last = (source, to) if nested else (to, source)  # never nowhere, if it can be
        if not problem and not await self._make(first, contents, label, done):
            problem = done.failures[first.path]
        elif not problem and not await self._make(last, contents, label, done):
            problem = done.failures[last.path]
            if await self._make(_reverse(first), contents, label, done):
                del done.changes[-2:]
        if problem:
            done.failures |= {to.path: problem, source.path: problem}

    async def _stuck(self, source: FileChange, contents: Contents) -> str:
        """Why the file cannot go from its place; "" where nothing is known to be in the way."""
        try:
            return _still(source, await self._look(source.path), contents).problem
        except ToolError as error:
            return error.message

    async def _make(
        self, change: FileChange, contents: Contents, label: str, done: Performed
    ) -> bool:
        for _ in range(ATTEMPTS):
            try:
                done.changes.append(await self._once(change, contents, label, done.blobs))
            except EditRefused as error:
                done.failures[change.path] = error.message
                if error.final:
                    return False  # else somebody was faster: look again
            except (EditorError, ToolError) as error:
                done.failures[change.path] = error.message
                return False
            else:
                done.failures.pop(change.path, None)
                return True
        return False

    async def _look(
        self,
        path: str,
        held: Collection[Hash | None] = (),
        without: Collection[str] | None = None,
    ) -> Found:
        return await look(self._files, self.root, path, held, without)

    async def _once(
        self, change: FileChange, contents: Contents, label: str, blobs: dict[Hash, bytes]
    ) -> FileChange:
        """Raises ToolError, EditorError: why it is not made."""
        held = {change.after, *self._removed.get(change.path, ())} if not change.before else ()
        was = await self._look(change.path, held, None if change.before else ())
        wanted = _still(change, was, contents)
        if wanted.problem:
            raise ToolError(wanted.problem)
        if wanted.now.version == was.version:
            return change  # it was made before
        version, data = wanted.now.version, wanted.now.data
        put = await put_or_found(self._files, self.root, was, version, data, label)
        blobs |= bytes_of((put.was, put.now))
        return change_of(put.was, put.now.version, change.moved_from)

    async def contents(self, changes: Iterable[FileChange]) -> Contents:
        hashes = {hash for c in changes for hash in (c.before, c.after) if hash}
        blobs = await self._store.blobs(sorted(hashes))
        return Contents(self._files.text, self._files.encode, blobs)


async def look(
    files: Files,
    root: str,
    path: str,
    held: Collection[Hash | None],
    without: Collection[str] | None = None,
) -> Found:
    """`held`: what a file that was removed held then, and what is to come back. An open buffer that
    has no file any more and shows just that has nothing in it of the person's: there is no file.
    That a text is on record says nothing: what somebody reads is, too. `without`: as
    `Files.look` wants it. Raises ToolError."""
    found = await files.look(root, path, without)
    if adrift(found) and found.version.hash in held:
        return replace(found, version=NO_FILE, data=b"", text=None, disk=None)
    return found


def turns(goes: Mapping[str, bool]) -> dict[str, int]:
    """Returns the order in which to put several files, of which some go. New files come first, so
    that what is moved is never nowhere; but where one path lies below another, what goes makes
    way."""
    new = {path for path, gone in goes.items() if not gone}
    above = {up for path in new for up in _above(path)}
    way = {path for path in goes if path in above or not new.isdisjoint(_above(path))}
    return {path: 1 if path in new else 0 if path in way else 2 for path in goes}


def _ends(planned: Iterable[FileChange]) -> dict[str, str]:
    """For each end of a move, its other end."""
    planned = tuple(planned)
    gone = {change.path for change in planned if change.after is None}
    found: dict[str, str] = {}
    for change in planned:
        if change.after is not None and change.moved_from in gone:
            found |= {change.path: change.moved_from, change.moved_from: change.path}
    return found


def _below(paths: Collection[str]) -> set[str]:
    """Those that lie below another of them."""
    all = set(paths)
    return {path for path in all if not all.isdisjoint(_above(path))}


def _above(path: str) -> list[str]:
    return [str(up) for up in PurePath(path).parents]


def adrift(found: Found) -> bool:
    """Returns whether a text is only in an open buffer, with no file on disk."""
    return found.version.hash is not None and found.disk == NO_FILE


def _removed(runs: Sequence[Run]) -> Mapping[str, Collection[Hash | None]]:
    """By path at which a run left nothing: what was there last, and what was there at first."""
    first = {change.path: change.before for run in reversed(runs) for change in reversed(run)}
    found: dict[str, set[Hash | None]] = {}
    for run in runs:
        for path, last in {change.path: change for change in run}.items():
            if last.after is None:
                found.setdefault(path, {first[path]}).add(last.before)
    return found


def _there(found: Found) -> There:
    return There(found.version, found.data, unsaved=found.disk is not None)


def _still(change: FileChange, found: Found, contents: Contents) -> Taken:
    """What a planned change comes to in what is there now: to make it is to take its reverse
    back."""
    (taken,) = take_back([[_reverse(change)]], {found.path: _there(found)}, contents)
    return taken


def _reverse(change: FileChange) -> FileChange:
    return FileChange(
        path=change.path,
        before=change.after,
        after=change.before,
        was=change.now,
        now=change.was,
        mode=change.mode,
    )


def change_of(found: Found, now: Version, moved_from: str = "") -> FileChange:
    """What makes `now` of what was found, for the log."""
    was = found.version
    return FileChange(
        path=found.path,
        before=was.hash,
        after=now.hash,
        via="editor" if found.buffer and now.hash else "disk",
        was=was.kind,
        now=now.kind,
        moved_from=moved_from,
        mode=(was if was.hash else now).mode,
    )


def bytes_of(sides: Iterable[Found | There]) -> dict[Hash, bytes]:
    """Returns the contents by hash, for the log."""
    return {side.version.hash: side.data for side in sides if side.version.hash}


async def put_or_found(
    files: Files, root: str, was: Found, now: Version, data: bytes, label: str
) -> Put:
    """Does what `Files.put` does; if that fails and yet the file is as wanted, it counts as
    done."""
    try:
        return await files.put(root, was, now, data, label)
    except EditRefused:
        raise
    except (ToolError, EditorError):
        there = await files.look(root, was.path)
        if there.version != now:
            raise
        return Put(was, there)
