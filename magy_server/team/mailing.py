"""`Mailing` sends messages to agents; waits for them begin here, too (`waiting.py`).

A message is in the log of who gets it before anybody is told, so none is lost; sending it twice
under one key is once. Nobody polls: who waits watches the sessions that matter, under one timer.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Literal

from magy_server.core.agents import tree
from magy_server.core.agents.child import LIVE, Waited
from magy_server.core.agents.mail import (
    DataPayload,
    Mailed,
    Payload,
    SignalPayload,
    TextPayload,
    known,
    ulid,
)
from magy_server.core.agents.tree import Stream, stream_of
from magy_server.core.errors import InvalidRequest, NotFound, StoreError
from magy_server.core.events import CancelAsked, Event, Prompted, Requeued
from magy_server.core.state.fold import ahead
from magy_server.core.state.queue import Arrival
from magy_server.core.state.state import State
from magy_server.core.steps import opener
from magy_server.core.tool import Delivery
from magy_server.core.values import Content, Hash, Text
from magy_server.engine.briefing import mentioned, unvouched
from magy_server.engine.loaded_sessions import Sessions
from magy_server.engine.log import Decide, Write
from magy_server.engine.rules import at_work
from magy_server.engine.session import Session
from magy_server.engine.world import World
from magy_server.tasks import Tasks
from magy_server.team.children import NO_BLOBS, Children
from magy_server.team.heartbeat import Heartbeat
from magy_server.team.request_keys import earlier, refuse_other
from magy_server.team.waiting import Waiting

LOG = logging.getLogger(__name__)

Sent = Literal["started", "steered", "queued", "known", "delivered"]
"""A turn begins; it joins the running one; it waits; it was sent before; it is no text, and is in
the inbox."""
TOPIC = "mail"
MAX_QUEUE = 200
"""Messages that may wait at an agent."""
STOPS = ("cancel", "shutdown")
"""Signals that even a closed agent takes, and that only go down the tree."""


class Mailing:
    """One for a process."""

    def __init__(self, world: World, sessions: Sessions, children: Children) -> None:
        self._world = world
        self._sessions = sessions
        self._children = children
        self._tasks = Tasks()
        self._subscriptions = ExitStack()
        self._subscriptions.callback(world.bus.subscribe(TOPIC, self._receive))
        heartbeat = Heartbeat(world, sessions)
        self._subscriptions.callback(sessions.news.signalled.add(heartbeat))

    async def close(self) -> None:
        """What is being appended is appended."""
        self._subscriptions.close()
        await self._tasks.settle()

    async def send(
        self,
        to: str,
        said: str | Payload | Sequence[Content],
        *,
        key: str,
        delivery: Delivery = "steer",
        sender: str = "",
        blobs: Mapping[Hash, bytes] = NO_BLOBS,
    ) -> Sent:
        """`sender`: session id of the agent that says it, to one below it or to "parent"; "": a
        person does, with `blobs` for the pictures. `key`: the call, or the request; for what a
        person says it is the message's id. Raises NotFound and InvalidRequest, with sentences for
        whoever sent it."""
        to = _recipient(to, sender) if sender else to
        session = await self._session(to)
        if isinstance(said, str):
            said = TextPayload(text=said)
        if isinstance(said, SignalPayload | DataPayload):
            return await self._tell(session, said, key, sender)
        if delivery == "interrupt" and sender and not tree.is_below(to, sender):
            raise InvalidRequest("An agent cannot interrupt its parent: use mode steer or queue.")
        if sender:
            if not isinstance(said, TextPayload):
                raise InvalidRequest("An agent can only send text; nothing was sent.")
            return await self._say(session, await self._mail(to, said, key, sender), delivery)
        content = (Text(text=said.text),) if isinstance(said, TextPayload) else tuple(said)
        async with session.arriving:
            found, more = await mentioned(self._world, session.state, content)
            strange = unvouched(self._world, session.state, found)
            prompted = Prompted(id=key, content=tuple(found), by=self._world.me, untrusted=strange)
            sent = await self._say(session, prompted, delivery, {**blobs, **more})
        if sent == "known":
            await refuse_other(self._world.store, session.state, key, content)
        return sent

    async def wait(
        self,
        waiter: str,
        ids: Sequence[str] = (),
        *,
        until: Literal["any", "all"] = "all",
        after: int | None = None,
        deadline: float,
        itself: bool = False,
        asked: frozenset[str] | None = None,
    ) -> Waited:
        """Waits until any or all of these agents, all below `waiter`, have nothing to do; none
        named: its own, see `awaited`. `after`: count only turns that ended after this cursor; where
        the log of `waiter` does not say when one ended, it counts as it is. `deadline`: seconds
        since the epoch; reaching it stops nobody. `itself`: `waiter` waits, and reads what it gets:
        any is the first with something that it has not had, and it also ends when somebody has
        something to say to `waiter`. `asked`: it also ends when others of them wait for an answer
        themselves than these. The answer has all of them, with a result for those that are
        done. Raises NotFound, InvalidRequest."""
        for id in (ids := ids or await self.awaited(waiter, after)):
            if not tree.is_below(id, waiter):
                raise InvalidRequest(
                    f"{id!r} is not below {waiter!r}. An agent can only wait for agents below it, "
                    "so that no two agents wait for each other."
                )
        session = await self._session(waiter)
        targets = [await self._session(id) for id in dict.fromkeys(ids)]
        waiting = Waiting(
            self._world,
            self._sessions,
            self._children,
            session,
            targets,
            until,
            after,
            itself,
            asked,
        )
        return await waiting.until(deadline)

    async def awaited(self, waiter: str, after: int | None = None) -> list[str]:
        """Returns the waiter's children that are not closed, or still at work, or whose result came
        after this cursor (without one: waits to be read). Raises NotFound."""
        session = await self._session(waiter)
        await session.refresh()
        state = session.state
        inbox = {arrival.id for arrival in state.queue.waiting}
        unread = {
            id
            for id, one in state.reports.items()
            if (one.mail.id in inbox if after is None else one.seq > after)
        }
        there = [
            await self._children.list(waiter, recursive=False, closed=c) for c in (True, False)
        ]
        takes = {child.session for child in there[1]}
        return [
            child.session
            for child in there[0]
            if child.session in takes | unread or child.status in LIVE
        ]

    # --- sending --------------------------------------------------------------------------------

    async def _session(self, id: str) -> Session:
        try:
            return await self._sessions.session(stream_of(id))
        except NotFound:
            raise NotFound(f"There is no agent {id!r}; the list of agents names them.") from None

    async def _mail(self, to: str, payload: Payload, key: str, sender: str) -> Mailed:
        """Not yet with a delivery."""
        key = f"{sender}:{key}" if sender else key
        mail = Mailed(id=ulid(self._world.clock.now(), key), sender=sender, agent="", to=to,
                      payload=payload)  # fmt: skip
        if not sender:
            return mail
        state = (await self._session(sender)).state
        chain = [state, *await self._world.above(state)]
        reports = tree.parent(sender) == to and state.opened and not state.opened.call
        return mail.model_copy(update={
            "wakes": not reports,  # a person reads what their own children say, when they like
            "agent": state.agent,
            "name": state.options.get("title", "") if tree.parent(sender) else "",
            "run": state.turn.run if state.turn else state.spending.run,
            "untrusted": state.conversation.untrusted,
            "skills": at_work(chain) if to.startswith(f"{sender}/") else (),
        })  # fmt: skip

    async def _say(
        self,
        session: Session,
        arrival: Arrival,
        delivery: Delivery,
        blobs: Mapping[Hash, bytes] = NO_BLOBS,
    ) -> Sent:
        outcome: Sent = "known"
        mode = "steer" if delivery == "steer" else "queue"
        arrival = arrival.model_copy(update={"delivery": mode})
        interrupts = delivery == "interrupt"

        def decide(now: State) -> Write | None:
            nonlocal outcome
            if _had(now, arrival):
                outcome = "known"
                return None
            refuse_closed(now)
            refuse_full(now)
            events = arriving(now, arrival, interrupt=interrupts)
            outcome = _outcome(now, arrival)
            return Write(events, blobs)

        running = session.state.turn
        if await self._post(session, decide) and interrupts and running:
            # What its turn had others do is not wanted any more, either.
            await self._children.stop_below(session.id, all=False)
        return outcome

    async def _tell(
        self, session: Session, payload: DataPayload | SignalPayload, key: str, sender: str
    ) -> Sent:
        """What is for machines. `cancel` and `shutdown` are done in the same breath."""
        signal = payload.signal if isinstance(payload, SignalPayload) else ""
        to = session.id
        if signal in STOPS and sender and not tree.is_below(to, sender):
            raise InvalidRequest(f"An agent cannot send {signal} to its parent.")
        if not sender:
            await refuse_other(self._world.store, session.state, key, payload)
        mail = await self._mail(to, payload, key, sender)
        if signal == "shutdown":
            by = sender or self._world.me
            await self._children.close(to, "cancel", "shutdown", recursive=True, by=by)

        def decide(now: State) -> Write | None:
            if _had(now, mail) or (not sender and earlier(now, key)):
                return None
            if signal not in STOPS:
                refuse_closed(now)
            events: list[Event] = [mail]
            if signal == "cancel" and now.turn and not now.turn.cancel:
                events.append(CancelAsked(turn=now.turn.id))
            return Write(events)

        appended = await self._post(session, decide)
        if not appended and not sender:
            await refuse_other(self._world.store, session.state, key, payload)
        if appended and signal == "cancel":
            await self._children.stop_below(session.id, all=False)
        if appended:  # who runs the tree may not have this session in memory
            self._world.bus.publish(TOPIC, {"by": self._world.me, "to": session.stream})
        return "delivered" if appended else "known"

    async def _post(self, session: Session, decide: Decide) -> bool:
        """Appends and wakes as a whole, also when who asked for it is gone meanwhile."""

        async def whole() -> bool:
            appended = bool(await session.append(decide))
            self._sessions.wake(session)
            return appended

        return await self._tasks.whole(whole())

    def _receive(self, message: Mapping[str, Any]) -> None:
        stream = Stream(str(message.get("to", "")))
        if message.get("by") != self._world.me and self._sessions.trees.holds(stream):
            self._tasks.begin(self._look(stream))

    async def _look(self, stream: Stream) -> None:
        try:
            session = await self._sessions.session(stream)
            await session.refresh()
        except (NotFound, StoreError) as error:
            LOG.warning("%s: %s", stream, error)


def arriving(now: State, arrival: Arrival, *, interrupt: bool) -> list[Event]:
    """Returns the events of an arrival. With `interrupt` they cancel the running turn, and put the
    arrival before all that wait."""
    if not interrupt or now.turn is None:
        return [arrival]
    order = (arrival.id, *(waiting.id for waiting in now.queue.waiting))
    return [arrival, Requeued(order=order), CancelAsked(turn=now.turn.id)]


def _had(now: State, arrival: Arrival) -> bool:
    if isinstance(arrival, Prompted):
        return earlier(now, arrival.id) is not None
    return known(now.queue.seqs, arrival.id)


def _outcome(now: State, arrival: Arrival) -> Sent:
    if now.turn:
        return "steered" if arrival.delivery == "steer" else "queued"
    alone = replace(now, queue=replace(now.queue, waiting=()))
    return "started" if opener(ahead(alone, [arrival])) else "queued"


def _recipient(to: str, sender: str) -> str:
    """An agent speaks with those below it and with its parent."""
    parent = tree.parent(sender)
    if to in ("parent", parent):
        if parent:
            return parent
        raise InvalidRequest(
            "You have no parent: a person prompted you. Write it in your answer instead."
        )
    if to == sender:
        raise InvalidRequest("That is you. Send messages to one of your agents, or to "
            "your parent.")  # fmt: skip
    if tree.is_below(to, sender):
        return to
    raise InvalidRequest(
        f"{to!r} is neither below you nor your parent. You can write to the agents below you, "
        'which list_agents names, and to "parent".'
    )


def refuse_closed(now: State) -> None:
    """Raises InvalidRequest for a session that takes nothing more."""
    if now.closed:
        why = f" ({now.closed.reason})" if now.closed.reason else ""
        raise InvalidRequest(
            f"Agent {now.id!r} is closed{why} and accepts nothing more. Spawn another one, or fork "
            "its session to continue from there.",
            reason="closed",
        )


def refuse_full(now: State) -> None:
    """Raises InvalidRequest for a session at which too much waits already."""
    if (count := len(now.queue.waiting)) >= MAX_QUEUE:
        raise InvalidRequest(
            f"{count} messages wait for agent {now.id!r}, and at most {MAX_QUEUE} may. "
            "Wait until it has read them, or interrupt it.",
            reason="queue_full",
        )
