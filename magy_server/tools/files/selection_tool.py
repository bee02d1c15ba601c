"""The agent `rewrite` has this one tool: it gives new text for what the person has selected.

Which place of which file that is stands in the prompt, not in the arguments; so the arguments are
the text alone, and what has streamed of them can be shown at the place. What is typed elsewhere in
the file is kept; once the selection itself has been changed, nothing is replaced.
"""

from __future__ import annotations

from typing import Annotated, Any

from magy_server.core.errors import ToolError
from magy_server.core.prompting.framing import unescaped
from magy_server.core.tool import FactContext, Gathered, Result, Selection, ToolContext
from magy_server.edits.model import EditError
from magy_server.edits.rebasing.diff import changes
from magy_server.edits.text import Plain, plain
from magy_server.tools.files import change
from magy_server.tools.files.change import Plan, Planned, Want
from magy_server.tools.files.edit_tools import recover, result_of, with_diff
from magy_server.tools.files.encodings import decode
from magy_server.tools.files.live_file import Base
from magy_server.tools.files.paths import judged
from magy_server.tools.files.read_tool import file_facts
from magy_server.tools.shipped import tool

NOTHING_SELECTED = "Nothing is selected here; this tool only answers a request to rewrite a place."
TAKEN = (
    "The selection was changed while it was being rewritten, so nothing was replaced. Select it "
    "again and ask once more."
)


async def _facts(ctx: FactContext, text: str, **_: Any) -> Gathered:
    selection = await _selected(ctx)
    facts = file_facts(ctx, selection.path, "write", "Rewrite a part of")
    (place,) = judged(ctx.root, facts)
    return await with_diff(ctx, facts, [Want(place, _replacing(selection, text))])


@tool(effect="write", key="edit", kind="edit", facts=_facts, recover=recover, final=True)
async def replace_selection(
    ctx: ToolContext,
    text: Annotated[str, "The whole new text of the selection; empty removes it"],
) -> Result:
    """Replace what the user has selected, and nothing else. The text is put into the file exactly
    as it is: no code fence around it, no explanation."""
    (place,) = judged(ctx.root, ctx.facts)
    want = Want(place, _replacing(await _selected(ctx), text))
    done, errors = await change.carry_out(ctx, [want], f"Rewrite in {place.name}")
    if errors:
        raise errors[0]
    return result_of(done, "Rewrote a part of", proposed=ctx.review == "propose")


async def _selected(ctx: FactContext) -> Selection:
    selection = await ctx.selection()
    if selection is None:
        raise ToolError(NOTHING_SELECTED)
    return selection


def _replacing(selection: Selection, text: str) -> Plan:
    """Raises ToolError: what is meant by the text cannot be told."""
    from magy_server.edits.selection import PROSE, Rewrite, carried  # one agent alone does this

    seen = plain(decode(selection.seen, selection.path)[0])
    place = (selection.start, selection.end)
    try:
        new = Rewrite(seen, place, selection.path.lower().endswith(PROSE)).fitted(
            unescaped(text, seen)
        )
    except EditError as error:
        raise ToolError(error.failures[0].message) from None

    def work_out(base: Base) -> Planned:
        if base.missing:
            raise ToolError(base.absent)
        live = Plain(base.raw)
        now = carried(seen, live.text, place)
        if now is None:
            raise ToolError(TAKEN)
        start, end = map(live.to_raw, now)
        return Planned(changes(base.raw, new, start, end))

    return work_out
