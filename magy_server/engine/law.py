"""What decides about the calls of a session at this moment."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from magy_server.core import permit
from magy_server.core.events import Action, Decision, Effect, Facts, Grant, Resource
from magy_server.core.state import State
from magy_server.core.tool import Tool
from magy_server.engine.levels import Level, levels, review_mode
from magy_server.engine.session import Session
from magy_server.engine.world import World


@dataclass(frozen=True, slots=True)
class Law:
    """What decides in a session at this moment: the strictest of its own rules and those of each
    session above it. What was granted to one of them answers for it, too. `review`: what becomes of
    its edits."""

    levels: Sequence[Level]
    grants: Sequence[Grant]
    bypass: bool
    review: str = "review"

    @property
    def identity(self) -> Hashable:
        """The same for two that decide the same."""
        rules = tuple((level.session, level.text) for level in self.levels[1:])
        grants = tuple(grant.id for grant in self.grants)
        return (self.levels[0].text, rules, grants, self.bypass)

    def decide(self, tool: Tool, facts: Facts) -> Decision:
        decision = self._under(tool.key, tool.effect, facts)
        new = tuple(r for r in facts.resources if r.kind == "write" and not r.exists)
        if tool.key != "edit" or not new or facts.problem:
            return decision
        # a patch that makes a file writes it whole
        whole = self._under("write", tool.effect, facts.model_copy(update={"resources": new}))
        return permit.strictest([decision, whole])

    def _under(self, key: str, effect: Effect, facts: Facts) -> Decision:
        return permit.strictest([
            permit.decide(facts, key, effect, level.sources, self.grants, self.bypass)
            for level in self.levels
        ])  # fmt: skip

    def may_read(self, root: str, path: str) -> Action:
        """What the rules say about reading a file: its canonical path, in `root` or not."""
        inside = path.startswith(root.rstrip("/") + "/")
        relative = path[len(root.rstrip("/")) + 1 :] if inside else None
        facts = Facts(resources=(Resource(kind="read", subject=path, relative=relative),))
        return self._under("read", "read", facts).action


async def law(session: Session, world: World) -> Law:
    state = session.state
    assert state.briefing is not None
    above = await world.above(state)
    project = await world.project(state.opened.root if state.opened else None)
    return Law(
        levels=await levels(world, state, above),
        grants=[*(g for one in (state, *above) for g in _granted(one, state.run)), *project.grants],
        bypass=any(one.bypass for one in (state, *above)),
        review=await review_mode(world, state),
    )


def _granted(one: State, run: str) -> Iterator[Grant]:
    """What was granted for a run holds in that run only, for all who work for it."""
    return (grant for grant in one.grants if grant.scope != "run" or one.run == run)
