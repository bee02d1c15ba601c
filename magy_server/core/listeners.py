"""`Listeners` calls its callbacks in order: whoever wants to hear of something adds one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, ParamSpec

P = ParamSpec("P")


class Listeners(Generic[P]):
    """Calls all listeners in the order in which they were added, with its own arguments. What they
    raise reaches the caller."""

    __slots__ = ("_all",)

    def __init__(self) -> None:
        self._all: dict[object, Callable[P, None]] = {}

    def __bool__(self) -> bool:
        return bool(self._all)

    def add(self, listener: Callable[P, None]) -> Callable[[], None]:
        """Adds a listener, and returns a function that removes it; calling that twice is
        harmless."""
        added = object()  # the same listener may be added twice
        self._all[added] = listener

        def remove() -> None:
            self._all.pop(added, None)

        return remove

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        for listener in tuple(self._all.values()):
            listener(*args, **kwargs)
