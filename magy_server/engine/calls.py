"""Running one tool call: whatever comes of it becomes a result for the log."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from magy_server.core.errors import MagyError, ToolError
from magy_server.core.events import Call, Evidence, Finished, Hash
from magy_server.core.state import CallState
from magy_server.core.tool import Result, Tool, ToolContext
from magy_server.engine.context import RunContext
from magy_server.engine.results import Results
from magy_server.engine.world import put

LOG = logging.getLogger(__name__)

STOPPED = "(stopped before it ended)"
UNKNOWN = (
    "The process that ran this was killed. Whether it took effect is unknown: look before you "
    "do it again."
)
PARTIAL = 2_000
"""Characters of a stopped command's output that the model still gets."""

Outcome = tuple[Finished, Mapping[Hash, bytes]]


async def supervised(call: Call, tool: Tool, context: RunContext, results: Results) -> Outcome:
    """Runs a tool; whatever it raises becomes a result. The one place where tools are caught."""
    try:
        result = await results.of(call, tool, context)
    except ToolError as error:
        return Finished(call=call.id, status="failed", for_model=error.message), {}
    except MagyError:
        raise  # the log could not be written: not the tool's fault, and not the model's matter
    except Exception as error:
        LOG.exception("%s failed", call.name)
        text = f"{call.name} failed inside Magy: {type(error).__name__}: {error}"
        return Finished(call=call.id, status="failed", for_model=text), {}
    context.events.extend(result.events)
    return completed(call.id, result)


async def look(
    tool: Tool, context: ToolContext, evidence: Evidence, arguments: Mapping[str, Any]
) -> Result | None:
    """What became of a call whose process is gone; None: nothing, it can run. Raises ToolError when
    that cannot be known."""
    if tool.effect == "read":
        return None
    if tool.recover is None:
        raise ToolError(UNKNOWN)
    return await tool.recover(context, evidence, arguments)


def completed(id: str, result: Result) -> Outcome:
    blobs = dict(result.blobs)
    finished = Finished(
        call=id,
        status="completed",
        for_model=result.for_model,
        for_user=result.for_user,
        diff=put(result.diff, blobs) if result.diff else None,
        images=tuple(result.images),
        output=put(result.output, blobs) if result.output is not None else None,
        changes=tuple(result.changes),
        background=result.background,
    )
    return finished, blobs


def closed(call: CallState, output: str = "") -> Finished:
    """How a call ends that is stopped from outside."""
    if call.started is None:
        text = "(not run: the turn was stopped first)"
        return Finished(call=call.call.id, status="not_run", for_model=text)
    if call.orphan:
        return Finished(call=call.call.id, status="unknown", for_model=UNKNOWN)
    text = f"{STOPPED}\n{output[-PARTIAL:]}" if output else STOPPED
    return Finished(call=call.call.id, status="cancelled", for_model=text)
