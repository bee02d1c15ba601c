"""The file tools: read a page, edit an exact text, write a whole file.

An open buffer is the file: it is read instead of the disk, and changed through the editor.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from magy_server.core.errors import InvalidRequest, ToolError
from magy_server.core.events import Effect, Evidence, Facts, Hash
from magy_server.core.ports import TextChange
from magy_server.core.tool import FactContext, Result, ToolContext, tool
from magy_server.tools import change, disk, lines, pictures
from magy_server.tools.change import Base, Plan
from magy_server.tools.match import find_once
from magy_server.tools.pages import Page
from magy_server.tools.paths import Place, missing, resolve, resource
from magy_server.tools.text import Plain, digest, plain, split

Path = Annotated[str, "The file, relative to the workspace root or absolute"]
LINES = 2000
"""Lines of a page; a greater `limit` gives no more."""
SNIPPET = 40
"""Lines of the edited region shown to the model."""


async def _read_facts(ctx: FactContext, path: str, **_: Any) -> tuple[Facts, Mapping[Hash, bytes]]:
    return _facts(ctx, path, "read", "Read"), {}


def _facts(ctx: FactContext, path: str, effect: Effect, verb: str) -> Facts:
    kind = "read" if effect == "read" else "edit"
    try:
        place = resolve(ctx.root, path)
    except ToolError as error:
        shown = "".join(char if char.isprintable() else " " for char in path[:200])
        title = f"{verb} {shown}"
        return Facts(cwd=ctx.root, kind=kind, title=title, problem=error.message)
    found = resource(ctx.root, place.path, effect)
    return Facts(resources=(found,), cwd=ctx.root, kind=kind, title=f"{verb} {place.name}")


def _place(ctx: ToolContext) -> Place:
    """The file that was judged; never resolved again from the arguments."""
    found = ctx.facts.resources[0]
    if found.relative is None:
        raise ToolError(f"{found.subject} is outside the workspace.")
    return Place(ctx.root, found.subject, found.relative)


@tool(effect="read", key="read", kind="read", facts=_read_facts, fresh=30.0)
async def read_file(
    ctx: ToolContext,
    path: Path,
    offset: Annotated[int, "The line to begin with, counted from 1", Field(ge=1)] = 1,
    limit: Annotated[int, f"How many lines, at most {LINES}", Field(ge=1)] = LINES,
) -> Result:
    """Read a text file, or a page of it. Each line comes with its number and a tab before it; these
    are not part of the file. A file that is open in the editor is read from there, with the user's
    unsaved changes. Long lines are cut, and long files end with a note on how to read on. A picture
    (PNG, JPEG, GIF, WebP) is shown to you."""
    place = _place(ctx)
    buffer = ctx.editor.buffer(place.path) if ctx.editor else None
    if buffer is None and (shown := await asyncio.to_thread(_picture, place)):
        return shown
    if buffer is not None:
        text = plain(buffer.text)
        page = Page([text], offset, min(limit, LINES))
        note = await asyncio.to_thread(_unsaved, place, text)
    else:
        page = await asyncio.to_thread(lambda: Page(disk.stream(place), offset, min(limit, LINES)))
        note = ""
    if offset > max(page.total, 1):
        raise ToolError(f"{place.name} has only {page.total} lines; offset {offset} is behind it.")
    body = page.text or f"({place.name} is empty)"
    if page.next is not None or offset > 1:
        last = offset + len(page.lines) - 1
        on = f"; continue with offset={page.next}" if page.next else ""
        note += f"\n[lines {offset}-{last} of {page.total}{on}]"
    count = f"{place.name}: {len(page.lines)} of {page.total} lines"
    return Result(for_model=f"{body}{note}", for_user=count)


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


def _unsaved(place: Place, text: str) -> str:
    try:
        pieces: Iterable[str] = disk.stream(place)
        same = len(text) <= disk.EDIT_LIMIT and "".join(pieces) == text
    except ToolError:
        same = False
    return "" if same else "\n[this is the open buffer; it has changes that are not on disk]"


async def _edit_facts(
    ctx: FactContext, path: str, old_text: str, new_text: str, **_: Any
) -> tuple[Facts, Mapping[Hash, bytes]]:
    return await _change_facts(ctx, path, "Edit", lambda: _replacing(old_text, new_text))


async def _write_facts(
    ctx: FactContext, path: str, content: str, **_: Any
) -> tuple[Facts, Mapping[Hash, bytes]]:
    return await _change_facts(ctx, path, "Write", lambda: _holding(content))


async def _change_facts(
    ctx: FactContext, path: str, verb: str, make: Callable[[], Plan]
) -> tuple[Facts, Mapping[Hash, bytes]]:
    facts = _facts(ctx, path, "write", verb)
    if facts.problem:
        return facts, {}
    found = facts.resources[0]
    place = Place(ctx.root, found.subject, found.relative or found.subject)
    try:
        diff = await change.preview(ctx, place, make())
    except ToolError as error:
        return facts.model_copy(update={"problem": error.message}), {}
    if not diff:
        return facts, {}
    data = diff.encode("utf-8", "replace")
    return facts.model_copy(update={"preview": digest(data)}), {digest(data): data}


async def _recover(ctx: ToolContext, evidence: Evidence, _: Mapping[str, Any]) -> Result | None:
    return await change.recover(ctx, evidence)


@tool(effect="write", key="edit", kind="edit", facts=_edit_facts, recover=_recover)
async def edit_file(
    ctx: ToolContext,
    path: Path,
    old_text: Annotated[str, "The exact text to replace, with enough lines to be there only once"],
    new_text: Annotated[str, "What comes in its place; empty to delete"],
) -> Result:
    """Replace an exact text in a file. old_text must be in the file exactly once, white space and
    indentation included, without the line numbers of read_file; line ends are matched whatever
    their kind. When it is missing or there several times nothing changes, and the answer says why.
    """
    place = _place(ctx)
    result = await change.carry_out(
        ctx, place, _replacing(old_text, new_text), f"Edit {place.name}"
    )
    snippet = _snippet(result.diff)
    return _say(result, f"Edited {place.name}.", snippet)


def _replacing(old_text: str, new_text: str) -> Plan:
    old, new = plain(old_text), plain(new_text)
    if not old:
        raise ToolError("old_text is empty; give the text to replace, or use write_file.")
    if old == new:
        raise ToolError("old_text and new_text are the same; there is nothing to change.")

    def plan(base: Base) -> list[TextChange]:
        if base.before is None and base.buffer is None:
            raise ToolError(missing(base.place))
        view = Plain(base.raw)
        at = find_once(view, old, new, base.place.name)
        edits = lines.changes(base.raw, new, view.to_raw(at), view.to_raw(at + len(old)))
        return _checked(base, edits, view.text[:at] + new + view.text[at + len(old) :])

    return plan


def _checked(base: Base, edits: list[TextChange], expected: str) -> list[TextChange]:
    if plain(lines.apply(base.raw, edits)) != expected:
        raise ToolError(
            f"{base.place.name} mixes lone carriage returns with other line ends right there, so "
            "the edit would join lines; change it with a command instead."
        )
    return edits


@tool(effect="write", key="write", kind="edit", facts=_write_facts, recover=_recover)
async def write_file(
    ctx: ToolContext,
    path: Path,
    content: Annotated[str, "The whole new text of the file"],
) -> Result:
    """Write a whole file: create it, with the directories it needs, or replace all its text. To
    change a part of a file use edit_file. An existing file keeps its encoding and line ends."""
    place = _place(ctx)
    existed: list[bool] = []

    def plan(base: Base) -> Sequence[TextChange]:
        existed[:] = [base.before is not None]
        return _holding(content)(base)

    result = await change.carry_out(ctx, place, plan, f"Write {place.name}")
    if not result.changes:
        return _say(result, f"{place.name} already has exactly this text; nothing was changed.")
    verb = "Overwrote" if existed[0] else "Created"
    count = len(split(plain(content)))
    return _say(result, f"{verb} {place.name} ({count} lines).")


def _holding(content: str) -> Plan:
    def plan(base: Base) -> list[TextChange]:
        if base.before is None and not base.raw:
            return [TextChange(0, 0, content)] if content else []
        new = plain(content)
        if base.encoding.mark and new.startswith("\ufeff"):
            new = new[1:]
        edits = lines.changes(base.raw, new, 0, len(base.raw))
        return _checked(base, edits, new)

    return plan


def _say(result: Result, done: str, shown: str = "") -> Result:
    text = "\n".join(part for part in (done, shown, result.for_model) if part)
    return Result(text, result.for_user, result.diff, None, result.changes, result.blobs)


def _snippet(diff: str) -> str:
    """The first hunks of the diff, so that the model sees where its text went."""
    body = diff.split("\n")[2:]
    shown = "\n".join(line[:200] for line in body[:SNIPPET]).rstrip("\n")
    more = f"\n({len(body) - SNIPPET} more lines)" if len(body) > SNIPPET + 1 else ""
    return shown + more
