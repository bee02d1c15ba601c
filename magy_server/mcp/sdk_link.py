"""`SdkLink` is a `Link` to one server over the official SDK. Importing this takes as long as all of
Magy's start: nothing does so before a server is connected to, and then in a thread."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp import InputRequiredRoundsExceededError
from mcp.client import Client, ClientRequestContext, IncomingMessage
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from magy_server.core.errors import ToolError
from magy_server.core.mcp.mentions import OfferedPrompt, OfferedResource
from magy_server.core.mcp.names import fingerprint
from magy_server.core.piped_programs import Programs
from magy_server.core.text.sanitizing import LINE, harmless, one_line
from magy_server.mcp.asking import ROUNDS, Asking, AskingCall
from magy_server.mcp.http_streams import client_for, has_header, http_streams
from magy_server.mcp.oauth import auth_for
from magy_server.mcp.offers import Answer, Ask, LinkError, Notices, OfferedTool, Progress, Reach
from magy_server.mcp.stdio_streams import streams

MOST_TOOLS = 500
"""Tools that one server may have."""
MOST_PAGES = 100
"""Pages of one list: a server may make up one after the other, with nothing on them."""
LARGEST_TOOL = 32_000
"""Characters of a tool's description and schema together; a model could not use more."""
LONGEST = 4_000
"""Characters of a description."""
_PROSE = ("description", "title", "$comment")
"""The words of a schema."""
_Called: TypeAdapter[Any] = TypeAdapter(types.CallToolResult | types.InputRequiredResult)


@asynccontextmanager
async def linked(
    name: str, reach: Reach, programs: Programs, notices: Notices
) -> AsyncIterator[SdkLink]:
    """An open connection. Raises LinkError, or what the SDK and the network raise; see `why`."""
    # What the SDK has to say goes to nobody: what matters of it comes as an error, too.
    logging.getLogger("mcp").setLevel(logging.CRITICAL + 1)
    over: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    try:
        async with (
            _transport(name, reach, programs, notices, over) as transport,
            _client(transport, reach, notices, asking := Asking(name, notices.log)) as client,
        ):
            yield SdkLink(client, over, notices, asking)
            if not over.done():
                over.set_result("the connection was closed")
    except Exception as error:  # of the SDK, whatever it makes of a connection that is over
        if over.done():
            raise LinkError(over.result()) from error
        raise


