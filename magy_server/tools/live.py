"""A file as an edit finds it: what the disk holds, and what an open buffer holds.

These are two facts. An open buffer is the file, unsaved changes included; but whether there is a
file at all, the disk says.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace

from magy_server.core.errors import EditorError, ToolError
from magy_server.core.events import Hash
from magy_server.core.ports import Buffer, Editor
from magy_server.core.tool import Proposal
from magy_server.edits.diff import changes
from magy_server.edits.text import plain, usual_end
from magy_server.tools import disk
from magy_server.tools.paths import Place, missing
from magy_server.tools.text import Encoding, decode, digest, encode

KNOWN = 1000
"""Open files of which is remembered what they last held on disk."""

_clean: dict[str, Hash] = {}
"""By path: the plain text that an open buffer and the disk both had when they were last the same.
A buffer that still shows it when the file is gone has no edit of the person's in it."""


@dataclass(frozen=True, slots=True)
class Base:
    """A file as it was when a change was worked out. `raw` is the live text (the buffer's if the
    file is open), or what it is already proposed to be. `before` is the live text as bytes for the
    disk, None when the file does not exist."""

    place: Place
    raw: str
    encoding: Encoding
    before: bytes | None
    buffer: Buffer | None = None
    unsaved: bool = False
    """The buffer holds something else than the disk."""
    gone: bool = False
    """The file was removed from the disk, and the buffer only shows what it held: there is none."""
    end: str = ""
    """The line end to write on disk for every `\\n` of a buffer whose editor hides line ends."""
    proposed: Proposal | None = None

    @property
    def missing(self) -> bool:
        alone = self.buffer is None or self.gone or self.proposed is not None
        return self.holds is None and alone

    @property
    def edited(self) -> bool:
        """Through its buffer."""
        return self.buffer is not None and not self.gone

    @property
    def absent(self) -> str:
        """That it is missing, for the model."""
        if self.proposed is None:
            return missing(self.place)
        return f"You have proposed to remove {self.place.name}. To change that, write it anew."

    @property
    def holds(self) -> bytes | None:
        """What a change begins with."""
        return self.before if self.proposed is None else self.proposed.data

    def to_disk(self, raw: str) -> bytes:
        if self.end:
            raw = raw.replace("\n", self.end)
        return encode(raw, self.encoding, self.place.name)


async def load(editor: Editor | None, place: Place, proposed: Proposal | None = None) -> Base:
    """Raises ToolError: a directory, binary, too large, not readable."""
    data = await asyncio.to_thread(disk.read, place)
    text, encoding = decode(data, place.name) if data is not None else ("", Encoding())
    buffer = editor.buffer(place.path) if editor else None
    base = Base(place, text, encoding, data)
    if buffer is not None:
        base = _opened(base, buffer)
    if proposed is None:
        return base
    text, encoding = decode(proposed.data or b"", place.name)
    return Base(place, text, encoding, base.before, proposed=proposed)


def _opened(base: Base, buffer: Buffer) -> Base:
    path, text = base.place.path, base.raw
    shown = digest(plain(buffer.text).encode("utf-8", "surrogatepass"))
    if base.before is None and shown == _clean.get(path):
        return replace(base, buffer=buffer, gone=True)
    hidden = usual_end(text) if "\r" in text and "\r" not in buffer.text else ""
    base = replace(base, raw=buffer.text, buffer=buffer, end=hidden)
    if plain(buffer.text) != plain(text):
        return replace(base, before=base.to_disk(buffer.text), unsaved=True)
    if base.before is not None:
        _clean.pop(path, None)
        _clean[path] = shown
        if len(_clean) > KNOWN:
            del _clean[next(iter(_clean))]
    return base


@asynccontextmanager
async def refilled(
    editor: Editor, place: Place, buffer: Buffer, text: str, label: str
) -> AsyncIterator[None]:
    """The buffer of a file that was gone shows `text` (plain), which the body writes to disk. If
    that fails, it shows what it did before. Raises EditorError."""
    before = plain(buffer.text)
    await _show(editor, buffer, text, label)
    try:
        yield
    except (ToolError, EditorError):
        now = editor.buffer(place.path)
        if now is not None and plain(now.text) == text:  # else the person typed right away
            with suppress(EditorError):
                await _show(editor, now, before, label)
        raise


async def _show(editor: Editor, buffer: Buffer, text: str, label: str) -> None:
    if plain(buffer.text) != text:
        await editor.apply(buffer, changes(buffer.text, text, 0, len(buffer.text)), label)
