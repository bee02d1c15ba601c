"""The connection to one editor decides for every message who handles it.

Our own methods (`magy/*` and a few standard ones) are handled here, with their parameters exactly
as they were sent. What an editor says of its documents is read here, too, if it is plainly
well-formed; the rest goes to the standard server (pygls), one whole message at a time, which is
imported when the first such message comes.
`api.wire.codes` has the codes of errors.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Protocol

from magy_server.api.wire.codes import (
    CONTENT_MODIFIED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NOT_INITIALIZED,
    REQUEST_FAILED,
)
from magy_server.core.errors import Conflict, EditRefused, InvalidRequest, MagyError
from magy_server.jsonrpc.outbox import Outbox
from magy_server.jsonrpc.peer import Handler, Id, MethodNotFound, Peer, Refusal
from magy_server.lsp.document_messages import reading
from magy_server.lsp.documents import LiveWorkspace
from magy_server.lsp.frames import FrameDecoder

log = logging.getLogger(__name__)

ERROR_MESSAGE = 1
"""LSP's MessageType.Error."""


PASSED_ON = frozenset(
    [
        "initialize", "workspace/didChangeWorkspaceFolders",
        "textDocument/didOpen", "textDocument/didChange", "textDocument/didSave",
        "textDocument/didClose", "notebookDocument/didOpen", "notebookDocument/didChange",
        "notebookDocument/didClose", "workspace/didCreateFiles", "workspace/didRenameFiles",
        "workspace/didDeleteFiles",
    ]
)  # fmt: skip
"""What the standard server handles, unless it can be read without it. Until it is there, nothing
else needs it."""


class Standard(Protocol):
    """The server that handles what is not ours."""

    def busy_with(self, id: Id) -> bool:
        """Whether a request with this id is in flight, in either direction."""

    def receive(self, message: dict[str, Any]) -> str | None:
        """Handles one message and answers it when it asks for that. What it answers here is why
        the message could not be understood."""


class Home(Protocol):
    """What stands behind a connection."""

    @property
    def initialized(self) -> bool: ...

    @property
    def workspace(self) -> LiveWorkspace:
        """The documents of a client that has said `initialize`."""

    def greeted(self, params: dict[str, Any]) -> bool:
        """Takes the parameters of an `initialize` that is answered already; False if none is."""

    def ready(self) -> None:
        """The client says `initialized`."""

    async def standard(self) -> Standard:
        """Imports the standard server, which takes most of a second."""

    async def pending(self) -> object:
        """Waits until all methods of ours are known."""

    def asked(self, task: asyncio.Task[None], method: str, params: dict[str, Any]) -> None:
        """Is called as a request of ours comes, before any later message is looked at: what runs
        in the task may find more messages handled already."""


