"""This cache keeps what was worked out of the beginning of a conversation, for longer requests of
it. Its results are those that a request would have that begins anew."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, TypeVar

from magy_server.dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class SoFar:
    """`settled`: so many messages at the beginning stay as they are in every later request, which
    has the same objects. `kept`: what was made of them, by what it is; the requests of one
    conversation share it."""

    settled: int = 0
    kept: dict[str, Grown] = field(default_factory=dict)


class Grown(ABC):
    """Something made of messages one after the other."""

    def __init__(self) -> None:
        self.count = 0
        self._last: Any = None

    @abstractmethod
    def take(self, messages: Sequence[Any]) -> None:
        """Goes on with the messages that come next."""

    def is_of(self, messages: Sequence[Any]) -> bool:
        """Returns whether it was made of the beginning of these messages. One message is only ever
        in one conversation, so the last one tells."""
        return not self.count or messages[self.count - 1] is self._last

    def grow(self, messages: Sequence[Any]) -> None:
        """Takes those of the messages that it has not taken yet."""
        if len(messages) > self.count:
            self.take(messages[self.count :])
            self.count, self._last = len(messages), messages[-1]


G = TypeVar("G", bound=Grown)


def grown(
    so_far: SoFar,
    messages: Sequence[Any],
    name: str,
    make: Callable[[], G],
    fits: Callable[[G], bool] = lambda made: True,
) -> tuple[G, Sequence[Any]]:
    """Returns what is kept as `name` of the settled messages, and the other messages. It is made
    anew where what is kept does not fit."""
    made: Any = so_far.kept.get(name)
    if len(messages) < so_far.settled:  # a request about something else
        return make(), messages
    settled = messages[: so_far.settled]
    if made is None or made.count > len(settled) or not made.is_of(settled) or not fits(made):
        made = so_far.kept[name] = make()
    made.grow(settled)
    return made, messages[so_far.settled :]


class _Sum(Grown):
    def __init__(self, measure: Callable[[Any], int]) -> None:
        super().__init__()
        self._measure = measure
        self.total = 0

    def take(self, messages: Sequence[Any]) -> None:
        self.total += sum(map(self._measure, messages))


def total(so_far: SoFar, messages: Sequence[Any], name: str, measure: Callable[[Any], int]) -> int:
    """Returns the sum of what `measure` says of each message."""
    made, others = grown(so_far, messages, name, lambda: _Sum(measure))
    return made.total + sum(map(measure, others))
