"""This module works rulings out again from the log of a session: for whoever asks, by wire or by
command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from magy_server.api.connected import Seat
from magy_server.api.wire import magi as wire
from magy_server.core.agents.tree import Stream, stream_of
from magy_server.core.ports import Store
from magy_server.core.state.fold import fold
from magy_server.core.state.state import State
from magy_server.core.summary import children, row
from magy_server.core.wire_values import stamp
from magy_server.dataclass import dataclass

if TYPE_CHECKING:  # nobody waits for it before somebody deliberates
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
        self._service = at.service

    async def list(self, params: wire.MagiListParams) -> wire.MagiListResult:
        """Raises NotFound."""
        await self._service.info(params.session_id)
        store = self._service.world.store
        found = await worked_out(store, params.session_id)
        running = await under_way(store, params.session_id, self._service.slots.queued)
        newest = found[::-1][params.cursor :]
        after = params.cursor + PAGE
        return wire.MagiListResult(
            rulings=[_shown(one, params) for one in newest[:PAGE]],
            running=[wire.Deliberation.model_validate(one) for one in running],
            next_cursor=after if len(newest) > PAGE else None,
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
        same=one.same,
        report=shown(ruling, params.form),
        ruling=ruling,
        shown=wire.Deliberation.model_validate(card(one.record.deliberation)),
    )
