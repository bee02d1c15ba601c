"""`Drafts` works out what an edit in any format makes of the live files, and what does not fit."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import groupby

from magy_server.api.edits.files_in_memory import Fault, File, Refused, Tree
from magy_server.api.places import uri_of
from magy_server.api.wire import reviews as wire
from magy_server.core.errors import MagyError, ToolError
from magy_server.core.ports import Files, Found
from magy_server.core.values import NO_FILE, Version, digest
from magy_server.edits.model import FileEdit
from magy_server.edits.rebasing.diff import counts, unified
from magy_server.reviews.direct_edits import Want
from magy_server.tools.files.encodings import decode
from magy_server.tools.files.paths import Place, resolve

MOST = 200
"""Files that one edit may touch."""


class Drafts:
    """Reads the files that an edit names. `failures` says which hunks and files do not fit; the
    others are worked out all the same, so that the person hears of everything at once."""

    def __init__(self, files: Files, root: str, cwd: str, seen: str | None) -> None:
        self.failures: list[wire.EditFailure] = []
        self._files = files
        self._root = root
        self._cwd = cwd
        self._seen = seen
        self._places: dict[str, Place | MagyError] = {}
        self._found: dict[str, Found] = {}
        self._tree = Tree(self._place, self._load, self._linked, seen, creates=False)

    @property
    def files(self) -> list[File]:
        """Returns the files that change; a renamed one comes after the file that it was."""
        changed = self._tree.changed()
        both = [one for file in changed for one in (file.moved_from, file) if one]
        return list({one.place.path: one for one in both}.values())

    async def take(self, edits: Sequence[FileEdit]) -> None:
        paths = {edit.path for edit in edits} | {edit.to for edit in edits if edit.to}
        if len(paths) > MOST:
            text = f"The edit names {len(paths)} files; Magy changes at most {MOST} at once."
            return self.refuse(Fault("", "failed", text))
        if self._seen is not None and len(paths) > 1:
            text = f"`seen` gives the text of one file, but the edit names {len(paths)}."
            return self.refuse(Fault("", "failed", text))
        for path in paths:
            try:
                self._places[path] = await self._looked_at(path)
            except MagyError as error:
                self._places[path] = error
        return self.refuse(*await asyncio.to_thread(self._tree.apply, _joined(edits)))

    def refuse(self, *faults: Fault) -> None:
        self.failures += [
            wire.EditFailure(
                path=one.path,
                hunk=one.hunk or 0,
                code="failed" if one.code == "refused" else one.code,
                message=one.message,
                lines=list(one.lines[:100]),
            )
            for one in faults
        ]

    async def _looked_at(self, path: str) -> Place:
        """Raises MagyError: outside of the workspace, not readable."""
        place = await asyncio.to_thread(resolve, self._root, self._named(path))
        if place.path not in self._found:
            self._found[place.path] = await self._files.look(self._root, place.path)
        return place

    def _place(self, path: str) -> Place:
        place = self._places[path]
        if isinstance(place, MagyError):
            raise ToolError(place.message)
        return place

    def _load(self, place: Place) -> File:
        found = self._found[place.path]
        file = File(place, found.version, found.data, 0)
        if found.version.hash is None:
            return file
        if found.text is None:
            text = f"{place.name} is not text, so Magy cannot edit it."
            raise Refused(Fault(place.name, "unknown_file", text))
        with suppress(ToolError):
            file.encoding = decode(found.data, place.name)[1]
        file.before = file.after = found.text
        return file

    def _linked(self, path: str, place: Place) -> bool:
        return os.path.islink(self._named(path))

    def _named(self, path: str) -> str:
        return os.path.join(self._cwd, path).rstrip("/") or "/" if path else ""

    def wants(self) -> list[Want]:
        return [self._want(file) for file in self.files]

    def _want(self, file: File) -> Want:
        found, origin = self._found[file.place.path], file.moved_from or file
        if file.after is None:
            return Want(found, NO_FILE)
        data = file.content
        now = Version(hash=digest(data), kind=origin.was.kind, mode=origin.was.mode)
        return Want(found, now, data, origin.place.path if file.moved_from else "")


def _joined(edits: Sequence[FileEdit]) -> Iterator[FileEdit]:
    """Joins the sections that update one file, as all of them were written for the file as it
    is."""
    for _, sections in groupby(edits, lambda e: id(e) if e.op != "update" or e.to else e.path):
        first, *more = sections
        yield replace(first, hunks=(*first.hunks, *(hunk for one in more for hunk in one.hunks)))


def shown(file: File) -> wire.EditedFile:
    added, removed = counts(file.before or "", file.after or "")
    return wire.EditedFile(
        path=file.place.name,
        uri=uri_of(file.place.path),
        op=_op(file),
        from_uri=uri_of(file.moved_from.place.path) if file.moved_from else None,
        added=added,
        removed=removed,
        diff=unified(file.before, file.after, file.place.name),
        notes=[
            wire.EditNote(hunk=one.hunk, tier=one.tier, note=one.note)
            for one in file.placed
            if one.note or one.tier != "exact"
        ],
    )


def _op(file: File) -> str:
    """A file that is renamed is removed at one place and made at another."""
    if file.after is None:
        return "delete"
    if file.moved_from or file.was.hash is None:
        return "create"
    return "write" if file.whole else "update"
