"""In the Compact step a model sums up what it has seen; the log adds what must not get lost."""

from __future__ import annotations

import logging
from dataclasses import replace

from magy_server.core.errors import MagyError, OverBudget, ProviderError, ProviderFault, StoreError
from magy_server.core.events import Compacted, Ended, Event, Replied, Stop
from magy_server.core.ports import Message, ModelRequest
from magy_server.core.prompting.compaction import cut, digest, replacement
from magy_server.core.prompting.framing import framed
from magy_server.core.prompting.prefix_cache import SoFar
from magy_server.core.state.state import State
from magy_server.core.steps import hand_back
from magy_server.core.values import NO_USAGE, Call, Text
from magy_server.engine.briefing import briefing as briefing_of
from magy_server.engine.feature_ports import Purse
from magy_server.engine.log import Write
from magy_server.engine.model import as_text, ask, request_of
from magy_server.engine.session import Session
from magy_server.engine.world import World, put

LOG = logging.getLogger(__name__)

HOPELESS: tuple[ProviderFault, ...] = ("too_long", "refused")
"""Faults that the same conversation will always meet; after others it is left as it is."""
TEXT = 60_000
"""Characters of a transcript that is summed up where the conversation itself is too long, unless
the model's window is known."""


async def compacted(session: Session, world: World, purse: Purse) -> Write:
    """What to append. Nothing is replaced unless there is a summary, or none can ever be had: then
    what the log knows has to do. All that can be wrong here is looked at before it costs anything.
    Raises StoreError."""
    state = session.state
    resting = state.turn is None
    try:
        agent = world.agent("compaction", state.root)
        briefing, blobs = await briefing_of(world, state)
        session.streaming.notice("Compacting the conversation ...\n")
        summary = _Summary(session, world, purse, agent.prompt)
        text = await summary.write()
    except StoreError:
        raise
    except OverBudget as error:
        return given_up(state, error.message, "max_run")
    except MagyError as error:
        return given_up(state, error.message)
    dropped = cut(state) or cut(state, all=True)
    if not dropped:
        return given_up(state, "there is nothing that may be left out.")
    event = Compacted(
        dropped=dropped,
        summary=put(replacement(text, digest(state, dropped)), blobs),
        written=bool(text),
        request=put(summary.asked, blobs),
        model=summary.spent[-1].model if summary.spent else "",
        usage=sum((reply.usage for reply in summary.spent), NO_USAGE),
        cost=summary.cost,
        resting=resting,
    )
    events: list[Event] = [event] if briefing == state.conversation.briefing else [briefing, event]
    return Write(events, blobs)


def given_up(state: State, problem: str, stop: Stop = "error") -> Write:
    """The conversation stays as it is; a turn that needed it shorter cannot go on."""
    events: list[Event] = [Compacted(problem=problem, resting=state.turn is None)]
    if state.turn:
        message = f"The conversation could not be compacted: {problem}"
        if stop == "max_run":
            message = hand_back(state, state.turn, problem)
        events.append(Ended(turn=state.turn.id, stop=stop, message=message))
    return Write(events)


class _Summary:
    """First asked for at the end of the very conversation, so that all of it is read from the
    provider's cache; where that is too long, or is answered otherwise, of a transcript."""

    def __init__(self, session: Session, world: World, purse: Purse, instructions: str) -> None:
        self._session = session
        self._world = world
        self._purse = purse
        self._state = session.state
        self.asked = instructions
        focus = self._state.compact.focus if self._state.compact else ""
        if focus:
            self.asked += f"\n\nThe user asks you to keep this in particular: {focus}"
        self.spent: list[Replied] = []
        """The replies to all tries."""

    async def write(self) -> str:
        """ "": the model could not sum up. Raises ProviderError for what may be better later."""
        too_long = self._state.compact is not None and self._state.compact.why == "too_long"
        request = await request_of(self._state, self._world)
        briefing = self._state.conversation.briefing
        room = briefing.window * 2 if briefing and briefing.window else TEXT
        tries = [] if too_long else [asking(request, self.asked)]
        for size in (room, room // 4):
            tries.append(self._alone(request, await as_text(self._state, self._world, size)))
        for one in tries:
            try:
                reply = await ask(self._session, self._world, self._purse, one)
            except ProviderError as error:
                if error.fault not in HOPELESS:
                    raise
                LOG.warning("%s: no summary: %s", self._session.stream, error)
                continue
            self.spent.append(reply)
            if text := _text(reply):
                return text
        return ""

    def _alone(self, request: ModelRequest, conversation: str) -> ModelRequest:
        """A request of its own, without tools."""
        text = framed("conversation", conversation)
        message = Message("user", (Text(text=f"{text}\n\n{self.asked}"),))
        return replace(request, system=(), tools=(), messages=(message,), so_far=SoFar())

    @property
    def cost(self) -> float | None:
        """None: nothing was spent, or the price of some of it is not known."""
        known = [reply.cost for reply in self.spent if reply.cost is not None]
        return sum(known) if known and len(known) == len(self.spent) else None


def _text(reply: Replied) -> str:
    """Only a whole answer that is nothing but words is a summary."""
    if reply.stop not in ("end_turn", "stray_call") or any(
        isinstance(part, Call) for part in reply.content
    ):
        return ""
    return reply.text


def asking(request: ModelRequest, text: str) -> ModelRequest:
    """The request with one more thing said by the user."""
    part = Text(text=text)
    *earlier, last = request.messages
    if last.role == "user":
        messages = (*earlier, Message("user", (*last.parts, part)))
    else:
        messages = (*request.messages, Message("user", (part,)))
    return replace(request, messages=messages)
