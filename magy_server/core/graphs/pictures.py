"""A graph is drawn here as text that programs make pictures of: DOT and Mermaid. It takes what
clients are shown (`shown`); nothing in there can end a label early, or mean something to those
programs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from magy_server.core.text.sanitizing import one_line
from magy_server.regex import regex

_PLAIN = regex(r"[^\w .,:/()+-]")
FILLS = {
    "running": "#cfe3ff", "asking": "#ffe9b3", "completed": "#cdeccd", "failed": "#f6caca",
    "cancelled": "#e4e4e4", "skipped": "#e4e4e4",
}  # fmt: skip
"""The colour of a task by its state; one that waits has none."""

Shown = Mapping[str, Any]


def mermaid(graph: Shown) -> str:
    """Returns a flow chart, the first tasks on top."""
    lines = ["flowchart TD"]
    for node, task in _nodes(graph):
        label = "<br/>".join(map(_mermaid, _label(task)))
        lines.append(f'  {node}["{label}"]:::{task["state"]}')
    lines += [f"  {one} --> {other}" for one, other in _edges(graph)]
    lines += [f"  classDef {state} fill:{fill},color:#111" for state, fill in FILLS.items()
              if any(task["state"] == state for task in graph["tasks"])]  # fmt: skip
    return "\n".join(lines)


def dot(graph: Shown) -> str:
    """Returns the graph in the language of Graphviz. What a task is about shows as a tooltip."""
    lines = ["digraph tasks {", '  node [shape=box, style="rounded,filled", fillcolor="#ffffff"];']
    for node, task in _nodes(graph):
        label = "\\n".join(map(_dot, _label(task)))
        fill = FILLS.get(task["state"], "#ffffff")
        lines.append(
            f'  {node} [label="{label}", fillcolor="{fill}", tooltip="{_dot(task["about"])}"];'
        )
    lines += [f"  {one} -> {other};" for one, other in _edges(graph)]
    return "\n".join([*lines, "}"])


def _nodes(graph: Shown) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, task in enumerate(graph["tasks"]):
        yield f"t{number}", task


def _edges(graph: Shown) -> Iterator[tuple[str, str]]:
    nodes = {task["id"]: node for node, task in _nodes(graph)}
    for node, task in _nodes(graph):
        for id in task["needs"]:
            if id in nodes:  # of many tasks, some are left out
                yield nodes[id], node


def _label(task: Mapping[str, Any]) -> list[str]:
    """The lines of a task: what it is called, who does it and how it is, what it took."""
    took = [f"{task['seconds']:.1f} s"] if task["seconds"] else []
    if task["tokens"]:
        took.append(f"{task['tokens']} tokens")
    if task["cost"]["amount"]:
        took.append(f"{task['cost']['amount']:.4f} USD")
    if task["attempts"] > 1:
        took.append(f"{task['attempts']} attempts")
    who = " ".join(filter(None, [task["agent"], task["model"]]))
    return [task["id"], f"{who}: {task['state']}", *([", ".join(took)] if took else [])]


def _mermaid(text: str) -> str:
    """Whatever is not a letter, a digit or a harmless sign becomes a character code."""
    return _PLAIN.sub(lambda found: f"#{ord(found[0])};", one_line(text))


def _dot(text: str) -> str:
    return one_line(text).replace("\\", "\\\\").replace('"', '\\"')
