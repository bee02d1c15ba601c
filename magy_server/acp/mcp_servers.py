"""This module brings the MCP servers that a client names into the shape of `[mcp.NAME]` in the
settings. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from magy_server.acp import v1
from magy_server.acp.options import Json
from magy_server.core.errors import InvalidRequest
from magy_server.regex import regex

Named = Sequence[v1.McpServerStdio | v1.McpServerHttp | v1.McpServerSse | v1.McpServerAcp]
_OTHER = regex(r"[^A-Za-z0-9-]+")
LONGEST = 32
"""Characters of a name."""


def settings(named: Named | None) -> Mapping[str, Json]:
    """Raises InvalidRequest for a server that Magy cannot reach."""
    found: dict[str, Json] = {}
    for one in named or ():
        found[_name(one.name, found)] = _server(one)
    return found


def _name(given: str, taken: Mapping[str, Json]) -> str:
    """As far as Magy takes names as they are; each stands for one server."""
    name = first = _OTHER.sub("-", given).strip("-")[:LONGEST] or "server"
    number = 1
    while name in taken:
        number += 1
        name = f"{first[: LONGEST - 4]}-{number}"
    return name


def _server(one: v1.McpServerStdio | v1.McpServerHttp | v1.McpServerSse | v1.McpServerAcp) -> Json:
    match one:
        case v1.McpServerStdio():
            variables = {each.name: each.value for each in one.env}
            return {"command": one.command, "args": one.args, "env": variables}
        case v1.McpServerHttp():
            headers = {each.name: each.value for each in one.headers}
            return {"url": one.url, "headers": headers}
    raise InvalidRequest(
        f"mcpServers: {one.name!r} is reached by {one.type!r}, and Magy knows only stdio and http."
    )
