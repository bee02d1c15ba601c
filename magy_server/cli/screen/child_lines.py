"""This module writes a child agent as one line: its name, how it is, and what it took."""

from __future__ import annotations

from collections.abc import Sequence

from magy_server.cli.screen.text import Marks, Span, cost_of, tokens
from magy_server.core.agents.child import LIVE, ChildInfo
from magy_server.core.text.columns import shortened, width_of
from magy_server.core.text.sanitizing import one_line

STYLES = {
    "completed": "green", "failed": "red", "waiting": "question", "running": "yellow",
    "queued": "dim", "closed": "dim", "cancelled": "yellow",
}  # fmt: skip


def label(child: ChildInfo) -> str:
    name = one_line(child.name)
    return f"{one_line(child.agent)} ({name})" if name else one_line(child.agent)


def line(child: ChildInfo, marks: Marks, top: int, width: int | None = None) -> list[Span]:
    """Returns a line that says how a child is now. `top`: the depth of the session that is
    shown. `width`: columns that it may take; None: as many as it needs."""
    ended = child.status not in LIVE
    mark = {
        "queued": marks.pending, "running": marks.current, "waiting": marks.asked,
        "completed": marks.done, "failed": marks.failed,
    }.get(child.status, marks.skipped)  # fmt: skip
    indent = "  " * max(1, child.depth - top)
    parts: list[str] = [child.status]
    if ended and child.spent.requests:
        parts += [tokens(child.spent.usage), cost_of(child.spent)]
    said = f" {marks.dot} " + f" {marks.dot} ".join(filter(None, parts))
    style, name = STYLES[child.status], label(child)
    if width is not None:
        name = shortened(name, max(12, width - width_of(f"{indent}{mark} {said}")), marks.cut)
    return [(f"{indent}{mark} ", style), (name, ""), (f"{said}\n", style)]


def live(children: Sequence[ChildInfo]) -> str:
    return ", ".join(f"{label(child)} {child.status}" for child in children)
