"""A session at a glance, stored beside its log in the same transaction as each append.

Lists and attaching clients read this instead of folding: opening a session of ten thousand events
costs what one of a hundred does.
"""

from __future__ import annotations

from typing import Any

from magy_server.core.amounts import cost, usage
from magy_server.core.events import Asked, Prompted, Text
from magy_server.core.harmless import visible
from magy_server.core.state import Arrival, State
from magy_server.core.steps import opener
from magy_server.core.updates import interaction
from magy_server.engine.glance import glance

TITLE = 80


def summarise(state: State) -> dict[str, Any]:
    """Plain JSON; `seq` is the entry it stands for."""
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
            {"messageId": p.id, "delivery": p.delivery, "text": text_of(p)} for p in state.waiting
        ],
        "questions": [
            question_of(state, question.asked, question.at) for question in state.questions.values()
        ],
        "plan": [task.model_dump() for task in state.plan],
        "usage": usage(state.usage),
        "cost": cost(state.cost, state.unpriced),
        "context": {
            "tokens": state.context,
            "window": state.briefing.window if state.briefing else 0,
        },
        "child": glance(state),
        "background": dict(state.background),
        "runs": {run: (took.usage.total, took.cost) for run, took in state.runs.items()},
    }


def question_of(state: State, asked: Asked, at: float) -> dict[str, Any]:
    """Without the text of `preview`, which is looked up where it is shown."""
    about = interaction(asked, {})
    del about["content"]
    of = {"agent": state.agent, "at": at, "preview": asked.preview, "code": asked.code}
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
    if state.told:
        return _line(state.told[0])
    said = (*state.conversation, *state.waiting)
    first = next((item for item in said if isinstance(item, Prompted)), None)
    return text_of(first) if first else _line(state.withdrawn)


def text_of(arrival: Arrival) -> str:
    text = " ".join(block.text for block in arrival.content if isinstance(block, Text)).strip()
    return _line(text)


def _line(text: str) -> str:
    line = visible(text.split("\n", 1)[0])
    return line if len(line) <= TITLE else line[: TITLE - 1] + "…"
