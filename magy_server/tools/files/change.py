"""This module changes files: through the editor's buffer where a file is open, else on disk.

A call names what it wants of one or several files. All is worked out first; then it commits what it
is going to do (`ctx.started`, with the bytes before and after), does it file by file, and looks
whether that is what happened. Where changes are only proposed, nothing is done.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from weakref import WeakValueDictionary

from magy_server.core.errors import EditorError, EditRefused, ToolError
from magy_server.core.ports import Buffer, Editor
from magy_server.core.tool import FactContext, ToolContext
from magy_server.core.values import Evidence, FileChange, Hash, Kind, Version, digest
from magy_server.dataclass import dataclass
from magy_server.edits.model import TextChange
from magy_server.edits.rebasing.diff import apply, counts, unified
from magy_server.edits.text import plain
from magy_server.tasks import to_end
from magy_server.tools.files import disk, versions
from magy_server.tools.files.encodings import decode
from magy_server.tools.files.live_file import Base, load, rebased, refilled, saved
from magy_server.tools.files.paths import Place

EXACT, ROUNDS = 5, 8
"""How often a change is worked out again because the buffer moved on meanwhile: at first so that
what is on record is just what is sent; then beside what is typed, for who types without a pause."""
TYPING = "The user is typing in the buffer, so it was not saved: commands see the older text."

_busy: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()


def busy(path: str) -> asyncio.Lock:
    """A task holds this while it changes a file: agents of one process take turns instead of
    colliding."""
    return _busy.setdefault(path, asyncio.Lock())


@dataclass(frozen=True, slots=True)
class Planned:
    """What to change in `Base.raw`; None: the file goes. `note`: for the model."""

    changes: Sequence[TextChange] | None
    note: str = ""


Plan = Callable[[Base], Planned]
"""Raises ToolError when it does not fit (any more)."""


@dataclass(frozen=True, slots=True)
class Want:
    """`moved_from`: the plan is made for that file, which becomes this one."""

    place: Place
    plan: Plan
    moved_from: Place | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """What became of a want. `change` None: the file was already so, and nothing happened."""

    place: Place
    change: FileChange | None = None
    diff: str = ""
    counts: tuple[int, int] = (0, 0)
    """How many lines were added and removed."""
    notes: tuple[str, ...] = ()
    blobs: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class _Ready:
    """A want that was worked out. `data` None: the file goes."""

    want: Want
    base: Base
    planned: Planned
    after: str
    data: bytes | None
    change: FileChange

    @property
    def idle(self) -> bool:
        return self.data == self.base.holds

    @property
    def blobs(self) -> tuple[bytes, ...]:
        return tuple(data for data in (self.base.before, self.data) if data is not None)


async def preview(ctx: FactContext, wants: Sequence[Want]) -> str:
    """Returns the diff that the wants would make now. Those that would fail have none: the run says
    why."""
    found = []
    for want in wants:
        try:
            ready = await _worked_out(ctx, want)
        except ToolError:
            continue
        found += [await asyncio.to_thread(_diff, one) for one in ready]
    return "".join(found)


async def carry_out(
    ctx: ToolContext, wants: Sequence[Want], label: str
) -> tuple[list[Done], list[ToolError]]:
    """Makes the changes; a file gets all of its own or none. The errors are of wants that do not
    fit; the others are carried out all the same. `label` is what the editor's undo shows. Raises
    ToolError when what was begun went wrong."""
    async with AsyncExitStack() as held:
        places = [place for want in wants for place in (want.place, want.moved_from) if place]
        paths = sorted({place.path for place in places})
        if ctx.review != "propose":
            await ctx.changing(paths)
        for path in paths:
            await held.enter_async_context(busy(path))
        ready: list[_Ready] = []
        errors: list[ToolError] = []
        for want in wants:
            try:
                ready += await _worked_out(ctx, want)
            except ToolError as error:
                errors.append(error)
        if ctx.review == "propose":
            return [await asyncio.to_thread(_done, one) for one in ready], errors
        for one in ready:
            if not (one.idle or one.base.edited):
                await asyncio.to_thread(disk.check_writable, one.base.place)
        await _begin(ctx, ready)
        done: list[Done] = []
        for at in range(len(ready)):
            try:
                done.append(await _one(ctx, ready, at, label))
            except (ToolError, EditRefused) as error:
                raise ToolError(_stopped(ready, at, error.message)) from error
        return done, errors


async def _worked_out(ctx: FactContext, want: Want) -> list[_Ready]:
    """Of a file that moves, both: what it becomes, and that it goes from where it was."""
    proposing = ctx.review == "propose"
    base = await _base(ctx, want.place)
    if want.moved_from is None:
        return [await asyncio.to_thread(_ready, want, base, base, proposing)]
    if not base.missing:
        raise ToolError(f"{base.place.name} already exists; nothing was moved there.")
    origin = await _base(ctx, want.moved_from)
    gone = Want(want.moved_from, lambda _: Planned(None))
    made = await asyncio.to_thread(_ready, want, base, origin, proposing)
    return [made, await asyncio.to_thread(_ready, gone, origin, origin, proposing)]


async def _base(ctx: FactContext, place: Place) -> Base:
    proposed = await ctx.proposal(place.path) if ctx.review == "propose" else None
    return await load(ctx.editor, place, proposed)


def _ready(want: Want, target: Base, origin: Base, proposing: bool) -> _Ready:
    planned = want.plan(origin)
    base = target
    if origin is not target:  # it is moved: all that it is comes from there
        base = replace(target, raw=origin.raw, encoding=origin.encoding, end=origin.end)
    after = "" if planned.changes is None else apply(base.raw, planned.changes)
    data = None if planned.changes is None else base.to_disk(after)
    if data is None and base.unsaved:
        raise ToolError(
            f"{base.place.name} has unsaved changes in the editor, so it was not removed. Ask the "
            "user to save or discard them first."
        )
    mode = _mode(origin)
    kind: Kind = "executable" if (mode or 0) & 0o111 else "file"
    change = FileChange(
        path=base.place.path,
        before=digest(base.before) if base.before is not None else None,
        after=digest(data) if data is not None else None,
        via="proposed" if proposing else "editor" if base.edited and data is not None else "disk",
        was=kind if base.before is not None else "file",
        now=kind if data is not None else "file",
        moved_from=want.moved_from.path if want.moved_from else "",
        mode=mode,
    )
    return _Ready(want, base, planned, after, data, change)


def _mode(base: Base) -> int | None:
    try:
        return stat.S_IMODE(os.stat(base.place.path).st_mode)
    except OSError:
        return None


async def _one(ctx: ToolContext, ready: list[_Ready], at: int, label: str) -> Done:
    """Makes change number `at`, and works it out again while the person types into the file."""
    for attempt in range(1, ROUNDS + 1):
        one = ready[at]
        if one.idle:
            return Done(one.want.place)
        place, base = one.base.place, one.base
        if not base.edited or base.buffer is None or one.data is None:
            await _written(ctx.editor, one, label)
            return await asyncio.to_thread(_done, one)
        try:
            wanted = one.planned.changes or ()
            if attempt <= EXACT:
                now = await ctx.editor.apply(base.buffer, wanted, label)
            else:
                seen = base.buffer.text
                sent, text, now = await rebased(ctx.editor, place, seen, wanted, label)
                one = await asyncio.to_thread(_beside, one, sent, text)
        except EditRefused as error:
            if attempt == ROUNDS or ctx.editor.buffer(place.path) == base.buffer:
                raise ToolError(f"{place.name} was not changed. {error.message}") from error
            # The user typed meanwhile: it is worked out again on what is there now.
            ready[at] = (await _worked_out(ctx, one.want))[0]
            await _begin(ctx, ready)
            continue
        except EditorError as error:
            shown = ctx.editor.buffer(place.path)
            raise ToolError(_unverified(place, error.message, one.after, shown)) from error
        return await _settle(ctx.editor, one, now)
    raise AssertionError("the last attempt returns or raises")


def _beside(one: _Ready, sent: Buffer, text: str) -> _Ready:
    """As it was made beside what the person had typed by then."""
    base = one.base
    if base.buffer is None or sent.text == base.buffer.text:
        return one
    try:
        before, data = base.to_disk(sent.text), base.to_disk(text)
    except ToolError:  # what was typed does not fit the file's encoding
        return one
    base = replace(base, raw=sent.text, before=before, buffer=sent, unsaved=True)
    change = one.change.model_copy(update={"before": digest(before), "after": digest(data)})
    return replace(one, base=base, after=text, data=data, change=change)


async def _written(editor: Editor, one: _Ready, label: str) -> None:
    """On disk; the buffer of a file that was gone follows."""
    place, buffer = one.base.place, one.base.buffer
    if not (one.base.gone and buffer) or one.data is None:
        return await to_end(asyncio.to_thread(_on_disk, one))
    try:
        async with refilled(editor, place, buffer, plain(one.after), label):
            await to_end(asyncio.to_thread(_on_disk, one))
    except EditorError as error:
        raise ToolError(f"{place.name} was not written. {error.message}") from error


async def _begin(ctx: ToolContext, ready: Sequence[_Ready]) -> None:
    """What the call is about to do, as far as it is known now."""
    doing = [one for one in ready if not one.idle]
    if not doing:
        return
    blobs = {digest(data): data for one in doing for data in one.blobs}
    await ctx.started(Evidence(changes=tuple(one.change for one in doing)), blobs)


def _on_disk(one: _Ready) -> None:
    place, change = one.base.place, one.change
    was = Version(hash=change.before, kind=change.was)
    now = Version(hash=change.after, kind=change.now)
    like = one.want.moved_from
    versions.put(place.root, place.path, was, now, one.data or b"", like=like)


async def _settle(editor: Editor, one: _Ready, now: Buffer) -> Done:
    """After the buffer has it: save, unless that would save what the user has not."""
    place, after = one.base.place, now.text
    if plain(after) != plain(one.after):  # the person typed right away: not to be saved for them
        return await asyncio.to_thread(_done, one, TYPING)
    # Who is asked to write a file usually saves it, too: then there is nothing that is not saved.
    written = not editor.tells and await editor.save(now) is not None
    if one.base.unsaved and not written:
        note = (
            "The buffer in the editor already differed from the disk (unsaved changes of the "
            "user), so it was not saved: commands still see the older text on disk."
        )
        return await asyncio.to_thread(_done, one, note)
    data = await saved(editor, one.base, now)
    if data is None:
        note = "The editor did not save the buffer: commands still see the older text on disk."
        if editor.buffer(place.path) != now:
            note = TYPING
        return await asyncio.to_thread(_done, one, note)
    if digest(data) == one.change.after:
        return await asyncio.to_thread(_done, one)
    text, _ = decode(data, place.name)
    change = one.change.model_copy(update={"after": digest(data)})
    formatted = _Ready(one.want, one.base, one.planned, text, data, change)
    if plain(text) == plain(after):
        return await asyncio.to_thread(_done, formatted)
    diff = await asyncio.to_thread(unified, after, text, place.name, 4000)
    note = f"On saving, the editor changed the file further (a formatter?):\n{diff}"
    return await asyncio.to_thread(_done, formatted, note)


def _done(one: _Ready, note: str = "") -> Done:
    notes = tuple(text for text in (one.planned.note, note) if text)
    if one.idle:
        return Done(one.want.place, notes=notes)
    lines = counts(one.base.raw, one.after)
    return Done(one.want.place, one.change, _diff(one), lines, notes, one.blobs)


def _diff(one: _Ready) -> str:
    before = None if one.base.missing else one.base.raw
    return unified(before, None if one.data is None else one.after, one.want.place.name)


def _stopped(ready: Sequence[_Ready], at: int, why: str) -> str:
    """That number `at` went wrong, and what was done and left undone because of that."""
    done = ", ".join(one.want.place.name for one in ready[:at] if not one.idle)
    left = ", ".join(one.want.place.name for one in ready[at + 1 :] if not one.idle)
    before = f"Done before that: {done}; do not send these again. " if done else ""
    return f"{before}{why}" + (f"\nNot tried after that: {left}." if left else "")


def _unverified(place: Place, why: str, expected: str, now: Buffer | None) -> str:
    head = f"The edit of {place.name} may have gone wrong. {why} "
    if now is None:
        return head + "The file is no longer open; read it before the next edit."
    diff = unified(expected, now.text, place.name, 4000)
    if not diff:
        return head + "The buffer now has exactly the intended text."
    return f"{head}The buffer now differs from the intended text like this:\n{diff}"


async def recover(ctx: ToolContext, evidence: Evidence) -> list[Done] | None:
    """The changes that a dead process made, found by looking; None if it made none. Raises
    ToolError when a file is neither as before nor as after, or only some were made."""
    names = {r.subject: r.relative or r.subject for r in ctx.facts.resources}
    done: list[Done] = []
    left: list[str] = []
    for change in evidence.changes:
        place = Place(ctx.root, change.path, names.get(change.path, change.path))
        base = await load(ctx.editor, place)
        now = digest(base.before) if base.before is not None else None
        if now == change.before:
            left.append(place.name)
        elif now == change.after:
            done.append(await _found(ctx, place, base, change))
        else:
            raise ToolError(
                f"Magy was interrupted while it changed {place.name}, and the file now has "
                "neither the old nor the new text: someone else changed it. Read it before "
                "the next edit."
            )
    if done and left:
        raise ToolError(
            f"Magy was interrupted. Changed: {', '.join(d.place.name for d in done)}; do not send "
            f"these again. Not changed: {', '.join(left)}."
        )
    return done or None


async def _found(ctx: ToolContext, place: Place, base: Base, change: FileChange) -> Done:
    blobs: dict[Hash, bytes] = {h: await ctx.blob(h) for h in (change.before, change.after) if h}
    before = decode(blobs[change.before], place.name)[0] if change.before else None
    after = base.raw if change.after else None
    diff = await asyncio.to_thread(unified, before, after, place.name)
    lines = await asyncio.to_thread(counts, before or "", after or "")
    notes = [f"{place.name} was changed as asked (seen after an interruption)."]
    if base.unsaved:
        notes.append("The buffer in the editor is not saved yet: commands see the older text.")
    return Done(place, change, diff, lines, tuple(notes), tuple(blobs.values()))
