"""A command gets the store alone, or a running engine, from the composition root above it."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol

from magy_server.cli.session_ids import resolve
from magy_server.core.ports import Store, StreamInfo
from magy_server.dataclass import dataclass

if TYPE_CHECKING:  # who only reads does not wait for them
    from magy_server.api.service import Service
    from magy_server.config.trust import Trust
    from magy_server.store.shrinking import Shrunk

ONCE: Mapping[str, Any] = {"titles": False}
"""Settings of a command that leaves when its turn has ended: a title would come too late, so the
first prompt stands for it."""


class Compose(Protocol):
    def __call__(
        self, roots: Sequence[str], options: Mapping[str, Any]
    ) -> AbstractAsyncContextManager[tuple[Service, Trust]]:
        """Returns the engine for these roots, running. Raises MagyError."""


Options = argparse.Namespace


@dataclass(frozen=True, slots=True)
class Composition:
    """`store` alone is enough for who only reads: an invalid configuration then hides nothing.
    `composing` gives what makes engines, once it is asked for: importing that takes a while.
    `shrink` is `store.shrinking.shrink` for that store, which is closed then."""

    composing: Callable[[], Compose]
    opened: Callable[[], Awaitable[Store]]
    shrink: Callable[[Callable[[], bool]], Shrunk]

    def compose(
        self, roots: Sequence[str], options: Mapping[str, Any]
    ) -> AbstractAsyncContextManager[tuple[Service, Trust]]:
        return self.composing()(roots, options)

    @asynccontextmanager
    async def store(self) -> AsyncIterator[Store]:
        store = await self.opened()
        try:
            yield store
        finally:
            await store.close()

    @asynccontextmanager
    async def acting(self, given: str) -> AsyncIterator[tuple[Service, StreamInfo]]:
        """Returns the engine for the project of the session that is meant."""
        async with self.store() as store:
            info = await resolve(store, given)
        async with self.compose([info.root] if info.root else [], ONCE) as (service, _):
            yield service, info


Verb = Callable[[Options, Composition], Coroutine[Any, Any, int]]
"""async (the words of the command line, the composition) -> the exit code. Raises MagyError."""
