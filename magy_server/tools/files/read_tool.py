"""This tool reads files. An open buffer is the file: it is read instead of the disk."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from pydantic import Field

from magy_server.core.errors import InvalidRequest, ToolError, Unseen
from magy_server.core.ports import Editor
from magy_server.core.tool import FactContext, Gathered, Result, ToolContext
from magy_server.core.values import Effect, Facts, Seen, digest
from magy_server.edits.text import plain
from magy_server.tools.files import disk, pictures
from magy_server.tools.files.live_file import Base, load
from magy_server.tools.files.pages import Page, cut
from magy_server.tools.files.paths import Place, judged, resolve, resource
from magy_server.tools.shipped import tool

LINES = 2000
"""Lines of a page; a greater `limit` gives no more."""
KEPT = 2_000_000
"""Bytes of the largest file whose text is kept, so that edits can be merged with later changes."""


async def _read_facts(ctx: FactContext, path: str, **_: Any) -> Gathered:
    return file_facts(ctx, path, "read", "Read"), {}


def file_facts(ctx: FactContext, path: str, effect: Effect, verb: str) -> Facts:
    """Raises ToolError."""
    place = resolve(ctx.root, path)
    found = resource(ctx.root, place.path, effect)
    return Facts(resources=(found,), title=f"{verb} {place.name}")


@tool(effect="read", key="read", kind="read", facts=_read_facts, fresh=30.0)
async def read_file(
    ctx: ToolContext,
    path: str,
    offset: Annotated[int, "The first line, from 1", Field(ge=1)] = 1,
    limit: Annotated[int, f"Lines, at most {LINES}", Field(ge=1)] = LINES,
) -> Result:
    """Read a text file, or a page of it. Each line comes with its number and a tab, which are
    not part of the file. An open file is read from the editor, with unsaved changes. Long lines are
    cut, and long files end with a note on how to read on. A picture is shown to you."""
    (place,) = judged(ctx.root, ctx.facts)
    unseen = await _unseen(ctx.editor, place)
    buffer = ctx.editor.buffer(place.path)
    whole = await _whole(ctx, place)
    live = whole.raw if whole else buffer.text if buffer else None
    if live is None and (picture := await asyncio.to_thread(_picture, place)):
        return picture
    page = await _page(place, whole, live, offset, min(limit, LINES))
    page.check(place.name)
    note = f"\n[this is the file on disk. {unseen}]" if unseen else ""
    note += await _note(ctx, place, whole) + page.note
    text = (page.text or f"({place.name} is empty)") + note
    count = f"{place.name}: {len(page.lines)} of {page.total} lines"
    count += f" on disk. {unseen}" if unseen else ""
    held = whole.holds if whole else None
    if held is None or len(held) > KEPT:
        return Result(text, count)
    hash = whole.text.hash if whole and whole.text else digest(held)
    seen = Seen(path=place.path, hash=hash)
    return Result(text, count, seen=(seen,), blobs={seen.hash: held})


async def _page(place: Place, whole: Base | None, live: str | None, first: int, limit: int) -> Page:
    if whole and whole.text:
        return Page(cut(plain(whole.raw)), first, limit, whole.text.breaks)
    pieces = disk.stream(place) if live is None else [plain(live)]
    return await asyncio.to_thread(Page, pieces, first, limit)


async def _unseen(editor: Editor, place: Place) -> str:
    """Returns why it is not known what the editor shows; nothing if it is."""
    try:
        await editor.look(place.path)
    except Unseen as error:
        return error.message
    return ""


async def _whole(ctx: ToolContext, place: Place) -> Base | None:
    """Returns the file as an edit would see it; None when it is too large, or too damaged, for
    that."""
    try:
        proposed = await ctx.proposal(place.path) if ctx.review == "propose" else None
        base = await load(ctx.editor, place, proposed)
    except ToolError:
        return None  # it is read as far as it can be, or the reading says what is wrong
    if base.missing and base.proposed:
        raise ToolError(base.absent)
    return None if base.missing else base


async def _note(ctx: ToolContext, place: Place, base: Base | None) -> str:
    if base and base.proposed is not None:
        return "\n[this is the text that you proposed; the user has not accepted all of it yet]"
    notes = ""
    if base and base.unsaved:
        notes = "\n[this is the open buffer; it has unsaved changes]"
    if ctx.review == "propose" and (other := await ctx.proposer(place.path)):
        notes += (
            f"\n[without the changes that session {other} proposes; the user has not judged them "
            "yet]"
        )
    return notes


def _picture(place: Place) -> Result | None:
    try:
        data = pictures.load(place)
        if data is None:
            return None
        image = pictures.picture(data, place.name)
    except InvalidRequest as error:
        raise ToolError(error.message) from None
    width, height = pictures.size(data)
    text = f"(picture {place.name}, {width}x{height})"
    return Result(text, text[1:-1], images=(image,), blobs={image.hash: data})
