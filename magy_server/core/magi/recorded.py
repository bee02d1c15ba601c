"""This module reads deliberations from a log, for who goes on with one, and for who works out its
ruling again. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from magy_server.core.agents import tree
from magy_server.core.agents.mail import Mailed, TextPayload
from magy_server.core.events import Entry, Finished, Opened, Replied, Started
from magy_server.core.magi.case import TIMES, Case, mode
from magy_server.core.magi.deliberation import (
    GONE,
    Attempt,
    Ballot,
    Deliberation,
    Stage,
    attempt,
    empty,
    over,
)
from magy_server.core.magi.ruling import rule
from magy_server.core.magi.vote import NODES, Node
from magy_server.core.reviews.review_events import Noted
from magy_server.core.values import Call
from magy_server.dataclass import dataclass

TOOL = "deliberate"
ACCEPTED = "accepted/"
"""Begins the id of the note in which a person accepts a ruling; the id of its call follows."""
PIECE = 12
"""Characters of a lesson by which it is known where only a part of it is repeated."""
_SECOND = "-2"
"""Stands behind the name of a node where it votes for the second time."""


def agent_of(node: Node) -> str:
    """Returns the name of the agent that a node is."""
    return f"magi-{node}"


def task_name(node: Node, stage: Stage) -> str:
    """Returns what the attempts of a node at this stage are called in the names of children."""
    return f"{node}{_SECOND}" if stage == 2 else node


def begun_as(call: str, session: str) -> tuple[Node, Stage, int] | None:
    """Returns what a child of a deliberation is for: node, stage and number of the attempt."""
    found = tree.attempted(call, session)
    if found is None:
        return None
    name, number = found
    node = name.removesuffix(_SECOND)
    stage: Stage = 2 if name.endswith(_SECOND) else 1
    return next(((one, stage, number) for one in NODES if one == node), None)


def deliberated(children: Iterable[str]) -> Sequence[str]:
    """Returns the sessions of which some of these are nodes, in this order."""
    found = {
        tree.parent(child): None for child in children
        if begun_as(tree.call_of(child.rpartition(tree.SEPARATOR)[2]), child)
    }  # fmt: skip
    return [session for session in found if session]


@dataclass(frozen=True, slots=True)
class Record:
    """`at`: when it was asked for, seconds since the epoch. `finished`: the end of the call, None
    while it lasts. `accepted`: when a person accepted that it overturns an earlier one."""

    deliberation: Deliberation
    at: float
    finished: Finished | None
    accepted: float | None = None

    @property
    def ended(self) -> bool:
        """Returns whether there is a ruling."""
        return self.finished is not None and self.finished.status == "completed"


def records(session: str, entries: Iterable[Entry]) -> Sequence[Record]:
    """Returns the deliberations in the log of a session, the oldest first. What a fork has of its
    source keeps its id: it is the same ruling."""
    copied = 0
    calls: dict[str, tuple[float, Mapping[str, Any]]] = {}
    ends: dict[str, Finished] = {}
    reports: dict[str, Mailed] = {}
    told: dict[str, Mapping[str, Mailed]] = {}
    reminded: dict[str, tuple[str, ...]] = {}
    accepted: dict[str, float] = {}
    for entry in entries:
        match entry.event:
            case Opened(forked_from=(_, int(last))):
                copied = last
            case Replied():
                for part in entry.event.content:
                    if isinstance(part, Call) and part.name == TOOL and part.invalid is None:
                        calls[part.id] = (entry.at, part.arguments)
            case Mailed(report=report, sender=sender) if report is not None:
                if tree.parent(sender) == session or entry.seq <= copied:
                    reports[sender] = entry.event
            case Started() if entry.event.call in calls:
                reminded.setdefault(entry.event.call, entry.event.evidence.reminded)
            case Noted(id=id) if id.startswith(ACCEPTED):
                accepted.setdefault(id.removeprefix(ACCEPTED), entry.at)
            case Finished() if entry.event.call in calls:
                ends[entry.event.call] = entry.event
                told[entry.event.call] = dict(reports)  # what comes later changes no ruling
    found: list[Record] = []
    for call, (at, arguments) in calls.items():
        try:
            case = case_of(arguments)
        except ValidationError:
            continue  # the model was told what is wrong with it
        mails = told.get(call, reports)
        home = next(iter(deliberated(child for child in mails if begun_as(call, child))), session)
        one = deliberation(home, call, case, mails, reminded.get(call, ()))
        one = over(one) if call in ends else one
        one = replace(one, earlier=earlier(case, found))
        found.append(Record(one, at, ends.get(call), accepted.get(call)))
    return found


def earlier(case: Case, records: Sequence[Record]) -> str:
    """Returns what the ruling was that the case asks to look at again; "": none."""
    of = case.review.of if case.review else ""
    found = (one.deliberation for one in records if one.deliberation.id == of)
    return next((rule(one).tally.final for one in found), "")


def case_of(arguments: Mapping[str, Any]) -> Case:
    """Returns the case that the arguments of a call put. Raises ValidationError."""
    given = {key: value for key, value in arguments.items() if key in Case.model_fields}
    if of := arguments.get("review_of"):
        given["review"] = {
            "of": of,
            "reason": arguments.get("review_reason", ""),
            "new_evidence": arguments.get("new_evidence", ()),
            "felt": arguments.get("felt", False),
        }
    return Case.model_validate(given)


def deliberation(
    session: str,
    call: str,
    case: Case,
    reports: Mapping[str, Mailed],
    reminded: tuple[str, ...] = (),
) -> Deliberation:
    """Returns the deliberation of that call, as far as these messages tell of it: by child, the one
    that its turn ended with. `reminded`: what CASPER was told of its emotional log."""
    tries: dict[tuple[Node, Stage], dict[int, Attempt]] = {}
    for child, mail in reports.items():
        if tree.parent(child) == session and (about := begun_as(call, child)):
            node, stage, number = about
            one = replace(reported(node, stage, case, mail), report=mail.report)
            tries.setdefault((node, stage), {})[number] = _unled(one, reminded)
    ballots = tuple(
        Ballot(one.node, _in_order(tries.get((one.node, 1))), _in_order(tries.get((one.node, 2))))
        for one in empty()
    )
    return Deliberation(
        f"{session}/{call}", case, ballots, tuple(_alike(ballots)), reminded=reminded
    )


def _unled(one: Attempt, reminded: tuple[str, ...]) -> Attempt:
    """A feeling that it was reminded of is no evidence, so a vote cannot name it as such."""
    if one.vote is None or not reminded:
        return one
    lessons = [line.partition("): ")[2].casefold().strip(" .") for line in reminded]

    def evident(texts: tuple[str, ...]) -> tuple[str, ...]:
        plain = [(text, text.casefold().strip(" .")) for text in texts]
        return tuple(
            text for text, said in plain
            if not any(lesson in said or (len(said) >= PIECE and said in lesson)
                       for lesson in lessons)
        )  # fmt: skip

    vote = one.vote.model_copy(update={
        "evidence": evident(one.vote.evidence), "new_evidence": evident(one.vote.new_evidence),
    })  # fmt: skip
    return replace(one, vote=vote)


def _in_order(tries: Mapping[int, Attempt] | None) -> tuple[Attempt, ...]:
    return tuple(tries[number] for number in sorted(tries)) if tries else ()


def reported(node: Node, stage: Stage, case: Case, mail: Mailed) -> Attempt:
    """Returns what came of an attempt, by the message that its turn ended with."""
    report, model = mail.report, mail.metadata.get("model", "")
    text = mail.payload.text if isinstance(mail.payload, TextPayload) else ""
    assert report is not None
    if report.status == "completed":
        return attempt(node, model, text)
    times = TIMES[mode(case)[0]]
    seconds = times.second if stage == 2 else times.first
    late = f"There was no answer within {seconds:g} seconds."
    if report.stop == "max_time":
        return Attempt(model, "timeout", problem=late)
    if report.status == "cancelled" and report.seconds >= seconds:
        where = f"{node}: it was still at work after {seconds:g} seconds, and was stopped."
        return Attempt(model, "timeout", problem=late, warning=where)
    if report.status == "cancelled":
        return GONE
    return Attempt(model, "failed", problem=text.strip().split("\n", 1)[0][:300])


def _alike(ballots: Sequence[Ballot]) -> Iterable[str]:
    """What is to be said of nodes that have one model: three of one kind err alike."""
    models: dict[str, list[str]] = {}
    for one in ballots:
        if one.first and one.first[0].model:
            models.setdefault(one.first[0].model, []).append(one.node)
    for model, nodes in models.items():
        if len(nodes) > 1:
            names = f"{', '.join(nodes[:-1])} and {nodes[-1]}"
            yield f"{names} have the same model, {model}: they may err alike."
