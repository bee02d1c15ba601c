"""Children may work in git worktrees of their own: planned when a child is spawned, made when a
turn of it begins, landed when that ends.

Few do. What all that takes is imported for the first of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from magy_server.core.errors import InvalidRequest, ToolError
from magy_server.core.events import Stop
from magy_server.core.state.state import State
from magy_server.core.values import Worktree, WorktreeSettings
from magy_server.engine.feature_ports import Landed
from magy_server.engine.world import World

Environment = Callable[[str, str, str], Mapping[str, str]]
"""(directory, session, name) -> the environment of a process that Magy starts for the session."""
Forge = Callable[[str, str, str, str, str], Awaitable[str]]
"""(OWNER/NAME, head, base, title, body) -> the address of a new pull request. Raises ToolError."""
NAME = "worktree"
"""Git for worktrees carries it in its mark."""


class Worktrees:
    """Implements `feature_ports.Worktrees`. `forge` opens pull requests at `host`."""

    def __init__(self, world: World, environment: Environment, host: str, forge: Forge) -> None:
        self._world = world
        self._environment = environment
        self._host = host
        self._forge = forge

    async def planned(
        self, root: str | None, child: str, title: str, wanted: WorktreeSettings
    ) -> tuple[Worktree, str]:
        """The worktree that a new child of a workspace root will have, and where in it that root
        is. Raises InvalidRequest."""
        if root is None:
            raise InvalidRequest("This session has no project, so there is no worktree to work in.")
        from magy_server.tools.worktrees.checkouts import planned

        try:
            env = self._environment(root, child, NAME)
            return await planned(root, env, child, title, wanted)
        except ToolError as error:
            raise InvalidRequest(f"No worktree can be made: {error.message}") from None

    async def ready(self, state: State) -> None:
        opened = state.opened
        if opened is None or opened.worktree is None or opened.root is None:
            return
        from magy_server.team.landing import made

        await made(state, self._environment(opened.root, state.id, NAME))

    async def landed(self, state: State, stop: Stop, message: str) -> Landed:
        opened = state.opened
        if opened is None or opened.worktree is None or opened.root is None:
            return Landed(message)
        from magy_server.team.landing import Landing
        from magy_server.tools.worktrees.pull_requests import Forge

        env = self._environment(opened.root, state.id, NAME)
        landing = Landing(self._world, env, Forge(self._host, self._forge), state)
        return await landing.landed(stop, message)
