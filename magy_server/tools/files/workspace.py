"""`WorkspaceFiles` reads and writes files as the person sees them: an open buffer is the file
(`core.ports.Files`)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Hashable, Sequence
from contextlib import suppress
from dataclasses import replace

from magy_server.core.errors import EditRefused, ToolError, Undecodable
from magy_server.core.ports import Buffer, Editor, Found, Put
from magy_server.core.values import Version, digest
from magy_server.edits.rebasing.diff import changes
from magy_server.edits.text import plain
from magy_server.tasks import to_end
from magy_server.tools.files import disk, versions
from magy_server.tools.files.change import busy
from magy_server.tools.files.commits import Commits
from magy_server.tools.files.encodings import decode, encode, text_of
from magy_server.tools.files.live_file import (
    Base,
    behind,
    last_alike,
    load,
    rebased,
    refilled,
    saved,
)
from magy_server.tools.files.marks import marks_of
from magy_server.tools.files.paths import Place
from magy_server.tools.files.versions import placed


class WorkspaceFiles:
    def __init__(self, editor: Editor, commits: Commits) -> None:
        self._editor = editor
        self._commits = commits

    def text(self, data: bytes) -> str | None:
        return text_of(data)

    def encode(self, text: str, like: bytes) -> bytes:
        try:
            encoding = decode(like, "")[1]
        except ToolError:
            return text.encode()
        return encode(text, encoding, "the file")

    async def look(self, root: str, path: str, without: Collection[str] | None = None) -> Found:
        place = placed(root, path)
        return await self._found(root, path, await self._base(place), without)

    async def _found(
        self, root: str, path: str, base: Base | None, without: Collection[str] | None = None
    ) -> Found:
        if base is not None and base.before is None:
            return Found(path, buffer=base.buffer)
        there, data = await asyncio.to_thread(versions.look, root, path, without)
        if base is None or base.before is None:
            return self._holding(path, there, data)
        version = Version(hash=digest(base.before), kind=there.kind, mode=there.mode)
        unsaved = there if base.unsaved else None
        return self._holding(path, version, base.before, base.buffer, unsaved)

    def _holding(
        self,
        path: str,
        version: Version,
        data: bytes,
        buffer: Buffer | None = None,
        disk: Version | None = None,
    ) -> Found:
        text = self.text(data) if version.hash and version.kind != "link" else None
        return Found(path, version, data, text, buffer, disk)

    async def put(self, root: str, was: Found, now: Version, data: bytes, label: str) -> Put:
        place = placed(root, was.path)
        async with busy(place.path):
            base = await self._base(place)
            without = () if was.version.hash is None else None
            found = await self._found(root, was.path, base, without)
            if _left(was, found):
                found = replace(was, buffer=found.buffer)
            if base is not None and self.text(data) is not None and _rewritten(was, found, now):
                seen = found if found.version == was.version else was
                return await self._edited(base, seen, found, now, data, label)
            if found.version != was.version:
                raise EditRefused(f"{place.name} has changed in the meantime.", reason="stale")
            if now != found.version:
                await self._put(place, found, now, data, label)
            made = now if now.hash is None else (await self.look(root, was.path)).version
            made = now.model_copy(update={"mode": made.mode}) if made == now else now
            return Put(found, self._holding(was.path, made, data))

    async def _put(self, place: Place, found: Found, now: Version, data: bytes, label: str) -> None:
        buffer, editor = found.buffer, self._editor
        if buffer is None:
            shown = None if _foreign(found) else editor.buffer(place.path)
            if shown is not None and not behind(place.path, shown.text):
                raise EditRefused(f"{place.name} was opened in the editor.", reason="stale")
            return await _on_disk(place, found.version, now, data)
        if found.version.hash is None:  # the buffer follows, but what is there is what is on disk
            text = self.text(data) if now.kind != "link" else None
            if text is None:
                return await _on_disk(place, found.version, now, data)
            async with refilled(editor, place, buffer, plain(text), label):
                return await _on_disk(place, found.version, now, data)
        if editor.buffer(place.path) != buffer:
            raise EditRefused(f"{place.name} was changed in the editor.", reason="stale")
        if found.disk is not None:
            raise ToolError(
                f"{place.name} has unsaved changes in the editor. Save or discard them first; "
                "nothing was changed."
            )
        return await _on_disk(place, found.version, now, data)

    async def _edited(
        self, base: Base, seen: Found, found: Found, now: Version, data: bytes, label: str
    ) -> Put:
        """Through the buffer, which is saved if it was the same as the disk before. `seen` is what
        the change was worked out for."""
        assert found.buffer is not None
        was = seen.buffer.text if seen.buffer else seen.text or ""
        wanted = changes(was, plain(decode(data, base.place.name)[0]), 0, len(was))
        sent, text, shown = await rebased(self._editor, base.place, was, wanted, label)
        kept = found.version.model_copy(update={"kind": now.kind})
        sides = seen.data, data
        if plain(sent.text) != plain(was):
            with suppress(ToolError):  # what was typed does not fit the file's encoding
                sides = base.to_disk(sent.text), base.to_disk(text)
        led = Put(
            self._holding(found.path, _hashed(found.version, sides[0]), sides[0], sent, found.disk),
            self._holding(found.path, _hashed(kept, sides[1]), sides[1]),
        )
        same = found.disk is None and sent.text == found.buffer.text
        meant = text != sent.text and plain(shown.text) == plain(text)
        if same and meant and (there := await saved(self._editor, base, shown)) is not None:
            version = _hashed(kept, there)
            led = replace(led, now=self._holding(found.path, version, there))
        if now.kind != found.version.kind and same:
            on_disk = await asyncio.to_thread(disk.read, base.place) or b""
            before = _hashed(found.version, on_disk)
            await _on_disk(base.place, before, _hashed(kept, on_disk), on_disk)
        return led

    async def _base(self, place: Place) -> Base | None:
        """None when the file is not open, or has no text: a directory is in its place, or bytes
        that the editor shows as if they were text, which damages them. Raises ToolError."""
        await self._editor.look(place.path)
        if self._editor.buffer(place.path) is None:
            return None
        if await asyncio.to_thread(os.path.isdir, place.path):
            return None
        try:
            return await load(self._editor, place)
        except Undecodable:
            return None

    async def marks(self, places: Sequence[tuple[str, str]]) -> Sequence[Hashable | None]:
        if not places or not self._editor.tells:
            return [None for _ in places]
        opened = set(self._editor.open_paths())
        shown = [self._shown(path) if path in opened else None for _, path in places]
        paths = [path for _, path in places]
        marks = await asyncio.to_thread(marks_of, paths)
        heads = await self._commits.heads(places)
        found = zip(marks, shown, heads, strict=True)
        return [None if mark is None else (mark, text, head) for mark, text, head in found]

    def _shown(self, path: str) -> Hashable:
        """What an open buffer makes of the file on disk depends on that."""
        buffer = self._editor.buffer(path)
        return buffer and (buffer.version, buffer.text, last_alike(path))

    async def head(self, root: str, path: str) -> str | None:
        return await self._commits.head(root, path)

    async def committed(self, root: str, path: str, commit: str) -> Found:
        return await self._commits.committed(root, path, commit)


def _rewritten(was: Found, found: Found, now: Version) -> bool:
    """It is a matter of the text of an open buffer, from the text that was looked at."""
    sides = (was.version, found.version, now)
    if not (found.buffer and all(one.hash for one in sides)) or now.kind == "link":
        return False
    if found.version == was.version:
        return True
    return was.text is not None and was.version.kind == found.version.kind == now.kind


def _foreign(found: Found) -> bool:
    """There is a file, and it is no text."""
    return found.version.hash is not None and found.text is None


def _hashed(version: Version, data: bytes) -> Version:
    return version.model_copy(update={"hash": digest(data)})


def _left(was: Found, found: Found) -> bool:
    """The buffer that the caller saw as no file is there still, and no file is."""
    gone = was.version.hash is None and found.disk == Version()
    return gone and bool(was.buffer and found.buffer and was.buffer.text == found.buffer.text)


async def _on_disk(place: Place, was: Version, now: Version, data: bytes) -> None:
    await to_end(asyncio.to_thread(versions.put, place.root, place.path, was, now, data))
