"""What an edit in any format comes to in the live files: drafts of them, and what does not fit."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from magy_server.api.places import uri_of
from magy_server.api.wire import reviews as wire
from magy_server.core.errors import MagyError, ToolError
from magy_server.core.ports import Files, Found
from magy_server.core.values import NO_FILE, Hash, Version
from magy_server.edits.model import Code, Failure, FileEdit, Hunk, Placed
from magy_server.edits.plan import plan, plan_text
from magy_server.edits.rebasing.diff import apply, counts, unified
from magy_server.edits.text import plain
from magy_server.reviews.direct_edits import Want
from magy_server.tools.files.paths import Place, resolve

MOST = 200
"""Files that one edit may touch."""


@dataclass(slots=True)
class Draft:
    """A file as it would be. `text` None: there is none; `found` is what there is now."""

    place: Place
    found: Found
    text: str | None
    op: str = "update"
    moved_from: str = ""
    kind_of: Found | None = None
    """What stood at the old place of a file that is moved."""
    notes: list[wire.EditNote] = field(default_factory=list)
    now: Version = NO_FILE
    """What it becomes; its bytes are `data`."""
    data: bytes = b""

    @property
    def before(self) -> str | None:
        return self.found.text if self.found.version.hash else None

    @property
    def idle(self) -> bool:
        return self.text == self.before and self.moved_from == ""


class Drafts:
    """Reads the files that an edit names. `failures` are of hunks and files that do not fit; the
    others are worked out all the same, so that all is said at once."""

    def __init__(self, files: Files, root: str, cwd: str, seen: str | None) -> None:
        self.failures: list[wire.EditFailure] = []
        self._files = files
        self._root = root
        self._cwd = cwd
        self._seen = seen
        self._drafts: dict[str, Draft] = {}

    @property
    def drafts(self) -> list[Draft]:
        """In the order in which they were named."""
        return [draft for draft in self._drafts.values() if not draft.idle]

    async def take(self, edits: Sequence[FileEdit]) -> None:
        paths = {edit.path for edit in edits} | {edit.to for edit in edits if edit.to}
        if len(paths) > MOST:
            self._fail("", 0, "failed", f"The edit names {len(paths)} files; Magy changes "
                f"at most {MOST} at once.")  # fmt: skip
            return
        if self._seen is not None and len(paths) > 1:
            self._fail("", 0, "failed", "`seen` gives the text of one file, but the edit names "
                       f"{len(paths)}.")  # fmt: skip
            return
        for edit in _joined(edits):
            try:
                await self._one(edit)
            except MagyError as error:
                self._fail(edit.path, 0, "failed", error.message)
        for draft in self.drafts:
            try:
                await asyncio.to_thread(self._encode, draft)
            except ToolError as error:
                self._fail(draft.place.name, 0, "failed", error.message)

    def _encode(self, draft: Draft) -> None:
        """Raises ToolError: its encoding cannot hold the text."""
        if draft.text is None:
            return
        like = draft.kind_of or draft.found
        draft.data = self._files.encode(draft.text, like.data)
        was = like.version
        draft.now = Version(hash=digest(draft.data), kind=was.kind, mode=was.mode)

    async def _one(self, edit: FileEdit) -> None:
        draft = await self._draft(edit.path)
        if (edit.to or edit.op == "delete") and os.path.islink(self._named(edit.path)):
            text = (f"{edit.path} is a symbolic link to {draft.place.name}; Magy does not "
                "remove or "
                "rename links here. Name the file itself.")  # fmt: skip
            return self._fail(edit.path, 0, "failed", text)
        if edit.op in ("update", "delete") and draft.text is None:
            special = draft.found.version.hash is not None
            why = "is not text, so Magy cannot edit it" if special else "does not exist"
            code: Code = "unknown_file"
            return self._fail(draft.place.name, 0, code, f"{draft.place.name} {why}.")
        if edit.op == "delete":
            draft.text, draft.op = None, "delete"
        elif edit.op == "update":
            await asyncio.to_thread(self._update, draft, edit.hunks)
        elif edit.op == "create" and draft.text not in (None, edit.content):
            text = f"{draft.place.name} already exists; it was not overwritten."
            return self._fail(draft.place.name, 0, "exists", text)
        else:
            await asyncio.to_thread(self._write, draft, edit)
        if edit.to:
            await self._move(draft, edit.to)
        return None

    def _update(self, draft: Draft, hunks: Sequence[Hunk]) -> None:
        assert draft.text is not None
        found = plan(draft.text, hunks, self._seen)
        if not self._take_in(draft, found.placed, found.failures):
            draft.text = apply(draft.text, found.changes)

    def _write(self, draft: Draft, edit: FileEdit) -> None:
        if draft.text is None:
            draft.text, draft.op = edit.content, "create"
            return
        draft.op = "write"
        found = plan_text(draft.text, plain(edit.content), self._seen)
        if not self._take_in(draft, found.placed, found.failures):
            draft.text = apply(draft.text, found.changes)

    def _take_in(self, draft: Draft, placed: Sequence[Placed], failures: Sequence[Failure]) -> bool:
        """Whether something failed."""
        draft.notes += [
            wire.EditNote(hunk=one.hunk, tier=one.tier, note=one.note)
            for one in placed
            if one.note or one.tier != "exact"
        ]
        for one in failures:
            self._fail(draft.place.name, one.hunk, one.code, one.message, one.lines)
        return bool(failures)

    async def _move(self, draft: Draft, to: str) -> None:
        target = await self._draft(to)
        if target.place.path == draft.place.path:
            return None
        if target.text is not None or target.found.version.hash is not None:
            text = f"{target.place.name} already exists; nothing was moved there."
            return self._fail(target.place.name, 0, "exists", text)
        target.text, target.op, target.notes = draft.text, "create", draft.notes
        target.moved_from, target.kind_of = draft.place.path, draft.found
        draft.text, draft.op, draft.notes = None, "delete", []
        return None

    async def _draft(self, path: str) -> Draft:
        """Raises ToolError: outside of the workspace, not readable."""
        place = await asyncio.to_thread(resolve, self._root, self._named(path))
        if place.path not in self._drafts:
            found = await self._files.look(self._root, place.path)
            text = found.text if found.version.hash else None
            self._drafts[place.path] = Draft(place, found, text)
        return self._drafts[place.path]

    def _named(self, path: str) -> str:
        return os.path.join(self._cwd, path).rstrip("/") or "/" if path else ""

    def _fail(
        self, path: str, hunk: int, code: str, message: str, lines: Sequence[int] = ()
    ) -> None:
        self.failures.append(
            wire.EditFailure(
                path=path, hunk=hunk, code=code, message=message, lines=list(lines[:100])
            )
        )


def _joined(edits: Sequence[FileEdit]) -> Iterator[FileEdit]:
    """Sections that update one file are one, as all of them were written for the file as it is."""
    last: FileEdit | None = None
    for edit in edits:
        plain_update = edit.op == "update" and not edit.to
        if last and plain_update and last.op == "update" and not last.to and last.path == edit.path:
            last = replace(last, hunks=last.hunks + edit.hunks)
            continue
        if last:
            yield last
        last = edit
    if last:
        yield last


def shown(draft: Draft) -> wire.EditedFile:
    before = draft.before
    if draft.kind_of is not None:
        before = draft.kind_of.text
    added, removed = counts(before or "", draft.text or "")
    return wire.EditedFile(
        path=draft.place.name,
        uri=uri_of(draft.place.path),
        op=draft.op,
        from_uri=uri_of(draft.moved_from) if draft.moved_from else None,
        added=added,
        removed=removed,
        diff=unified(before, draft.text, draft.place.name),
        notes=draft.notes,
    )


def want(draft: Draft) -> Want:
    return Want(draft.found, draft.now, draft.data, draft.moved_from)


def digest(data: bytes) -> Hash:
    return hashlib.sha256(data).hexdigest()
