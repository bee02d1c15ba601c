"""This module turns what a child's turn came to into a message for its parent. Pure."""

from __future__ import annotations

from magy_server.core.agents.child import report
from magy_server.core.agents.mail import Mailed, TextPayload, ulid
from magy_server.core.events import Ended, Prompted, Replied
from magy_server.core.reviews.review_events import Noted
from magy_server.core.state.spending import INHERITED
from magy_server.core.state.state import State

MOST = 20_000
"""The most characters of a result; the child's transcript has what is longer."""


def result(state: State, ended: Ended, now: float) -> Mailed | None:
    """`state`: the child's right before `ended`. `now`: seconds since the epoch. None: there is
    nobody to tell, or no turn of its own that could end. It wakes the parent if that has spawned
    the child by itself; what was cancelled wakes nobody."""
    turn, opened = state.turn, state.opened
    if turn is None or opened is None or opened.parent is None or turn.run == INHERITED:
        return None
    child, briefing = state.id, state.conversation.briefing
    return Mailed(
        id=ulid(turn.began, f"{child}:{turn.id}"),
        sender=child,
        agent=state.agent,
        name=state.options.get("title", ""),
        to=opened.parent,
        payload=TextPayload(text=_text(state, ended, child)),
        wakes=bool(opened.call) and ended.stop != "cancelled",
        run=turn.run,
        correlation=turn.id,
        report=report(turn, ended.stop, now),
        metadata={"model": briefing.model} if briefing else {},
        untrusted=state.conversation.untrusted,
    )


def _text(state: State, ended: Ended, child: str) -> str:
    """Returns the last words, and why there are no more."""
    said, note = last_words(state), ended.message
    if not said and not note:
        note = f"(the turn ended before anything was said: {ended.stop})"
    text = "\n\n".join(filter(None, (said, note, _landed(state))))
    if len(text) <= MOST:
        return text
    return (
        f"{text[:MOST]}\n[These are the first {MOST} of {len(text)} characters; the whole is the "
        f"last reply in session {child}. Ask that agent for what is missing.]"
    )


def landing(turn: str) -> str:
    """Returns the id of the note that says what became of the worktree of a turn."""
    return f"landed/{turn}"


def _landed(state: State) -> str:
    id = landing(state.turn.id) if state.turn else ""
    notes = (one for one in reversed(state.conversation.items) if isinstance(one, Noted))
    return next((note.text for note in notes if note.id == id), "")


def last_words(state: State) -> str:
    """Returns the latest text of the running turn; "" when it has said nothing yet."""
    turn = state.turn.id if state.turn else ""
    for item in reversed(state.conversation.items):
        if isinstance(item, Replied) and item.text:
            return item.text
        if isinstance(item, Prompted | Mailed) and item.id == turn:
            break
    return ""
