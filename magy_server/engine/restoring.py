"""Files go back: what that would do, and doing it.

What is going to be done is in the log first (`Restoring`), file by file. Doing it looks at each
of them again, so that it can be begun anew at any point, by another process, too.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from magy_server.core.errors import EditorError, EditRefused, NotFound, ToolError
from magy_server.core.events import FileChange, Hash
from magy_server.core.ports import NOTHING, Files, Found, Store
from magy_server.core.takeback import Contents, Run, Taken, There, paths, take_back

ATTEMPTS = 5
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
            _change(self.live[taken.path], taken)
            for taken in self.taken
            if taken.now.version != self.live[taken.path].version
        ]

    @property
    def blobs(self) -> dict[Hash, bytes]:
        """The bytes before and after."""
        found: dict[Hash, bytes] = {}
        for taken in self.taken:
            live = self.live[taken.path]
            for there in (taken.now, There(live.version, live.data)):
                if there.version.hash:
                    found[there.version.hash] = there.data
        return found


@dataclass(slots=True)
class Performed:
    """`changes`: what each file was right before, and what it is now."""

    changes: list[FileChange] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    blobs: dict[Hash, bytes] = field(default_factory=dict)


class Restorer:
    """Of the files below one workspace root."""

    def __init__(self, files: Files, store: Store, root: str) -> None:
        self._files = files
        self._store = store
        self.root = root

    def name(self, path: str) -> str:
        """Below the root, for people and models."""
        return os.path.relpath(path, self.root)

    async def plan(self, runs: Sequence[Run]) -> Plan:
        """What taking these changes back would do now."""
        live: dict[str, Found] = {}
        problems: dict[str, str] = {}
        gone = {path for run in runs for path in _gone(run)}
        for path in paths(runs):
            try:
                live[path] = await self._look(path, path in gone)
            except ToolError as error:
                problems[path] = error.message
        contents = await self.contents(change for run in runs for change in run)
        there = {path: _there(found) for path, found in live.items()}
        taken = await asyncio.to_thread(take_back, runs, there, contents)
        return Plan(live, taken, problems, contents)

    async def perform(self, planned: Sequence[FileChange], label: str) -> Performed:
        """Makes the changes of a plan; those already made are found so. New files come first, so
        that what is moved is never nowhere; of a move both ends are made, or neither."""
        done = Performed()
        contents = await self.contents(planned)
        sources = {change.path: change for change in planned if change.after is None}
        for change in sorted(planned, key=lambda change: change.after is None):
            if change.moved_from in sources and change.path not in sources:
                source = sources.pop(change.moved_from)
                await self._move(change, source, contents, label, done)
            elif change.after is not None or change.path in sources:
                await self._make(change, contents, label, done)
        return done

    async def _move(
        self, to: FileChange, source: FileChange, contents: Contents, label: str, done: Performed
    ) -> None:
        problem = await self._stuck(source, contents)
        if not problem and not await self._make(to, contents, label, done):
            problem = done.failures[to.path]
        elif not problem and not await self._make(source, contents, label, done):
            problem = done.failures[source.path]
            if await self._make(_reverse(to), contents, label, done):
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
                done.failures[change.path] = error.message  # somebody was faster: look again
            except (EditorError, ToolError) as error:
                done.failures[change.path] = error.message
                return False
            else:
                done.failures.pop(change.path, None)
                return True
        return False

    async def _look(self, path: str, gone: bool = False) -> Found:
        return await look(self._files, self._store, self.root, path, gone)

    async def _once(
        self, change: FileChange, contents: Contents, label: str, blobs: dict[Hash, bytes]
    ) -> FileChange:
        """Raises ToolError, EditorError: why it is not made."""
        was = await self._look(change.path, change.before is None)
        wanted = _still(change, was, contents)
        if wanted.problem:
            raise ToolError(wanted.problem)
        if wanted.now.version == was.version:
            return change  # it was made before
        version, data = wanted.now.version, wanted.now.data
        try:
            now = await self._files.put(self.root, was, version, data, label)
        except EditRefused:
            raise
        except EditorError:
            now = await self._files.look(self.root, change.path)
            if now.version != version:
                raise
        for found in (was, now):
            if found.version.hash:
                blobs[found.version.hash] = found.data
        there = There(now.version, now.data)
        return _change(was, Taken(change.path, there, moved_from=change.moved_from))

    async def contents(self, changes: Iterable[FileChange]) -> Contents:
        hashes = {hash for c in changes for hash in (c.before, c.after) if hash}
        blobs = await self._store.blobs(sorted(hashes))
        return Contents(self._files.text, self._files.encode, _digest, blobs)


async def look(files: Files, store: Store, root: str, path: str, gone: bool) -> Found:
    """`gone`: the file was removed. An open buffer that has no file any more, and shows what is on
    record, then has nothing in it of the person's: there is no file. Raises ToolError."""
    found = await files.look(root, path)
    if not gone or found.version.hash is None or found.disk != NOTHING:
        return found
    with suppress(NotFound):
        await store.blob(found.version.hash)
        return replace(found, version=NOTHING, data=b"", text=None, disk=None)
    return found


def _gone(run: Run) -> set[str]:
    """The paths at which it left nothing."""
    last = {change.path: change.after for change in run}
    return {path for path, after in last.items() if after is None}


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


def _change(was: Found, taken: Taken) -> FileChange:
    return FileChange(
        path=taken.path,
        before=was.version.hash,
        after=taken.now.version.hash,
        via="editor" if was.buffer else "disk",
        was=was.version.kind,
        now=taken.now.version.kind,
        moved_from=taken.moved_from,
        mode=(was.version if was.version.hash else taken.now.version).mode,
    )


def _digest(data: bytes) -> Hash:
    return hashlib.sha256(data).hexdigest()
