"""A list of callbacks that are called in order: whoever wants to hear of something adds one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, ParamSpec

P = ParamSpec("P")


class Listeners(Generic[P]):
    """Calls all that were added, in that order, with what it is called with itself. What they raise
    reaches who calls."""

    def __init__(self) -> None:
        self._all: tuple[_Added[P], ...] = ()

    def __bool__(self) -> bool:
        return bool(self._all)

    def add(self, listener: Callable[P, None]) -> Callable[[], None]:
        """The answer takes it away again; twice does no harm."""
        added = _Added(listener)
        self._all = (*self._all, added)

        def remove() -> None:
            self._all = tuple(one for one in self._all if one is not added)

        return remove

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        for one in self._all:
            one.call(*args, **kwargs)


class _Added(Generic[P]):
    """One adding: the same listener may be added twice."""

    __slots__ = ("call",)

    def __init__(self, call: Callable[P, None]) -> None:
        self.call = call
