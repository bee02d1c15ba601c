"""This module runs the tool of one call, or looks what became of a call whose process is gone:
whatever comes of it, errors too, becomes a result for the log."""

from __future__ import annotations

import errno
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from magy_server import own_files
from magy_server.core.errors import MagyError, ToolError
from magy_server.core.events import Finished
from magy_server.core.ports import Files
from magy_server.core.state.turn import CallState
from magy_server.core.tool import Result, Tool, ToolContext
from magy_server.core.values import Call, Evidence, FileChange, Hash, Version
from magy_server.engine.context import RunContext
from magy_server.engine.read_cache import Results
from magy_server.engine.world import put

LOG = logging.getLogger(__name__)

STOPPED = "(stopped before it ended)"
UNKNOWN = (
    "The process that ran this was killed. It is unknown whether it took effect: check before you "
    "do it again."
)
NOT_RUN = "(not run: the turn was stopped before it)"
OVER = "(not run: the call before this one ended the turn)"
PARTIAL = 2_000
"""Characters of a stopped command's output that the model still gets."""

LONGEST = 16_000
"""Characters of what went wrong that the model is told: that repeats arguments, and a model can
write megabytes of those."""

NAMED = 10
"""Changed files that are named."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

Outcome = tuple[Finished, Mapping[Hash, bytes]]


async def supervised(call: Call, tool: Tool, context: RunContext, results: Results) -> Outcome:
    """Runs a tool; whatever it raises becomes a result. The one place where tools are caught."""
    try:
        result = await results.of(call, tool, context)
    except ToolError as error:
        return await failed(context, "failed", error.message)
    except MagyError:
        raise  # the log could not be written: not the tool's fault, and not the model's matter
    except Exception as error:
        if not (text := no_room(error)):
            LOG.exception("%s failed", call.name)
            text = f"{call.name} failed inside Magy: {type(error).__name__}: {error}"
            text += own_files.advice()
        return await failed(context, "failed", text)
    context.events.extend(result.events)
    return completed(context, result)


def no_room(error: Exception) -> str:
    """What a person is told of a disk that takes no more; "" if it is anything else."""
    if not isinstance(error, OSError) or error.errno not in _FULL:
        return ""
    where = f"{error.filename} cannot be written" if error.filename else "A file cannot be written"
    return f"{where}: {error.strerror}. Free some space, then prompt again."


async def failed(context: RunContext, status: Literal["failed", "unknown"], text: str) -> Outcome:
    """Returns the result of a call that failed. Files that it had changed by then are under review
    all the same, and the model learns of them."""
    changes: tuple[FileChange, ...] = ()
    if context.state:
        changes = await happened(context.files, context.root, context.state)
    said = bounded(context.secrets.clean(text))
    return Finished(call=context.call, status=status, for_model=said, changes=changes), {}


def bounded(text: str) -> str:
    """Returns the text, or its beginning and its end, `LONGEST` characters together."""
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return f"{text[:half]}\n[... {len(text) - LONGEST:,} characters left out ...]\n{text[-half:]}"


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


def completed(context: RunContext, result: Result) -> Outcome:
    """Returns the result of a call that completed, without the keys that the tool came upon; its
    changes of files stay as they are."""
    secrets, blobs = context.secrets, dict(result.blobs)
    for text in filter(context.knows, result.seen):
        blobs.pop(text.hash, None)  # the store has it
    finished = Finished(
        call=context.call,
        status="completed" if result.ok else "failed",
        for_model=secrets.clean(result.for_model),
        for_user=secrets.clean(result.for_user),
        diff=put(secrets.clean(result.diff), blobs) if result.diff else None,
        images=tuple(result.images),
        output=put(secrets.clean_bytes(result.output), blobs)
        if result.output is not None
        else None,
        graph=put(result.graph, blobs) if result.graph else None,
        deliberation=put(secrets.clean(result.deliberation), blobs)
        if result.deliberation
        else None,
        changes=tuple(result.changes),
        seen=tuple(result.seen),
        background=result.background,
    )
    return finished, blobs


def timed(finished: Finished, duration: float) -> Finished:
    """`duration`: how long the call took, in seconds."""
    return finished.model_copy(update={"duration": duration})


async def happened(files: Files, root: str, call: CallState) -> tuple[FileChange, ...]:
    """What a call that did not complete had changed by then, found by looking."""
    found = []
    meant = call.started.changes if call.started else ()
    paths = {change.path for change in meant}
    for change in meant:
        after = Version(hash=change.after, kind=change.now if change.after else "file")
        if change.before == change.after and change.was == change.now:
            continue
        if change.via == "command":  # on record only after it was seen
            found.append(change)
            continue
        try:
            now = await files.look(root, change.path, paths)
        except ToolError:
            continue
        if now.version == after:
            found.append(change)
    return tuple(found)


def closed(
    call: CallState,
    output: str = "",
    changes: Sequence[FileChange] = (),
    graph: Hash | None = None,
    deliberation: Hash | None = None,
    *,
    over: bool = False,
) -> Finished:
    """How a call ends that is stopped from outside. `changes`: those that it made by then; `graph`,
    `deliberation`: how far that was which it ran. `over`: a call before it ended the turn."""
    if call.started is None:
        text = OVER if over else NOT_RUN
        return Finished(call=call.call.id, status="not_run", for_model=text)
    made = tuple(changes)
    names = ", ".join(change.path for change in made[:NAMED])
    names += f" and {len(made) - NAMED} more" if len(made) > NAMED else ""
    said = f"\nChanged before that: {names}" if made else ""
    if call.orphan:
        text = UNKNOWN + said
        return Finished(call=call.call.id, status="unknown", for_model=text, changes=made)
    text = (f"{STOPPED}\n{output[-PARTIAL:]}" if output else STOPPED) + said
    return Finished(
        call=call.call.id,
        status="cancelled",
        for_model=text,
        changes=made,
        graph=graph,
        deliberation=deliberation,
    )
