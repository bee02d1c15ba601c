"""A request key names one message of a session: repeating it changes nothing, another is refused.

Prompts and mail for machines share their keys, whichever way they come. The same holds for requests
that make sessions and forks."""

from __future__ import annotations

from collections.abc import Sequence

from magy_server.core.agents.mail import Mailed, Payload, known, ulid
from magy_server.core.errors import InvalidRequest
from magy_server.core.events import Event, Prompted
from magy_server.core.ports import Store
from magy_server.core.state.state import State
from magy_server.core.values import Content, GivenCall, Image, Text

Said = Payload | Sequence[Content]
"""As it was sent: without what the prompt mentions, which may read otherwise by now."""


def earlier(now: State, key: str) -> int | None:
    """Returns the seq of the message that a person sent under this key; None if there is none."""
    if key in now.queue.seqs:
        return now.queue.seqs[key]
    mail = ulid(0.0, key)
    if not known(now.queue.seqs, mail):
        return None
    return next(seq for id, seq in now.queue.seqs.items() if known((id,), mail))


async def message(store: Store, now: State, key: str) -> Event | None:
    """What was sent under this key."""
    seq = earlier(now, key)
    if seq is None:
        return None
    (entry,) = await store.read(now.stream, after=seq - 1, before=seq + 1)
    return entry.event


async def refuse_other(
    store: Store, now: State, key: str, said: Said, call: GivenCall | None = None
) -> None:
    """Raises InvalidRequest if the session had another message under this key, or another call of
    the person's."""
    had = await message(store, now, key)
    made = had.call if isinstance(had, Prompted) else None
    if had is not None and (made != call or not same(had, said)):
        raise InvalidRequest(
            f"{key!r} is the key of another message to session {now.id!r}. You can repeat a "
            "message without harm; another message needs its own key.",
            reason="key_used",
        )


def refuse_other_session(now: State, cwd: str, agent: str, model: str) -> None:
    """Raises InvalidRequest if the session was made otherwise: by a fork, or with other settings
    than these."""
    opened = now.opened
    if opened is None or opened.forked_from is None:
        had = opened and (opened.cwd, opened.agent, opened.model)
        if had in (None, (cwd, agent, model)):
            return
    raise _used(now, "created in another way")


def refuse_other_fork(now: State, source: str, seq: int | None) -> None:
    """Raises InvalidRequest if the session is no fork of `source`, up to entry `seq`."""
    made = now.opened.forked_from if now.opened and now.opened.parent is None else None
    if made is None or made[0] != source:
        raise _used(now, f"that is not a fork of session {source!r}")
    if seq is not None and seq != made[1]:
        raise _used(now, f"forked at entry {made[1]}")


def _used(now: State, what: str) -> InvalidRequest:
    return InvalidRequest(
        f"A session {now.id!r} exists already, {what}. You can repeat a request without harm; "
        "another session needs its own id.",
        reason="key_used",
    )


def same(had: Event, said: Said) -> bool:
    """Whether what was sent before is this."""
    if isinstance(had, Mailed):
        return had.payload == said
    return isinstance(had, Prompted) and isinstance(said, Sequence) and _alike(had.content, said)


def _alike(had: Sequence[Content], said: Sequence[Content]) -> bool:
    shown = {part.hash for part in had if isinstance(part, Image)}
    return _words(had) == _words(said) and all(
        part.hash in shown for part in said if isinstance(part, Image)
    )


def _words(content: Sequence[Content]) -> list[str]:
    return [part.text for part in content if isinstance(part, Text)]
