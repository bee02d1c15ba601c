"""This module makes Magy's tools of those that MCP servers offer."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from magy_server.core.errors import InvalidRequest, ToolError
from magy_server.core.mcp.names import subject, told_apart, tool_key, tool_name
from magy_server.core.mcp.server_settings import McpServer, asked_for
from magy_server.core.tool import FactContext, Gathered, GivenShape, Result, Tool, ToolContext
from magy_server.core.values import Facts, Hash, Image, Resource
from magy_server.dataclass import dataclass
from magy_server.mcp.offers import Answer, Ask, OfferedTool, Progress

Picture = Callable[[bytes, str], Image]
"""Raises InvalidRequest for what no model can be shown."""
SHOWN, HEAD = 30_000, 20_000
"""Characters that a model gets of a long answer; of these, the ones from the beginning."""
STORED = 8 << 20
"""Characters of an answer that are kept."""
MOST_PICTURES = 10
RATE = 0.2
"""Seconds between two lines on a call's progress."""


class Server(Protocol):
    """The server whose tools these are. Raises ToolError when it cannot be reached, or refuses."""

    name: str
    server: McpServer

    async def link(self) -> object: ...

    async def call(
        self, tool: str, arguments: Mapping[str, Any], progress: Progress, ask: Ask
    ) -> Answer: ...


@dataclass(frozen=True, slots=True)
class Made:
    offered: OfferedTool
    tool: Tool


def make_tools(
    connection: Server,
    offered: Iterable[OfferedTool],
    known: Mapping[str, Made],
    picture: Picture,
) -> dict[str, Made]:
    """Returns the tools that the person wants of the server, by Magy's names for them. What has not
    changed since `known` stays the same."""
    made: dict[str, Made] = {}
    for one in offered:
        if not asked_for(connection.server, one.name):
            continue
        name = tool_name(connection.name, one.name)
        if name in made:
            name = told_apart(name, one.name)
        before = known.get(name)
        same = before is not None and before.offered == one
        made[name] = before if before and same else Made(one, _tool(name, connection, one, picture))
    return made


def _tool(name: str, connection: Server, offered: OfferedTool, picture: Picture) -> Tool:
    now = subject(offered.name, offered.version)

    async def facts(ctx: FactContext, given: Mapping[str, Any]) -> Gathered:
        title = f"{offered.name} of the MCP server {connection.name}"
        if given:
            title += f": {json.dumps(given, ensure_ascii=False)}"
        if offered.hint:
            title += f" ({offered.hint})"
        return Facts(resources=(Resource(kind="net", subject=now),), title=title), {}

    async def run(ctx: ToolContext, given: Mapping[str, Any]) -> Result:
        if [one.subject for one in ctx.facts.resources] != [now]:
            raise ToolError(
                f"{name}: its server has changed this tool since the call was judged. Nothing was "
                "called; look at it with find_tools, and call it again."
            )
        await connection.link()
        await ctx.started()
        answer = await connection.call(offered.name, given, _Progress(ctx), ctx.ask)
        return result(answer, ctx.call, picture)

    key = tool_key(connection.name, offered.name, name)
    return _bare(name, key, offered.description, offered.parameters, facts, run)


def gone(name: str, why: str) -> Tool:
    """A tool that is not there any more, or not yet, and says why."""

    async def facts(ctx: FactContext, given: Mapping[str, Any]) -> Gathered:
        raise ToolError(why)

    async def run(ctx: ToolContext, given: Mapping[str, Any]) -> Result:
        raise ToolError(why)

    return _bare(name, name, why, {}, facts, run)


def _bare(
    name: str, key: str, description: str, parameters: Mapping[str, Any], facts: Any, run: Any
) -> Tool:
    """Nothing that a server says of its tool decides anything: each is taken for one with effects
    that cannot be found out later."""
    return Tool(
        name=name,
        description=description,
        effect="exec",
        key=key,
        kind="other",
        run=run,
        facts=facts,
        recover=None,
        fresh=0.0,
        style="",
        needs=None,
        final=False,
        waits=False,
        parental=False,
        seldom=True,
        shape=GivenShape(parameters),
    )


class _Progress:
    """Shows the person how far a call is: a line every now and then."""

    def __init__(self, ctx: ToolContext) -> None:
        self._ctx = ctx
        self._next = 0.0

    async def __call__(self, done: float, total: float | None, message: str) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + RATE
        far = f"{done:g}/{total:g}" if total else f"{done:g}"
        self._ctx.emit(f"{far} {message[:500]}".rstrip() + "\n")


def with_pictures(
    text: str, answer: Answer, picture: Picture
) -> tuple[str, list[Image], dict[Hash, bytes]]:
    """Returns the first pictures of an answer with their bytes, and the text, which says of those
    that cannot be taken why."""
    images, blobs = list[Image](), dict[Hash, bytes]()
    for data, name in answer.pictures[:MOST_PICTURES]:
        try:
            image = picture(data, name)
        except InvalidRequest as error:
            text += f"\n[{error.message}]"
            continue
        images.append(image)
        blobs[image.hash] = data
    return text, images, blobs


def result(answer: Answer, call: str, picture: Picture) -> Result:
    """What model and person get of an answer. Of a long one the model gets both ends, and can read
    the rest by page."""
    text, images, blobs = with_pictures(answer.text, answer, picture)
    if (left := len(answer.pictures) - MOST_PICTURES) > 0:
        text += f"\n[{left} more pictures are not shown]"
    return Result(
        for_model=_shown(text, call) or ("(pictures)" if images else "(it answered nothing)"),
        output=_stored(text) if len(text) > SHOWN else None,
        images=images,
        blobs=blobs,
        ok=not answer.failed,
    )


def _shown(text: str, call: str) -> str:
    if len(text) <= SHOWN:
        return text
    head, tail = text[:HEAD], text[HEAD - SHOWN :]
    left = len(text) - SHOWN
    how = f'read them with bash_output(call_id="{call}", offset={HEAD})'
    return f"{head}\n[... {left:,} characters omitted; {how}]\n{tail}"


def _stored(text: str) -> bytes:
    if len(text) > STORED:
        text = f"{text[:STORED]}\n[... {len(text) - STORED:,} characters were not kept ...]\n"
    return text.encode("utf-8", "replace")
