"""`magy mcp serve` speaks the Model Context Protocol on standard input and output, through the
official SDK. Importing this takes long."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Protocol

import mcp_types as types
from mcp.server import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from magy_server import __version__
from magy_server.api.service import Service
from magy_server.api.wire.refusals import sentences
from magy_server.config.trust import Trust
from magy_server.core.errors import MagyError
from magy_server.jsonrpc.serving import LEAVING, UNTIDY
from magy_server.jsonrpc.stdio import end_within
from magy_server.mcp_server.calling import Told, Word
from magy_server.mcp_server.client_pipes import streams
from magy_server.mcp_server.served_project import Served
from magy_server.mcp_server.tool_table import OFFERS, Offer

ABOUT = (
    "Magy runs coding agents in the project {root}. Their changes are in the files at once, and "
    "stay under review until they are accepted or rejected."
)
YES: Mapping[str, Any] = {
    "type": "object",
    "properties": {"allow": {"type": "boolean", "title": "Allow it", "default": False}},
    "required": ["allow"],
}


class Compose(Protocol):
    def __call__(
        self, roots: Sequence[str], options: Mapping[str, Any]
    ) -> AbstractAsyncContextManager[tuple[Service, Trust]]:
        """Returns the engine for these roots, running. Raises MagyError."""


class SentAway(Exception):
    """The client has to come back with a person's word: `result` says so."""

    def __init__(self, result: types.InputRequiredResult) -> None:
        super().__init__()
        self.result = result


class ToolCall:
    """Implements `calling.Calling` for one request."""

    def __init__(
        self, context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> None:
        self.state = params.request_state or ""
        self._kept = self.state
        self._context = context
        self._said = params.input_responses or {}
        self._told = 0
        self._last = ""

    @property
    def asks(self) -> bool:
        can = self._context.session.client_capabilities
        asked = can.elicitation if can else None
        return asked is not None and (asked.form is not None or asked.url is None)

    def keep(self, state: str) -> None:
        self._kept = state

    async def ask(self, id: str, text: str) -> Word:
        if not self.asks:
            return "nothing"
        if id in self._said:
            return _word(self._said.pop(id))
        params = types.ElicitRequestFormParams(message=text, requested_schema=dict(YES))
        if self._context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            request = types.ElicitRequest(params=params)
            raise SentAway(
                types.InputRequiredResult(
                    input_requests={id: request}, request_state=self._kept or None
                )
            )
        session = self._context.session
        return _word(
            await session.elicit_form(
                params.message, params.requested_schema, self._context.request_id
            )
        )

    async def progress(self, text: str) -> None:
        self._told += 1
        if text != self._last or self._told % 2:
            self._last = text
            await self._context.session.report_progress(float(self._told), None, text)


def _word(said: object) -> Word:
    """What a person means. Who closes the question has said nothing."""
    if not isinstance(said, types.ElicitResult) or said.action == "cancel":
        return "nothing"
    return "yes" if said.action == "accept" and (said.content or {}).get("allow") is True else "no"


def server_for(served: Served) -> Server[Any]:
    offers = {offer.name: offer for offer in OFFERS}
    shown = [_tool(offer) for offer in OFFERS]

    async def list_tools(
        context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=shown)

    async def call_tool(
        context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        offer = offers.get(params.name)
        if offer is None:
            return _failed(f"There is no tool {params.name!r}; there are {', '.join(offers)}.")
        given = params.arguments or {}
        try:
            asked = offer.given.model_validate(given)
            told = await offer.run(served, asked, ToolCall(context, params))
        except ValidationError as error:
            return _failed(f"{offer.name}: {sentences(error, given)}.")
        except MagyError as error:
            return _failed(error.message)
        except SentAway as away:
            return away.result
        return _answered(told)

    return Server(
        "magy",
        version=__version__,
        instructions=ABOUT.format(root=served.root),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _tool(offer: Offer) -> types.Tool:
    return types.Tool(
        name=offer.name,
        description=offer.about,
        input_schema=offer.given.model_json_schema(),
        annotations=types.ToolAnnotations(read_only_hint=offer.looks),
    )


def _answered(told: Told) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(text=told.text)], structured_content=dict(told.data)
    )


def _failed(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)


async def _serve(root: str, compose: Compose, stdin: int, stdout: int) -> None:
    """Until the input ends, nobody reads, or the process is told to."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)

    def gone(why: str) -> None:
        task.cancel()

    async with compose([root], {}) as (service, trust):
        server = server_for(Served(service, root, lambda: trust.settings(root)))
        try:
            async with streams(stdin, stdout, gone) as (read, write):
                await server.run(read, write, server.create_initialization_options())
        finally:
            end_within(LEAVING, 0, UNTIDY)


def serve(root: str, compose: Callable[[], Compose], stdin: int, stdout: int) -> int:
    """Serves one client for the project `root`, and returns the exit code. Raises MagyError."""
    with suppress(asyncio.CancelledError):
        asyncio.run(_serve(root, compose(), stdin, stdout))
    return 0
