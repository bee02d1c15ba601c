"""This store stands before another one, and fails, waits or stops where its script says so."""

from __future__ import annotations

from asyncio import Event, sleep
from collections import defaultdict
from collections.abc import Callable, Coroutine
from dataclasses import field
from functools import partial
from typing import Any, ParamSpec, TypeVar

from magy_server.core.errors import StoreError
from magy_server.core.ports import Store
from magy_server.dataclass import dataclass

P = ParamSpec("P")
R = TypeVar("R")
Do = Callable[[], Coroutine[Any, Any, R]]


@dataclass(eq=False)
class Fault:
    """Befalls those calls of `method` of whose arguments `when` is true: the `at`-th of them (from
    1), or each (0). The call waits so many seconds and for `until`; then the store does it, or,
    with an `error`, it fails and nothing is done. After a Conflict, who calls tries again."""

    method: str
    at: int = 0
    when: Callable[..., bool] = field(default=lambda *_, **__: True, kw_only=True)
    seconds: float = field(default=0.0, kw_only=True)
    until: Event | None = field(default=None, kw_only=True)
    error: type[StoreError] | None = field(default=None, kw_only=True)
    reached: Event = field(default_factory=Event, init=False)
    """A call has come so far."""
    _met: int = field(default=0, init=False)

    async def around(self, meant: bool, do: Do[R]) -> R:
        """Every call of the method; the store does it in `do`. `meant`: what `when` says."""
        if self.due(meant):
            await sleep(self.seconds)
            if self.until:
                await self.until.wait()
            if self.error:
                raise self.error(f"The script of this store lets {self.method!r} fail.")
        return await do()

    def due(self, meant: bool) -> bool:
        self._met += meant
        if due := meant and self.at in (0, self._met):
            self.reached.set()
        return due


class Stop(Fault):
    """As if the process died then: the call is done, and does not return; from then on none of the
    method does, or is begun. What the store itself refuses does not count."""

    async def around(self, meant: bool, do: Do[R]) -> R:
        if self.reached.is_set():
            await Event().wait()
        answer = await do()
        if self.reached.is_set() or self.due(meant):
            await Event().wait()
        return answer


class FaultyStore:
    """What the store did is in `done`: of each method, the positional arguments and the answer."""

    def __init__(self, store: Store, *script: Fault) -> None:
        for fault in script:
            getattr(Store, fault.method)  # who names no method of a store hears of it
        self._script = script
        self.done = defaultdict[str, list[tuple[tuple[Any, ...], Any]]](list)
        self.append, self.read = self._call(store.append), self._call(store.read)
        self.turn_starts, self.head = self._call(store.turn_starts), self._call(store.head)
        self.info, self.streams = self._call(store.info), self._call(store.streams)
        self.below, self.heads = self._call(store.below), self._call(store.heads)
        self.keep, self.snapshot = self._call(store.keep), self._call(store.snapshot)
        self.delete, self.weigh = self._call(store.delete), self._call(store.weigh)
        self.blob, self.blobs = self._call(store.blob), self._call(store.blobs)
        self.lease, self.release = self._call(store.lease), self._call(store.release)
        self.changed, self.close = self._call(store.changed), self._call(store.close)

    def _call(self, do: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R]]:
        async def call(*args: P.args, **kwargs: P.kwargs) -> R:
            passed: Do[R] = partial(do, *args, **kwargs)
            for fault in faults:
                passed = partial(fault.around, fault.when(*args, **kwargs), passed)
            answer = await passed()
            self.done[name].append((args, answer))
            return answer

        name = call.__name__ = do.__name__
        faults = [fault for fault in reversed(self._script) if fault.method == name]
        return call
