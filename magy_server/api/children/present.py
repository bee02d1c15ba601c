"""This module turns children and their health into values of the wire."""

from __future__ import annotations

from magy_server.api.wire import children as child_wire
from magy_server.core import wire_values
from magy_server.core.agents.child import ChildInfo, Result, Waited
from magy_server.core.wire_values import stamp
from magy_server.team.supervision import Health


def child(info: ChildInfo) -> child_wire.Child:
    return child_wire.Child.model_validate(wire_values.child(info))


def changed(info: ChildInfo, *, deleted: bool) -> child_wire.ChildChanged:
    return child_wire.ChildChanged(
        parent_session_id=info.parent, child=child(info), deleted=deleted
    )


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
