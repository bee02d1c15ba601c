"""Telling any number of others that something has happened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, ParamSpec

P = ParamSpec("P")


class Listeners(Generic[P]):
    """Calls all that were added, in that order, with what it is called with itself. What they raise
    reaches who calls."""

    def __init__(self) -> None:
        self._all: tuple[Callable[P, None], ...] = ()

    def __bool__(self) -> bool:
        return bool(self._all)

    def add(self, listener: Callable[P, None]) -> Callable[[], None]:
        """The answer takes it away again; twice does no harm."""
        self._all = (*self._all, listener)

        def remove() -> None:
            left = list(self._all)
            if listener in left:
                left.remove(listener)
                self._all = tuple(left)

        return remove

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        for listener in self._all:
            listener(*args, **kwargs)
