"""The verbs see a front door's connection through these types: its documents, roots, outbox."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from magy_server.api.places import workspace_of
from magy_server.api.service import Service
from magy_server.config.trust import Trust
from magy_server.dataclass import dataclass

if TYPE_CHECKING:
    from magy_server.api.doctor import Examine

Beside = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
"""Begins work that nobody waits for; what it fails with is logged."""


class Document(Protocol):
    """The text of an open document, as the client shows it."""

    @property
    def source(self) -> str: ...

    @property
    def lines(self) -> Sequence[str]:
        """Returns the lines, with their ends."""

    def line(self, number: int) -> str:
        """Returns line `number`, counted from 0; "" beyond the last."""


class Documents(Protocol):
    """The open documents of a client. Paths are canonical."""

    @property
    def encoding(self) -> str:
        """Returns the encoding in which positions count characters: utf-8 | utf-16 | utf-32."""

    def document(self, path: str) -> Document | None: ...

    def open_document(self, uri: str) -> Document | None: ...

    def uri_of_path(self, path: str) -> str | None: ...

    def state_of(self, path: str) -> Hashable | None:
        """Returns a value that differs after every change of the document; None if it is not
        open."""

    def meant(self) -> str | None:
        """What the document that the running request names held when that came; None: it names
        none, or none that was open."""

    def watch(self, uri: str, watcher: Callable[[Any], None]) -> Callable[[], None]:
        """Calls `watcher` after every change of the document. Returns a function that ends this."""


@dataclass(frozen=True, slots=True)
class NoDocuments:
    """Those of a client that shows none. Implements `Documents`."""

    encoding: str

    def document(self, path: str) -> None:
        return None

    def open_document(self, uri: str) -> None:
        return None

    def uri_of_path(self, path: str) -> None:
        return None

    def state_of(self, path: str) -> None:
        return None

    def meant(self) -> None:
        return None

    def watch(self, uri: str, watcher: Callable[[Any], None]) -> Callable[[], None]:
        return lambda: None


def notification(method: str, params: Any) -> Mapping[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


class Source(Protocol):
    """Something that streams to the client. Compared by identity."""

    async def pull(self, budget: int) -> Sequence[Mapping[str, Any] | bytes]:
        """The next whole messages (or their encoded bodies), oldest first, in all about `budget`
        bytes. Empty: nothing more until the next `wake`. Never called twice at once."""


class Outbox(Protocol):
    """What leaves for the client. Nothing here ever waits for it to read."""

    def send(self, message: Mapping[str, Any] | bytes) -> None: ...

    def wake(self, source: Source) -> None:
        """Notes that the source has something to say. Cheap, and safe to call at any time."""

    def forget(self, source: Source) -> None: ...


@dataclass(frozen=True, slots=True)
class Seat:
    """Who asks, and of which projects. `client`: its name, for journals; `roots`: its workspace
    folders, canonical."""

    service: Service
    client: str
    roots: Sequence[str]
    documents: Documents

    @property
    def first(self) -> str | None:
        """Returns the root for a request that names none."""
        return next(iter(self.roots), None)

    def place(self, cwd: str) -> tuple[str, str]:
        """(workspace root, working directory), canonical. Raises InvalidRequest."""
        return workspace_of(cwd, self.roots)


@dataclass(frozen=True, slots=True)
class Connected(Seat):
    """Complete when it is made. `scratch`: where sessions without a project work; `notify` sends a
    notification; `warn` shows the person a sentence; `draws`: it shows questions or reviews itself,
    so it is told of reviews that changed (`magy/review/changed`), and of rewrites that it did not
    begin."""

    trust: Trust
    scratch: str
    outbox: Outbox
    notify: Callable[[str, Any], None]
    warn: Callable[[str], None]
    spawn: Beside
    examine: Callable[[], Examine]
    draws: bool
