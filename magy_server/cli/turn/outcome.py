"""This module tells from a turn's entries how it ended: the last line, the exit code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from magy_server.api.sessions.totals import Totals
from magy_server.cli import exit_codes
from magy_server.cli.screen.text import Marks, Span, cost_of, counted, filled, tokens
from magy_server.core.agents import tree
from magy_server.core.events import Stop
from magy_server.core.text.columns import width_of
from magy_server.core.text.markdown import STOPS
from magy_server.core.updates import operation
from magy_server.core.wire_values import cost, usage
from magy_server.reviews.views import Summary

LIMITS = (
    "max_tokens", "max_requests", "max_turn_tokens", "max_cost", "max_run", "max_time", "loop",
)  # fmt: skip
LEFT = frozenset({"waiting", "ready", "running", "asking", "cancelled"})
"""States of tasks with which one can go on. What has failed, and what is skipped for it, is at its
end."""

Counts = Mapping[str, int]
"""How many tasks of a graph are in each state; none at all: it did not begin."""


def exit_code(stop: Stop | None, *, unasked: bool, counts: Counts | None = None) -> int:
    """Returns the exit code. `unasked`: Magy refused a question because it could ask nobody.
    `counts`: of the graph that the turn was to do; None: it was to do none."""
    if stop == "cancelled":
        return exit_codes.CANCELLED
    if stop in LIMITS:
        return exit_codes.LIMIT
    if stop == "stray_call":
        return exit_codes.STRAY
    if stop != "end_turn":
        return exit_codes.ERROR
    if unasked:
        return exit_codes.UNASKED
    return exit_codes.DONE if counts is None or not undone(counts) else exit_codes.ERROR


def undone(counts: Counts) -> str:
    """Returns what of a graph has come to no result, "" if all has."""
    if not counts:
        return "no task began"
    failed, skipped = counts.get("failed", 0), counts.get("skipped", 0)
    left = sum(count for state, count in counts.items() if state in LEFT)
    parts = ((failed, "failed"), (skipped, "skipped"), (left, "not done"))
    first, *more = [f"{count} {how}" for count, how in parts if count] or [""]
    number, _, how = first.partition(" ")
    whole = counted(sum(counts.values()), "task")
    return ", ".join([f"{number} of {whole} {how}", *more]) if first else ""


def last_line(
    found: Totals,
    session_id: str,
    marks: Marks,
    width: int | None = None,
    counts: Counts | None = None,
) -> list[Span]:
    """Returns the last line. The words on how to go on stand on a line of their own when they do
    not fit: people copy them. `counts`: as above."""
    said = [STOPS.get(found.stop or "", "left open")]
    missing = "" if counts is None else undone(counts)
    if missing:
        said = [missing] if found.stop == "end_turn" else [f"{said[0]}: {missing}"]
    if found.spent.requests:
        said.append(counted(found.spent.requests, "request"))
        cached = "" if found.cached is None else f", {found.cached} % of the prompt cached"
        said.append(f"{tokens(found.spent.usage)}{cached}")
        said.append(cost_of(found.spent))
    if found.changes:
        said.append(f"{counted(len(found.changes), 'file')} changed")
    style = "green" if found.stop == "end_turn" and not missing else "yellow"
    sums = _joined(said, marks, width)[len(said[0]) :]
    command = "magy graph run" if counts and LEFT & counts.keys() else "magy run"
    go_on = f"continue: {command} --resume {session_id}"
    fits = width is None or width_of(f"{said[0]}{sums} {marks.dot} {go_on}") <= width
    between = f" {marks.dot} " if fits else "\n"
    return [(said[0], style), (sums, "dim"), (f"{between}{go_on}\n", "dim")]


def _joined(parts: list[str], marks: Marks, width: int | None) -> str:
    """Joins parts into one line, or into several; no line begins within a part."""
    lines = parts[:1]
    for part in parts[1:]:
        longer = f"{lines[-1]} {marks.dot} {part}"
        if width is None or width_of(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(f"  {part}")
    return "\n".join(lines)


def waiting(
    files: Iterable[Summary], session_id: str, *, changed: bool, width: int | None = None
) -> list[Span]:
    """What of this session and its children is under review, and what can be done about it without
    an editor. `changed`: the turn that is over changed files, so undoing that turn is what is
    meant."""
    files = list(files)
    ours = [file for file in files if session_id in file.sessions]
    theirs = [file for file in files if file not in ours and _below(file, session_id)]
    made = sum(file.pending for file in ours if not file.proposed)
    only = sum(file.pending for file in ours if file.proposed)
    said = []
    if made:
        them = "it" if made == 1 else "them"
        undo = f"magy sessions undo {session_id}"
        undo += " undoes the turn" if changed else " --list shows the turns you can undo"
        what = counted(made, "hunk" if changed else "earlier hunk")
        said.append(f"{what} under review: a commit (or an editor) accepts {them}, {undo}")
    if others := sum(file.pending for file in theirs if not file.proposed):
        them = "it" if others == 1 else "them"
        said.append(
            f"{counted(others, 'hunk')} of child agents under review: a commit (or an editor) "
            f"accepts {them}, magy sessions undo {_below(theirs[0], session_id)} undoes what "
            "that child did"
        )
    if only:
        said.append(f"{counted(only, 'hunk')} only proposed: accept them in an editor")
    return [(filled(line, width), "dim") for line in said]


def _below(file: Summary, session_id: str) -> str:
    """Returns the first of the sessions below this one that changed the file, "" if none did."""
    return next((id for id in file.sessions if tree.is_below(id, session_id)), "")


def result(found: Totals, session_id: str, code: int, refused: list[str]) -> dict[str, Any]:
    """Returns the last line of `magy run --json`."""
    return {
        "type": "result",
        "sessionId": session_id,
        "stop": found.stop,
        "message": found.message,
        "exitCode": code,
        "text": found.text,
        "requests": found.spent.requests,
        "usage": usage(found.spent.usage),
        "cost": cost(found.spent.cost, found.spent.unpriced),
        "changes": [
            {"path": path, "operation": operation(change)} for path, change in found.changes.items()
        ],
        "refused": refused,
    }
