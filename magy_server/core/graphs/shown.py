"""Clients are shown a graph as plain JSON: its tasks, with states and what they took. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from magy_server.core.graphs.graph import GraphTask
from magy_server.core.graphs.progress import GraphProgress, begun
from magy_server.core.text.sanitizing import shortened
from magy_server.core.wire_values import cost

MOST = 200
"""Tasks of a graph that are shown at once."""
ABOUT = 200
"""Characters of a task's prompt."""
AT_WORK = ("running", "asking")
_NEWS = ("running", "asking", "failed", "cancelled")


def shown(how: GraphProgress, most: int = MOST) -> dict[str, Any]:
    """Returns how a graph is: its tasks in order, of many those first that are not just waiting or
    done."""
    told = [task for task in how.tasks if how.states[task.id] in _NEWS][:most]
    chosen = {task.id for task in told}
    for task in how.tasks:
        if len(chosen) == most:
            break
        chosen.add(task.id)
    counts = Counter(how.states.values())
    levels = _depths(how.tasks)
    return {
        "graphId": how.id,
        "counts": dict(counts),
        "tasks": [_task(how, task, levels[task.id]) for task in how.tasks if task.id in chosen],
    }


def _task(how: GraphProgress, task: GraphTask, depth: int) -> dict[str, Any]:
    tries = how.attempts.get(task.id, ())
    spent = how.took(task.id)
    return {
        "id": task.id,
        "agent": task.agent,
        "model": tries[-1].child.model if tries else task.model,
        "state": how.states[task.id],
        "needs": list(task.needs),
        "depth": depth,
        "sessionId": tries[-1].child.session if tries else None,
        "attempts": len(tries),
        "seconds": round(how.seconds(task.id), 3),
        "tokens": spent.usage.total,
        "cost": cost(spent.cost, spent.unpriced),
        "line": how.line(task),
        "about": shortened(task.prompt, ABOUT),
    }


def _depths(tasks: Sequence[GraphTask]) -> Mapping[str, int]:
    """By task, how many others come before it, one after the other. `tasks`: in order."""
    found: dict[str, int] = {}
    for task in tasks:
        found[task.id] = max((found[id] + 1 for id in task.needs), default=0)
    return found


def stopped(text: str) -> str:
    """Returns a graph, as JSON, that somebody stops: what was at work then is cancelled."""
    graph = json.loads(text)
    for task in graph["tasks"]:
        if (state := task["state"]) in AT_WORK:
            rest = task["line"].removeprefix(begun(task["id"], task["agent"], state))
            task["state"] = "cancelled"
            task["line"] = begun(task["id"], task["agent"], "cancelled") + rest
    counts = Counter(graph["counts"])
    ended = sum(counts.pop(state, 0) for state in AT_WORK)
    graph["counts"] = dict(counts + Counter(cancelled=ended))
    return as_text(graph)


def as_text(graph: Mapping[str, Any]) -> str:
    """Returns it on one line, as JSON."""
    return json.dumps(graph, ensure_ascii=False, separators=(",", ":"))
