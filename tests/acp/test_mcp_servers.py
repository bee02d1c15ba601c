"""MCP servers that an ACP client names are there in the session."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from magy_server.acp import v1
from magy_server.acp.mcp_servers import settings
from tests.lsp.client import RpcError
from tests.mcp.test_servers import HERE
from tests.nursery import ALSO, MCP_CLIENT

from .harness import ASKING, client

SCRIPT = """prompt: wait
text: Waited.
prompt: say
call: call_tool {"name": "mcp__My-server__echo", "arguments": {"text": "hi"}}
---
text: Said.
"""
SAMPLE = {
    "name": "My server", "command": sys.executable, "args": [str(HERE / "sdk_server.py")],
    "env": [{"name": "PLACE", "value": "here"}],
}  # fmt: skip


async def test_a_server_that_the_client_names_is_used(root: Path, state: Path) -> None:
    async with client(root, state, SCRIPT, **{ALSO: MCP_CLIENT}) as one:
        held = {**ASKING, "permission": {"mcp": "allow"}}
        await one.initialize(_meta={"magy": {"settings": held}})
        made = await one.request("session/new", cwd=str(root), mcpServers=[SAMPLE])
        session = made["sessionId"]
        for _ in range(20):  # it may be a while until it has started
            await one.turn(session, "say")
            if "It said: hi" in str(one.updates("tool_call_update", session)):
                break
        else:
            raise AssertionError(one.updates("tool_call_update", session))
        other = await one.new()
        await one.turn(other, "say")
        assert "It said: hi" not in str(one.updates("tool_call_update", other)), "not asked for"


async def test_a_server_that_cannot_be_reached_is_refused(root: Path, state: Path) -> None:
    async with client(root, state, SCRIPT) as one:
        answer = await one.initialize()
        assert answer["agentCapabilities"]["mcpCapabilities"] == {"http": True, "sse": False}
        server = {"type": "sse", "name": "old", "url": "http://127.0.0.1:1", "headers": []}
        with pytest.raises(RpcError, match="only stdio and http"):
            await one.request("session/new", cwd=str(root), mcpServers=[server])


def test_names_are_made_such_as_magy_takes_and_stay_apart() -> None:
    def named(name: str) -> Any:
        return v1.McpServerStdio(name=name, command="x", args=[], env=[])

    long = "n" * 40
    found = settings([named(name) for name in ("a b", "a_b", "ä", long, f"{long}x")])
    assert [*found] == ["a-b", "a-b-2", "server", "n" * 32, f"{'n' * 28}-2"]
