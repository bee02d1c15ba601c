"""The verbs of `magy/model/*` and `magy/mcp/*` list the models and MCP servers of a workspace."""

from __future__ import annotations

from magy_server.api.connected import Connected
from magy_server.api.wire import models as model_wire
from magy_server.api.wire import servers as server_wire
from magy_server.core.errors import NotFound
from magy_server.core.mcp.status import ServerStatus
from magy_server.core.text.sanitizing import one_line


class SourceVerbs:
    def __init__(self, at: Connected) -> None:
        self._at = at

    async def models(self, params: model_wire.ModelsParams) -> model_wire.ModelsResult:
        root = self._at.place(params.cwd)[0] if params.cwd else self._at.first
        listed = await self._at.service.world.models(root).listed()
        return model_wire.ModelsResult(
            providers=[
                model_wire.ProviderModels(
                    provider=one.provider, models=list(one.models), problem=one_line(one.problem)
                )
                for one in listed
            ]
        )

    async def servers(self, params: server_wire.McpServersParams) -> server_wire.McpServersResult:
        root = self._at.place(params.cwd)[0] if params.cwd else self._at.first
        toolbox = self._at.service.world.tools
        if (name := params.connect) is not None and await toolbox.tried(root, name) is None:
            raise NotFound(f"There is no MCP server {name!r} here. `magy mcp list` names them.")
        return server_wire.McpServersResult(
            servers=[_server(status) for status in toolbox.servers(root)],
            problems=list(self._at.trust.problems(root)),
        )


def _server(status: ServerStatus) -> server_wire.McpServer:
    tools = [server_wire.McpTool(name=name, description=about) for name, about in status.tools]
    return server_wire.McpServer(
        name=status.name,
        starts=one_line(status.starts),
        condition=status.condition,
        about=one_line(status.about),
        problem=one_line(status.problem),
        tools=tools,
    )
