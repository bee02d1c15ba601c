"""This module reads from logs which graphs were begun in a session, and the attempts at their
tasks. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from magy_server.core.agents import tree
from magy_server.core.agents.child import LIVE, ChildInfo
from magy_server.core.agents.mail import Mailed, Status
from magy_server.core.events import Entry, Finished, Replied, Started
from magy_server.core.graphs.progress import Attempt
from magy_server.core.state.state import Reported
from magy_server.core.values import Call
from magy_server.dataclass import dataclass

TOOL = "run_graph"
"""The tool that begins graphs, and goes on with them."""


@dataclass(frozen=True, slots=True)
class Begun:
    """The graph that the call `id` began, with the arguments of that call. `since`: where in the
    log, and when (seconds since the epoch), somebody went on with it last; zeros: nobody did."""

    id: str
    arguments: Mapping[str, Any]
    since: tuple[int, float] = (0, 0.0)
    started: bool = False
    """It was allowed, and children may have been spawned."""
    open: bool = False
    """A call runs it."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """`ids`: by call, which graph it ran; `graphs`: by id, in the order in which they began."""

    ids: Mapping[str, str]
    graphs: Mapping[str, Begun]

    def of(self, call: str) -> Begun | None:
        """Returns the graph that a call of the session ran."""
        id = self.ids.get(call)
        return self.graphs[id] if id else None


def recorded(entries: Iterable[Entry]) -> Recorded:
    """`entries`: the whole log of the session."""
    ids: dict[str, str] = {}
    graphs: dict[str, Begun] = {}
    for entry in entries:
        match entry.event:
            case Replied() as replied:
                for call in replied.calls:
                    if call.name == TOOL and call.invalid is None:
                        _asked(ids, graphs, call, entry.at)
            case Started(call=call) if call in ids:
                graphs[ids[call]] = replace(graphs[ids[call]], started=True, open=True)
            case Finished(call=call) if call in ids:
                graphs[ids[call]] = replace(graphs[ids[call]], open=False)
    return Recorded(ids, graphs)


def _asked(ids: dict[str, str], graphs: dict[str, Begun], call: Call, at: float) -> None:
    on = call.arguments.get("go_on")
    if not on:
        ids[call.id], graphs[call.id] = call.id, Begun(call.id, call.arguments)
    elif id := ids.get(str(on)):
        ids[call.id] = id
        graphs[id] = replace(graphs[id], since=(tree.asked_at(call.id), at))


def attempts(
    graph: str,
    children: Iterable[ChildInfo],
    reports: Mapping[str, Reported],
    since: tuple[int, float] = (0, 0.0),
) -> dict[str, list[Attempt]]:
    """Returns by task the attempts at it, the first one first. `children`: those that the session
    has; `reports`: the latest results of all that it had. `since` as in `Begun`: what somebody
    cancelled before, or what the limits of the run stopped, a person wants to be done after all."""
    found: dict[str, list[Attempt]] = {}
    there: set[str] = set()
    for child in children:
        there.add(child.session)
        if about := tree.attempted(graph, child.session):
            had = reports.get(child.session)
            status = _status(child, had.mail if had else None)
            before = had.seq < since[0] if had else child.created < since[1]
            mail = had.mail if had else None
            spent = bool(mail and mail.report and mail.report.stop == "max_run")
            void = spent or (status == "cancelled" and before)
            one = Attempt(child, about[1], status, mail, void, spent and not before)
            found.setdefault(about[0], []).append(one)
    for id, had in reports.items():
        if id not in there and (about := tree.attempted(graph, id)):  # a person has deleted it
            child = _child(had.mail)
            status = _status(child, had.mail)
            found.setdefault(about[0], []).append(Attempt(child, about[1], status, had.mail))
    return {task: sorted(tries, key=_number) for task, tries in found.items()}


def _child(mail: Mailed) -> ChildInfo:
    """What the result of an agent tells of it."""
    above = tree.parent(mail.sender) or ""
    model = mail.metadata.get("model", "")
    return ChildInfo(
        mail.sender, above, mail.name, mail.agent, model, "closed", tree.depth(mail.sender)
    )


def _status(child: ChildInfo, mail: Mailed | None) -> Status:
    if child.status in LIVE:
        return child.status
    return mail.report.status if mail and mail.report else "cancelled"


def _number(attempt: Attempt) -> int:
    return attempt.number
