"""The results of children go into the inboxes of their parents, in the transaction that ends the
child's turn: none is lost, and none comes twice."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from magy_server.core.agents.mail import Mailed
from magy_server.core.agents.reports import result
from magy_server.core.agents.tree import stream_of
from magy_server.core.errors import NotFound
from magy_server.core.events import Ended, Entry
from magy_server.core.state.fold import ahead
from magy_server.core.state.state import State
from magy_server.engine.loaded_sessions import Sessions
from magy_server.engine.log import Letter, Letters, Write
from magy_server.engine.session import Session


def report(sessions: Sessions, state: State, write: Write) -> Letters | None:
    """A companion of an append: tells the parent that a child's turn ended, whatever ended it.
    Returns None if no turn ends, or the session has no parent."""
    events = write.events
    number, ended = next(((n, e) for n, e in enumerate(events) if isinstance(e, Ended)), (0, None))
    if ended is None:
        return None
    mail = result(ahead(state, events[:number]), ended, sessions.clock.now())
    return partial(_letter, sessions, state, mail) if mail else None


async def _letter(sessions: Sessions, state: State, mail: Mailed) -> Sequence[Letter]:
    """The result, for the parent's log; none if the parent was deleted."""
    parent = await _parent(sessions, mail.to)
    if parent is None:
        return ()

    def posted(appended: Sequence[Entry]) -> None:
        """Who resumes after this finds the parent's log as long as it is by now; a parent that
        rests has something to do."""
        parent.later(_wake(sessions, parent, appended))

    # it tells what the turn came to, as `state` has it
    return (Letter([parent.log.beside([mail])], posted, holds=lambda now: now is state),)


async def _wake(sessions: Sessions, parent: Session, appended: Sequence[Entry]) -> None:
    await parent.grown(appended)
    sessions.wake(parent)


async def _parent(sessions: Sessions, id: str) -> Session | None:
    """As it is now."""
    stream = stream_of(id)
    head = await sessions.store.head(stream)
    if not head:
        return None
    try:
        parent = await sessions.session(stream)
        if parent.state.seq < head:
            await parent.refresh()
    except NotFound:
        return None
    return parent
