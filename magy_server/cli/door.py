"""The commands need this much of the composition root, which lies above them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from magy_server.api.service import Service
from magy_server.config.trust import Trust
from magy_server.core.ports import Store

ONCE: Mapping[str, Any] = {"titles": False}
"""Settings of a command that leaves when its turn has ended: a title would come too late, so the
first prompt stands for it."""


class Compose(Protocol):
    def __call__(
        self, roots: Sequence[str], options: Mapping[str, Any]
    ) -> AbstractAsyncContextManager[tuple[Service, Trust]]:
        """Returns the engine for these roots, running. Raises MagyError."""
        ...


@dataclass(frozen=True, slots=True)
class Composition:
    """`store` alone is enough for who only reads: an invalid configuration then hides nothing."""

    compose: Compose
    store: Callable[[], Awaitable[Store]]
