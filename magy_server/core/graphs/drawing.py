"""Pictures of a graph: for Graphviz, for Mermaid, and as lines of text. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from magy_server.core.graphs.graph import GraphTask, TaskState
from magy_server.core.text.sanitizing import one_line

MARKS: Mapping[TaskState, str] = {
    "waiting": "·", "ready": "·", "running": "▸", "asking": "?", "completed": "✓",
    "failed": "✗", "cancelled": "–", "skipped": "–",
}  # fmt: skip
_COLOURS: Mapping[TaskState, str] = {
    "running": "#3b82f6", "asking": "#f59e0b", "completed": "#22c55e", "failed": "#ef4444",
}  # fmt: skip
_OTHER = "#9ca3af"


def dot(tasks: Sequence[GraphTask], how: Mapping[str, TaskState]) -> str:
    """Returns the graph in the language of Graphviz."""
    lines = ["digraph tasks {", "  rankdir=LR;", "  node [shape=box, style=rounded];"]
    for task in tasks:
        label = one_line(f"{MARKS[how[task.id]]} {task.id}").replace('"', "'")
        agent = one_line(task.agent).replace("\\", "").replace('"', "'")
        colour = _COLOURS.get(how[task.id], _OTHER)
        lines.append(f'  "{task.id}" [label="{label}\\n{agent}", color="{colour}"];')
    lines += [f'  "{need}" -> "{task.id}";' for task in tasks for need in task.needs]
    return "\n".join([*lines, "}"])


def mermaid(tasks: Sequence[GraphTask], how: Mapping[str, TaskState]) -> str:
    """Returns the graph as a Mermaid flow chart."""
    places = {task.id: f"t{number}" for number, task in enumerate(tasks)}
    lines = ["flowchart LR"]
    for task in tasks:
        agent = one_line(task.agent).replace('"', "'")
        lines.append(f'  {places[task.id]}["{MARKS[how[task.id]]} {task.id}<br/>{agent}"]')
    lines += [f"  {places[need]} --> {places[task.id]}" for task in tasks for need in task.needs]
    return "\n".join(lines)
