"""The verbs of `magy/graph/*` have graphs of tasks done, and tell how they are."""

from __future__ import annotations

from magy_server.api.connected import Seat
from magy_server.api.graphs.given_graphs import run
from magy_server.api.graphs.shown_graphs import graphs_of
from magy_server.api.wire import graphs as wire
from magy_server.core.errors import InvalidRequest
from magy_server.core.graphs.pictures import dot, mermaid


class GraphVerbs:
    def __init__(self, at: Seat) -> None:
        self._service = at.service

    async def run(self, params: wire.GraphRunParams) -> wire.GraphRunResult:
        if bool(params.tasks) is bool(params.go_on):
            raise InvalidRequest("magy/graph/run takes either `tasks` or `goOn`.")
        arguments = params.model_dump(exclude_defaults=True, exclude={"session_id", "request_key"})
        outcome = await run(self._service, params.session_id, params.request_key, arguments)
        return wire.GraphRunResult(message_id=params.request_key, outcome=outcome)

    async def show(self, params: wire.GraphShowParams) -> wire.GraphShowResult:
        info = await self._service.info(params.session_id)
        found = await graphs_of(
            self._service.world.store, info.stream, most=params.limit,
            queued=self._service.slots.queued,
        )  # fmt: skip
        if params.graph_id is not None:
            found = [one for one in found if one["graphId"] == params.graph_id]
            if not found:
                raise InvalidRequest(
                    f"Session {info.id!r} has no graph {params.graph_id!r}; leave `graphId` out to "
                    "get all that it has."
                )
        graphs = [
            wire.GraphShown(**one, mermaid=mermaid(one), dot=dot(one))
            if params.pictures else wire.GraphShown(**one)
            for one in found[-wire.MOST_GRAPHS :]
        ]  # fmt: skip
        return wire.GraphShowResult(graphs=graphs)
