"""One change to one file: through the editor's buffer when it is open, else on disk.

`Base` is the file as it was read for this change. `carry_out` commits what it is going to do
(`ctx.started`, with the bytes before and after), does it, and looks whether that is what happened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from weakref import WeakValueDictionary

from magy_server.core.errors import EditorError, EditRefused, ToolError
from magy_server.core.events import Evidence, FileChange, Hash
from magy_server.core.ports import Buffer, Editor, TextChange
from magy_server.core.tool import FactContext, Result, ToolContext
from magy_server.tools import disk, lines
from magy_server.tools.paths import Place
from magy_server.tools.patience import to_end
from magy_server.tools.text import Encoding, decode, digest, encode, plain, usual_end

ATTEMPTS = 3
"""How often a change is worked out again because the buffer moved on meanwhile."""
Plan = Callable[["Base"], Sequence[TextChange]]
"""What to change in `Base.raw`. Raises ToolError when it does not fit (any more)."""

_busy: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()


def busy(path: str) -> asyncio.Lock:
    """Held while a file is changed: agents of one process take turns instead of colliding."""
    return _busy.setdefault(path, asyncio.Lock())


@dataclass(frozen=True, slots=True)
class Base:
    """A file as it was when a change was worked out. `raw` is the live text: the buffer's if the
    file is open. `before` is the same as bytes for the disk, None when the file does not exist."""

    place: Place
    raw: str
    encoding: Encoding
    before: bytes | None
    buffer: Buffer | None = None
    unsaved: bool = False
    """The buffer holds something else than the disk."""
    end: str = ""
    """The line end to write on disk for every `\\n` of a buffer whose editor hides line ends."""

    def to_disk(self, raw: str) -> bytes:
        if self.end:
            raw = raw.replace("\n", self.end)
        return encode(raw, self.encoding, self.place.name)


async def load(editor: Editor | None, place: Place) -> Base:
    """Raises ToolError: a directory, binary, too large, not readable."""
    data = await asyncio.to_thread(disk.read, place)
    text, encoding = decode(data, place.name) if data is not None else ("", Encoding())
    buffer = editor.buffer(place.path) if editor else None
    if buffer is None:
        return Base(place, text, encoding, data)
    hidden = usual_end(text) if "\r" in text and "\r" not in buffer.text else ""
    base = Base(place, buffer.text, encoding, data, buffer, end=hidden)
    if plain(buffer.text) == plain(text):
        return base
    return Base(
        place, buffer.text, encoding, base.to_disk(buffer.text), buffer, unsaved=True, end=hidden
    )


async def preview(ctx: FactContext, place: Place, plan: Plan) -> str:
    """The diff that `plan` would make now; "" when it would fail: the run says why."""
    try:
        base = await load(ctx.editor, place)
        after = await asyncio.to_thread(lambda: lines.apply(base.raw, plan(base)))
    except ToolError:
        return ""
    return await asyncio.to_thread(lines.unified, _text(base), after, place.name)


async def carry_out(ctx: ToolContext, place: Place, plan: Plan, label: str) -> Result:
    """Makes the change. `label` is what the editor's undo shows. `Result.for_model` is what is
    remarkable about it; without `changes`, the file was already so and nothing happened."""
    async with busy(place.path):
        for attempt in range(1, ATTEMPTS + 1):
            base = await load(ctx.editor, place)
            edits = await asyncio.to_thread(plan, base)
            after = lines.apply(base.raw, edits)
            data = base.to_disk(after)
            if data == base.before:
                return Result("")
            change = FileChange(
                path=place.path,
                before=digest(base.before) if base.before is not None else None,
                after=digest(data),
                via="editor" if base.buffer else "disk",
            )
            blobs = {digest(b): b for b in (base.before, data) if b is not None}
            if not base.buffer:
                await asyncio.to_thread(disk.check_writable, place)
            await ctx.started(Evidence(changes=(change,)), blobs)
            if not (base.buffer and ctx.editor):
                await to_end(asyncio.to_thread(disk.replace, place, data, change.before))
                return await _result(base, after, change, blobs, "")
            try:
                now = await ctx.editor.apply(base.buffer, edits, label)
            except EditRefused as error:
                if attempt == ATTEMPTS or ctx.editor.buffer(place.path) == base.buffer:
                    raise ToolError(_refused(place, error)) from error
                continue  # the user typed meanwhile: work it out again on what is there now
            except EditorError as error:
                shown = ctx.editor.buffer(place.path)
                raise ToolError(_unverified(place, error.message, after, shown)) from error
            if plain(now.text) != plain(after):
                raise ToolError(
                    _unverified(place, "The editor took it, but now has another text.", after, now)
                )
            return await _settle(ctx.editor, base, now.text, change, blobs)
    raise AssertionError("the last attempt returns or raises")


async def _settle(
    editor: Editor, base: Base, after: str, change: FileChange, blobs: dict[Hash, bytes]
) -> Result:
    """After the buffer has it: save, unless that would save what the user has not."""
    place = base.place
    if base.unsaved:
        note = (
            "The buffer in the editor already differed from the disk (unsaved changes of the "
            "user), so it was not saved: commands still see the older text on disk."
        )
        return await _result(base, after, change, blobs, note)
    if not await editor.save(place.path):
        note = "The editor did not save the buffer: commands still see the older text on disk."
        return await _result(base, after, change, blobs, note)
    saved = await asyncio.to_thread(disk.read, place) or b""
    if digest(saved) == change.after:
        return await _result(base, after, change, blobs, "")
    text, _ = decode(saved, place.name)
    blobs[digest(saved)] = saved
    change = change.model_copy(update={"after": digest(saved)})
    if plain(text) == plain(after):
        return await _result(base, after, change, blobs, "")
    diff = await asyncio.to_thread(lines.unified, after, text, place.name, 4000)
    note = f"On saving, the editor changed the file further (a formatter?):\n{diff}"
    return await _result(base, text, change, blobs, note)


async def _result(
    base: Base, after: str, change: FileChange, blobs: dict[Hash, bytes], note: str
) -> Result:
    name = base.place.name
    diff = await asyncio.to_thread(lines.unified, _text(base), after, name)
    added, removed = await asyncio.to_thread(lines.counts, base.raw, after)
    return Result(
        for_model=note,
        for_user=f"{name} +{added} -{removed}",
        diff=diff,
        changes=(change,),
        blobs=blobs,
    )


def _text(base: Base) -> str | None:
    return base.raw if base.before is not None or base.raw else None


def _refused(place: Place, error: EditRefused) -> str:
    return f"{place.name} was not changed. {error.message}"


def _unverified(place: Place, why: str, expected: str, now: Buffer | None) -> str:
    head = f"The edit of {place.name} may have gone wrong. {why} "
    if now is None:
        return head + "The file is no longer open; read it before the next edit."
    diff = lines.unified(expected, now.text, place.name, 4000)
    if not diff:
        return head + "The buffer now has exactly the text that was meant."
    return f"{head}This is how the buffer now differs from what was meant:\n{diff}"


async def recover(ctx: ToolContext, evidence: Evidence) -> Result | None:
    """The result of a change that a dead process began, found by looking; None if it was not
    made. Raises ToolError when the file is neither as before nor as after."""
    (change,) = evidence.changes
    name = ctx.facts.resources[0].relative or change.path
    place = Place(ctx.root, change.path, name)
    base = await load(ctx.editor, place)
    now = digest(base.before) if base.before is not None else None
    if now == change.before:
        return None
    if now != change.after:
        raise ToolError(
            f"Magy was interrupted while it changed {name}, and the file is now neither as it "
            "was nor as it should be: someone else changed it. Read it before the next edit."
        )
    blobs = {h: await ctx.blob(h) for h in (change.before, change.after) if h}
    before = decode(blobs[change.before], name)[0] if change.before else None
    diff = await asyncio.to_thread(lines.unified, before, base.raw, name)
    note = f"{name} was changed as asked (seen after an interruption)."
    if base.unsaved:
        note += " The buffer in the editor is not saved yet: commands see the older text."
    return Result(for_model=note, for_user=name, diff=diff, changes=(change,), blobs=blobs)
