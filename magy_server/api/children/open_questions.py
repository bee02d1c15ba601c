"""This module finds the open questions of sessions, and says who asks: for a child, whose it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from magy_server.api.present import interaction
from magy_server.api.sessions.pages import blob_texts
from magy_server.api.wire import sessions as wire
from magy_server.core.ports import Store, StreamInfo
from magy_server.core.text.sanitizing import LINE, shortened
from magy_server.engine import trees


async def questions(store: Store, infos: Sequence[StreamInfo]) -> list[wire.Interaction]:
    """The open questions of these sessions, each with where in its tree that is."""
    found: list[wire.Interaction] = []
    for info in infos:
        if open_ := info.summary.get("questions"):
            found += await looked_up(store, info.id, open_)
    return found


async def looked_up(
    store: Store, session_id: str, questions: Sequence[Mapping[str, Any]]
) -> list[wire.Interaction]:
    """The questions that a session's summary has, as values of the wire."""
    steps = [_step(info) for info in await trees.path(store, session_id)]
    texts = await blob_texts(store, {hash for one in questions if (hash := one.get("preview"))})
    return [interaction(session_id, one, texts, steps) for one in questions]


def of_root(
    session_id: str, question: Mapping[str, Any], agent: str, name: str
) -> wire.Interaction:
    """A question, as a session's summary has it, of a session that is no child; it shows nothing
    that would have to be looked up."""
    step = wire.PathStep(session_id=session_id, agent=agent, name=name)
    return interaction(session_id, question, {}, [step])


def _step(info: StreamInfo) -> wire.PathStep:
    about = info.summary
    return wire.PathStep(
        session_id=info.id,
        agent=about.get("options", {}).get("agent", ""),
        name=about.get("title") or "",
    )


def who(steps: Sequence[wire.PathStep]) -> str:
    """A child and its parent, for people: "explore (look around), child of build (fix it)"."""
    named = [f"{step.agent} ({step.name})" if step.name else step.agent for step in steps[-2:]]
    return shortened(", child of ".join(reversed(named)), LINE)
