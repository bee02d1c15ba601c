"""This module gives the events that stop the work of a session, and none where there is no work."""

from __future__ import annotations

from typing import Literal

from magy_server.core.events import CancelAsked, Event, Prompted, Requeued
from magy_server.core.state.state import State
from magy_server.core.steps import opener
from magy_server.core.summary import task_id

Why = Literal["user", "closed"]


def cancelling(now: State, turn: str | None, why: Why) -> list[Event]:
    """The events that cancel turn `turn`; None: whichever turn goes on."""
    running = now.turn
    if running and turn in (None, running.id):
        return [] if running.cancel else [CancelAsked(turn=running.id, why=why)]
    if turn is None and now.compact is not None and running is None:
        return [] if now.cancelling else [CancelAsked(why=why)]
    # The turn has not begun: who asked for it still waits, and need not wait any longer.
    first = opener(now) if running is None else None
    unborn = first if turn is None else next((a for a in now.queue.waiting if a.id == turn), None)
    if unborn is None:
        return []
    if isinstance(unborn, Prompted) or unborn.tasks:
        return [Requeued(dropped=(unborn.id,))]
    # What agents below have found stays, and only begins nothing.
    return [CancelAsked(why=why)] if unborn is first else []


def dropping(now: State, *, everything: bool = True) -> list[Event]:
    """The events that drop what waits. Not `everything`: what a person told a child stays."""
    task = task_id(now.id)

    def kept(arrival: object) -> bool:
        return not everything and isinstance(arrival, Prompted) and arrival.id != task

    dropped = tuple(arrival.id for arrival in now.queue.waiting if not kept(arrival))
    return [Requeued(dropped=dropped)] if dropped else []


def stopping(now: State, why: Why, *, everything: bool) -> list[Event]:
    """Both: what goes on, and what waits."""
    events = dropping(now, everything=everything)
    if now.turn or now.compact:
        events += cancelling(now, None, why)
    return events
