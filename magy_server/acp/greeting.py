"""This module writes the answer to `initialize` in each version of the protocol. It does not depend
on what the client can do, so it is given before pydantic is imported (`jsonrpc.greeting`).

What is not plainly well-formed is left to the door. This module imports next to nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from magy_server import __version__
from magy_server.jsonrpc import greeting
from magy_server.jsonrpc.greeting import LARGEST, Greeting, is_initialize

_MAGY = {"name": "magy", "title": "Magy", "version": __version__}
RESULTS: Mapping[int, Mapping[str, Any]] = {
    1: {
        "protocolVersion": 1,
        "agentCapabilities": {
            "loadSession": True,
            "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
            "mcpCapabilities": {"http": True, "sse": False},
            "sessionCapabilities": {
                "list": {},
                "delete": {},
                "resume": {},
                "close": {},
                "fork": {},
            },
            "_meta": {"magy": {"protocol": 1}},
        },
        "authMethods": [],
        "agentInfo": _MAGY,
    },
    2: {
        "protocolVersion": 2,
        "info": _MAGY,
        "capabilities": {
            "session": {
                "prompt": {"image": {}, "embeddedContext": {}},
                "mcp": {"stdio": {}, "http": {}},
                "delete": {},
            },
        },
        "authMethods": [],
    },
}
"""What Magy says of itself, by version."""


def greet(stdin: int, stdout: int, *, draft: bool) -> Greeting:
    return greeting.greet(stdin, stdout, _Lined(), partial(answer, draft=draft))


def answer(message: Mapping[str, Any], *, draft: bool) -> dict[str, Any] | None:
    """The response to an `initialize`; None for what the door might see otherwise."""
    params: Any = message.get("params")
    if not is_initialize(message) or type(params) is not dict:
        return None
    if type(params.get("protocolVersion")) is not int:
        return None
    version = version_of(params, draft=draft)
    if version == 2 and not _is_about(params.get("info")):
        return None
    return {"jsonrpc": "2.0", "id": message["id"], "result": RESULTS[version]}


def version_of(params: Mapping[str, Any], *, draft: bool) -> int:
    """The version that is spoken with this client. `draft`: that of version 2 may be."""
    asked = params.get("protocolVersion")
    return 2 if draft and type(asked) is int and asked > 1 else 1


def _is_about(client: Any) -> bool:
    return type(client) is dict and all(
        type(client.get(name)) is str for name in ("name", "version")
    )


class _Lined:
    def body(self, read: bytes) -> tuple[bytes, int] | None:
        end = read.find(b"\n")
        if end >= 0:
            return read[:end], end + 1
        return None if len(read) <= LARGEST and read[:1] in (b"", b"{") else (b"", 0)

    def framed(self, body: bytes) -> bytes:
        return body + b"\n"
