"""With this tool an agent keeps its plan: a list of tasks, shown in the transcript."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from pydantic import Field

from magy_server.core.events import Planned
from magy_server.core.tool import Result, ToolContext
from magy_server.core.values import Task
from magy_server.tools.shipped import tool


@tool(effect="read", key="plan", kind="think")
async def update_plan(
    ctx: ToolContext,
    tasks: Annotated[list[Task], "All tasks, in order", Field(max_length=50)],
) -> Result:
    """Show the user what you are going to do and how far you are, in work of several steps: at the
    start, and whenever a task begins or ends. Give the whole list, with one task in_progress."""
    states = Counter(task.status for task in tasks)
    said = ", ".join(f"{count} {status}" for status, count in states.items()) or "no tasks"
    advice = ""
    if states["in_progress"] > 1:
        advice = " Keep one task in_progress: the one you are working on."
    elif states["pending"] and not states["in_progress"]:
        advice = " Set the task that you start with to in_progress."
    return Result(
        for_model=f"Plan updated: {said}.{advice}",
        for_user=f"Plan: {said}",
        events=(Planned(tasks=tuple(tasks)),),
    )
