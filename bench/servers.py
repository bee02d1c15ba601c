"""What MCP servers cost before any of their tools is used: bytes of the first request."""

from __future__ import annotations

import sys

from bench import tool_server
from bench.measure import Failed, Row, Run
from bench.peer import MAGY, Peer
from bench.prompts import SETTINGS, loopback, requests_of, turn

MORE = 1.03
"""The first request may grow by so much for twenty servers of 20 tools each."""


def first_request_5(run: Run) -> Row:
    return _grown(run, 5)


def first_request_20(run: Run) -> Row:
    return _grown(run, 20)


ROWS = (first_request_5, first_request_20)


def _grown(run: Run, servers: int) -> Row:
    tools = servers * tool_server.TOOLS
    name = f"first request with {servers} MCP servers ({tools} tools), beside none"
    return Row(name, "bytes", _first(run, servers), _first(run, 0), MORE)


def _first(run: Run, servers: int) -> int:
    """The size of the first request of a session whose servers have all named their tools."""
    root, state = run.fresh("project"), run.fresh("state")
    names = [f"tracker{number}" for number in range(servers)]
    with loopback("chat", state, "text: done\n") as url:
        tables = (
            f'[mcp.{name}]\ncommand = "{sys.executable}"\nargs = ["{tool_server.__file__}"]\n'
            for name in names
        )
        settings = SETTINGS.format(kind="openai-chat", url=url)
        (state / "magy.toml").write_text(settings + "\n".join(tables))
        with Peer(run, *MAGY, state=state) as peer:
            peer.initialize(root)
            for name in names:
                listed = peer.request("magy/mcp/list", cwd=str(root), connect=name)
                found = next(one for one in listed["servers"] if one["name"] == name)
                if len(found["tools"]) != tool_server.TOOLS:
                    raise Failed(f"{name} has {len(found['tools'])} tools: {found['problem']}.")
            turn(peer, root)
    return len(requests_of(state)[0])
