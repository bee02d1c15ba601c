"""The files of a workspace as the person sees them: an open buffer is the file
(`core.ports.Files`)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection
from dataclasses import replace

from magy_server.core.errors import EditRefused, ToolError
from magy_server.core.ports import Editor, Found
from magy_server.core.values import Version
from magy_server.edits.diff import changes
from magy_server.edits.text import plain
from magy_server.tools import disk, versions
from magy_server.tools.change import busy
from magy_server.tools.commits import Commits
from magy_server.tools.live import Base, load, refilled
from magy_server.tools.paths import Place, below
from magy_server.tools.patience import to_end
from magy_server.tools.text import decode, digest, encode


class WorkspaceFiles:
    """`editor` None: no buffers are open anywhere."""

    def __init__(self, editor: Editor | None, commits: Commits) -> None:
        self._editor = editor
        self._commits = commits

    def text(self, data: bytes) -> str | None:
        try:
            return decode(data, "")[0]
        except ToolError:
            return None

    def encode(self, text: str, like: bytes) -> bytes:
        try:
            encoding = decode(like, "")[1]
        except ToolError:
            return text.encode()
        return encode(text, encoding, "the file")

    async def look(self, root: str, path: str, without: Collection[str] | None = None) -> Found:
        place = _place(root, path)
        base = await self._base(place)
        if base is not None and base.before is None:
            return Found(path, buffer=base.buffer)
        there, data = await asyncio.to_thread(versions.look, root, path, without)
        if base is None or base.before is None:
            text = self.text(data) if there.hash and there.kind != "link" else None
            return Found(path, there, data, text)
        data = base.before
        version = Version(hash=digest(data), kind=there.kind, mode=there.mode)
        unsaved = there if base.unsaved else None
        return Found(path, version, data, self.text(data), base.buffer, unsaved)

    async def put(self, root: str, was: Found, now: Version, data: bytes, label: str) -> Found:
        place = _place(root, was.path)
        async with busy(place.path):
            found = await self.look(root, was.path, () if was.version.hash is None else None)
            if _left(was, found):
                found = replace(was, buffer=found.buffer)
            if found.version != was.version:
                raise EditRefused(f"{place.name} has changed meanwhile.", reason="stale")
            if now != found.version:
                await self._put(place, found, now, data, label)
            return await self.look(root, was.path)

    async def _put(self, place: Place, found: Found, now: Version, data: bytes, label: str) -> None:
        base = await self._base(place)
        if base is None or base.buffer is None or self._editor is None:
            return await _on_disk(place, found.version, now, data)
        if found.version.hash is None:  # the buffer follows, but what is there is what is on disk
            text = self.text(data) if now.kind != "link" else None
            if text is None or found.buffer is None:
                return await _on_disk(place, found.version, now, data)
            async with refilled(self._editor, place, found.buffer, plain(text), label):
                return await _on_disk(place, found.version, now, data)
        if now.hash is None or now.kind == "link":
            if base.unsaved:
                raise ToolError(
                    f"{place.name} has changes in the editor that are not saved. Save or drop them "
                    "first; nothing was changed."
                )
            return await _on_disk(place, found.version, now, data)
        if now.hash != found.version.hash:
            await self._edit(self._editor, base, data, label)
        if now.kind != found.version.kind and not base.unsaved:
            kept = await asyncio.to_thread(disk.read, place) or b""
            was = Version(hash=digest(kept), kind=found.version.kind)
            await _on_disk(place, was, Version(hash=was.hash, kind=now.kind), kept)
        return None

    async def _edit(self, editor: Editor, base: Base, data: bytes, label: str) -> None:
        """Through the buffer, which is saved if it was the same as the disk before."""
        assert base.buffer is not None
        new = plain(decode(data, base.place.name)[0])
        edits = changes(base.raw, new, 0, len(base.raw))
        now = await editor.apply(base.buffer, edits, label)
        if not base.unsaved and plain(now.text) == new:
            await editor.save(base.place.path)

    async def _base(self, place: Place) -> Base | None:
        """None when the file is not open, or a directory is in its place."""
        if self._editor is None or self._editor.buffer(place.path) is None:
            return None
        if await asyncio.to_thread(os.path.isdir, place.path):
            return None
        return await load(self._editor, place)

    async def head(self, root: str, path: str) -> str | None:
        return await self._commits.head(root, path)

    async def committed(self, root: str, path: str, commit: str) -> Found:
        return await self._commits.committed(root, path, commit)


def _left(was: Found, found: Found) -> bool:
    """The buffer that the caller saw as no file is there still, and no file is."""
    gone = was.version.hash is None and found.disk == Version()
    return gone and bool(was.buffer and found.buffer and was.buffer.text == found.buffer.text)


async def _on_disk(place: Place, was: Version, now: Version, data: bytes) -> None:
    await to_end(asyncio.to_thread(versions.put, place.root, place.path, was, now, data))


def _place(root: str, path: str) -> Place:
    """Raises ToolError for a path outside."""
    name = below(root, path)
    if name is None:
        raise ToolError(f"{path} is not below {root}.")
    return Place(root, path, name)
