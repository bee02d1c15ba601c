"""A small real server, written with the SDK; `python sdk_server.py [http PORT]`."""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Image

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)
server: Any = MCPServer("sample", version="1.0")


@server.tool()
async def echo(text: str) -> str:
    """Says again what you say."""
    return f"It said: {text}"


@server.tool(structured_output=False)
async def picture() -> list[Any]:
    """Gives a picture."""
    return ["Here it is.", Image(data=PIXEL, format="png")]


@server.tool()
async def long(characters: int) -> str:
    """Gives a long text."""
    return "".join(f"line {n}\n" for n in range(characters // 8))[:characters]


@server.tool()
async def environment(name: str) -> str:
    """Tells what a variable is here."""
    return os.environ.get(name, "(not set)")


@server.tool()
async def slow(ctx: Context[Any], steps: int) -> str:
    """Takes its time, and says how far it is."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, f"step {step}")
        await asyncio.sleep(0.3)
    return "done at last"


@server.tool()
async def fail() -> str:
    """Fails."""
    raise ValueError("it went wrong")


@server.resource("note://{name}")
def note(name: str) -> str:
    """A note."""
    return f"This is the note {name}."


@server.resource("memo://today")
def memo() -> str:
    """What is to be done today."""
    return "Water the plants."


@server.prompt()
def review(topic: str, tone: str = "plain") -> str:
    """Asks for a review."""
    return f"Review {topic} in a {tone} tone."


if __name__ == "__main__":
    if sys.argv[1:2] == ["http"]:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
    else:
        server.run("stdio")
