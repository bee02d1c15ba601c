"""This module makes the summary of a session that the store keeps beside its log, and reads it.

Lists and clients that attach read it instead of folding: opening a session of ten thousand events
costs what one of a hundred does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any

from magy_server.core.agents import tree
from magy_server.core.agents.child import ChildInfo, status
from magy_server.core.agents.mail import Status
from magy_server.core.agents.tree import Stream, stream_of
from magy_server.core.events import Asked, Prompted, Replied
from magy_server.core.ports import StreamInfo
from magy_server.core.state.queue import Arrival
from magy_server.core.state.spending import Spent
from magy_server.core.state.state import State
from magy_server.core.steps import opener
from magy_server.core.text.sanitizing import visible
from magy_server.core.updates import interaction
from magy_server.core.values import Text, Usage
from magy_server.core.wire_values import cost, usage
from magy_server.dataclass import dataclass

TITLE = 80


def summarise(state: State) -> dict[str, Any]:
    """Returns the summary as plain JSON; `seq` is the entry up to which it holds."""
    opened = state.opened
    return {
        "seq": state.seq,
        "root": opened.root if opened else None,
        "cwd": opened.cwd if opened else "",
        "title": title(state),
        "state": activity(state),
        "turns": state.turns,
        "options": dict(state.options),
        "waiting": [
            {"messageId": p.id, "delivery": p.delivery, "text": text_of(p)}
            for p in state.queue.waiting
        ],
        "questions": [
            question_of(state, question.asked, question.at) for question in state.questions.values()
        ],
        "plan": [task.model_dump() for task in state.conversation.plan],
        "usage": usage(state.spending.usage),
        "cost": cost(state.spending.cost, state.spending.unpriced),
        "context": {
            "tokens": state.conversation.context,
            "window": state.conversation.briefing.window if state.conversation.briefing else 0,
        },
        "child": about_child(state),
        "background": dict(state.background),
        "runs": {run: (took.usage.total, took.cost) for run, took in state.spending.runs.items()},
    }


def question_of(state: State, asked: Asked, at: float) -> dict[str, Any]:
    """Returns an open question as plain JSON, without the text of `preview`, which is looked up
    where it is shown."""
    about = interaction(asked, {})
    del about["content"]
    of = {"agent": state.agent, "at": at, "preview": asked.preview, "code": asked.code}
    if asked.form:
        of["form"] = asked.form.model_dump(mode="json")
    return {**about, **of}


def activity(state: State) -> str:
    """idle | running | requires_action"""
    if state.questions:
        return "requires_action"
    return "running" if state.turn or opener(state) or state.compact else "idle"


def title(state: State) -> str:
    """The given title, else the first line of the first prompt, be it one that was taken back."""
    if given := state.options.get("title"):
        return _line(given)
    if state.conversation.told:
        return _line(state.conversation.told[0])
    said = chain(state.conversation.items, state.queue.waiting)
    first = next((item for item in said if isinstance(item, Prompted)), None)
    return text_of(first) if first else _line(state.queue.withdrawn)


def text_of(arrival: Arrival) -> str:
    text = " ".join(block.text for block in arrival.content if isinstance(block, Text)).strip()
    return _line(text)


def _line(text: str) -> str:
    line = visible(text.split("\n", 1)[0])
    return line if len(line) <= TITLE else line[: TITLE - 1] + "…"


SAID = 200
"""Characters."""


def task_id(session_id: str) -> str:
    """The id of the prompt that a child is spawned with."""
    return f"{session_id}:task"


def about_child(state: State) -> dict[str, Any] | None:
    """Returns what the summary has of a child, as plain JSON; None for a session that is not a
    child."""
    opened = state.opened
    if opened is None or opened.parent is None:
        return None
    return {
        "called": bool(opened.call),
        "name": state.options.get("title", ""),
        "agent": state.agent,
        "model": state.model
        or (state.conversation.briefing.model if state.conversation.briefing else ""),
        "status": status(state),
        "unbegun": status(state, queued=True) == "queued",
        "closed": state.closed is not None,
        "turns": own_turns(state),
        "waiting": len(state.queue.waiting),
        "requests": state.spending.requests,
        "usage": state.spending.usage.model_dump(),
        "cost": state.spending.cost,
        "unpriced": state.spending.unpriced,
        "said": _said(state),
        "stop": state.last_stop or "",
    }


def own_turns(state: State) -> int:
    """Returns the number of the session's own turns; those that came with a child's context are its
    parent's."""
    opened = state.opened
    if opened is None or opened.parent is None or opened.forked_from is None:
        return state.turns
    first = task_id(state.id)
    copied = next((n for n, past in enumerate(state.history.pasts) if past.turn == first), None)
    return 0 if copied is None else len(state.history.pasts) - copied


