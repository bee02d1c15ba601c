"""What the servers of all wires share: what they answer next, and how an answer goes wrong.

    async with AnthropicServer() as server:      # or ResponsesServer, ChatServer
        server.reply(thinking("hm"), text("I look."), call("read_file", {"path": "a.py"}))
        server.fault("529", retry_after=0.1)
        server.answer(lambda body: [text(f"{len(body['messages'])} messages")])
        ... client at server.base_url ...
        server.requests[0].body["messages"], .headers["authorization"], .disconnected

Queued replies and faults are used up in order; then `answer` is asked, if given. A request that the
real API would refuse is answered with its 400, unless the server was made with `strict=False`.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

from magy_server.core.errors import ProviderFault
from magy_server.core.ports import Message
from magy_server.llm.scripted import pieces

from .http import Exchange, HttpServer, Request
from .parts import Called, Counted, Cut, Fault, Hang, Part, Pause, Said

Answer = Sequence[Part] | Fault
Step = bytes | Pause | Hang | Cut
"""What a stream is made of: an event as it goes over the wire, or something that happens to it."""

HTML = b"<!DOCTYPE html><html><body><h1>Please log in to the proxy</h1></body></html>"
NO_REPLY = "the loopback server has no reply left for this request"


STARTED: list[ModelServer] = []
"""The servers of this process since a test looked last, for who compares what was sent to all."""


class ModelServer(HttpServer):
    """One of the wires: subclasses say how replies and errors look on it.

    `batch`: how many events go out in one TCP write. `cut`: every write has so many bytes instead,
    wherever that cuts an event or a character. `models`: what is listed under `/models`, or how
    listing fails. `heard` is called with every request before it is answered.
    """

    prefix: ClassVar[str] = ""
    """Of every path; part of `base_url`."""
    path: ClassVar[str]
    """Where replies are asked for, below `prefix`."""
    models_path: ClassVar[str] = "/models"

    def __init__(
        self,
        port: int = 0,
        *,
        strict: bool = True,
        batch: int = 1,
        cut: int = 0,
        tls: ssl.SSLContext | None = None,
        models: Sequence[str] | Fault = ("test-model",),
        heard: Callable[[Request], None] | None = None,
    ) -> None:
        super().__init__(port, tls=tls)
        self._heard = heard
        self.models = models
        self.places: dict[str, Any] = {}
        """What else is answered as JSON, by path."""
        self._strict = strict
        self._batch = batch
        self._cut = cut
        self._queue: deque[Answer] = deque()
        self._function: Callable[[Any], Answer] | None = None
        self._made = 0

    async def start(self) -> None:
        await super().start()
        STARTED.append(self)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    @property
    def base_url(self) -> str:
        return super().base_url + self.prefix

    @property
    def asked(self) -> list[Request]:
        """The requests for a reply, so far."""
        return [r for r in self.requests if r.path == self.prefix + self.path]

    @property
    def taken(self) -> list[Request]:
        """Those of them that were not refused for what they are."""
        return [request for request in self.asked if not request.refused]

    # --- what comes next ------------------------------------------------------------------------

    def reply(self, *parts: Part) -> None:
        self._queue.append(parts)

    def fault(
        self,
        name: str,
        *,
        message: str = "",
        type: str = "",
        retry_after: float | str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        """See `Fault`."""
        given = dict(headers or {})
        if retry_after is not None:
            given["retry-after"] = str(retry_after)
        self._queue.append(Fault(name, message, type, given))

    def answer(self, function: Callable[[Any], Answer]) -> None:
        """`function` is given the request body, once the queue is used up."""
        self._function = function

    # --- a wire ---------------------------------------------------------------------------------

    def events(self, body: Any, parts: Sequence[Part], number: int) -> Iterator[Step]:
        """`number`: the how manieth reply of this server, from 1; for ids."""
        raise NotImplementedError

    def problems(self, request: Request) -> list[str]:
        """Why the real API would answer 400."""
        raise NotImplementedError

    def error(self, fault: Fault) -> dict[str, Any]:
        """The body of an answer with status `fault.name`."""
        raise NotImplementedError

    def listed(self, models: Sequence[str]) -> dict[str, Any]:
        raise NotImplementedError

    # --- what a script needs to know of it ------------------------------------------------------

    stops: ClassVar[Mapping[str, str]]
    """The wire's word for each `Replied.stop` that a script may name."""
    faults: ClassVar[Mapping[ProviderFault, tuple[str, str]]]
    """The fault of that meaning, as (`Fault.name`, `Fault.type`)."""

    @staticmethod
    def conversation(body: Any) -> list[Message]:
        """The messages of a request body, as far as a script looks at them."""
        raise NotImplementedError

    # --- answering ------------------------------------------------------------------------------

    async def respond(self, request: Request, exchange: Exchange) -> None:
        if self._heard is not None:
            self._heard(request)
        if request.path in self.places:
            body = json.dumps(self.places[request.path]).encode()
            await exchange.send(200, body, "application/json")
            return
        where = request.path.removeprefix(self.prefix)
        if not {"authorization", "x-api-key"} & set(request.headers):
            answer: Answer | Mapping[str, Any] = Fault("401", "the API key is missing")
        elif (request.method, where) == ("GET", self.models_path):
            answer = self.models if isinstance(self.models, Fault) else self.listed(self.models)
        elif (request.method, where) != ("POST", self.path):
            answer = Fault("404", f"{request.method} {request.path}")
        else:
            answer = self._choose(request)
        if isinstance(answer, Fault):
            await self._fail(answer, exchange)
        elif isinstance(answer, Mapping):
            await exchange.send(200, json.dumps(answer).encode(), "application/json")
        else:
            await self._stream(request.body, answer, exchange)

    def _choose(self, request: Request) -> Answer:
        if self._strict and (wrong := self.problems(request)):
            request.refused = True
            return Fault("400", "; ".join(wrong))
        if self._queue:
            return self._queue.popleft()
        if self._function is not None:
            return self._function(request.body)
        return Fault("400", NO_REPLY)

    async def _stream(self, body: Any, parts: Sequence[Part], exchange: Exchange) -> None:
        await exchange.begin()
        self._made += 1
        waiting: list[bytes] = []
        for step in self.events(body, parts, self._made):
            if isinstance(step, bytes):
                waiting.append(step)
                if len(waiting) < self._batch:
                    continue
            await self._write(waiting, exchange)
            match step:
                case Pause():
                    await asyncio.sleep(step.seconds)
                case Hang():
                    await (step.until or asyncio.Event()).wait()
                case Cut():
                    (exchange.reset if step.reset else exchange.cut)()
                    return
        await self._write(waiting, exchange)
        await exchange.end()

    async def _write(self, waiting: list[bytes], exchange: Exchange) -> None:
        data = b"".join(waiting)
        waiting.clear()
        size = self._cut or len(data) or 1
        for start in range(0, len(data), size):
            await exchange.write(data[start : start + size])

    async def _fail(self, fault: Fault, exchange: Exchange) -> None:
        match fault.name:
            case "html":
                await exchange.send(200, HTML, "text/html; charset=utf-8")
            case "empty":
                await exchange.begin()
                await exchange.end()
            case "silence":
                await asyncio.Event().wait()
            case "drop":
                exchange.cut()
            case "reset":
                exchange.reset()
            case status if status.isdigit():
                body = json.dumps(self.error(fault)).encode()
                await exchange.send(int(status), body, "application/json", fault.headers)
            case unknown:
                raise ValueError(f"no fault is called {unknown!r}; see parts.py, Fault")


def counts(parts: Sequence[Part]) -> dict[str, int]:
    """What `usage(...)` says, or the usual; see there."""
    said = {"input": 10, "output": 5}
    for part in parts:
        if isinstance(part, Counted):
            said |= part.counts
    return {"cache_read": 0, "cache_write": 0, **said}


def piece_by_piece(part: Said | Called) -> Iterator[Pause | str]:
    """What `part` says, as the deltas it comes in, each after the pause that `speed` asks for."""
    if isinstance(part, Said):
        cut: Iterable[str] = part.pieces or pieces(part.text)
    else:
        cut = (part.json[at : at + part.size] for at in range(0, len(part.json), part.size))
    for piece in cut:
        if part.speed:
            yield Pause(len(piece) / part.speed)
        yield piece


__all__ = ["HTML", "NO_REPLY", "Answer", "ModelServer", "Step", "counts", "piece_by_piece"]
