"""What a prompt names of MCP servers is read, and becomes content beside its words."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from magy_server.core.errors import InvalidRequest, ToolError
from magy_server.core.mcp import mentions
from magy_server.core.mcp.mentions import Mentionable, OfferedPrompt
from magy_server.core.values import Content, Embedded, Hash, Text
from magy_server.mcp.connection import Connection
from magy_server.mcp.offers import Answer
from magy_server.mcp.tool_making import Picture, with_pictures

LONGEST = 100_000
"""Characters of one resource, or prompt, that are given."""
SOON = 1.0
"""Seconds that a completion waits."""
Found = tuple[list[Content], dict[Hash, bytes]]


async def attached(
    content: Sequence[Content], servers: Mapping[str, Connection], picture: Picture
) -> tuple[Sequence[Content], Mapping[Hash, bytes]]:
    """Returns the content with what its texts name, each behind the text that names it, and the
    bytes of pictures. What cannot be read says so. Raises InvalidRequest: a prompt that begins with
    that of a server does not fit it."""
    if not mentions.named(content, servers):
        return content, {}
    first = next((part for part in content if isinstance(part, Text)), None)
    result: list[Content] = []
    blobs: dict[Hash, bytes] = {}
    read: set[tuple[str, str]] = set()
    for part in content:
        result.append(part)
        if not isinstance(part, Text):
            continue
        named = part is first and mentions.prompt(part.text, servers)
        if named:
            more, bytes_ = await _prompt(servers[named[0]], *named[1:], picture)
            result += more
            blobs |= bytes_
        new = list(_new(mentions.resources(part.text, servers), read))
        for more, bytes_ in await asyncio.gather(
            *(_resource(servers[server], uri, picture) for server, uri in new)
        ):
            result += more
            blobs |= bytes_
    return result, blobs


def _new(named: Iterator[tuple[str, str]], read: set[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for one in named:
        if one not in read and len(read) < mentions.MOST:
            read.add(one)
            yield one


async def _prompt(server: Connection, name: str, given: str, picture: Picture) -> Found:
    try:
        offered = await server.asked(lambda link: link.prompts())
        known = {one.name: one for one in offered}
        if name not in known:
            names = ", ".join(known) or "none"
            raise InvalidRequest(
                f"The MCP server {server.name!r} has no prompt {name!r}; it has {names}."
            )
        arguments = mentions.arguments(server.name, known[name], given)
        answer = await server.asked(lambda link: link.prompt(name, arguments))
    except ToolError as error:
        raise InvalidRequest(error.message) from None
    return _content(server, f"prompt/{name}", answer, picture)


async def _resource(server: Connection, uri: str, picture: Picture) -> Found:
    try:
        answer = await server.asked(lambda link: link.read(uri))
    except ToolError as error:
        answer = Answer(f"[This could not be read: {error.message}]")
    return _content(server, uri, answer, picture)


async def begun_with(
    names: Collection[str],
    servers: Callable[[], Sequence[Connection]],
    opening: str,
    begun: str,
) -> Sequence[Mentionable]:
    """What `begun` may become: the name of a server, and behind that what it offers."""
    name, colon, rest = begun.removeprefix('"').partition(":")
    if not colon:
        begin = [one for one in names if one.startswith(name)]
        return [Mentionable(f"{opening}{one}:", "an MCP server") for one in begin]
    if name not in names:
        return []
    server = next(one for one in servers() if one.name == name)
    return await _offered(server, opening, rest)


async def _offered(server: Connection, opening: str, begun: str) -> Sequence[Mentionable]:
    try:
        async with asyncio.timeout(SOON):
            if opening == "@":
                resources = await server.asked(lambda link: link.resources())
                found = [
                    Mentionable(mentions.mention(server.name, one.uri), server.clean(one.about))
                    for one in resources
                    if begun in one.uri
                ]
            else:
                prompts = await server.asked(lambda link: link.prompts())
                found = [
                    Mentionable(f"/{server.name}:{one.name}", server.clean(_usage(one)))
                    for one in prompts
                    if one.name.startswith(begun)
                ]
    except (ToolError, TimeoutError):
        return []
    return found


def _usage(prompt: OfferedPrompt) -> str:
    arguments = " ".join(one if one in prompt.needs else f"[{one}]" for one in prompt.takes)
    return ": ".join(filter(None, (arguments, prompt.about)))


def _content(server: Connection, what: str, answer: Answer, picture: Picture) -> Found:
    text = server.clean(answer.text)
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}\n[... {len(text) - LONGEST:,} more characters are left out]"
    text, images, blobs = with_pictures(text, answer, picture)
    shown = text or ("(pictures)" if images else "(nothing)")
    return [Embedded(uri=mentions.uri(server.name, what), text=shown), *images], blobs
