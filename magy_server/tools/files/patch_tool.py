"""This tool changes several files by one patch, in the format that OpenAI's models are trained
on."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from magy_server.core.errors import ToolError
from magy_server.core.tool import FactContext, Gathered, Result, ToolContext
from magy_server.core.values import Facts
from magy_server.edits.model import EditError, FileEdit
from magy_server.edits.text import plain
from magy_server.tools.files import change
from magy_server.tools.files.change import Plan, Planned, Want
from magy_server.tools.files.edit_tools import (
    SeenTexts,
    changing,
    holding,
    recover,
    result_of,
    seen_texts,
    with_diff,
)
from magy_server.tools.files.live_file import Base
from magy_server.tools.files.paths import Place, judged
from magy_server.tools.files.read_tool import file_facts
from magy_server.tools.shipped import tool

MOST = 200
"""Files that one patch may touch."""


async def _patch_facts(ctx: FactContext, patch: str, **_: Any) -> Gathered:
    edits = _parsed(patch)
    found = [file_facts(ctx, path, "write", "Patch") for path in _paths(edits)]
    title = ", ".join(f.title.removeprefix("Patch ") for f in found[:3])
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    facts = Facts(
        resources=tuple(resource for one in found for resource in one.resources),
        title=f"Patch {title}{more}",
    )
    _check_links(ctx.root, edits)
    places = judged(ctx.root, facts)
    return await with_diff(ctx, facts, _patched(edits, places, await seen_texts(ctx, places)))


@tool(effect="write", key="edit", kind="edit", facts=_patch_facts, recover=recover, style="patch")
async def apply_patch(
    ctx: ToolContext,
    patch: Annotated[str, "From *** Begin Patch to *** End Patch"],
) -> Result:
    """Change, create, delete or rename files by a patch of this form:
    *** Begin Patch
    *** Update File: path
    *** Move to: new path (only to rename)
    @@ a line above the change, like `class A` or `def f`, where the context alone is not unique
     context line
    -removed line
    +added line
    *** Add File: path
    +every line of the new file
    *** Delete File: path
    *** End Patch
    Give three lines of context around each change, as they are in the file. Line numbers are not
    used. A file gets all of its hunks or none, and the answer says which files were changed."""
    edits, places = _parsed(patch), judged(ctx.root, ctx.facts)
    wants = _patched(edits, places, await seen_texts(ctx, places))
    done, errors = await change.carry_out(ctx, wants, "Apply a patch")
    if not done:
        raise ToolError("\n".join(error.message for error in errors))
    result = result_of(done, "Patched", proposed=ctx.review == "propose")
    if not errors:
        return result
    failed = "\n".join(error.message for error in errors)
    text = f"{result.for_model}\nDo not send these again. Not done:\n{failed}"
    return replace(result, for_model=text)


def _parsed(patch: str) -> list[FileEdit]:
    from magy_server.edits.formats import parse

    try:
        edits = parse("v4a", patch)
    except EditError as error:
        raise ToolError(str(error)) from None
    if not edits:
        raise ToolError("The patch is empty: it has no file between Begin and End Patch.")
    if len(_paths(edits)) > MOST:
        raise ToolError(f"The patch touches more than {MOST} files; send several smaller ones.")
    return edits


def _paths(edits: Sequence[FileEdit]) -> list[str]:
    """Each path once, in order; that of a rename after the old one."""
    named = [path for edit in edits for path in (edit.path, edit.to) if path]
    return list(dict.fromkeys(named))


def _check_links(root: str, edits: Sequence[FileEdit]) -> None:
    """Links stay where they are: the file that they lead to would go instead. Raises ToolError."""
    for edit in edits:
        path = os.path.join(root, edit.path).rstrip("/")
        if (edit.to or edit.op == "delete") and os.path.islink(path):
            raise ToolError(
                f"{edit.path} is a symbolic link to {os.readlink(path)}, and a patch cannot "
                "remove or rename links. Name the file itself if you mean it, or use bash."
            )


def _patched(edits: Sequence[FileEdit], places: Sequence[Place], texts: SeenTexts) -> list[Want]:
    """Raises ToolError when sections would have to be done one after the other."""
    by_path = dict(zip(_paths(edits), places, strict=True))
    sections: dict[str, list[FileEdit]] = {}
    for edit in edits:
        sections.setdefault(by_path[edit.path].path, []).append(edit)
    wants = [
        _wanted(by_path[own[0].path], own, by_path, texts[path]) for path, own in sections.items()
    ]
    targets = [want.place.path for want in wants]
    for want in wants:
        path = want.place.path
        if targets.count(path) > 1 or (want.moved_from and path in sections):
            raise ToolError(_tangled(want.place))
    return wants


def _wanted(
    place: Place, sections: Sequence[FileEdit], by_path: Mapping[str, Place], seen: bytes | None
) -> Want:
    """What all the sections of one file come to."""
    first, *more = sections
    to = by_path[first.to] if first.to else place
    if [edit.op for edit in sections] == ["delete", "create"]:
        return Want(place, holding(more[0].content, seen))
    if more and any(edit.op != "update" or edit.to for edit in sections):
        raise ToolError(_tangled(place))
    if first.op == "create":
        return Want(place, _creating(first.content))
    if first.op == "write":
        return Want(place, holding(first.content, seen))
    if first.op == "delete":
        return Want(place, _removing)
    hunks = [hunk for edit in sections for hunk in edit.hunks]
    plan = changing(hunks, seen) if hunks else _as_it_is
    return Want(to, plan, moved_from=place if to.path != place.path else None)


def _tangled(place: Place) -> str:
    return (
        f"The patch names {place.name} in several sections that depend on each other; nothing was "
        "changed. Give each file one section, or send several patches, one after the other."
    )


def _creating(content: str) -> Plan:
    def work_out(base: Base) -> Planned:
        if not base.missing and plain(base.raw) != plain(content):
            raise ToolError(
                f"{base.place.name} already exists; it was not overwritten. Use *** Update File to "
                "change it."
            )
        return holding(content, None)(base)

    return work_out


def _removing(base: Base) -> Planned:
    if base.missing:
        raise ToolError(base.absent)
    return Planned(None)


def _as_it_is(base: Base) -> Planned:
    if base.missing:
        raise ToolError(base.absent)
    return Planned([])
