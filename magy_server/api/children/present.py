"""Children, and where in a tree a question is asked, as values of the wire."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from magy_server.api.present import interaction
from magy_server.api.wire import children as child_wire
from magy_server.api.wire import sessions as wire
from magy_server.core import wire_values
from magy_server.core.agents import tree
from magy_server.core.agents.child import ChildInfo, Result, Waited
from magy_server.core.ports import Store, StreamInfo
from magy_server.core.text.sanitizing import LINE, shortened
from magy_server.core.values import Hash
from magy_server.core.wire_values import cost, stamp
from magy_server.engine import trees
from magy_server.team.supervision import Health


def child(info: ChildInfo) -> child_wire.Child:
    return child_wire.Child.model_validate(wire_values.child(info))


def result(found: Result) -> child_wire.ChildResult:
    report = found.report and child_wire.ChildReport.model_validate(
        wire_values.report(found.report)
    )
    return child_wire.ChildResult(
        child=child(found.child), text=found.text, report=report, seq=found.seq
    )


def waited(found: Waited) -> child_wire.ChildWaited:
    return child_wire.ChildWaited(
        results=[result(one) for one in found.results],
        timed_out=found.why == "timed_out",
        seq=found.cursor,
    )


def health(found: Health) -> child_wire.AgentHealth:
    return child_wire.AgentHealth(
        session_id=found.session,
        state=found.state,
        queue_depth=found.queue_depth,
        errors=found.errors,
        error_rate=round(found.error_rate, 3),
        restarts=found.restarts,
        memory=found.memory,
        last_progress=stamp(found.last_progress) if found.last_progress else None,
    )


def with_children(
    summary: wire.Summary, infos: Sequence[StreamInfo], asked: Sequence[wire.Interaction]
) -> wire.Summary:
    """`infos`: the session's own and those of all below it; `asked`: their open questions."""
    about = [info.summary for info in infos]
    kinds = {kind for one in about for kind in one.get("usage", {})}
    costs = [one.get("cost", {}) for one in about]
    update = {
        "interactions": list(asked),
        "tree_usage": {
            kind: sum(one.get("usage", {}).get(kind, 0) for one in about) for kind in sorted(kinds)
        },
        "tree_cost": cost(
            sum(one.get("amount", 0.0) for one in costs),
            sum(one.get("unpriced", 0) for one in costs),
        ),
    }
    return summary.model_copy(update=update)


# --- questions ------------------------------------------------------------------------------------


async def questions(store: Store, infos: Sequence[StreamInfo]) -> list[wire.Interaction]:
    """The open questions of these sessions, each with where in its tree that is."""
    found: list[wire.Interaction] = []
    for info in infos:
        if open_ := info.summary.get("questions"):
            session_id = info.id
            steps = await path(store, session_id)
            texts = await previews(store, open_)
            asked = [interaction(session_id, question, texts) for question in open_]
            found += [located(question, steps) for question in asked]
    return found


async def previews(store: Store, questions: Iterable[Mapping[str, Any]]) -> Mapping[Hash, str]:
    """What these questions, as of a summary, are about, where their titles do not say all."""
    if not (hashes := {hash for one in questions if (hash := one.get("preview"))}):
        return {}
    found = await store.blobs(list(hashes))
    return {hash: data.decode("utf-8", "replace") for hash, data in found.items()}


async def path(store: Store, session_id: str) -> list[wire.PathStep]:
    return [step(info) for info in await trees.path(store, session_id)]


def step(info: StreamInfo) -> wire.PathStep:
    about = info.summary
    return wire.PathStep(
        session_id=info.id,
        agent=about.get("options", {}).get("agent", ""),
        name=about.get("title") or "",
    )


def who(steps: Sequence[wire.PathStep]) -> str:
    """A child and its parent, for people: "explore (look around), child of build (fix it)"."""
    named = [f"{step.agent} ({step.name})" if step.name else step.agent for step in steps[-2:]]
    return shortened(", child of ".join(reversed(named)), LINE)


def located(question: wire.Interaction, steps: Sequence[wire.PathStep]) -> wire.Interaction:
    update = {"path": list(steps), "parent_session_id": tree.parent(question.session_id)}
    return question.model_copy(update=update)
