"""This bus connects the processes of one user on one machine by a mesh of private local sockets."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

from magy_server.bus import sockets
from magy_server.bus.link import MAX_FRAME, Link, gone, pack
from magy_server.core.errors import MagyError
from magy_server.core.listeners import Listeners
from magy_server.core.ports import LEFT

LOG = logging.getLogger(__name__)

Receiver = Callable[[Mapping[str, Any]], None]
Handler = Callable[[Mapping[str, Any]], Coroutine[Any, Any, Any]]


class LocalBus:
    """Carries topics within this process, and to every other process that has the same directory.

    Each process listens on a socket of its own in `directory`; a new one connects to all that are
    there, so each pair shares one connection. A connection begins with what its process subscribes
    to, and messages travel only to who wants them. What a process does not read in time is
    dropped for it. All methods are to be called on the loop.

    Besides `Bus`: processes know each other by `id`, and may ask each other with `request`.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.id = sockets.new_id()
        self._directory = os.path.abspath(directory)
        self._place = ""
        self._server: asyncio.Server | None = None
        self._closed = False
        self._receivers: dict[str, Listeners[[Mapping[str, Any]]]] = {}
        self._links: set[Link] = set()
        self._peers: dict[str, Link] = {}
        self._wanted: dict[str, dict[Link, None]] = {}
        self._handlers: dict[str, Handler] = {}
        self._serving: set[asyncio.Task[Any]] = set()

    async def start(self) -> None:
        """Listens and connects. Raises InvalidConfig when the directory is not this user's alone,
        MagyError when no socket can be made in it."""
        try:
            self._place = sockets.prepare(self._directory)
            listening, others = await asyncio.to_thread(sockets.enter, self._place, self.id)
        except OSError as error:
            raise MagyError(
                f"{error.filename or self._directory} cannot be used, and by it processes of Magy "
                f"reach each other: {error.strerror or error}. Check that "
                f"{os.path.dirname(self._directory)} is yours and writable, and that the disk has "
                "space; if a file lies there, remove it."
            ) from error
        with ExitStack() as undo:
            undo.callback(sockets.remove, self._place, self.id)
            undo.callback(listening.close)
            loop = asyncio.get_running_loop()
            self._server = await loop.create_unix_server(partial(Link, self), sock=listening)
            undo.pop_all()
        await asyncio.gather(*(self._connect(other) for other in others))

    async def close(self) -> None:
        """Leaves the mesh; requests under way, in either direction, end with an error."""
        server = self._server
        if server is None or self._closed:
            return
        self._closed = True
        sockets.remove(self._place, self.id)
        server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        links = tuple(self._links)
        for link in links:
            link.abort()
        await asyncio.gather(*(link.closed for link in links))
        await server.wait_closed()

    # --- publish and subscribe ------------------------------------------------------------------

    def publish(self, topic: str, message: Mapping[str, Any]) -> None:
        """Sends a message to all who subscribe, in this process and in others. The receivers in
        this process run before this returns and get `message` itself, so they must not change it.
        Raises TypeError if the message has to travel and is not JSON."""
        self.deliver(topic, message)
        if topic in self._wanted:
            self._send(topic, message)

    def subscribe(self, topic: str, receive: Receiver) -> Callable[[], None]:
        """Subscribes, and returns a function that ends the subscription. A message whose delivery
        has begun still arrives after that."""
        if topic not in self._receivers:
            self._receivers[topic] = Listeners()
            self._announce("want", topic)
        remove = self._receivers[topic].add(partial(_supervised, topic, receive))

        def end() -> None:
            remove()
            if topic in self._receivers and not self._receivers[topic]:
                del self._receivers[topic]
                self._announce("unwant", topic)

        return end

    def _send(self, topic: str, message: Mapping[str, Any]) -> None:
        frame = pack("publish", topic, message)
        if len(frame) > MAX_FRAME:
            LOG.warning("a message of %d bytes on %s stays in its process", len(frame), topic)
            return
        for link in self._wanted[topic]:
            link.offer(frame)

    def _announce(self, kind: str, topic: str) -> None:
        for link in self._links:
            link.announce(pack(kind, topic))

    # --- requests -------------------------------------------------------------------------------

    def peer_ids(self) -> tuple[str, ...]:
        """Returns the ids of the other processes that are connected."""
        return tuple(self._peers)

    def serve(self, method: str, handler: Handler) -> None:
        """Answers the `request`s of other processes. The handler gets the params and returns JSON;
        if it raises an error, the process that asked gets the error's message."""
        self._handlers[method] = handler

    async def request(
        self, peer: str, method: str, params: Mapping[str, Any], timeout: float = 10.0
    ) -> Any:
        """The peer's answer. Raises MagyError: with the peer's own message when it failed there
        (and the reason, if it was a MagyError; else `peer_error`), or with reason `peer_gone`,
        `peer_busy` or `peer_timeout`. `timeout` is in seconds; after it the peer may still do what
        it was asked."""
        link = self._peers.get(peer)
        if link is None:
            raise gone(peer)
        try:
            async with asyncio.timeout(timeout):
                return await link.ask(method, params)
        except TimeoutError:
            raise MagyError(
                f"The process {peer} did not answer {method} within {timeout:g} s. It may still "
                "finish: check before you repeat the request.",
                reason="peer_timeout",
            ) from None

    # --- what connections call ------------------------------------------------------------------

    def topics(self) -> list[str]:
        return list(self._receivers)

    def opened(self, link: Link) -> None:
        self._links.add(link)
        if self._closed:  # between the accepting of this connection and its start
            link.abort()

    def joined(self, link: Link) -> None:
        self._peers[link.peer] = link

    def left(self, link: Link) -> None:
        self._links.discard(link)
        self.wants(link, (), link.topics)
        if self._peers.get(link.peer) is link:
            del self._peers[link.peer]
            self.deliver(LEFT, {"peer": link.peer})

    def wants(self, link: Link, more: Iterable[str], less: Iterable[str]) -> None:
        for topic in more:
            self._wanted.setdefault(topic, {})[link] = None
        for topic in less:
            links = self._wanted.get(topic, {})
            links.pop(link, None)
            if not links:
                self._wanted.pop(topic, None)

    def deliver(self, topic: str, message: Mapping[str, Any]) -> None:
        """Gives a message to the receivers of this process."""
        if receivers := self._receivers.get(topic):
            receivers(message)

    def answer(self, link: Link, number: int, method: str, params: Mapping[str, Any]) -> None:
        handler = self._handlers.get(method)
        if handler is None:
            link.reply(number, {"error": f"This process does not serve {method!r}."})
            return
        task = asyncio.get_running_loop().create_task(handler(params))
        self._serving.add(task)
        task.add_done_callback(partial(self._answered, link, number, method))

    def _answered(self, link: Link, number: int, method: str, task: asyncio.Task[Any]) -> None:
        self._serving.discard(task)
        if task.cancelled():
            link.reply(number, {"error": f"The process exited before {method} was done."})
            return
        error = task.exception()
        if error is None:
            link.reply(number, {"result": task.result()})
        elif isinstance(error, MagyError):
            link.reply(number, {"error": error.message, "reason": error.reason})
        else:
            LOG.error("serving %s failed", method, exc_info=error)
            link.reply(number, {"error": f"{method} failed: {type(error).__name__}: {error}"})

    # --- connections ----------------------------------------------------------------------------

    async def _connect(self, other: str) -> None:
        loop = asyncio.get_running_loop()
        try:
            address = sockets.address(self._place, other)
            await loop.create_unix_connection(partial(Link, self, other), address)
        except (ConnectionRefusedError, FileNotFoundError):
            sockets.remove(self._place, other)  # its process died without cleaning up
        except OSError as error:
            LOG.warning("process %s cannot be reached: %s", other, error)


def _supervised(topic: str, receive: Receiver, message: Mapping[str, Any]) -> None:
    """The one place where the bus supervises: receivers do not know of each other, and a publisher
    must not fail for what a listener of its topic gets wrong."""
    try:
        receive(message)
    except Exception:
        LOG.exception("a receiver of %s failed", topic)
