"""This module reads how the graphs of a session are now, from the store alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from magy_server.core.agents import tree
from magy_server.core.agents.tree import Stream
from magy_server.core.graphs.graph import MOST
from magy_server.core.graphs.progress import GraphProgress
from magy_server.core.graphs.recorded import attempts, recorded
from magy_server.core.graphs.shown import shown
from magy_server.core.ports import Store
from magy_server.core.state.fold import fold
from magy_server.core.state.state import State
from magy_server.core.summary import children, row
from magy_server.tools.agents import graph_tool


async def graphs_of(
    store: Store,
    stream: Stream,
    *,
    most: int = MOST,
    queued: Callable[[Stream], bool] = lambda stream: False,
) -> list[Mapping[str, Any]]:
    """Returns the graphs that were begun in a session, the first one first, each as clients get it.
    `most`: tasks of one graph that are shown; `queued`: a child waits for a slot."""
    # The children first: of what has ended by then, the result is in the log.
    below = [one for one in map(row, await store.below(stream)) if one]
    entries = await store.read(stream)
    state = fold(entries, State(stream))
    own = [one for one in children(below, queued) if one.parent == state.id]
    forked = state.opened.forked_from if state.opened else None
    found: list[Mapping[str, Any]] = []
    for begun in recorded(entries).graphs.values():
        if not begun.started or (forked and tree.asked_at(begun.id) <= forked[1]):
            continue
        tries = attempts(begun.id, own, state.reports, begun.since)
        how = GraphProgress(begun.id, graph_tool.given(begun.arguments), tries)
        found.append({**shown(how, most), "running": begun.open})
    return found
