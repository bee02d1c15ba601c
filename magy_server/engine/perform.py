"""Performs the steps: each method does one, and appends what came of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from magy_server.core.errors import MagyError, ToolError
from magy_server.core.events import (
    Admitted,
    CancelAsked,
    Ended,
    Event,
    Evidence,
    Finished,
    Hash,
    Prompted,
)
from magy_server.core.state import CallState, State
from magy_server.core.steps import Admit, End, Step
from magy_server.core.tool import Result, Tool, ToolContext
from magy_server.engine.context import RunContext
from magy_server.engine.judge import judge
from magy_server.engine.model import call_model
from magy_server.engine.session import Session, Write
from magy_server.engine.world import World, put

LOG = logging.getLogger(__name__)

REFUSED = "The user refused this call."
STOPPED = "(stopped before it ended)"
UNKNOWN = (
    "The process that ran this was killed. Whether it took effect is unknown: look before you "
    "do it again."
)
PARTIAL = 2_000
"""Characters of a stopped command's output that the model still gets."""


class Performer:
    def __init__(self, session: Session, world: World) -> None:
        self._session = session
        self._world = world

    # --- prompts --------------------------------------------------------------------------------

    def serves(self, step: Step) -> bool:
        """A turn begins where its prompt came from, while that process lives: its editor is
        there. Everything else is done by whoever has the lease."""
        if not isinstance(step, Admit) or not step.opens:
            return True
        prompt = self._waiting(step.prompts[0])
        return prompt is None or prompt.by not in self._world.peers()

    def _waiting(self, id: str) -> Prompted | None:
        return next((p for p in self._session.state.waiting if p.id == id), None)

    async def admit(self, step: Admit) -> None:
        state = self._session.state
        briefing, blobs = await self._world.briefing(state)
        first = min(state.prompts[id] for id in step.prompts)
        admitted = Admitted(turn=step.turn, prompts=step.prompts, first=first, opens=step.opens)

        def decide(now: State) -> Write | None:
            waiting = {p.id for p in now.waiting}
            if not waiting.issuperset(step.prompts) or (now.turn is None) is not step.opens:
                return None
            if now.briefing == briefing or not step.opens:
                return Write([admitted])
            return Write([briefing, admitted], blobs)

        await self._session.append(decide)

    # --- the model ------------------------------------------------------------------------------

    async def call_model(self) -> None:
        await call_model(self._session, self._world)

    def deadline(self) -> float | None:
        """When the running turn must end, seconds since the epoch; None: no limit."""
        turn, briefing = self._session.state.turn, self._session.state.briefing
        if turn is None or briefing is None or not briefing.limits.seconds:
            return None
        return turn.began + briefing.limits.seconds

    async def keep_time(self) -> None:
        turn, deadline = self._session.state.turn, self.deadline()
        if turn is None or deadline is None:
            return
        await asyncio.sleep(max(0.0, deadline - self._world.clock.now()))
        asked = CancelAsked(turn=turn.id, why="max_time")
        await self._session.append(
            lambda now: Write([asked]) if now.turn and now.turn.id == turn.id else None
        )

    # --- calls ----------------------------------------------------------------------------------

    async def judge(self, call_id: str) -> None:
        call = self._open(call_id)
        if call is None or call.judged:
            return
        write = await judge(self._session, self._world, call.call)
        await self._session.append(lambda now: write if _is_open(now, call_id) else None)

    async def refuse(self, calls: Sequence[str]) -> None:
        def decide(now: State) -> Write | None:
            events: list[Event] = []
            for id in calls:
                call = now.turn.calls.get(id) if now.turn else None
                if call and call.open and call.answered:
                    reason = call.answered.reason
                    text = f"{REFUSED} Reason: {reason}" if reason else REFUSED
                    events.append(Finished(call=id, status="denied", for_model=text))
            return Write(events) if events else None

        await self._session.append(decide)

    async def run_tool(self, call_id: str) -> None:
        call = self._open(call_id)
        if call is None or call.judged is None:
            return
        tool, context = self._prepare(call)
        began = self._world.clock.now()
        finished = await _supervised(call, tool, context)
        await self._finish(finished, context, began)

    async def recover(self, call_id: str) -> None:
        """Looks what became of a call whose process is gone; runs it again only if it had no
        effect, or none that happened."""
        call = self._open(call_id)
        if call is None or call.started is None:
            return
        tool, context = self._prepare(call)
        began = self._world.clock.now()
        try:
            result = await _look(tool, context, call.started, call.call.arguments)
        except ToolError as error:
            outcome: Outcome = (Finished(call=call_id, status="unknown", for_model=str(error)), {})
            await self._finish(outcome, context, began)
            return
        if result is None:
            await self._finish(await _supervised(call, tool, context), context, began)
        else:
            await self._finish(_completed(call_id, result), context, began)

    def _prepare(self, call: CallState) -> tuple[Tool, RunContext]:
        assert call.judged is not None
        context = RunContext(self._session, self._world, call.call.id, call.judged.facts)
        return self._world.tools[call.call.name], context

    async def _finish(self, outcome: Outcome, context: RunContext, began: float) -> None:
        finished, blobs = outcome
        duration = max(0.0, self._world.clock.now() - began)
        events: list[Event] = [finished.model_copy(update={"duration": duration})]
        events += context.events
        write = Write(events, blobs)
        await self._session.append(lambda now: write if _is_open(now, finished.call) else None)

    def _open(self, call_id: str) -> CallState | None:
        turn = self._session.state.turn
        call = turn.calls.get(call_id) if turn else None
        return call if call and call.open else None

    # --- the end --------------------------------------------------------------------------------

    async def end(self, step: End) -> None:
        """Closes each open call as what it is, and the turn, in one append: a log is always a
        valid conversation."""
        partials = dict(self._session.partials)

        def decide(now: State) -> Write | None:
            if now.turn is None:
                return None
            events: list[Event] = []
            for call in now.turn.open_calls:
                partial = partials.get(("output", call.call.id))
                events.append(closed(call, partial.since(0) if partial else ""))
            events.append(Ended(turn=now.turn.id, stop=step.stop, message=step.message))
            return Write(events)

        await self._session.append(decide)


