"""These are the shapes of `magy/mcp/*`: the servers of the Model Context Protocol that give agents
tools."""

from typing import Literal

from pydantic import Field

from magy_server.api.wire.shapes import Wire


class McpServersParams(Wire):
    cwd: str | None = Field(default=None, description="A file: URI or a path of the project")
    connect: str | None = Field(
        default=None,
        description="The name of a server that is started if need be; the answer waits until it "
        "has named its tools, or failed",
    )


class McpTool(Wire):
    name: str = Field(description="As agents call it, and as rules name it")
    description: str


class McpServer(Wire):
    """A server of the Model Context Protocol that is configured for a project."""

    name: str
    starts: str = Field(description="What is started, or the address")
    condition: Literal["idle", "connecting", "ready", "failed"] = Field(
        description="`idle`: nobody has needed it yet, or it was lost"
    )
    about: str = Field(default="", description="The name and version that it gives itself")
    problem: str = Field(default="", description="Why it failed, in a sentence")
    tools: list[McpTool] = Field(default=[])


class McpServersResult(Wire):
    servers: list[McpServer]
    problems: list[str] = Field(
        default=[], description="What is wrong with the configuration, in sentences"
    )
