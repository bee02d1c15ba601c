"""A peer is one connection that speaks JSON-RPC both ways: it serves the client's requests, each in
a task, and asks the client in turn. What a protocol adds stands in the doors' subclasses.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from inspect import CORO_CREATED, getcoroutinestate
from types import CoroutineType
from typing import Any, ClassVar, Protocol, TypeVar, cast

from magy_server.api.wire.codes import (
    CANCELLED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    REQUEST_FAILED,
)
from magy_server.core.errors import EditorError, MagyError
from magy_server.jsonrpc.messages import Malformed
from magy_server.jsonrpc.outbox import Failure, Outbox, settle
from magy_server.tasks import Tasks, logged

log = logging.getLogger(__name__)

Handler = Callable[[dict[str, Any]], Awaitable[Any]]
"""async (params) -> result. Whatever JSON can hold; raises MagyError."""
Id = int | str
Refusal = tuple[int, str, dict[str, Any] | None]
"""Code, message and data of an error."""
STUBBORN = 5.0
"""Seconds that cancelled requests may take to end before the connection is closed without them."""
MOST_REQUESTS = 4096
"""Requests in flight. More are refused, so that a client gone wild cannot use up the memory."""

T = TypeVar("T")


class Decoder(Protocol):
    def feed(self, data: bytes) -> Iterable[Any]:
        """Returns the messages that are whole now; what is none is `Malformed`."""

    @property
    def idle(self) -> bool:
        """Whether what has come so far ends with the end of a message."""


class ClientError(EditorError):
    """The editor answered a request with an error."""

    def __init__(self, method: str, code: int, message: str) -> None:
        super().__init__(f"The editor could not do {method}: {message} (code {code}).")
        self.code = code


class NotAnswered(EditorError):
    """The editor did not answer: in time (`reason` timeout), or ever (`reason` disconnected)."""


class MethodNotFound(MagyError):
    reason = "method_not_found"


class Peer:
    """One client. `ended` has the exit code of the process, and why."""

    cancelling: ClassVar[str]
    """The notification by which either side says that it does not want an answer any more..."""
    cancelled_id: ClassVar[str]
    """...and its parameter that names the request."""
    batches: ClassVar[str]
    """Why several messages at once are refused."""

    def __init__(self, outbox: Outbox, decoder: Decoder) -> None:
        self.outbox = outbox
        self.methods: dict[str, Handler] = {}
        """Requests and notifications that are ours, by name."""
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[tuple[int, str]] = self._loop.create_future()
        self._spawned = Tasks(self.failed)
        self._decoder = decoder
        self._tasks: dict[Id, asyncio.Task[None]] = {}
        self._notified: set[asyncio.Task[None]] = set()
        self._asked: dict[Id, tuple[str, asyncio.Future[Any], Callable[[Any], object]]] = {}
        self._ids = itertools.count(1)

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Runs work for as long as the connection lives. What it raises ends nothing else."""
        return self._spawned.begin(work)

    # --- what a protocol says -------------------------------------------------------------------

    def failed(self, error: BaseException) -> None:
        """Logs why a task ended."""
        logged(error)

    def refusal(self, error: Exception, method: str) -> Refusal:
        """Returns the error that a request is answered with."""
        raise NotImplementedError

    def end_of_input(self) -> None:
        """The client will send nothing more."""
        raise NotImplementedError

    def _request(self, id: Id, method: str, message: dict[str, Any]) -> None:
        raise NotImplementedError

    def _notification(self, method: str, message: dict[str, Any]) -> None:
        raise NotImplementedError

    def _not_ours(self, id: Id | None, message: dict[str, Any]) -> None:
        """The answer to a request that nothing here waits for."""

    async def _late(self, method: str, params: dict[str, Any]) -> Any:
        """Serves what has no handler (yet)."""
        raise MethodNotFound(f"There is no method {method}.")

    # --- to the client --------------------------------------------------------------------------

    def notify(self, method: str, params: Any) -> None:
        self.outbox.send({"jsonrpc": "2.0", "method": method, "params": params})

    async def request(
        self,
        method: str,
        params: Any,
        timeout: float | None = None,
        heard: Callable[[Any], object] = lambda result: None,
    ) -> Any:
        """The client's result. Raises ClientError for its error, NotAnswered after `timeout`
        seconds or when it goes away. A request that is given up is cancelled at the client.
        `heard` is called with the result as it comes, before any later message is looked at."""
        id, answer = self.ask(method, params, heard)
        try:
            async with asyncio.timeout(timeout):
                return await answer
        except TimeoutError:
            raise NotAnswered(
                f"The editor did not answer {method} within {timeout:g} seconds.", reason="timeout"
            ) from None
        finally:
            if answer.cancelled():
                self.withdraw(id)

    def ask(
        self, method: str, params: Any, heard: Callable[[Any], object] = lambda result: None
    ) -> tuple[str, asyncio.Future[Any]]:
        """Sends a request, and returns its id and a future of its result. A caller that does not
        want it any more cancels the future. Raises NotAnswered."""
        if self.ended.done():
            raise self._disconnected(method)
        id = f"magy-{next(self._ids)}"
        answer = self._loop.create_future()
        self._asked[id] = (method, answer, heard)
        answer.add_done_callback(lambda _: self._asked.pop(id, None))
        message = {"jsonrpc": "2.0", "id": id, "method": method}
        self.outbox.send(message if params is None else message | {"params": params})
        return id, answer

    def withdraw(self, id: str) -> None:
        """Tells the client that a request need not be carried out. It may answer all the same."""
        self.notify(self.cancelling, {self.cancelled_id: id})

    # --- from the client ------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        """What was read, in any portions."""
        for message in self._decoder.feed(data):
            if self.ended.done():
                return
            self._receive(message)

    def end(self, code: int, why: str) -> None:
        """The connection is over; the first reason counts."""
        if self.ended.done():
            return
        self.ended.set_result((code, why))
        for method, answer, _ in self._asked.values():
            if not answer.done():
                answer.set_exception(self._disconnected(method))

    async def finish(self, grace: float) -> None:
        """Lets what runs end within `grace` seconds and cancels the rest."""
        running = {*self._tasks.values(), *self._notified}
        if running:
            _, late = await asyncio.wait(running, timeout=grace)
            self._cancel_requests()
            if late:
                _, stuck = await asyncio.wait(late, timeout=STUBBORN)
                for task in stuck:
                    log.error("A request did not react to its cancellation: %r", task)

    async def cancel_all(self) -> None:
        """Returns when all that was spawned has ended."""
        self._cancel_requests()
        await self._spawned.cancel()

    def _cancel_requests(self) -> None:
        for id in tuple(self._tasks):
            self._stop(id)
        for task in tuple(self._notified):
            task.cancel()

    def _receive(self, message: Any) -> None:
        if type(message) is not dict:
            self._refuse(message)
            return
        method = message.get("method")
        id = message.get("id")
        if type(method) is str and (type(id) is int or type(id) is str):
            self._request(id, method, message)
        elif "id" in message and (type(id) is not int and type(id) is not str):
            if method is not None or id is not None:
                self._error(None, INVALID_REQUEST, "A request's id must be an integer or a string.")
        elif method is None and ("result" in message or "error" in message):
            self._response(id, message)
        elif type(method) is not str:
            self._error(id, INVALID_REQUEST, "A message needs a method that is a string.")
        else:
            self._notification(method, message)

    def _refuse(self, message: Any) -> None:
        if isinstance(message, Malformed):
            self._error(message.id, message.code, message.message)
        else:
            what = self.batches if type(message) is list else "This is not a message"
            self._error(None, INVALID_REQUEST, f"{what}: send one JSON object at a time.")

    def _crowded(self, id: Id) -> tuple[int, str] | None:
        """Why one request more is not served."""
        if id in self._tasks:
            return INVALID_REQUEST, f"A request with id {id!r} is still running."
        if len(self._tasks) >= MOST_REQUESTS:
            return REQUEST_FAILED, f"{MOST_REQUESTS} requests are running; wait for some to end."
        return None

    def _begin(self, id: Id, method: str, params: dict[str, Any]) -> asyncio.Task[None]:
        task = self._tasks[id] = self._loop.create_task(self._serve(id, method, params))
        return task

    def _hear_of(self, method: str, message: Mapping[str, Any]) -> None:
        params = message.get("params")
        if type(params) is dict or params is None:
            task = self.spawn(self._hear(method, params or {}))
            self._notified.add(task)
            task.add_done_callback(self._notified.discard)

    def _response(self, id: Id | None, message: dict[str, Any]) -> None:
        asked = self._asked.get(id) if id is not None else None
        if asked is None:
            self._not_ours(id, message)
            return
        method, answer, heard = asked
        if answer.done():
            return
        error = message.get("error")
        if error is None:
            heard(message.get("result"))
            answer.set_result(message.get("result"))
            return
        fields = error if type(error) is dict else {"message": str(error)}
        code, text = fields.get("code"), fields.get("message")
        answer.set_exception(
            ClientError(
                method,
                code if type(code) is int else INTERNAL_ERROR,
                text if type(text) is str else "it gave no reason",
            )
        )

    def _cancel(self, message: dict[str, Any]) -> None:
        params = message.get("params")
        id = params.get(self.cancelled_id) if type(params) is dict else None
        if type(id) is not int and type(id) is not str:
            return
        if id in self._tasks:
            self._stop(id)
        else:
            self._not_ours(id, message)

    def _stop(self, id: Id) -> None:
        task = self._tasks[id]
        task.cancel()
        work = cast("CoroutineType[Any, Any, None]", task.get_coro())
        if getcoroutinestate(work) == CORO_CREATED:
            # It will never run a line, not even the one that answers.
            del self._tasks[id]
            self._error(id, CANCELLED, "The request was cancelled.")

    # --- serving --------------------------------------------------------------------------------

    async def _serve(self, id: Id, method: str, params: dict[str, Any]) -> None:
        """One request. Raises nothing: no other task of ours is so many and so short, so they are
        kept in `_tasks` and awaited by `finish` instead of paying for a task group."""
        try:
            while not self.outbox.calm.is_set():
                await self.outbox.calm.wait()
            handler = self.methods.get(method)
            result = await settle(handler(params) if handler else self._late(method, params))
            if isinstance(result, Failure):
                self._error(id, *self.refusal(result.error, method))
            else:
                self._answer(id, method, result)
        except asyncio.CancelledError:
            self._error(id, CANCELLED, f"{method} was cancelled.")
        finally:
            del self._tasks[id]

    def _answer(self, id: Id, method: str, result: Any) -> None:
        try:
            # A lone answer leaves at once; those of a burst of requests leave together.
            answer = {"jsonrpc": "2.0", "id": id, "result": result}
            self.outbox.send(answer, now=len(self._tasks) == 1)
        except TypeError as error:
            self._error(id, *self.refusal(error, method))

    async def _hear(self, method: str, params: dict[str, Any]) -> None:
        handler = self.methods.get(method)
        result = await settle(handler(params) if handler else self._late(method, params))
        if isinstance(result, Failure):
            code, message, _ = self.refusal(result.error, method)
            if code != INTERNAL_ERROR:
                log.warning("%s was ignored: %s", method, message)

    def _error(self, id: Id | None, code: int, message: str, data: Any = None) -> None:
        error = {"code": code, "message": message}
        if data is not None:
            error["data"] = data
        self.outbox.send({"jsonrpc": "2.0", "id": id, "error": error})

    def _disconnected(self, method: str) -> NotAnswered:
        return NotAnswered(f"The editor disconnected before {method}.", reason="disconnected")
