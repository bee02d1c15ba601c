"""The judge comes between a reply and its calls: it finds facts by I/O, has `core/permit.py`
decide, tells the model what is denied, and asks the person where the rules say so."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence

from magy_server.core import permit
from magy_server.core.errors import ToolError
from magy_server.core.events import Asked, Event, Finished, Judged
from magy_server.core.mcp.names import server_of
from magy_server.core.policy import strangers
from magy_server.core.state.state import question_id
from magy_server.core.text.sanitizing import LINE, TITLE, shortened, visible
from magy_server.core.tool import Gathered, Tool, previewed
from magy_server.core.values import Call, Decision, Facts, HookSaid
from magy_server.engine.calls import bounded
from magy_server.engine.context import LookContext
from magy_server.engine.feature_ports import Features
from magy_server.engine.log import Write
from magy_server.engine.rules import law, review_mode
from magy_server.engine.session import Session
from magy_server.engine.world import World


async def judge(session: Session, world: World, features: Features, call: Call) -> Write:
    """What to append: `Judged`, and with it the question, or the end of a call that may not run.
    The append conflicts if the workspace's grants are others by then."""
    tool = await world.tools.named(session.state.root, call.name)
    if tool is None or not offered(session, call.name):
        why = await _withheld(session, world, tool) if tool else _unknown(session, call.name)
        return _impossible(call, why)
    try:
        facts, blobs = await facts_of(session, world, features, tool, call)
    except ToolError as error:
        return _impossible(call, error.message)
    now = await law(session, world, known=True)
    decision = now.decide(tool, facts, call.arguments)
    if tool.kind == "edit" and now.review == "propose":
        decision = _proposable(decision)
    events = _judged(session, tool, call, facts, decision)
    return Write(events, blobs, [now.project.stands])


def _proposable(decision: Decision) -> Decision:
    """Nothing is changed yet, and the person will be asked about each hunk."""
    if decision.action != "ask":
        return decision
    rule = f"only proposed, so not asked ({decision.rule})"
    return Decision(action="allow", rule=rule, proposed=True)


async def facts_of(
    session: Session, world: World, features: Features, tool: Tool, call: Call
) -> Gathered:
    if call.invalid is not None:
        raise ToolError(
            f"{call.name}: the arguments are not a JSON object: {call.invalid[:200]!r}. "
            f"Parameters are: {', '.join(tool.parameters.get('properties', {}))}."
        )
    arguments = tool.arguments(call.arguments)
    context = LookContext(session, world, features, await review_mode(world, session.state))
    facts, blobs = await tool.facts(context, **arguments)
    whole, most = facts.title or _spelled(tool, call), TITLE if facts.title else LINE
    clean = world.secrets.clean
    said = tuple(
        HookSaid(hook=clean(one.hook), action=one.action, reason=clean(one.reason))
        for one in await features.hooks.before(session.state, tool, call)
    )
    facts = facts.model_copy(
        update={
            "kind": tool.kind,
            "title": shortened(whole, most),
            "hooks": said,
            "untrusted": _untrusted(facts, tool.key, session.state.root, world),
        }
    )
    if facts.preview and facts.preview in blobs and world.typed:
        shown = world.typed.clean(blobs[facts.preview].decode("utf-8", "replace"))
        return previewed(facts, shown, code=facts.code)
    if facts.preview is None and len(visible(whole)) > most:
        return previewed(facts, whole, code=True)
    return facts, blobs


def _untrusted(facts: Facts, key: str, root: str | None, world: World) -> tuple[str, ...]:
    return strangers.places(facts, key, root or "", vouched=world.vouches(root))


def _spelled(tool: Tool, call: Call) -> str:
    """A call of a tool that has no words for it: a person who is asked sees the arguments."""
    name = tool.name.replace("_", " ").capitalize()
    if tool.kind == "think" or not call.arguments:
        return name
    return f"{name} {json.dumps(call.arguments, ensure_ascii=False)}"


def _judged(
    session: Session, tool: Tool, call: Call, facts: Facts, decision: Decision
) -> Sequence[Event]:
    """The decision; what a rule denies, the model is told at once, and the rest is asked."""
    judged = Judged(call=call.id, facts=facts, decision=decision)
    if decision.action == "allow":
        return [judged]
    if decision.action == "deny":
        text = f"Not allowed: {decision.rule}. Do it another way, or ask the user."
        return [judged, Finished(call=call.id, status="denied", for_model=text)]
    question = question_id(session.id, call.id)
    remember = () if decision.firm else permit.proposals(facts, tool.key)
    return [judged, Asked(id=question, call=call.id, title=facts.title, rule=decision.rule,
                          remember=remember, preview=facts.preview, code=facts.code)]  # fmt: skip


def _impossible(call: Call, problem: str) -> Write:
    problem = bounded(problem)
    decision = Decision(action="deny", rule="the call cannot run")
    facts = Facts(title=shortened(call.name, LINE), problem=problem)
    judged = Judged(call=call.id, facts=facts, decision=decision)
    return Write([judged, Finished(call=call.id, status="failed", for_model=problem)])


def offered(session: Session, name: str) -> bool:
    briefing = session.state.conversation.briefing
    return briefing is not None and any(section.name == name for section in briefing.tools)


async def _withheld(session: Session, world: World, tool: Tool) -> str:
    """Returns why the model is not shown a tool that there is."""
    for level in (await law(session, world)).levels:
        for source in level.sources:
            if permit.withholds([source], tool.key, tool.name):
                return f"The tool {tool.name!r} is switched off here ({source.source}). Do without."
    return _unknown(session, tool.name)


def _unknown(session: Session, name: str) -> str:
    briefing = session.state.conversation.briefing
    names = [section.name for section in briefing.tools] if briefing else []
    own = [known for known in names if not server_of(known)]
    near = difflib.get_close_matches(name, names, 3) or [n for n in names if n.endswith(name)][:3]
    meant = f" Did you mean {' or '.join(near)}?" if near else ""
    return f"There is no tool {name!r}.{meant} Tools are: {', '.join(own)}."
