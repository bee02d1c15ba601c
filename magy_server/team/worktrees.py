"""Children may work in git worktrees of their own: planned when a child is spawned, made when a
turn of it begins, landed when that ends; what had to be reviewed is removed once that is done.

Few do. What all that takes is imported for the first of them.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

from magy_server.core.errors import InvalidRequest, MagyError, ToolError
from magy_server.core.events import Entry, Stop
from magy_server.core.reviews.review_events import Noted
from magy_server.core.state.state import State
from magy_server.core.values import Worktree, WorktreeSettings
from magy_server.engine.feature_ports import Changes, Landed
from magy_server.engine.world import World
from magy_server.tasks import Tasks

LOG = logging.getLogger(__name__)
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

    async def reap(self, state: State) -> None:
        """Removes the worktree of a session, if the person was proposed all that is in it. Raises
        ToolError."""
        from magy_server.team.landing import reaped

        assert state.opened is not None and state.opened.root is not None
        await reaped(self._world, state, self._environment(state.opened.root, state.id, NAME))


class Reaper:
    """A listener: once a person has decided all that was proposed of a child's work, its worktree
    and branch go. If the process dies before that, `magy worktrees prune` finds them."""

    def __init__(self, worktrees: Worktrees, changes: Changes) -> None:
        self._worktrees = worktrees
        self._changes = changes
        self._tasks = Tasks()

    def __call__(self, state: State, entries: Sequence[Entry]) -> None:
        opened = state.opened
        if opened is None or opened.worktree is None or state.turn is not None:
            return
        if any(isinstance(entry.event, Noted) and entry.event.verb for entry in entries):
            self._tasks.begin(self._look(state), "worktrees")

    async def _look(self, state: State) -> None:
        try:
            if await self._changes.all_decided(state.root, state.id):
                await self._worktrees.reap(state)
        except (MagyError, OSError) as error:
            LOG.warning("the worktree of %s stays: %s", state.stream, error)

    async def close(self) -> None:
        await self._tasks.settle()
