"""The tool `switch_workspace` has the commands of a session begin in another directory."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from magy_server.core.events import Moved
from magy_server.core.tool import FactContext, Gathered, Result, ToolContext
from magy_server.tools.files.paths import judged
from magy_server.tools.search import searched_place
from magy_server.tools.shipped import tool


async def _facts(ctx: FactContext, path: str, **_: Any) -> Gathered:
    return searched_place.facts(ctx, path, "Work in"), {}


@tool(effect="read", key="read", kind="other", facts=_facts, seldom=True)
async def switch_workspace(
    ctx: ToolContext,
    path: Annotated[str, "A directory in the workspace; `.` is the workspace root"],
) -> Result:
    """Have commands begin in another directory of the workspace, from your next reply on: a package
    of a monorepo, say. Paths of files stay relative to the workspace root."""
    (place,) = judged(ctx.root, ctx.facts)
    await asyncio.to_thread(searched_place.check_folder, place)
    where = searched_place.called(place)
    return Result(
        for_model=f"Commands begin in {where} from now on.",
        for_user=f"Works in {where}",
        events=(Moved(call=ctx.call, cwd=place.path),),
    )
