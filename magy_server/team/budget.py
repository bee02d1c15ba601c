"""The purse keeps a run within its caps, in all its sessions together, however many ask models at
once.

Before each request the most that it can take is put aside; it is made only if that and all that is
spent or put aside stays within the caps. So no number of agents exceeds a cap together. What was
spent is read from the log's summaries: it counts after a restart, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from magy_server.core.agents import tree
from magy_server.core.agents.tree import stream_of
from magy_server.core.errors import NotFound, OverBudget
from magy_server.core.events import Compacted, Consulted, Ended, Entry, Replied
from magy_server.core.ports import ModelFacts, ModelRequest
from magy_server.core.prompting.sizes import bound
from magy_server.core.state.state import State
from magy_server.core.values import Limits, Usage
from magy_server.dataclass import dataclass
from magy_server.engine import trees
from magy_server.engine.loaded_sessions import Sessions
from magy_server.engine.rules import caps
from magy_server.engine.session import Session
from magy_server.engine.world import USUAL_REPLY, World

SETTLES = (Replied, Compacted, Consulted, Ended)
"""With one of these in the log, what a request took is counted there (or is not to be)."""


@dataclass(frozen=True, slots=True)
class Sum:
    """`cost` in US dollars."""

    tokens: int = 0
    cost: float = 0.0

    def __add__(self, other: Sum) -> Sum:
        return Sum(self.tokens + other.tokens, self.cost + other.cost)


NIL = Sum()


@dataclass(slots=True, eq=False)
class Slip:
    """What is put aside for a request of this session. `answered`: it is over, and what it took
    (that is `sum` now) will be in the log."""

    live: Session
    run: str
    sum: Sum
    answered: bool = False
    unknown: bool = False
    """Its provider did not say what it took."""

    @property
    def session(self) -> str:
        return self.live.id

    def took(self, reply: Replied) -> None:
        """What is not known counts as what was put aside for it, until the reply is in the log."""
        self.unknown = reply.usage.unreported > 0
        if not self.unknown:
            self.sum = Sum(reply.usage.total, reply.cost or 0.0)
        self.answered = True


_UNPRICED = (
    "The price of {model} is not known, so the limit on the cost of this run does not apply to "
    "it; a limit on its tokens does.\n"
)
_UNREPORTED = (
    "{model} does not report its tokens, so the limits on cost and tokens of this run do not "
    "apply to it; a limit on its requests does.\n"
)


@dataclass(frozen=True, slots=True)
class Cap:
    """What holds for a session and all below it."""

    session: str
    limits: Limits

    def covers(self, session: str) -> bool:
        return session == self.session or tree.is_below(session, self.session)

    def fits(self, sum: Sum) -> bool:
        tokens, cost = self.limits.run_tokens, self.limits.run_cost
        return not (tokens and sum.tokens > tokens) and not (cost and sum.cost > cost)


class Purse:
    """One for a process; a listener, too."""

    def __init__(self, world: World, sessions: Sessions) -> None:
        self._world = world
        self._sessions = sessions
        self._slips: list[Slip] = []
        self._moved = asyncio.Event()
        self._looking = asyncio.Lock()
        self._told: set[tuple[str, str, str]] = set()

    def __call__(self, state: State, entries: Sequence[Entry]) -> None:
        if self._slips and any(isinstance(entry.event, SETTLES) for entry in entries):
            self._keep([s for s in self._slips if s.session != state.id or not s.answered])

    @asynccontextmanager
    async def reserved(
        self, session: Session, request: ModelRequest, facts: ModelFacts
    ) -> AsyncIterator[Slip]:
        """Put aside for the time of one request, and until what it took is in the log, or the task
        that asked is over: what it could not append is not counted anywhere. Waits while others,
        whose requests are under way, hold what is needed. Raises OverBudget."""
        slip = Slip(session, session.state.spending.run, NIL)
        caps = await self._caps(session.id) if session.state.spending.run else []
        if task := asyncio.current_task():
            task.add_done_callback(lambda _: self._drop(slip))
        if caps:
            slip.sum = most(session.state, request, facts)
            if facts.price is None and any(cap.limits.run_cost for cap in caps):
                self._say_once(session, request, _UNPRICED.format(model=request.model))
            await self._reserve(slip, caps)
        try:
            yield slip
        finally:
            if not slip.answered:
                self._drop(slip)
            elif slip.unknown and caps:
                self._say_once(session, request, _UNREPORTED.format(model=request.model))

    async def _caps(self, id: str) -> list[Cap]:
        """The caps of the sessions above this one, from the root down, and its own."""
        found = []
        for one in (*reversed(tree.ancestors(id)), id):
            try:
                session = await self._sessions.session(stream_of(one))
            except NotFound:
                continue
            limits = _limits(session.state, self._world)
            if limits.run_tokens or limits.run_cost:
                found.append(Cap(one, limits))
        return found

    async def _reserve(self, slip: Slip, caps: Sequence[Cap]) -> None:
        while True:
            moved = self._moved
            async with self._looking:
                slips = [s for s in self._slips if s.run == slip.run and not s.live.gone]
                held = [(s.session, s.sum) for s in slips]
                spent = await self._spent(slip)
                for cap in caps:
                    if not cap.fits(_under(cap, spent) + slip.sum):
                        raise OverBudget(_refusal(cap, _under(cap, spent), slip.sum))
                if all(cap.fits(_under(cap, [*spent, *held]) + slip.sum) for cap in caps):
                    self._slips.append(slip)
                    return
            await moved.wait()

    async def _spent(self, slip: Slip) -> list[tuple[str, Sum]]:
        """By session of the tree: what the run took there, as it is in the log."""
        store = self._world.store
        found = []
        for info in await trees.whole(store, tree.root(slip.session)):
            tokens, cost = info.summary.get("runs", {}).get(slip.run, (0, 0.0))
            found.append((info.id, Sum(tokens, cost)))
        return found

    def _drop(self, slip: Slip) -> None:
        self._keep([other for other in self._slips if other is not slip])

    def _keep(self, slips: list[Slip]) -> None:
        if len(slips) != len(self._slips):
            self._slips = slips
            self._moved.set()
            self._moved = asyncio.Event()

    def _say_once(self, session: Session, request: ModelRequest, what: str) -> None:
        """Once for a run."""
        key = (session.state.spending.run, request.model, what)
        if key not in self._told:
            self._told.add(key)
            session.streaming.notice(what)


def _limits(state: State, world: World) -> Limits:
    if state.conversation.briefing:
        return state.conversation.briefing.limits
    return caps(state, (), world.settings(state.root).limits)


def most(state: State, request: ModelRequest, facts: ModelFacts) -> Sum:
    """The most that a request can take: all of the prompt, at the dearest rate, and the longest
    reply."""
    prompt = max(state.conversation.context, bound(request))
    reply = request.max_tokens or facts.max_tokens or USUAL_REPLY
    if facts.window and not request.max_tokens:
        reply = min(reply, max(facts.window - prompt, 0))
    ways = (
        Usage(input=prompt, output=reply),
        Usage(cache_write=prompt, output=reply),
        Usage(cache_read=prompt, output=reply),
    )
    cost = max(map(facts.price.of, ways)) if facts.price else 0.0
    return Sum(prompt + reply, cost)


def _under(cap: Cap, sums: Sequence[tuple[str, Sum]]) -> Sum:
    return sum((one for session, one in sums if cap.covers(session)), NIL)


def _refusal(cap: Cap, spent: Sum, asked: Sum) -> str:
    limits = cap.limits
    if limits.run_tokens and spent.tokens + asked.tokens > limits.run_tokens:
        return (
            f"the limit of {limits.run_tokens} tokens for the run of {cap.session} and its agents "
            f"({spent.tokens} used; the next request may take {asked.tokens})"
        )
    return (
        f"the limit of ${limits.run_cost:g} for the run of {cap.session} and its agents "
        f"(${spent.cost:.4f} spent; the next request may cost ${asked.cost:.4f})"
    )
