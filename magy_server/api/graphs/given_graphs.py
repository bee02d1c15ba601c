"""A graph that a person gives is a call of the tool `run_graph` which they make themself: it is
judged, asked about, run, taken up again after a crash and shown as the call of a model is. The turn
that it opens ends with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from magy_server.api.service import Outcome, Service
from magy_server.api.wire.refusals import sentences
from magy_server.core.agents.tree import stream_of
from magy_server.core.errors import InvalidRequest, ToolError
from magy_server.core.events import Configured
from magy_server.core.graphs.graph import GraphTask
from magy_server.core.graphs.recorded import TOOL, recorded
from magy_server.core.state.state import State
from magy_server.core.values import GivenCall, Text
from magy_server.engine.log import Write
from magy_server.tools.agents import graph_tool


async def run(
    service: Service, session_id: str, message_id: str, arguments: Mapping[str, Any]
) -> Outcome:
    """Has the graph done in a turn of its own. `arguments`: those of the tool; with `go_on`, the id
    of a graph of this session and nothing else. Raises InvalidRequest."""
    session = await service.loaded.session(stream_of(session_id))
    try:
        if on := arguments.get("go_on"):
            began = recorded(await service.world.store.read(session.stream)).of(on)
            if began is None:
                raise InvalidRequest(f"Session {session_id!r} has no graph {on!r}.")
            text = graph_tool.said(graph_tool.given(began.arguments), "Go on with")
        else:
            text = graph_tool.said(_tasks(arguments))
    except ToolError as error:
        raise InvalidRequest(error.message) from None
    title = Configured(option="title", value=text)

    def entitle(now: State) -> Write | None:
        fresh = not now.options.get("title") and not now.conversation.items
        return Write([title]) if fresh and not now.queue.seqs else None

    await session.append(entitle)
    call = GivenCall(name=TOOL, arguments=dict(arguments))
    return await service.prompt(session_id, message_id, [Text(text=text)], "queue", call=call)


def _tasks(arguments: Mapping[str, Any]) -> list[GraphTask]:
    """Returns the tasks in order. Raises ToolError, and InvalidRequest in the words that clients
    get: a person wrote these."""
    try:
        found = graph_tool.run_graph.shape.arguments(arguments)
    except ValidationError as error:
        raise InvalidRequest(
            f"These tasks cannot be done: {sentences(error, arguments)}."
        ) from None
    return graph_tool.ordered(found["tasks"], found["shape"], found["rounds"])
