"""Tries Magy's MCP client on three public servers, by hand, as it needs the registries:
`python -m scripts.public_mcp_servers`. Needs npx; installs `mcp-server-git` for itself."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

from magy_server.core.events import Answered
from magy_server.core.mcp.forms import filled, told
from magy_server.core.mcp.server_settings import McpServer
from magy_server.core.tool import ToolContext
from magy_server.core.values import Facts, Form
from magy_server.mcp.kept_logins import kept
from magy_server.mcp.servers import Means, Servers
from magy_server.tools.files.pictures import picture
from magy_server.tools.shell.piped_programs import PipedPrograms
from magy_server.tools.shell.processes import Processes

SLOW = 300.0
"""Seconds: npx may have to fetch the server first."""


EXAMPLES: Mapping[str, Any] = {
    "string": "some text", "number": 5, "integer": 5, "boolean": True,
    "email": "me@example.org", "uri": "https://example.org", "date": "2026-05-31",
    "date-time": "2026-05-31T14:00:00Z",
}  # fmt: skip


class Call:
    """The context of a call that nobody watches."""

    call = "1.0"
    facts = Facts()

    async def started(self, *_: Any) -> None:
        return

    def emit(self, text: str) -> None:
        print(f"    {text}", end="")

    async def ask(self, form: Form) -> Answered:
        """Shows the form, and fills it in with whatever fits."""
        print(told(form))
        given = {one.name: EXAMPLES[one.format or one.type] for one in form.fields}
        given |= {one.name: one.choices[0].value for one in form.fields if one.choices}
        given |= {one.name: one.default for one in form.fields if one.default is not None}
        return Answered(id="1", allow=True, by="script", content=filled(form, given))


async def call(servers: Servers, name: str, given: Mapping[str, Any]) -> str:
    tool = await servers.named(None, name)
    assert tool is not None
    ctx, arguments = Call(), tool.arguments(given)
    ctx.facts, _ = await tool.facts(cast(ToolContext, ctx), **arguments)
    result = await tool.run(cast(ToolContext, ctx), **arguments)
    return f"{'ok' if result.ok else 'failed'}: {result.for_model}"


def configured(place: Path) -> Mapping[str, McpServer]:
    (place / "note.txt").write_text("Water the plants.\n")
    subprocess.run(["git", "init", "-q", str(place)], check=True)
    venv.create(place / "venv", with_pip=True)
    python = str(place / "venv" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", "mcp-server-git"], check=True)
    return {
        "everything": npx("@modelcontextprotocol/server-everything"),
        "filesystem": npx("@modelcontextprotocol/server-filesystem", str(place)),
        "git": McpServer(
            command=python,
            args=["-m", "mcp_server_git", "--repository", str(place)],
            start_timeout=SLOW,
        ),
    }


def npx(*words: str) -> McpServer:
    return McpServer(command="npx", args=["-y", *words], start_timeout=SLOW)


def calls(place: Path) -> Sequence[tuple[str, Mapping[str, Any]]]:
    return [
        ("mcp__everything__echo", {"message": "hello"}),
        ("mcp__everything__get-sum", {"a": 2, "b": 3}),
        ("mcp__everything__trigger-long-running-operation", {"duration": 2, "steps": 2}),
        ("mcp__everything__get-tiny-image", {}),
        ("mcp__everything__trigger-elicitation-request", {}),
        ("mcp__filesystem__read_text_file", {"path": str(place / "note.txt")}),
        ("mcp__filesystem__read_text_file", {"path": "/etc/passwd"}),
        ("mcp__git__git_status", {"repo_path": str(place)}),
    ]


async def main() -> None:
    with tempfile.TemporaryDirectory() as given:
        place = Path(given).resolve()
        found = configured(place)
        programs, login = PipedPrograms(Processes(set())), partial(kept, place)
        means = Means(programs, picture, lambda: str(place), _log, login)
        async with Servers(tuple, lambda root: found, means) as servers:
            for name in found:
                status = await servers.tried(None, name)
                assert status is not None
                about = status.problem or f"{status.about}, {len(status.tools)} tools"
                print(f"{name}: {status.condition}: {about}")
            for name, arguments in calls(place):
                try:
                    said = await call(servers, name, arguments)
                except Exception as error:  # by hand: the others are tried all the same
                    said = f"{type(error).__name__}: {error}"
                print(f"  {name}: {said[:300]}")
            for begun in ("everything:", "filesystem:"):
                offered = await servers.mentionable(None, "@", begun)
                print(f"  @{begun} {[one.text for one in offered][:5]}")
                prompts = await servers.mentionable(None, "/", begun)
                print(f"  /{begun} {[(one.text, one.about) for one in prompts][:5]}")


def _log(name: str) -> Any:
    return lambda text: print(f"    [{name}] {text}", file=sys.stderr)


if __name__ == "__main__":
    asyncio.run(main())