class Connection(Peer):
    """`open` gives it its home, `complete` the methods: a few are there from the start on, the rest
    comes with that."""

    cancelling, cancelled_id = "$/cancelRequest", "id"
    batches = "Batches are not part of LSP"

    def __init__(self, outbox: Outbox) -> None:
        super().__init__(outbox, FrameDecoder())
        self._home: Home | None = None
        self._standard: Standard | None = None
        self._held: list[Any] | None = None
        """What has come since a message that waits for the standard server: order matters."""
        self._cut_off = False
        self._complete = False
        self.shutting_down = False

    def open(self, home: Home) -> None:
        self._home = home

    def complete(self, methods: Mapping[str, Handler]) -> None:
        """All methods that there will be are known with these."""
        self.methods.update(methods)
        self._complete = True

    def failed(self, error: BaseException) -> None:
        """The person hears of what nobody foresaw."""
        super().failed(error)
        if not isinstance(error, MagyError):
            said = f"Magy: something failed inside Magy ({type(error).__name__}), and all else "
            said += "goes on. Magy's log has details."
            self.notify("window/showMessage", {"type": ERROR_MESSAGE, "message": said})

    def refusal(self, error: Exception, method: str) -> Refusal:
        return error_of(error, method)

    def end_of_input(self) -> None:
        if self._held is not None:
            self._cut_off = True
            return
        if not self._decoder.idle and not self.ended.done():
            log.warning("The editor's last message was cut off.")
        self.end(0 if self.shutting_down else 1, "the editor disconnected")

    def _receive(self, message: Any) -> None:
        if self._held is None:
            super()._receive(message)
        else:
            self._held.append(message)

    def _request(self, id: Id, method: str, message: dict[str, Any]) -> None:
        params = message.get("params")
        if problem := self._unwelcome(id, method):
            self._error(id, *problem)
        elif method in self.methods or method.startswith("magy/"):
            if params is None or type(params) is dict:
                task = self._begin(id, method, params or {})
                self._opened.asked(task, method, params or {})
            else:
                self._wrong(id, method, "params must be an object.")
        elif method == "shutdown":
            self.shutting_down = True
            self._answer(id, method, None)
        elif method not in PASSED_ON:
            self._error(id, METHOD_NOT_FOUND, f"There is no method {method}.")
        elif method == "initialize" and self._opened.greeted(params or {}):
            return
        elif wrong := self._pass_on(message):
            self._wrong(id, method, wrong)

    @property
    def _opened(self) -> Home:
        assert self._home is not None
        return self._home

    def _unwelcome(self, id: Id, method: str) -> tuple[int, str] | None:
        """Why a well-formed request is not served in this state of the connection."""
        if not self._opened.initialized:
            if method != "initialize":
                return NOT_INITIALIZED, f"{method} came before initialize."
        elif self.shutting_down:
            return INVALID_REQUEST, f"{method} came after shutdown; only exit may follow."
        elif method == "initialize":
            return INVALID_REQUEST, "The server is initialized already."
        if self._standard and self._standard.busy_with(id):
            return INVALID_REQUEST, f"A request with id {id!r} is still running."
        return self._crowded(id)

    def _pass_on(self, message: dict[str, Any]) -> str | None:
        """Has the standard server handle a message, now or when it is there. Returns why it could
        not be understood."""
        if self._standard is not None:
            return self._standard.receive(message)
        self._held = [message]
        self.spawn(self._fetch())
        return None

    async def _fetch(self) -> None:
        try:
            self._standard = await self._opened.standard()
        except Exception:
            self.end(1, "the standard part of the language server could not be loaded")
            raise
        held, self._held = self._held or (), None
        for message in held:
            if not self.ended.done():
                self._receive(message)
        if self._cut_off:
            self.end_of_input()

    def _wrong(self, id: Id, method: str, problem: str) -> None:
        self._error(id, *error_of(InvalidRequest(f"{method}: {problem}"), method))

    def _notification(self, method: str, message: dict[str, Any]) -> None:
        if method == "exit":
            self.end(0 if self.shutting_down else 1, "the editor asked Magy to exit")
        elif not self._opened.initialized or self.shutting_down:
            log.info("%s was ignored outside of a running session.", method)
        elif method == "initialized":
            self._opened.ready()
        elif method == self.cancelling:
            self._cancel(message)
        elif method in self.methods or method.startswith("magy/"):
            self._hear_of(method, message)
        elif method not in PASSED_ON or self._read_here(method, message):
            return
        elif problem := self._pass_on(message):
            log.warning("%s was ignored: %s", method, problem)

    def _read_here(self, method: str, message: dict[str, Any]) -> bool:
        """Does as a message about documents says. False: the standard server is to read it."""
        do = reading(self._opened.workspace, message)
        try:
            if do:
                do()
        except Exception as error:
            log.error("%s failed", method, exc_info=error)
        return do is not None

    def _not_ours(self, id: Id | None, message: dict[str, Any]) -> None:
        if id is not None and self._standard and self._standard.busy_with(id):
            self._standard.receive(message)

    async def _late(self, method: str, params: dict[str, Any]) -> Any:
        """A method that was not known when it was asked for: it may be after the start, or after
        one that failed (the doctor)."""
        try:
            if not self._complete:
                await self._opened.pending()
        except MagyError:
            if method not in self.methods:
                raise
        handler = self.methods.get(method)
        return await (handler(params) if handler else super()._late(method, params))


def error_of(error: Exception, method: str) -> Refusal:
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
