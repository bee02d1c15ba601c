"""A model is not shown the tools that are seldom used: it finds them with `find_tools`, and calls
them with `call_tool`.

In the log and everywhere else such a call is a call of the tool itself. Only the model reads its
calls as it wrote them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from magy_server.core.events import Replied
from magy_server.core.mcp.names import server_of
from magy_server.core.text.arguments import arguments_in
from magy_server.core.values import Call, Part

FIND = "find_tools"
CALL = "call_tool"


def told(names: Iterable[str]) -> str:
    """Returns what the model is told of these tools: names, but of those that MCP servers give,
    which may be many, only the servers'."""
    names = tuple(names)
    own = [name for name in names if not server_of(name)]
    servers = dict.fromkeys(filter(None, map(server_of, names)))
    if servers:
        own.append(f"all those of the MCP servers {', '.join(servers)}")
    return f"You have more tools: {', '.join(own)}. `{FIND}` describes them, `{CALL}` calls one."


def unwrapped(reply: Replied) -> Replied:
    """Returns the reply with the calls that it means."""
    content = tuple(map(_unwrapped, reply.content))
    return reply if content == reply.content else reply.model_copy(update={"content": content})


def _unwrapped(part: Part) -> Part:
    if not isinstance(part, Call) or part.name != CALL or part.invalid is not None:
        return part
    name, arguments = part.arguments.get("name"), _inner(part.arguments)
    if not isinstance(name, str) or name == CALL or arguments is None:
        return part  # the tool itself says what is wrong
    return part.model_copy(update={"name": name, "arguments": arguments, "wrapped": True})


def _inner(given: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the arguments for the tool itself. Some models write them as text, and some beside
    the name."""
    inner = given.get("arguments")
    if isinstance(inner, str):
        return arguments_in(inner)
    if inner is None:
        inner = {key: value for key, value in given.items() if key not in ("name", "arguments")}
    return inner if isinstance(inner, dict) else None


def rewrapped(part: Part) -> Part:
    """Returns the part as the model wrote it."""
    if not isinstance(part, Call) or not part.wrapped:
        return part
    arguments = {"name": part.name, "arguments": part.arguments}
    return part.model_copy(update={"name": CALL, "arguments": arguments, "wrapped": False})
