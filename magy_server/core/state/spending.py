"""This part of the state counts what model requests took: in all, and in each of the latest
runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from magy_server.core.events import Compacted, Consulted, Replied
from magy_server.core.state.replacing import replace
from magy_server.core.values import NO_USAGE, Usage
from magy_server.dataclass import dataclass

INHERITED = "inherited"
"""The run of what a child was given of its parent's conversation: nothing in it was its own."""
RUNS = 8
"""The state keeps what the latest runs took, this many of them."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What model requests took. `cost` is in US dollars, of those whose price is known; of
    `unpriced` it is not."""

    requests: int = 0
    usage: Usage = NO_USAGE
    cost: float = 0.0
    unpriced: int = 0

    @staticmethod
    def on(event: Replied | Consulted | Compacted) -> Spent:
        """What one request took."""
        return Spent(1, event.usage, event.cost or 0.0, int(event.cost is None))

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.requests + other.requests,
            self.usage + other.usage,
            self.cost + other.cost,
            self.unpriced + other.unpriced,
        )


NO_SPENDING = Spent()


@dataclass(frozen=True, slots=True)
class Spending(Spent):
    """What the session took in all, and in each of its latest runs."""

    run: str = ""
    """Of the latest turn."""
    runs: Mapping[str, Spent] = field(default_factory=dict)
    """What the latest `RUNS` runs took in this session."""

    def of(self, run: str) -> Spent:
        return self.runs.get(run, NO_SPENDING)

    def took(self, event: Replied | Consulted | Compacted) -> Spending:
        """Counts what a request took for the session, and for the run of the latest turn."""
        priced = bool(event.model)
        own = priced and self.run != INHERITED
        runs = self.runs
        if self.run and priced:
            spent = self.of(self.run) + Spent.on(event)
            others = [(run, earlier) for run, earlier in runs.items() if run != self.run]
            runs = dict([*others[1 - RUNS :], (self.run, spent)])
        return replace(
            self,
            usage=self.usage + event.usage,
            cost=self.cost + (event.cost or 0.0),
            unpriced=self.unpriced + (priced and event.cost is None),
            requests=self.requests + own,
            runs=runs,
        )
