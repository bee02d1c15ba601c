"""The Compact step: the model sums up what it has seen, the log adds what must not get lost."""

from __future__ import annotations

import logging
from dataclasses import replace

from magy_server.core.compact import cut, digest, replacement
from magy_server.core.errors import ProviderError
from magy_server.core.events import Compacted, Event, Hash, Replied, Text, Usage
from magy_server.core.ports import Message, ModelRequest
from magy_server.engine.model import ask, request_of
from magy_server.engine.session import Session, Write
from magy_server.engine.world import World, put

LOG = logging.getLogger(__name__)


async def compacted(session: Session, world: World) -> Write:
    """What to append. The briefing is renewed with it, as a new prefix begins anyway.

    The summary is asked for at the end of the very conversation, so that all of it is read from the
    provider's cache. When the model cannot answer, what the log knows has to do.
    """
    state = session.state
    session.notice("Compacting the conversation ...\n")
    blobs: dict[Hash, bytes] = {}
    root = state.opened.root if state.opened else None
    asked = world.agent("compaction", root).prompt
    if state.compact and state.compact.focus:
        asked += f"\n\nThe user asks you to keep in particular: {state.compact.focus}"
    reply = await _summary(session, world, asked)
    said = "\n\n".join(p.text for p in reply.content if isinstance(p, Text)) if reply else ""
    dropped = cut(state) or len(state.conversation)
    text = replacement(said, digest(state, dropped))
    event = Compacted(
        dropped=dropped,
        summary=put(text, blobs),
        request=put(asked, blobs),
        model=reply.model if reply else "",
        usage=reply.usage if reply else Usage(),
        cost=reply.cost if reply else None,
    )
    briefing, named = await world.briefing(state)
    events: list[Event] = [event] if briefing == state.briefing else [briefing, event]
    return Write(events, {**blobs, **named})


async def _summary(session: Session, world: World, asked: str) -> Replied | None:
    request = asking(await request_of(session.state, world), asked)
    try:
        return await ask(session, world, request)
    except ProviderError as error:
        LOG.warning("%s: no summary: %s", session.stream, error)
        return None


def asking(request: ModelRequest, text: str) -> ModelRequest:
    """The request with one more thing said by the user."""
    part = Text(text=text)
    *earlier, last = request.messages
    if last.role == "user":
        messages = (*earlier, Message("user", (*last.parts, part)))
    else:
        messages = (*request.messages, Message("user", (part,)))
    return replace(request, messages=messages)
