"""The connection to one editor decides for every message who handles it.

Our own methods (`magy/*` and a few standard ones) are handled here, with their parameters exactly
as they were sent. The rest goes to the standard server (pygls), one whole message at a time.
`api.wire.codes` has the codes of errors.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from inspect import CORO_CREATED, getcoroutinestate
from types import CoroutineType
from typing import Any, Protocol, TypeVar, cast

from magy_server.api.wire.codes import (
    CANCELLED,
    CONTENT_MODIFIED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NOT_INITIALIZED,
    REQUEST_FAILED,
)
from magy_server.core.errors import Conflict, EditorError, EditRefused, InvalidRequest, MagyError
from magy_server.lsp.frames import FrameDecoder, Malformed
from magy_server.lsp.outbox import Failure, Outbox, settle
from magy_server.tasks import Tasks, logged

log = logging.getLogger(__name__)

Handler = Callable[[dict[str, Any]], Awaitable[Any]]
"""async (params) -> result. Whatever JSON can hold; raises MagyError."""
Id = int | str
STUBBORN = 5.0
"""Seconds that cancelled requests may take to end before the connection is closed without them."""

T = TypeVar("T")

ERROR_MESSAGE = 1
"""LSP's MessageType.Error."""
MOST_REQUESTS = 4096
"""Requests in flight. More are refused, so that a client gone wild cannot use up the memory."""


class Standard(Protocol):
    """The server that handles what is not ours."""

    def knows(self, method: str) -> bool: ...

    def busy_with(self, id: Id) -> bool:
        """Whether a request with this id is in flight, in either direction."""

    def receive(self, message: dict[str, Any]) -> str | None:
        """Handles one message and answers it when it asks for that. What it answers here is why
        the message could not be understood."""

    @property
    def initialized(self) -> bool: ...


class ClientError(EditorError):
    """The editor answered a request with an error."""

    def __init__(self, method: str, code: int, message: str) -> None:
        super().__init__(f"The editor could not do {method}: {message} (code {code}).")


class NotAnswered(EditorError):
    """The editor did not answer: in time (`reason` timeout), or ever (`reason` disconnected)."""


Pending = Callable[[], Awaitable[object]]
"""async (): waits until all methods of ours are known."""
Arrived = Callable[[asyncio.Task[None], str, dict[str, Any]], object]
"""(task, method, params): called as a request of ours comes, before any later message is looked at:
what runs in the task may find more messages handled already."""


