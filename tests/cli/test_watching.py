"""What somebody who watches a turn is shown, however the machine is with what happens meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from magy_server.cli.screen.printers import Printer
from magy_server.cli.turn.watching import Watch
from magy_server.core.agents.child import ChildInfo
from magy_server.core.updates import Update
from magy_server.team.children import Children
from tests.engine.home import Home, home
from tests.engine.running import worktrees

SCRIPT = """
prompt: leave it
text: I let it go.
call: spawn_agent {"agent": "general", "prompt": "look at it", "task_name": "Look"}
---
text: I do not wait.

prompt: look at it
call: bash {"command": "until [ -e gate ]; do sleep 0.02; done"}
---
text: I looked.

prompt: I looked
text: So that is what came of it.
"""


class Kept(Printer):
    """`gate` is made when the first turn is over, and lets the child end."""

    def __init__(self, gate: Path) -> None:
        self.shown = ""
        self.ended = False
        self._gate = gate

    async def show(self, updates: Sequence[Update]) -> None:
        self.shown += "".join(str(update) for update in updates)
        if any(update.get("state") == "idle" for update in updates):
            self.ended = True
            self._gate.touch()


class LateChildren(Children):
    """Looks at the children take so long that the turn which a result begins is over by then."""

    def __init__(self, here: Home, printer: Kept) -> None:
        super().__init__(here.world, here.service.loaded, here.service.slots, worktrees(here.world))
        self._here = here
        self._printer = printer

    async def list(
        self, parent: str | None, *, recursive: bool = True, closed: bool = False
    ) -> Sequence[ChildInfo]:
        if self._printer.ended:
            await self._here.rested("s", turns=2)
        return await super().list(parent, recursive=recursive, closed=closed)


async def test_a_turn_that_came_and_went_between_two_looks_is_shown(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as here:
        session = await here.new("s")
        await here.service.configure("s", "bypass", "on")
        printer = Kept(here.root / "gate")
        here.service.children = LateChildren(here, printer)
        await here.prompt("s", "leave it")
        await Watch(here.service, session, 0, printer, None, "p1").run()
        assert "So that is what came of it." in printer.shown
