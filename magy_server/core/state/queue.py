"""The queue is a session's inbox: prompts and messages wait there to enter the conversation."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field

from magy_server.core.agents.mail import Mailed
from magy_server.core.events import Prompted, Requeued
from magy_server.core.prompting.sizes import words
from magy_server.core.state.replacing import replace
from magy_server.dataclass import dataclass

Arrival = Prompted | Mailed
"""What waits to enter the conversation."""


@dataclass(frozen=True, slots=True)
class Queue:
    seqs: Mapping[str, int] = field(default_factory=dict)
    """Seq of every prompt and message ever received, by id."""
    waiting: tuple[Arrival, ...] = ()
    withdrawn: str = ""
    """What the person asked first of what was taken back before a turn took it in."""
    halted: bool = False
    """A person stopped what was about to begin, or took something back: what comes from below waits
    for their word."""

    @property
    def steers(self) -> tuple[Arrival, ...]:
        """Returns what waits and wants to join the running turn."""
        return tuple(arrival for arrival in self.waiting if arrival.delivery == "steer")

    def heard(self, event: Arrival, seq: int) -> Queue:
        """Records that the arrival has come; `joined` records that it waits."""
        return replace(self, seqs={**self.seqs, event.id: seq})

    def joined(self, event: Arrival) -> Queue:
        return replace(self, waiting=(*self.waiting, event))

    def requeued(self, event: Requeued) -> Queue:
        kept = {arrival.id: arrival for arrival in self.waiting if arrival.id not in event.dropped}
        first = [kept.pop(id) for id in event.order if id in kept]
        gone = (a for a in self.waiting if a.id in event.dropped and isinstance(a, Prompted))
        withdrawn = self.withdrawn or next((words(prompt) for prompt in gone), "")
        return replace(self, waiting=(*first, *kept.values()), withdrawn=withdrawn)

    def admitted(self, ids: Collection[str]) -> tuple[Queue, Sequence[Arrival]]:
        """The queue without these, and these in the order of `ids`, as far as they wait."""
        waiting = {arrival.id: arrival for arrival in self.waiting}
        taken = [waiting.pop(id) for id in ids if id in waiting]
        return replace(self, waiting=tuple(waiting.values())), taken
