"""This module waits until a session has nothing to do any more, and has its questions asked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Literal

from magy_server.api.wire.sessions import Interaction, InteractionsParams
from magy_server.core.agents.tree import Stream, stream_of
from magy_server.core.errors import StoreUnavailable
from magy_server.core.state.state import State
from magy_server.core.summary import activity
from magy_server.core.text.sanitizing import LINE, shortened
from magy_server.dataclass import dataclass
from magy_server.engine.trees import hear
from magy_server.mcp_server.calling import Calling
from magy_server.mcp_server.served_project import CLIENT, Served

PACE = 0.2
"""Seconds between two looks at what has changed."""
TICK = 5.0
"""Seconds between two looks while nothing seems to change, and two signs of life."""


@dataclass(frozen=True, slots=True)
class Rest:
    """How a session was found: `waiting` is for a person. `questions`: what is asked in it and
    below it; `alone`: no other process of Magy is there who could show them to somebody."""

    state: Literal["idle", "running", "waiting"]
    questions: Sequence[Interaction] = ()
    alone: bool = False


async def rested(served: Served, session_id: str, seconds: float, call: Calling) -> Rest:
    """Waits until the session rests, but no longer than `seconds`, and no longer than there is
    somebody who could answer its questions. Raises MagyError: it cannot go on."""
    service, stream = served.service, stream_of(session_id)
    session = await service.loaded.session(stream)
    await session.refresh()
    if activity(session.state) != "idle":
        await service.resume(session_id)
    moved, broken = asyncio.Event(), list[str]()

    def broke(which: Stream, sentence: str) -> None:
        if which == stream:
            broken.append(sentence)
            moved.set()

    stops = (
        session.watch(moved.set),
        hear(service.world.bus, session_id, lambda _: moved.set()),
        service.loaded.news.broken.add(broke),
    )
    until = time.monotonic() + seconds
    unanswered: set[str] = set()
    try:
        while True:
            moved.clear()
            if broken:
                raise StoreUnavailable(broken[0])
            if activity(session.state) == "idle":
                return Rest("idle")
            turn = session.state.turn
            # What is being stopped takes no answers any more.
            asked = [] if turn and turn.cancel else await _asked(served, session_id)
            left, alone = until - time.monotonic(), not service.world.peers()
            new = [one for one in asked if one.interaction_id not in unanswered]
            if new and call.asks and left > 0:
                unanswered.add(new[0].interaction_id)
                await _ask(served, new[0], call, left)
                continue
            if left <= 0 or (asked and alone):
                return Rest("waiting" if asked else "running", asked, alone)
            await call.progress(_doing(session.state))
            await _pause(moved, min(left, TICK))
    finally:
        for stop in stops:
            stop()


async def _pause(moved: asyncio.Event, seconds: float) -> None:
    await asyncio.sleep(min(PACE, seconds))
    try:
        async with asyncio.timeout(seconds):
            await moved.wait()
    except TimeoutError:
        return


async def _asked(served: Served, session_id: str) -> Sequence[Interaction]:
    found = await served.questions.list(InteractionsParams(session_id=session_id))
    return found.interactions


async def _ask(served: Served, question: Interaction, call: Calling, seconds: float) -> None:
    """Has the client ask its person. Who says nothing leaves the question to others, and so does a
    form: more than a yes cannot be passed on."""
    if question.form and question.form.fields:
        return
    try:
        async with asyncio.timeout(seconds):
            word = await call.ask(question.interaction_id, asking(question))
    except TimeoutError:
        return
    if word == "nothing":
        return
    await served.service.answer(
        question.session_id,
        question.interaction_id,
        allow=word == "yes",
        reason="",
        scope="once",
        by=CLIENT,
    )


def asking(question: Interaction) -> str:
    """A question as a person reads it."""
    who = f"{question.agent} asks: " if question.agent else ""
    where = f"\n{question.form.url}" if question.form else ""
    return f"{who}{question.title}{where}\n(why it asks: {question.rule})"


def _doing(state: State) -> str:
    """What it does now, on one line."""
    calls = state.turn.open_calls if state.turn else ()
    titles = [call.judged.facts.title for call in calls if call.judged and call.judged.facts.title]
    return shortened("; ".join(titles) or "the model works", LINE)