class Connection:
    """One client. `open` gives it the standard server, `complete` the methods; `ended` has the exit
    code of the process, and why."""

    def __init__(self, outbox: Outbox) -> None:
        self.outbox = outbox
        self.methods: dict[str, Handler] = {}
        """Requests and notifications that are ours: a few from the start on, the rest comes with
        `complete`."""
        self._pending: Pending | None = None
        self._arrived: Arrived = lambda task, method, params: None
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[tuple[int, str]] = self._loop.create_future()
        self.shutting_down = False
        self._spawned = Tasks(self.failed)
        self._standard: Standard | None = None
        self._decoder = FrameDecoder()
        self._tasks: dict[Id, asyncio.Task[None]] = {}
        self._notified: set[asyncio.Task[None]] = set()
        self._asked: dict[Id, tuple[str, asyncio.Future[Any], Callable[[Any], object]]] = {}
        self._ids = itertools.count(1)

    def open(self, standard: Standard, pending: Pending, arrived: Arrived) -> None:
        """`pending` is asked until `complete`."""
        self._standard = standard
        self._pending = pending
        self._arrived = arrived

    def complete(self, methods: Mapping[str, Handler]) -> None:
        """All methods that there will be are known with these."""
        self.methods.update(methods)
        self._pending = None

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Runs work for as long as the connection lives. What it raises ends nothing else."""
        return self._spawned.begin(work)

    def failed(self, error: BaseException) -> None:
        """Logs why a task ended; the person hears of what nobody foresaw."""
        logged(error)
        if not isinstance(error, MagyError):
            said = f"Magy: something failed inside Magy ({type(error).__name__}), and all else "
            said += "goes on. Magy's log has details."
            self.notify("window/showMessage", {"type": ERROR_MESSAGE, "message": said})

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
        self.notify("$/cancelRequest", {"id": id})

    # --- from the client ------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        """What was read, in any portions."""
        for message in self._decoder.feed(data):
            if self.ended.done():
                return
            self._receive(message)

    def end_of_input(self) -> None:
        if not self._decoder.idle and not self.ended.done():
            log.warning("The editor's last message was cut off.")
        self.end(0 if self.shutting_down else 1, "the editor disconnected")

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
        if "id" in message and (type(id) is not int and type(id) is not str):
            if method is not None or id is not None:
                self._error(None, INVALID_REQUEST, "A request's id must be an integer or a string.")
        elif method is None and ("result" in message or "error" in message):
            self._response(id, message)
        elif type(method) is not str:
            self._error(id, INVALID_REQUEST, "A message needs a method that is a string.")
        elif id is None:
            self._notification(method, message)
        elif problem := self._unwelcome(id, method):
            self._error(id, *problem)
        elif method in self.methods or method.startswith("magy/"):
            params = message.get("params")
            if params is None or type(params) is dict:
                task = self._loop.create_task(self._serve(id, method, params or {}))
                self._tasks[id] = task
                self._arrived(task, method, params or {})
            else:
                self._wrong(id, method, "params must be an object.")
        else:
            self._pass_on(id, method, message)

    def _refuse(self, message: Any) -> None:
        if isinstance(message, Malformed):
            self._error(message.id, message.code, message.message)
        else:
            batch = type(message) is list
            what = "Batches are not part of LSP" if batch else "This is not a message"
            self._error(None, INVALID_REQUEST, f"{what}: send one JSON object a frame.")

    def _unwelcome(self, id: Id, method: str) -> tuple[int, str] | None:
        """Why a well-formed request is not served in this state of the connection."""
        if self._standard is None or not self._standard.initialized:
            if method != "initialize":
                return NOT_INITIALIZED, f"{method} came before initialize."
        elif self.shutting_down:
            return INVALID_REQUEST, f"{method} came after shutdown; only exit may follow."
        elif method == "initialize":
            return INVALID_REQUEST, "The server is initialized already."
        if id in self._tasks or (self._standard and self._standard.busy_with(id)):
            return INVALID_REQUEST, f"A request with id {id!r} is still running."
        if len(self._tasks) >= MOST_REQUESTS:
            return REQUEST_FAILED, f"{MOST_REQUESTS} requests are running; wait for some to end."
        return None

    def _pass_on(self, id: Id, method: str, message: dict[str, Any]) -> None:
        assert self._standard is not None
        if not self._standard.knows(method):
            self._error(id, METHOD_NOT_FOUND, f"There is no method {method}.")
            return
        if method == "shutdown":
            self.shutting_down = True
        if problem := self._standard.receive(message):
            self._wrong(id, method, problem)

    def _wrong(self, id: Id, method: str, problem: str) -> None:
        self._error(id, *error_of(InvalidRequest(f"{method}: {problem}"), method))

    def _notification(self, method: str, message: dict[str, Any]) -> None:
        if method == "exit":
            self.end(0 if self.shutting_down else 1, "the editor asked Magy to exit")
        elif self._standard is None or not self._standard.initialized or self.shutting_down:
            log.info("%s was ignored outside of a running session.", method)
        elif method == "$/cancelRequest":
            self._cancel(message)
        elif method in self.methods or method.startswith("magy/"):
            params = message.get("params")
            if type(params) is dict or params is None:
                task = self.spawn(self._hear(method, params or {}))
                self._notified.add(task)
                task.add_done_callback(self._notified.discard)
        elif self._standard.knows(method) and (problem := self._standard.receive(message)):
            log.warning("%s was ignored: %s", method, problem)

    def _response(self, id: Id | None, message: dict[str, Any]) -> None:
        asked = self._asked.get(id) if id is not None else None
        if asked is None:
            if id is not None and self._standard and self._standard.busy_with(id):
                self._standard.receive(message)
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
        id = params.get("id") if type(params) is dict else None
        if type(id) is not int and type(id) is not str:
            return
        if id in self._tasks:
            self._stop(id)
        elif self._standard and self._standard.busy_with(id):
            self._standard.receive(message)

    def _stop(self, id: Id) -> None:
        task = self._tasks[id]
        task.cancel()
        work = cast("CoroutineType[Any, Any, None]", task.get_coro())
        if getcoroutinestate(work) == CORO_CREATED:
            # It will never run a line, not even the one that answers.
            del self._tasks[id]
            self._error(id, CANCELLED, "The request was cancelled.")

    # --- our methods ----------------------------------------------------------------------------

    async def _serve(self, id: Id, method: str, params: dict[str, Any]) -> None:
        """One request. Raises nothing: no other task of ours is so many and so short, so they are
        kept in `_tasks` and awaited by `finish` instead of paying for a task group."""
        try:
            while not self.outbox.calm.is_set():
                await self.outbox.calm.wait()
            handler = self.methods.get(method)
            result = await settle(handler(params) if handler else self._late(method, params))
            if isinstance(result, Failure):
                self._error(id, *error_of(result.error, method))
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
            self._error(id, *error_of(error, method))

    async def _hear(self, method: str, params: dict[str, Any]) -> None:
        handler = self.methods.get(method)
        result = await settle(handler(params) if handler else self._late(method, params))
        if isinstance(result, Failure):
            code, message, _ = error_of(result.error, method)
            if code != INTERNAL_ERROR:
                log.warning("%s was ignored: %s", method, message)

    async def _late(self, method: str, params: dict[str, Any]) -> Any:
        """A method that was not known when it was asked for: it may be after the start, or after
        one that failed (the doctor)."""
        try:
            if self._pending is not None:
                await self._pending()
        except MagyError:
            if method not in self.methods:
                raise
        handler = self.methods.get(method)
        if handler is None:
            raise MethodNotFound(f"There is no method {method}.")
        return await handler(params)

    def _error(self, id: Id | None, code: int, message: str, data: Any = None) -> None:
        error = {"code": code, "message": message}
        if data is not None:
            error["data"] = data
        self.outbox.send({"jsonrpc": "2.0", "id": id, "error": error})

    def _disconnected(self, method: str) -> NotAnswered:
        return NotAnswered(f"The editor disconnected before {method}.", reason="disconnected")


class MethodNotFound(MagyError):
    reason = "method_not_found"


def error_of(error: Exception, method: str) -> tuple[int, str, dict[str, Any] | None]:
    """Code, message and data of the response. What nobody raised on purpose is logged here."""
    match error:
        case MethodNotFound():
            return METHOD_NOT_FOUND, error.message, None
        case InvalidRequest():
            return INVALID_PARAMS, error.message, {"reason": error.reason}
        case Conflict() | EditRefused(reason="stale"):
            return CONTENT_MODIFIED, error.message, {"reason": error.reason}
        case MagyError():
            return REQUEST_FAILED, error.message, {"reason": error.reason}
    log.error("%s failed", method, exc_info=error)
    message = f"{method} failed inside Magy ({type(error).__name__}); Magy's log has details."
    return INTERNAL_ERROR, message, None
