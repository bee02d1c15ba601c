"""Between reply and run: facts by I/O, a decision by rules, and perhaps a question."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from magy_server.core import permit
from magy_server.core.errors import ToolError
from magy_server.core.events import (
    Action,
    Asked,
    Call,
    Decision,
    Effect,
    Event,
    Facts,
    Finished,
    Grant,
    Hash,
    Judged,
    Resource,
)
from magy_server.core.harmless import LINE, TITLE, glance, visible
from magy_server.core.state import State
from magy_server.core.tool import Tool
from magy_server.engine.context import LookContext
from magy_server.engine.levels import Level, levels, review_mode
from magy_server.engine.session import Session, Write
from magy_server.engine.world import World


async def judge(session: Session, world: World, call: Call) -> Write:
    """What to append: `Judged`, and with it the question, or the end of a call that may not run."""
    tool = world.tools.get(call.name)
    if tool is None or not offered(session, call.name):
        return _impossible(call, _unknown(session, call.name))
    try:
        facts, blobs = await facts_of(session, world, tool, call)
    except ToolError as error:
        return _impossible(call, error.message)
    if facts.problem:
        return _impossible(call, facts.problem)
    now = await law(session, world)
    decision = now.decide(tool, facts)
    if tool.kind == "edit" and now.review == "propose":
        decision = _proposable(decision)
    return Write(_events(session, tool, call, facts, decision), blobs)


def _proposable(decision: Decision) -> Decision:
    """Nothing is changed yet, and the person will be asked about each hunk."""
    if decision.action != "ask":
        return decision
    rule = f"only proposed, so not asked ({decision.rule})"
    return Decision(action="allow", rule=rule, proposed=True)


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


async def facts_of(
    session: Session, world: World, tool: Tool, call: Call
) -> tuple[Facts, Mapping[Hash, bytes]]:
    if call.invalid is not None:
        raise ToolError(
            f"{call.name}: the arguments are not a JSON object: {call.invalid[:200]!r}. "
            f"Parameters are: {', '.join(tool.parameters.get('properties', {}))}."
        )
    arguments = tool.arguments(call.arguments)
    context = LookContext(session, world, await review_mode(world, session.state))
    facts, blobs = await tool.facts(context, **arguments)
    whole, most = facts.title or _spelled(tool, call), TITLE if facts.title else LINE
    update: dict[str, Any] = {"kind": tool.kind, "title": glance(whole, most)}
    if facts.preview is None and len(visible(whole)) > most:
        data = whole.encode("utf-8", "replace")
        update |= {"preview": hashlib.sha256(data).hexdigest(), "code": True}
        blobs = {**blobs, update["preview"]: data}
    return facts.model_copy(update=update), blobs


def _spelled(tool: Tool, call: Call) -> str:
    """A call of a tool that has no words for it: a person who is asked sees the arguments."""
    name = tool.name.replace("_", " ").capitalize()
    if tool.kind == "think" or not call.arguments:
        return name
    return f"{name} {json.dumps(call.arguments, ensure_ascii=False)}"


def _events(
    session: Session, tool: Tool, call: Call, facts: Facts, decision: Decision
) -> Sequence[Event]:
    judged = Judged(call=call.id, facts=facts, decision=decision)
    if decision.action == "allow":
        return [judged]
    if decision.action == "deny":
        text = f"Not allowed: {decision.rule}. Do it another way, or ask the user."
        return [judged, Finished(call=call.id, status="denied", for_model=text)]
    question = f"{session.stream.removeprefix('session/')}/{call.id}"
    remember = () if decision.firm else permit.proposals(facts, tool.key)
    return [judged, Asked(id=question, call=call.id, title=facts.title, rule=decision.rule,
                          remember=remember, preview=facts.preview, code=facts.code)]  # fmt: skip


def _impossible(call: Call, problem: str) -> Write:
    decision = Decision(action="deny", rule="the call cannot run")
    judged = Judged(call=call.id, facts=Facts(title=call.name, problem=problem), decision=decision)
    return Write([judged, Finished(call=call.id, status="failed", for_model=problem)])


def offered(session: Session, name: str) -> bool:
    prefix = session.state.prefix
    return prefix is not None and any(section.name == name for section in prefix.tools)


def _unknown(session: Session, name: str) -> str:
    prefix = session.state.prefix
    names = ", ".join(section.name for section in prefix.tools) if prefix else ""
    return f"There is no tool {name!r}. Tools are: {names}."
