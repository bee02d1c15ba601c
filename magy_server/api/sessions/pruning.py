"""Pruning deletes sessions that nobody has used for long, and what is kept of reviews that were
settled as long ago: it holds the texts of all files that agents changed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from magy_server.api.sessions.pages import every
from magy_server.core.agents import tree
from magy_server.core.agents.tree import SESSIONS, Stream
from magy_server.core.errors import InvalidRequest, StoreError
from magy_server.core.ports import Store, StreamInfo
from magy_server.reviews import streams
from magy_server.reviews.direct_edits import EDITS
from magy_server.reviews.streams import APPLIED, PROPOSED

if TYPE_CHECKING:  # who only looks does not wait for it
    from magy_server.api.service import Service

YOUNGER = "younger"
NEWEST = "among the newest"
OPEN = "in the middle of a turn"
ASKING = "waiting for an answer"
COMMANDS = "with a command in the background"
REVIEWED = "with changes to review"
WHY = (YOUNGER, NEWEST, OPEN, ASKING, COMMANDS, REVIEWED)
"""Why a session stays."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A session without a parent, and the names of its stream and of all below it. `updated`: when
    something was appended to one of them last."""

    info: StreamInfo
    names: Sequence[Stream]
    updated: float
    bytes: int = 0
    """What only it has, in the store."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What would go. `settled`: streams of reviews. `bytes`: all that is only in these sessions and
    reviews. `stay`: how many sessions do, by one of `WHY`. Nothing goes that is appended to from
    `before` on."""

    before: float
    sessions: Sequence[Tree]
    settled: Sequence[Stream]
    bytes: int
    stay: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many went."""

    sessions: int = 0
    settled: int = 0


async def planned(store: Store, before: float, keep: int = 0, root: str | None = None) -> Plan:
    """What has rested since `before` (seconds since the epoch). The `keep` newest sessions of each
    project stay in any case. `root`: only the sessions of that project, and the reviews of files
    below it."""
    settled, reviewed = await _reviews(store, before, root)
    stay = dict.fromkeys(WHY, 0)
    going: list[Tree] = []
    seen: dict[str | None, int] = {}
    async for infos in every(store, SESSIONS, root=root, flat=True):
        for info in infos:  # the newest first
            place = seen[info.root] = seen.get(info.root, 0) + 1
            why, found = await _judged(store, info, before, reviewed)
            if not why and place <= keep:
                why = NEWEST
            if why:
                stay[why] += 1
            else:
                going.append(found)
    weighed = [
        Tree(one.info, one.names, one.updated, await store.weigh(one.names)) for one in going
    ]
    names = [*(name for one in going for name in one.names), *settled]
    return Plan(before, weighed, settled, await store.weigh(names), stay)


async def _judged(
    store: Store, info: StreamInfo, before: float, reviewed: set[str]
) -> tuple[str, Tree]:
    """Why the session stays ("": it does not), and the session."""
    infos = [info]
    if info.updated < before:
        infos += await store.below(info.stream)
    names = [one.stream for one in infos]
    updated = max(one.updated for one in infos)
    states = {str(one.summary.get("state")) for one in infos}
    why = ""
    if updated >= before:
        why = YOUNGER
    elif "requires_action" in states:
        why = ASKING
    elif "running" in states or any(one.summary.get("waiting") for one in infos):
        why = OPEN
    elif any(one.summary.get("background") for one in infos):
        why = COMMANDS
    elif info.id in reviewed:
        why = REVIEWED
    return why, Tree(info, names, updated)


async def _reviews(
    store: Store, before: float, root: str | None
) -> tuple[Sequence[Stream], set[str]]:
    """The streams of reviews below `root` that were settled before that time; and the sessions at
    the top of the trees that have something under review anywhere."""
    settled: list[Stream] = []
    others: list[Stream] = []
    reviewed: set[str] = set()
    for kind in (APPLIED, PROPOSED):
        within = "" if root is None else streams.prefix_of(kind, root)
        for info in await streams.below(store, kind):
            try:
                at = await streams.standing_of(store, info)
            except StoreError:  # the doctor says what is damaged
                others.append(info.stream)
                continue
            if at.pending and at.event is not None:
                reviewed.update(tree.root(origin.session) for origin in at.event.origins)
            old = not at.pending and info.updated < before
            (settled if old and info.stream.startswith(within) else others).append(info.stream)
    for info in await streams.below(store, EDITS):
        own = str(info.summary.get("root"))
        old = not info.summary.get("pending") and info.updated < before
        if old and (root is None or f"{own}/".startswith(f"{root.rstrip('/')}/")):
            settled.append(info.stream)
    # What was a file may be a folder by now: a stream goes with all below it.
    above = {name for other in others for name in _above(other)}
    return [one for one in settled if one not in above], reviewed


def _above(stream: Stream) -> Sequence[str]:
    parts = stream.split("/")
    return ["/".join(parts[:end]) for end in range(2, len(parts))]


async def prune(service: Service, plan: Plan, told: Callable[[Pruned], Awaitable[None]]) -> Pruned:
    """Deletes one after the other, each as a whole. What another process has begun to use meanwhile
    stays. `told` hears of each. Raises StoreError."""
    sessions = settled = 0
    for one in plan.sessions:
        try:
            sessions += await service.delete(one.info.id, before=plan.before)
        except InvalidRequest:  # another process has taken it
            continue
        await told(Pruned(sessions, settled))
    store = service.world.store
    for stream in plan.settled:
        lease = await store.lease(stream) if stream.startswith(EDITS) else None
        if lease is None and stream.startswith(EDITS):
            continue
        try:
            settled += await store.delete(stream, before=plan.before)
        finally:
            if lease is not None:
                await store.release(lease)
        await told(Pruned(sessions, settled))
    return Pruned(sessions, settled)