def _client(transport: Any, reach: Reach, notices: Notices, asking: Asking) -> Client:
    async def heard(message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            notices.tools_changed()

    async def logged(params: types.LoggingMessageNotificationParams) -> None:
        notices.log(f"[{params.level}] {_text_of(params.data)}")

    return Client(
        transport,
        cache=None,
        client_info=types.Implementation(name="magy", version=version("magy")),
        message_handler=heard,
        logging_callback=logged,
        elicitation_callback=asking.heard,
        list_roots_callback=partial(_roots, reach.root),
    )


@asynccontextmanager
async def _transport(
    name: str, reach: Reach, programs: Programs, notices: Notices, over: asyncio.Future[str]
) -> AsyncIterator[Any]:
    if reach.url:
        # The settings' own header goes before a login.
        auth = None if has_header(reach.headers) else await asyncio.to_thread(auth_for, name, reach)
        async with client_for(name, reach, auth) as http:
            yield http_streams(reach.url, http, over)
        return
    try:
        place = reach.place
        program = await programs.start(name, reach.argv, reach.directory, reach.env, place)
    except ToolError as error:
        raise LinkError(error.message) from None
    yield streams(program, notices.log, over)


async def _roots(root: str | None, context: ClientRequestContext) -> types.ListRootsResult:
    there = [types.Root(uri=Path(root).as_uri(), name=Path(root).name)] if root else []
    return types.ListRootsResult(roots=there)


class SdkLink:
    """Implements `offers.Link`."""

    def __init__(
        self, client: Client, over: asyncio.Future[str], notices: Notices, asking: Asking
    ) -> None:
        self._client = client
        self._asking = asking
        self._over = over
        self._notices = notices

    @property
    def about(self) -> str:
        info = self._client.server_info
        return one_line(f"{info.name} {info.version}")[:LINE] if info else ""

    async def lost(self) -> str:
        return await asyncio.shield(self._over)

    async def follow(self) -> None:
        """Servers of 2026 only tell those who listen; others tell everybody, see `linked`."""
        tools = self._client.server_capabilities.tools
        if self._client.protocol_version not in MODERN_PROTOCOL_VERSIONS or not tools:
            return
        try:
            async with self._client.listen(tools_list_changed=True) as heard:
                async for _ in heard:
                    self._notices.tools_changed()
        except (MCPError, SubscriptionLost) as error:
            self._notices.log(f"it does not tell when its tools change: {said(error)}")

    async def tools(self) -> Sequence[OfferedTool]:
        if self._client.server_capabilities.tools is None:
            return []
        with _said("it did not name its tools"):
            found = await _pages(self._client.list_tools, lambda page: page.tools)
        if len(found) == MOST_TOOLS:
            self._notices.log(f"only the first {MOST_TOOLS} of its tools are used")
        return list(filter(None, map(self._offered, found)))

    def _offered(self, tool: types.Tool) -> OfferedTool | None:
        whole = tool.model_dump(mode="json", by_alias=True, exclude_none=True)
        if len(json.dumps(whole)) > LARGEST_TOOL:
            self._notices.log(
                f"its tool {tool.name[:80]!r} is left out: its description is too long"
            )
            return None
        hints = tool.annotations
        if hints is None or (hints.read_only_hint is None and hints.destructive_hint is None):
            hint = ""
        elif hints.read_only_hint:
            hint = "its server says that it only reads"
        else:
            hint = "its server says that it destroys" if hints.destructive_hint else ""
        return OfferedTool(
            name=tool.name,
            description=harmless(tool.description or tool.title or "")[:LONGEST],
            parameters=_readable(tool.input_schema),
            version=fingerprint(whole),
            hint=hint,
        )

    async def call(
        self, tool: str, arguments: Mapping[str, Any], shown: Progress, ask: Ask, /
    ) -> Answer:
        with self._asking.during(ask) as call:
            return await self._called(tool, arguments, shown, call)

    async def _called(
        self, tool: str, arguments: Mapping[str, Any], shown: Progress, call: AskingCall
    ) -> Answer:
        async def heard(progress: float, total: float | None, message: str | None) -> None:
            await shown(progress, total, message or "")

        answers: types.InputResponses | None = None
        state: str | None = None
        session = self._client.session
        try:
            for _ in range(ROUNDS):
                wanted = types.CallToolRequestParams(
                    name=tool,
                    arguments=dict(arguments),
                    input_responses=answers,
                    request_state=state,
                )
                request = types.CallToolRequest(params=wanted)
                try:
                    result = await session.send_request(request, _Called, progress_callback=heard)
                except MCPError as error:
                    if not await call.opens(error.error):
                        raise
                    continue
                if isinstance(result, types.CallToolResult):
                    return answer(result)
                answers, state = await self._asked(result, call), result.request_state
        except MCPError as error:
            if error.error.code != types.CONNECTION_CLOSED:
                raise LinkError(said(error)) from None
            raise LinkError(await self._why_over(), over=True) from None
        except ValidationError as error:
            raise LinkError(f"what it answered is no result of a tool: {said(error)}") from None
        raise LinkError(f"it asked more than {ROUNDS} times for something else")

    async def resources(self) -> Sequence[OfferedResource]:
        if self._client.server_capabilities.resources is None:
            return []
        with _said("it did not name its resources"):
            found = await _pages(self._client.list_resources, lambda page: page.resources)
        return [
            OfferedResource(one.uri, one_line(one.description or one.title or one.name)[:LINE])
            for one in found
        ]

    async def read(self, uri: str, /) -> Answer:
        with _said(f"it does not give {uri}"):
            found = await self._client.read_resource(uri)
        texts: list[str] = []
        pictures: list[tuple[bytes, str]] = []
        for one in found.contents:
            texts += _contents(one, pictures)
        return Answer("\n".join(texts), tuple(pictures))

    async def prompts(self) -> Sequence[OfferedPrompt]:
        if self._client.server_capabilities.prompts is None:
            return []
        with _said("it did not name its prompts"):
            found = await _pages(self._client.list_prompts, lambda page: page.prompts)
        return [
            OfferedPrompt(
                name=one.name,
                about=one_line(one.description or one.title or "")[:LINE],
                takes=[each.name for each in one.arguments or ()],
                needs=[each.name for each in one.arguments or () if each.required],
            )
            for one in found
        ]

    async def prompt(self, name: str, arguments: Mapping[str, str], /) -> Answer:
        with _said(f"it does not give its prompt {name}"):
            found = await self._client.get_prompt(name, dict(arguments))
        return answer(types.CallToolResult(content=[one.content for one in found.messages]))

    async def _why_over(self) -> str:
        try:
            async with asyncio.timeout(1):
                return await self.lost()
        except TimeoutError:
            return "the connection was closed"

    async def _asked(
        self, result: types.InputRequiredResult, call: AskingCall
    ) -> types.InputResponses | None:
        """Answers what the server wants to know before it goes on."""
        if not result.input_requests:
            await asyncio.sleep(0.25)
            return None
        session = self._client.session
        answers: types.InputResponses = {}
        for key, request in result.input_requests.items():
            given: types.InputResponse | types.ErrorData
            if isinstance(request, types.ElicitRequest):
                given = await call.answer(request.params)
            else:
                context = ClientRequestContext(session=session, request_id=key)
                given = await session.dispatch_input_request(context, request)
            if isinstance(given, types.ErrorData):
                raise LinkError(f"it asked for something that Magy does not do: {given.message}")
            answers[key] = given
        return answers


@contextmanager
def _said(what: str) -> Iterator[None]:
    """What goes wrong inside becomes a LinkError."""
    try:
        yield
    except (MCPError, ValidationError, InputRequiredRoundsExceededError) as error:
        raise LinkError(f"{what}: {said(error)}") from None


async def _pages(listing: Any, items: Callable[[Any], Sequence[Any]]) -> list[Any]:
    """The pages of a list, up to `MOST_TOOLS` items on `MOST_PAGES`."""
    found: list[Any] = []
    seen: set[str | None] = set()
    cursor: str | None = None
    while cursor not in seen and len(found) < MOST_TOOLS and len(seen) < MOST_PAGES:
        seen.add(cursor)
        page = await listing(cursor=cursor)
        found += items(page)
        cursor = page.next_cursor
        if not cursor:
            break
    return found[:MOST_TOOLS]


def _readable(schema: Any, key: str = "") -> Any:
    """Returns a schema whose descriptions look like what they are; the rest is sent as it is."""
    if isinstance(schema, Mapping):
        return {name: _readable(one, name) for name, one in schema.items()}
    if isinstance(schema, list):
        return [_readable(one) for one in schema]
    return harmless(schema) if isinstance(schema, str) and key in _PROSE else schema


def _contents(
    held: types.TextResourceContents | types.BlobResourceContents,
    pictures: list[tuple[bytes, str]],
) -> list[str]:
    if isinstance(held, types.TextResourceContents):
        return [held.text]
    return _picture(held.blob, held.mime_type or "", pictures)


def answer(result: types.CallToolResult) -> Answer:
    """What a call gave, for a model to read."""
    texts: list[str] = []
    pictures: list[tuple[bytes, str]] = []
    for block in result.content:
        match block:
            case types.TextContent():
                texts.append(block.text)
            case types.ImageContent():
                texts += _picture(block.data, block.mime_type, pictures)
            case types.AudioContent():
                texts.append(f"[a sound, {block.mime_type}, which cannot be heard here]")
            case types.ResourceLink():
                about = f": {block.description}" if block.description else ""
                texts.append(f"[the resource {block.name} ({block.uri}){about}]")
            case types.EmbeddedResource(resource=held):
                texts += [f"[the resource {held.uri}]", *_contents(held, pictures)]
    if not result.content and result.structured_content is not None:
        texts.append(json.dumps(result.structured_content, ensure_ascii=False, indent=1))
    return Answer("\n".join(texts), tuple(pictures), failed=bool(result.is_error))


def _picture(data: str, mime: str, pictures: list[tuple[bytes, str]]) -> list[str]:
    """Adds a picture, or returns what is said instead of it."""
    try:
        bytes_ = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return [f"[damaged data of the type {mime}]"]
    if not mime.startswith("image/"):
        return [f"[{len(bytes_):,} bytes of the type {mime}, which cannot be shown]"]
    pictures.append((bytes_, f"picture {len(pictures) + 1}"))
    return []


def _text_of(data: Any) -> str:
    return data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, default=str)


def said(error: BaseException) -> str:
    """What went wrong, in words: of errors within errors, the first that says something."""
    if isinstance(error, BaseExceptionGroup):
        return said(error.exceptions[0])
    if isinstance(error, LinkError):
        return error.message
    if isinstance(error, MCPError):
        return f"it says: {error.error.message[:500]}"
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return f"{type(error).__name__}: {error}"[:500] if str(error) else type(error).__name__
