"""The verbs of `magy/agent/*` and `magy/workspace/*` list the agents of a workspace, and show or
change whether a person trusts it."""

from __future__ import annotations

from magy_server.api.connected import Connected
from magy_server.api.places import directory
from magy_server.api.wire import workspaces as wire


class WorkspaceVerbs:
    def __init__(self, at: Connected) -> None:
        self._at = at

    async def agents(self, params: wire.AgentsParams) -> wire.AgentsResult:
        root = self._at.place(params.cwd)[0] if params.cwd else self._at.first
        agents = [
            wire.AgentInfo(name=a.name, description=a.description, mode=a.mode, model=a.model)
            for a in self._at.service.world.agents(root).values()
            if not a.hidden
        ]
        return wire.AgentsResult(agents=agents)

    async def trust(self, params: wire.TrustParams) -> wire.TrustResult:
        root, trust = directory(params.root), self._at.trust
        if params.trusted is not None:
            await trust.set(root, params.trusted)
        return wire.TrustResult(
            root=root, trusted=trust.trusted(root), ignored=list(trust.ignored(root))
        )