def _said(state: State) -> str:
    """The beginning of what it said last, or of its task."""
    task = task_id(state.id)
    for item in chain(reversed(state.queue.waiting), reversed(state.conversation.items)):
        of_task = isinstance(item, Prompted) and item.id == task
        if isinstance(item, Prompted | Replied) and (of_task or isinstance(item, Replied)):
            texts = [part.text for part in item.content if isinstance(part, Text)]
            text = "\n".join(texts).strip()
            if text or of_task:
                return text[:SAID]
    return ""


@dataclass(frozen=True, slots=True)
class Row:
    """What the store has of a child. `about` is what `about_child` made."""

    session: str
    about: Mapping[str, Any]
    questions: int
    created: float
    updated: float

    @property
    def stream(self) -> Stream:
        return stream_of(self.session)

    @property
    def called(self) -> bool:
        """Returns whether the parent's model spawned the child."""
        return bool(self.about["called"])

    @property
    def closed(self) -> bool:
        return bool(self.about["closed"])

    @property
    def spent(self) -> Spent:
        about = self.about
        usage = Usage.model_validate(about["usage"])
        return Spent(about["requests"], usage, about["cost"], about["unpriced"])

    def status(self, *, queued: bool) -> Status:
        """`queued`: it waits for a slot."""
        found: Status = self.about["status"]
        return "queued" if queued and self.about["unbegun"] else found

    def info(self, below: Iterable[Row], *, queued: bool) -> ChildInfo:
        """`below`: all children under it."""
        below = list(below)
        about, spent = self.about, self.spent
        return ChildInfo(
            session=self.session,
            parent=tree.parent(self.session) or "",
            name=about["name"],
            agent=about["agent"],
            model=about["model"],
            status=self.status(queued=queued),
            depth=tree.depth(self.session),
            turns=about["turns"],
            waiting=about["waiting"],
            questions=self.questions + sum(row.questions for row in below),
            spent=spent,
            tree=sum((row.spent for row in below), spent),
            said=about["said"],
            stop=about["stop"],
            created=self.created,
            updated=self.updated,
        )


def row(info: StreamInfo) -> Row | None:
    """Returns what the store has of a child; None for a session that is not a child."""
    about = info.summary.get("child")
    if not about:
        return None
    questions = len(info.summary.get("questions") or ())
    return Row(info.id, about, questions, info.created, info.updated)


def children(
    rows: Iterable[Row], queued: Callable[[Stream], bool] = lambda stream: False
) -> list[ChildInfo]:
    """Returns each after its parent; brothers and sisters by age. `queued`: it waits for a slot."""
    rows = list(rows)
    ages = {one.session: one.created for one in rows}
    below: dict[str, list[Row]] = {one.session: [] for one in rows}
    for one in rows:
        for id in tree.ancestors(one.session):
            if id in below:
                below[id].append(one)

    def place(one: Row) -> list[tuple[float, str]]:
        above = [*reversed(tree.ancestors(one.session)), one.session]
        return [(ages.get(id, 0.0), id) for id in above]

    return [
        one.info(below[one.session], queued=queued(one.stream)) for one in sorted(rows, key=place)
    ]
