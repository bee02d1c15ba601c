"""This module reads and answers the messages of an ACP client, one JSON-RPC message a line;
`door.py` says what the methods do."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from magy_server.api.wire.codes import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
)
from magy_server.core.errors import InvalidRequest, MagyError, NotFound
from magy_server.jsonrpc.lines import LineDecoder
from magy_server.jsonrpc.outbox import Outbox
from magy_server.jsonrpc.peer import Handler, Id, MethodNotFound, Peer, Refusal

SEE = " See docs/protocol.md."
"""How errors of Magy's own methods end."""

log = logging.getLogger(__name__)

Custom = Callable[[str, dict[str, Any]], Awaitable[Any]]
"""async (method, params) -> result."""
RESOURCE_NOT_FOUND = -32002


class Connection(Peer):
    """One client, which `open` gives what it may ask once it is initialized."""

    cancelling, cancelled_id = "$/cancel_request", "requestId"
    batches = "A batch that is empty, or stands in another, is none"

    def __init__(self, outbox: Outbox) -> None:
        super().__init__(outbox, LineDecoder())
        self._custom: Custom | None = None

    def open(self, methods: Mapping[str, Handler], custom: Custom) -> None:
        """`custom` serves the methods that begin with `_magy/`."""
        self.methods.update(methods)
        self._custom = custom

    def refusal(self, error: Exception, method: str) -> Refusal:
        match error:
            case MethodNotFound():
                return METHOD_NOT_FOUND, error.message, None
            case NotFound():
                return RESOURCE_NOT_FOUND, _line(error, method), {"reason": error.reason}
            case InvalidRequest():
                return INVALID_PARAMS, _line(error, method), {"reason": error.reason}
            case MagyError():
                return INTERNAL_ERROR, _line(error, method), {"reason": error.reason}
        log.error("%s failed", method, exc_info=error)
        said = f"{method} failed inside Magy ({type(error).__name__}); Magy's log has details."
        return INTERNAL_ERROR, said, None

    def end_of_input(self) -> None:
        if not self._decoder.idle and not self.ended.done():
            log.warning("The client's last message was cut off.")
        self.end(0, "the client disconnected")

    def _refuse(self, message: Any) -> None:
        """Drafts of ACP had batches. Each message of one is answered by itself."""
        if type(message) is not list or not message:
            super()._refuse(message)
            return
        for one in message:
            if type(one) is list:
                super()._refuse(one)
            else:
                self._receive(one)

    def _request(self, id: Id, method: str, message: dict[str, Any]) -> None:
        params = message.get("params")
        if problem := self._crowded(id):
            self._error(id, *problem)
        elif self._custom is None and method != "initialize":
            self._error(id, INVALID_REQUEST, f"{method} came before initialize.")
        elif params is not None and type(params) is not dict:
            self._error(id, INVALID_PARAMS, f"{method}: params must be an object.")
        else:
            self._begin(id, method, params or {})

    def _notification(self, method: str, message: dict[str, Any]) -> None:
        if method == self.cancelling:
            self._cancel(message)
        elif self._custom and (method in self.methods or method.startswith("_magy/")):
            self._hear_of(method, message)

    async def _late(self, method: str, params: dict[str, Any]) -> Any:
        if self._custom and method.startswith("_magy/"):
            return await self._custom(method, params)
        return await super()._late(method, params)


def _line(error: MagyError, method: str) -> str:
    """An error of ACP is one line. It names the method that the client asked for, and not the one
    of Magy's by which that is done."""
    text = " ".join(error.message.split())
    done_by, colon, rest = text.partition(": ")
    if not colon or not done_by.startswith("magy/") or " " in done_by:
        return text
    return f"{method}: {rest}".removesuffix(SEE)
