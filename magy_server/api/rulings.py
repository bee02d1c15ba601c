"""This module works rulings out again from the log of a session: for whoever asks, by wire or by
command."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from magy_server.api.connected import Seat
from magy_server.api.service import Service
from magy_server.api.wire import magi as wire
from magy_server.core.agents.tree import SESSIONS, Stream, id_of, stream_of
from magy_server.core.errors import InvalidRequest, NotFound
from magy_server.core.ports import Store, StreamInfo
from magy_server.core.reviews.review_events import Noted
from magy_server.core.state.fold import fold
from magy_server.core.state.state import State
from magy_server.core.summary import children, row
from magy_server.core.wire_values import stamp
from magy_server.dataclass import dataclass

if TYPE_CHECKING:  # nobody waits for it before somebody deliberates
    from magy_server.core.magi.emotional_log import Entry
    from magy_server.core.magi.recorded import Record

PAGE = 10


@dataclass(frozen=True, slots=True)
class WorkedOut:
    """`same`: what the votes come to is, byte for byte, what the log has."""

    record: Record
    same: bool


async def worked_out(store: Store, session: str) -> Sequence[WorkedOut]:
    """Returns the rulings of a session, the oldest first."""
    from magy_server.core.magi.recorded import records
    from magy_server.core.magi.ruling import canonical, encoded, rule

    found: list[WorkedOut] = []
    for one in records(session, await store.read(stream_of(session))):
        if one.ended and one.finished:
            kept = one.finished.output or ""
            blobs = await store.blobs([kept]) if kept else {}
            same = blobs.get(kept) == encoded(canonical(rule(one.deliberation)))
            found.append(WorkedOut(one, same))
    return found


async def sessions_of(store: Store, root: str | None) -> Sequence[StreamInfo]:
    """Returns the sessions of a workspace in which somebody deliberated, those first in which that
    was last. The names of the nodes tell: no log is read."""
    from magy_server.core.magi.recorded import deliberated

    heads = await store.heads(SESSIONS)
    found = [
        await store.info(stream_of(session))
        for session in deliberated(id_of(head.stream) for head in heads)
    ]  # fmt: skip
    return [info for info in found if info and info.root == root]


async def of_workspace(store: Store, root: str | None) -> AsyncIterator[WorkedOut]:
    """Gives the rulings of all sessions of a workspace, session by session: the newest first."""
    seen: set[str] = set()
    for info in await sessions_of(store, root):
        for one in reversed(await worked_out(store, info.id)):
            id = one.record.deliberation.id
            if id not in seen:  # a fork has it, too
                seen.add(id)
                yield one


async def accept(service: Service, session: str, id: str) -> tuple[float, bool]:
    """A person accepts that this ruling of the session comes in the place of an earlier one.
    Returns when that was, and whether it was before. Raises NotFound, InvalidRequest."""
    from magy_server.core.magi.recorded import ACCEPTED
    from magy_server.core.magi.ruling import rule

    found = {
        one.record.deliberation.id: one for one in await worked_out(service.world.store, session)
    }
    if id not in found:
        names = ", ".join(found) or "none"
        raise NotFound(f"There is no ruling {id!r} in session {session!r}. Rulings there: {names}.")
    record = found[id].record
    ruling = rule(record.deliberation)
    if not ruling.overturns or record.deliberation.case.review is None:
        raise InvalidRequest(f"The ruling {id} overturns none, so there is nothing to accept.")
    if record.accepted is not None:
        return record.accepted, True
    said = (
        f"The user accepts the ruling {id}: {ruling.tally.final}. It comes in the place of "
        f"{record.deliberation.case.review.of}, which holds no more."
    )
    await service.note(session, Noted(id=f"{ACCEPTED}{id.rpartition('/')[2]}", text=said))
    return service.world.clock.now(), False


async def under_way(
    store: Store, session: str, queued: Callable[[Stream], bool] = lambda stream: False
) -> list[dict[str, Any]]:
    """Returns the deliberations of a session that go on now, the oldest first, each as clients get
    it. `queued`: a child waits for a slot."""
    from magy_server.core.magi.card import card
    from magy_server.core.magi.recorded import begun_as, records
    from magy_server.team.magi.run import with_live

    stream = stream_of(session)
    # The children first: of what has ended by then, the result is in the log.
    below = [one for one in map(row, await store.below(stream)) if one]
    entries = await store.read(stream)
    state = fold(entries, State(stream))
    own = [
        one for one in children(below, queued)
        if one.parent == state.id and one.session not in state.reports
    ]  # fmt: skip
    found: list[dict[str, Any]] = []
    for record in records(session, entries):
        deliberation = record.deliberation
        call = deliberation.id.rpartition("/")[2]
        if record.finished is None and state.turn and call in state.turn.calls:
            live = [one for one in own if begun_as(call, one.session)]
            ballots = with_live(deliberation.ballots, call, live)
            found.append(card(replace(deliberation, ballots=ballots)))
    return found


class MagiVerbs:
    """The verbs of `magy/magi/*`."""

    def __init__(self, at: Seat) -> None:
        self._at = at
        self._service = at.service

    async def list(self, params: wire.MagiListParams) -> wire.MagiListResult:
        """Raises NotFound, InvalidRequest."""
        store, after = self._service.world.store, params.cursor + PAGE
        if params.session_id is not None:
            await self._service.info(params.session_id)
            sessions = [params.session_id]
            newest = (await worked_out(store, params.session_id))[::-1][params.cursor :]
        else:
            root = self._at.place(params.cwd)[0] if params.cwd else self._at.first
            sessions = [
                info.id for info in await sessions_of(store, root)
                if info.summary.get("state") != "idle"
            ]  # fmt: skip
            newest = await _some(of_workspace(store, root), params.cursor, PAGE + 1)
        queued = self._service.slots.queued
        running = [one for each in sessions for one in await under_way(store, each, queued)]
        return wire.MagiListResult(
            rulings=[_shown(one, params) for one in newest[:PAGE]],
            running=[wire.Deliberation.model_validate(one) for one in running],
            next_cursor=after if len(newest) > PAGE else None,
        )

    async def accept(self, params: wire.MagiAcceptParams) -> wire.MagiAccepted:
        """Raises NotFound, InvalidRequest."""
        await self._service.info(params.session_id)
        at, known = await accept(self._service, params.session_id, params.ruling_id)
        return wire.MagiAccepted(accepted=stamp(at), known=known)

    async def log(self, params: wire.MagiLogParams) -> wire.MagiLogResult:
        """Raises InvalidRequest for a file that is not as Magy wrote it, NotFound."""
        from magy_server.core.magi import emotional_log
        from magy_server.team.magi import kept_log

        root = self._at.place(params.cwd)[0] if params.cwd else self._at.first
        if root is None:
            raise InvalidRequest("CASPER's emotional log belongs to a project: name one as `cwd`.")
        now = self._service.world.clock.now()

        def changed(log: emotional_log.Log) -> emotional_log.Log:
            if gone := {*params.delete} - {one.id for one in log.entries}:
                raise NotFound(f"There is no entry {min(gone)!r} in CASPER's emotional log.")
            left = emotional_log.without(log, params.delete)
            return left.model_copy(update={"reviewed": stamp(now)}) if params.reviewed else left

        if params.delete or params.reviewed:
            found = await asyncio.to_thread(kept_log.change, root, changed)
        else:
            found = await asyncio.to_thread(kept_log.read, root)
        kept = emotional_log.kept(found, now)
        return wire.MagiLogResult(
            path=os.path.join(root, kept_log.PATH),
            entries=[_felt(one, now) for one in reversed(kept.entries)],
            reviewed=found.reviewed or None,
            review_due=emotional_log.review_due(found, now),
        )


async def _some(
    found: AsyncIterator[WorkedOut], first: int, most: int
) -> Sequence[WorkedOut]:  # no more logs are read than that takes
    some: list[WorkedOut] = []
    async for one in found:
        if first:
            first -= 1
            continue
        some.append(one)
        if len(some) == most:
            break
    return some


def _felt(one: Entry, now: float) -> wire.FeelingShown:
    from magy_server.core.magi import emotional_log

    until = emotional_log.seconds(one.date) + emotional_log.RETENTION * 86_400
    return wire.FeelingShown(
        id=one.id,
        date=one.date,
        topic_hash=one.topic_hash,
        valence=one.valence,
        emotion=one.primary_emotion,
        lesson=one.lesson_1_line,
        strength=round(emotional_log.strength(one, now), 3),
        kept_until=stamp(until)[:10],
    )


def _shown(one: WorkedOut, params: wire.MagiListParams) -> wire.MagiRuling:
    from magy_server.core.magi.card import card
    from magy_server.core.magi.reports import shown
    from magy_server.core.magi.ruling import canonical, rule

    ruling = canonical(rule(one.record.deliberation))
    return wire.MagiRuling(
        id=ruling["id"],
        at=stamp(one.record.at),
        final=ruling["final"],
        standing=ruling["standing"],
        confidence=ruling["confidence"]["percent"],
        person_needed=ruling["person_needed"],
        overturns=review["of"] if (review := ruling["review"]) and review["overturns"] else None,
        accepted=None if one.record.accepted is None else stamp(one.record.accepted),
        same=one.same,
        report=shown(ruling, params.form),
        ruling=ruling,
        shown=wire.Deliberation.model_validate(card(one.record.deliberation)),
    )