Outcome = tuple[Finished, Mapping[Hash, bytes]]


def closed(call: CallState, output: str = "") -> Finished:
    """How a call ends that is stopped from outside."""
    if call.started is None:
        text = "(not run: the turn was stopped first)"
        return Finished(call=call.call.id, status="not_run", for_model=text)
    if call.orphan:
        return Finished(call=call.call.id, status="unknown", for_model=UNKNOWN)
    text = f"{STOPPED}\n{output[-PARTIAL:]}" if output else STOPPED
    return Finished(call=call.call.id, status="cancelled", for_model=text)


async def _supervised(call: CallState, tool: Tool, context: RunContext) -> Outcome:
    """Runs a tool; whatever it raises becomes a result. The one place where tools are caught."""
    id = call.call.id
    try:
        result = await tool.run(context, **tool.arguments(call.call.arguments))
    except ToolError as error:
        return Finished(call=id, status="failed", for_model=error.message), {}
    except MagyError:
        raise  # the log could not be written: not the tool's fault, and not the model's matter
    except Exception as error:
        LOG.exception("%s failed", call.call.name)
        text = f"{call.call.name} failed inside Magy: {type(error).__name__}: {error}"
        return Finished(call=id, status="failed", for_model=text), {}
    context.events.extend(result.events)
    return _completed(id, result)


async def _look(
    tool: Tool, context: ToolContext, evidence: Evidence, arguments: Mapping[str, Any]
) -> Result | None:
    if tool.effect == "read":
        return None
    if tool.recover is None:
        raise ToolError(UNKNOWN)
    return await tool.recover(context, evidence, arguments)


def _completed(id: str, result: Result) -> Outcome:
    blobs = dict(result.blobs)
    finished = Finished(
        call=id,
        status="completed",
        for_model=result.for_model,
        for_user=result.for_user,
        diff=put(result.diff, blobs) if result.diff else None,
        output=put(result.output, blobs) if result.output is not None else None,
        changes=tuple(result.changes),
        background=result.background,
    )
    return finished, blobs


def _is_open(state: State, call_id: str) -> bool:
    call = state.turn.calls.get(call_id) if state.turn else None
    return call is not None and call.open
