"""This module finds the text to edit on disk or in an open buffer, and rebases edits onto typing.

These are two facts. An open buffer is the file, unsaved changes included; but whether there is a
file at all, the disk says. And a buffer without unsaved changes is not the file once that was
changed on disk: the editor has not loaded it yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import field, replace

from magy_server.core.errors import EditorError, EditRefused, ToolError
from magy_server.core.ports import Buffer, Editor
from magy_server.core.tool import Proposal
from magy_server.core.values import Hash, digest
from magy_server.dataclass import dataclass
from magy_server.edits.model import TextChange
from magy_server.edits.rebasing.diff import apply, changes
from magy_server.edits.rebasing.rebase import rebase
from magy_server.edits.text import plain, usual_end
from magy_server.tools.files import disk
from magy_server.tools.files.encodings import Encoding, decode, encode, text_of
from magy_server.tools.files.pages import breaks_of
from magy_server.tools.files.paths import Place, missing

ATTEMPTS = 20
"""How often a change is worked out again because the buffer moved on meanwhile."""
SAVING = 0.1
"""Seconds in which an editor that saves has told what it saves."""
KNOWN = 1000
"""Open files of which is remembered what they last held on disk."""

_clean: dict[str, Hash] = {}
"""By path: the plain text that an open buffer and the disk both had when they were last the same.
A buffer that still shows it when the file is another, or gone, has no edit of the person's."""
LATEST, LARGEST = 4, 1_000_000
"""So many files that were read last stay worked out, if they have no more bytes than that."""


@dataclass(frozen=True, slots=True)
class FileText:
    """What a file holds. `breaks`: see `pages.breaks_of`, of the plain text."""

    data: bytes
    raw: str
    encoding: Encoding
    hash: Hash
    breaks: Sequence[int]


_latest: dict[str, FileText] = {}
"""By path. Large files are read page by page, and each time are nearly always the same."""


def _read(place: Place, known: FileText | None) -> FileText | None:
    """Blocks. None: there is no such file. `known`: what it held before. Raises ToolError."""
    data = disk.read(place)
    if data is None:
        return None
    if known is not None and known.data == data:
        return known
    raw, encoding = decode(data, place.name)
    return FileText(data, raw, encoding, digest(data), breaks_of(plain(raw)))


async def _text(place: Place) -> FileText | None:
    text = await asyncio.to_thread(_read, place, _latest.pop(place.path, None))
    if text is not None and len(text.data) <= LARGEST:
        _latest[place.path] = text
        if len(_latest) > LATEST:
            del _latest[next(iter(_latest))]
    return text


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
    text: FileText | None = field(default=None, compare=False)
    """What is on disk, if that is what it holds."""
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
        """Returns the sentence for the model that the file is missing."""
        if self.proposed is None:
            return missing(self.place)
        return (
            f"You have proposed to remove {self.place.name}. To change that, write the file again."
        )

    @property
    def holds(self) -> bytes | None:
        """What a change begins with."""
        return self.before if self.proposed is None else self.proposed.data

    def to_disk(self, raw: str) -> bytes:
        if self.end:
            raw = raw.replace("\n", self.end)
        return encode(raw, self.encoding, self.place.name)


async def load(editor: Editor, place: Place, proposed: Proposal | None = None) -> Base:
    """Raises ToolError: a directory, binary, too large, not readable; or the editor does not say
    what it shows."""
    await editor.look(place.path)
    try:
        base = await _loaded(editor, place)
    except ToolError:
        if editor.buffer(place.path) is None:
            raise
        await asyncio.sleep(SAVING)  # the editor may be just writing it
        base = await _loaded(editor, place)
    while base.before is not None and not base.buffer and editor.buffer(place.path):
        # The buffer is behind the disk. The editor may be just saving what it has not told yet.
        await asyncio.sleep(SAVING)
        last, base = base, await _loaded(editor, place)
        if base == last:
            break
    if proposed is None:
        return base
    text, encoding = decode(proposed.data or b"", place.name)
    return Base(place, text, encoding, base.before, proposed=proposed)


async def _loaded(editor: Editor, place: Place) -> Base:
    text = await _text(place)
    buffer = editor.buffer(place.path)
    if text is None:
        base = Base(place, "", Encoding(), None)
    else:
        base = Base(place, text.raw, text.encoding, text.data, text=text)
    return base if buffer is None else _opened(base, buffer)


def behind(path: str, shown: str) -> bool:
    """Whether an editor that shows this raw text of a file which is another by now has nothing of
    the person's in it."""
    return _digest(shown) == _clean.get(path)


def last_alike(path: str) -> Hash | None:
    """What `behind` compares with."""
    return _clean.get(path)


def same(path: str, shown: str) -> None:
    """The editor shows this raw text, and it is (or was when the editor loaded it) on disk."""
    _clean.pop(path, None)
    _clean[path] = _digest(shown)
    if len(_clean) > KNOWN:
        del _clean[next(iter(_clean))]


def _digest(raw: str) -> Hash:
    return digest(plain(raw).encode("utf-8", "surrogatepass"))


def _opened(base: Base, buffer: Buffer) -> Base:
    path, text = base.place.path, base.raw
    alike = base.before is not None and plain(buffer.text) == plain(text)
    if not alike and behind(path, buffer.text):
        return base if base.before is not None else replace(base, buffer=buffer, gone=True)
    hidden = usual_end(text) if "\r" in text and "\r" not in buffer.text else ""
    base = replace(base, raw=buffer.text, buffer=buffer, end=hidden)
    if plain(buffer.text) != plain(text):
        return replace(base, before=base.to_disk(buffer.text), unsaved=True, text=None)
    if alike:
        same(path, buffer.text)
    return base


async def rebased(
    editor: Editor, place: Place, seen: str, wanted: Sequence[TextChange], label: str
) -> tuple[Buffer, str, Buffer]:
    """Makes changes of `seen` in the buffer as it is by now, beside what the person types. The
    answer is the buffer that they were sent for, what they made of it, and the buffer that the
    editor then showed. Raises EditorError: the person changed the same lines, or never paused.

    Nothing is awaited between looking at the buffer and sending it changes of just that text."""
    for _ in range(ATTEMPTS):
        await editor.look(place.path)
        buffer = editor.buffer(place.path)
        if buffer is None:
            raise EditRefused(f"{place.name} is no longer open in the editor.", reason="closed")
        moved = rebase(seen, buffer.text, wanted)
        if moved.conflicts:
            raise EditRefused(
                f"{place.name} was changed in the editor in the same lines as this change. Look "
                "at it again.",
                reason="stale",
            )
        try:
            shown = await editor.apply(buffer, moved.changes, label)
        except EditRefused:
            if editor.buffer(place.path) == buffer:
                raise
            continue
        return buffer, apply(buffer.text, moved.changes), shown
    raise EditRefused(
        f"{place.name} was changed in the editor at each of {ATTEMPTS} attempts to send this "
        "change. Try again when nobody is typing there.",
        reason="stale",
    )


async def saved(editor: Editor, base: Base, shown: Buffer) -> bytes | None:
    """What was on disk once the editor had saved this; None: it did not. What the person typed and
    saved right after that is not in it. Raises ToolError."""
    done = await editor.save(shown)
    if done is None:
        return None
    data = await asyncio.to_thread(disk.read, base.place) or b""
    if (text := text_of(data)) is not None and plain(text) == plain(done.text):
        return data
    # Something changed the file on disk, or the person types and saves.
    await asyncio.sleep(SAVING)
    now = editor.buffer(base.place.path)
    typed = now is not None and now.text != done.text
    return base.to_disk(done.text) if typed else data


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
