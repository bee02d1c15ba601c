"""Magy asks a hidden agent for titles and summaries, outside of the conversation."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence

from magy_server.core.agents.tree import Stream
from magy_server.core.errors import MagyError
from magy_server.core.events import Consulted, Ended, Entry
from magy_server.core.ports import Message, ModelRequest
from magy_server.core.state.state import State
from magy_server.core.values import Hash, Text
from magy_server.engine.feature_ports import Purse
from magy_server.engine.loaded_sessions import Sessions
from magy_server.engine.log import Write
from magy_server.engine.model import as_text, ask
from magy_server.engine.session import Session
from magy_server.engine.world import World, put
from magy_server.tasks import Tasks

LOG = logging.getLogger(__name__)
ROOM = {"title": 6_000, "summary": 60_000}
"""Characters of the transcript that each is given."""
TITLE = 80
"""Characters; a longer title is cut."""
TRIES = 3
"""How often a process tries to get a session its title."""
LATE = 20
"""Turns after which a session without a title is left as it is."""


async def consult(
    session: Session, world: World, purse: Purse, name: str
) -> tuple[Consulted, dict[Hash, bytes]]:
    """What the agent `name` says of the session, and the blobs to store with it. Raises
    ProviderError."""
    state = session.state
    agent, settings = world.agent(name, state.root), world.settings(state.root).model
    small = settings.small if name == "title" else ""
    own = state.conversation.briefing.model if state.conversation.briefing else state.model
    model = agent.model or small or own or await world.models(state.root).default()
    text = await as_text(state, world, ROOM.get(name, 20_000))
    request = ModelRequest(
        id=name,
        session=session.stream,
        model=model,
        system=(agent.prompt,),
        tools=(),
        messages=(Message("user", (Text(text=text),)),),
        max_tokens=settings.max_tokens,
        temperature=agent.temperature,
        single=True,
    )
    reply = await ask(session, world, purse, request)
    blobs: dict[Hash, bytes] = {}
    said = Consulted(
        agent=name,
        model=reply.model,
        request=put(text, blobs),
        text=reply.text,
        usage=reply.usage,
        cost=reply.cost,
    )
    return said, blobs


class Titles:
    """A listener: a session that has ended a turn and has no title gets one from the model."""

    def __init__(self, sessions: Sessions, world: World, purse: Purse) -> None:
        self._sessions = sessions
        self._world = world
        self._purse = purse
        self._tasks = Tasks()
        self._asking: set[Stream] = set()
        self._tries: Counter[str] = Counter()

    def __call__(self, state: State, entries: Sequence[Entry]) -> None:
        stops = [entry.event.stop for entry in entries if isinstance(entry.event, Ended)]
        ended = any(stop not in ("error", "cancelled", "refusal") for stop in stops)
        given_up = state.turns > LATE or self._tries[state.stream] >= TRIES
        named = state.options.get("title") or given_up
        free = state.stream not in self._asking
        if ended and not named and free and self._world.settings(state.root).titles:
            self._tries[state.stream] += 1
            self._asking.add(state.stream)
            self._tasks.begin(self._give(state.stream), f"title {state.stream}")

    async def _give(self, stream: Stream) -> None:
        """A title is a nicety: when it cannot be had, the first prompt stands for it."""
        try:
            session = await self._sessions.session(stream)
            said, blobs = await consult(session, self._world, self._purse, "title")
            said = said.model_copy(update={"text": title_of(said.text)})
            write = Write([said], blobs)
            await session.append(lambda now: write if now.opened else None)
        except MagyError as error:
            LOG.info("%s: no title: %s", stream, error)
        finally:
            self._asking.discard(stream)

    async def close(self) -> None:
        await self._tasks.cancel()


def title_of(text: str) -> str:
    """The first line, without the quotes and marks that models like to put round it."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    line = line.strip("\"'`*#“”„ ").removesuffix(".")
    return line if len(line) <= TITLE else line[: TITLE - 1] + "…"
