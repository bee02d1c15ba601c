"""These tools change one file: they replace a text, or write the whole. `patch_tool.py` has
patches.

What a model writes is resolved in the text it has seen and carried over to what is there now; only
the lines it meant to change are touched. Where that is not certain, nothing is changed, and the
answer says how to do better.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from magy_server.core.errors import ToolError
from magy_server.core.tool import FactContext, Gathered, Result, ToolContext, previewed
from magy_server.core.values import Evidence, Facts, digest
from magy_server.edits.model import Hunk, Resolved, TextChange
from magy_server.edits.rebasing.diff import unified
from magy_server.edits.text import plain, split
from magy_server.tools.files import change
from magy_server.tools.files.change import Done, Plan, Planned, Want
from magy_server.tools.files.encodings import text_of
from magy_server.tools.files.live_file import Base
from magy_server.tools.files.paths import Place, judged
from magy_server.tools.files.read_tool import file_facts
from magy_server.tools.shipped import tool

SNIPPET = 40
"""Lines of the edited regions shown to the model."""
MERGED = 3000
"""Characters of what others changed meanwhile that are shown to the model."""
SeenTexts = Mapping[str, bytes | None]
"""By canonical path: the file as the model knows it."""


async def seen_texts(ctx: FactContext, places: Sequence[Place]) -> SeenTexts:
    return {place.path: await ctx.seen(place.path) for place in places}


async def with_diff(ctx: FactContext, facts: Facts, wants: Sequence[Want]) -> Gathered:
    return previewed(facts, await change.preview(ctx, wants))


async def recover(ctx: ToolContext, evidence: Evidence, _: Mapping[str, Any]) -> Result | None:
    done = await change.recover(ctx, evidence)
    return result_of(done, "") if done else None


# --- replacing a text ---------------------------------------------------------------------------


async def _edit_facts(
    ctx: FactContext, path: str, old_text: str, new_text: str, replace_all: bool = False, **_: Any
) -> Gathered:
    facts = file_facts(ctx, path, "write", "Edit")
    hunk = _hunk(old_text, new_text, replace_all)
    (place,) = judged(ctx.root, facts)
    plan = changing([hunk], await ctx.seen(place.path))
    return await with_diff(ctx, facts, [Want(place, plan)])


@tool(effect="write", key="edit", kind="edit", facts=_edit_facts, recover=recover,
      style="str_replace")  # fmt: skip
async def edit_file(
    ctx: ToolContext,
    path: str,
    old_text: Annotated[str, "The text to replace, with enough lines to occur only once"],
    new_text: Annotated[str, "The new text; empty to delete"],
    replace_all: Annotated[bool, "Replace every occurrence of old_text"] = False,
) -> Result:
    """Replace a text in a file. Copy old_text exactly from the file, white space and indentation
    included, without the line numbers of read_file. It must be in the file exactly once, unless
    replace_all is true. If it does not occur, or occurs several times, nothing changes, and the
    answer says why. If the file changed after you read it, your edit is merged with that change."""
    (place,) = judged(ctx.root, ctx.facts)
    hunk = _hunk(old_text, new_text, replace_all)
    want = Want(place, changing([hunk], await ctx.seen(place.path)))
    done, errors = await change.carry_out(ctx, [want], f"Edit {place.name}")
    if errors:
        raise errors[0]
    return result_of(done, "Edited", proposed=ctx.review == "propose")


def _hunk(old_text: str, new_text: str, every: bool) -> Hunk:
    old, new = plain(old_text), plain(new_text)
    if not old:
        raise ToolError("old_text is empty; give the text to replace, or use write_file.")
    if old == new:
        raise ToolError("old_text and new_text are the same; there is nothing to change.")
    return Hunk(old, new, every=every)


def changing(hunks: Sequence[Hunk], seen: bytes | None) -> Plan:
    def work_out(base: Base) -> Planned:
        if base.missing:
            raise ToolError(base.absent)
        from magy_server.edits.plan import plan  # many turns edit nothing

        known = _known(base, seen)
        resolved = plan(base.raw, hunks, known)
        if resolved.failures:
            raise ToolError(_refusal(base.place.name, resolved))
        notes = [placed.note for placed in resolved.placed if placed.note]
        return Planned(resolved.changes, "\n".join([*notes, *_meanwhile(base, known)]))

    return work_out


def _known(base: Base, seen: bytes | None) -> str | None:
    """Returns the raw text that the model has seen; None when that is what is there."""
    return None if seen is None or seen == base.holds else text_of(seen)


def _meanwhile(base: Base, known: str | None) -> list[str]:
    if known is None or plain(known) == plain(base.raw):
        return []
    diff = unified(known, base.raw, base.place.name, MERGED)
    return [
        f"{base.place.name} had changed since you read it (by the user, or by a command). Your "
        f"change was merged with that change:\n{diff}"
    ]


def _refusal(name: str, resolved: Resolved) -> str:
    count = len(resolved.placed) + len(resolved.failures)
    if count == 1:
        return f"{name} was not changed. {resolved.failures[0].message}"
    failed = [f"Hunk {f.hunk + 1} of {count}: {f.message}" for f in resolved.failures]
    fits = ", ".join(str(placed.hunk + 1) for placed in resolved.placed)
    rest = f"\nHunks that fit: {fits}. Correct the others and send all again." if fits else ""
    return f"{name} was not changed.\n" + "\n".join(failed) + rest


# --- whole files --------------------------------------------------------------------------------


async def _write_facts(ctx: FactContext, path: str, content: str, **_: Any) -> Gathered:
    facts = file_facts(ctx, path, "write", "Write")
    (place,) = judged(ctx.root, facts)
    return await with_diff(ctx, facts, [Want(place, holding(content, await ctx.seen(place.path)))])


@tool(effect="write", key="write", kind="edit", facts=_write_facts, recover=recover)
async def write_file(
    ctx: ToolContext,
    path: str,
    content: Annotated[str, "The whole new text of the file"],
) -> Result:
    """Write a whole file: create it, with the directories it needs, or replace all its text. To
    change a part of a file edit that part. An existing file keeps its encoding and line ends."""
    (place,) = judged(ctx.root, ctx.facts)
    want = Want(place, holding(content, await ctx.seen(place.path)))
    done, errors = await change.carry_out(ctx, [want], f"Write {place.name}")
    if errors:
        raise errors[0]
    made = done[0].change
    if made is None:
        return Result(f"{place.name} already has exactly this text; nothing was changed.")
    result = result_of(done, "Overwrote" if made.before else "Created",
                     proposed=ctx.review == "propose", shown=False)  # fmt: skip
    count = len(split(plain(content)))
    said = result.for_model.replace(place.name, f"{place.name} ({count} lines)", 1)
    return replace(result, for_model=said)


def holding(content: str, seen: bytes | None) -> Plan:
    """The file holds `content`. What others changed since the model saw it is merged."""

    def work_out(base: Base) -> Planned:
        if base.missing:
            return Planned([TextChange(0, 0, content)] if content else [])
        from magy_server.edits.plan import plan_text

        new = plain(content)
        if base.encoding.mark and new.startswith("\ufeff"):
            new = new[1:]
        known = _known(base, seen)
        resolved = plan_text(base.raw, new, known)
        if resolved.failures:
            raise ToolError(_refusal(base.place.name, resolved))
        return Planned(resolved.changes, "\n".join(_meanwhile(base, known)))

    return work_out


# --- what is said -------------------------------------------------------------------------------


def result_of(
    done: Sequence[Done], verb: str, *, proposed: bool = False, shown: bool = True
) -> Result:
    """`verb`: what was done to a file that is still there; "" for what its own notes say."""
    lines: list[str] = []
    for one in done:
        lines += _words(one, verb, proposed, shown)
    if proposed and any(one.change for one in done):
        lines.append(
            "The user reviews this before it is applied: the files are unchanged, and commands "
            "and searches see them unchanged. Continue as if it were done; you will be "
            "told what the user rejects."
        )
    changed = [one for one in done if one.change]
    blobs = {digest(data): data for one in changed for data in one.blobs}
    user = ", ".join(f"{one.place.name} +{one.counts[0]} -{one.counts[1]}" for one in changed)
    return Result(
        for_model="\n".join(lines),
        for_user=user,
        diff="".join(one.diff for one in changed),
        changes=tuple(one.change for one in changed if one.change),
        blobs=blobs,
    )


def _words(one: Done, verb: str, proposed: bool, shown: bool) -> list[str]:
    if one.change is None:
        same, idle = "has the same text as before.", "already was like that; nothing was changed."
        return [f"{one.place.name} {same if one.notes else idle}", *one.notes]
    if one.change.after is None:
        done = "Proposed to remove" if proposed else "Removed"
    else:
        done = "Proposed" if proposed else verb
    head = [f"{done} {one.place.name}."] if verb else []
    snippet = [_snippet(one.diff)] if shown and verb and one.change.after else []
    return [*head, *snippet, *one.notes]


def _snippet(diff: str) -> str:
    """Returns the first hunks of the diff, so that the model sees where its text went."""
    body = diff.split("\n")[2:]
    shown = "\n".join(line[:200] for line in body[:SNIPPET]).rstrip("\n")
    more = f"\n({len(body) - SNIPPET} more lines)" if len(body) > SNIPPET + 1 else ""
    return shown + more
