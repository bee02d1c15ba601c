"""The performer carries out the steps of a turn: each method does one, and appends what came of it.
It tells the model that a person has refused a call."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os.path import relpath
from typing import Literal

from magy_server.core.agents.reports import landing
from magy_server.core.errors import Conflict, ProposedElsewhere, ToolError
from magy_server.core.events import (
    NOBODY,
    OVER,
    Admitted,
    Answered,
    CancelAsked,
    Ended,
    Event,
    Finished,
    Prompted,
    Replied,
)
from magy_server.core.prompting.compaction import due
from magy_server.core.reviews.review_events import Noted
from magy_server.core.state.state import State
from magy_server.core.state.turn import CallState
from magy_server.core.steps import Admit, End, Step
from magy_server.core.tool import Tool
from magy_server.core.values import Call, Evidence, Hash, Text
from magy_server.engine.briefing import briefing as briefing_of
from magy_server.engine.calls import (
    Outcome,
    closed,
    completed,
    failed,
    happened,
    look,
    supervised,
    timed,
)
from magy_server.engine.compaction import compacted, given_up
from magy_server.engine.context import RunContext
from magy_server.engine.feature_ports import Features, Landed
from magy_server.engine.judge import judge
from magy_server.engine.log import Write
from magy_server.engine.model import call_model
from magy_server.engine.prefetch import Early
from magy_server.engine.rules import law
from magy_server.engine.session import Session
from magy_server.engine.streaming import Partial
from magy_server.engine.trees import is_child
from magy_server.engine.world import World, put

REFUSED = "The user refused this call."
LATE = "The editor made the edit nevertheless, after that"


class Performer:
    def __init__(self, session: Session, world: World, features: Features) -> None:
        self._session = session
        self._world = world
        self._features = features
        self.early = Early(session, world, features)
        self._asked = ""
        """The request that is under way."""

    # --- prompts --------------------------------------------------------------------------------

    def serves(self, step: Step) -> bool:
        """A turn begins where its prompt came from, while that process lives: its editor is
        there. Everything else, and all of a child, is done by whoever has the lease."""
        if not isinstance(step, Admit) or not step.opens or is_child(self._session.stream):
            return True
        waiting = self._session.state.queue.waiting
        first = next((arrival for arrival in waiting if arrival.id == step.turn), None)
        return first is None or first.by not in self._world.peers()

    async def admit(self, step: Admit) -> None:
        state = self._session.state
        if step.opens:
            await self._features.worktrees.ready(state)
        briefing, blobs = await briefing_of(self._world, state)
        note = await self._features.changes.notes(state) if step.opens else None
        first = min(state.queue.seqs[id] for id in step.prompts)
        admitted = Admitted(turn=step.turn, prompts=step.prompts, first=first, opens=step.opens)

        def decide(now: State) -> Write | None:
            waiting = {p.id for p in now.queue.waiting}
            if not waiting.issuperset(step.prompts) or (now.turn is None) is not step.opens:
                return None
            events: list[Event] = [note, admitted] if note else [admitted]
            if fresh := step.opens and now.conversation.briefing != briefing:
                events.insert(0, briefing)
            given = _given(now, step, str(now.seq + len(events)), briefing.seldom)
            return Write([*events, *given], blobs if fresh else {})

        self._world.results.forget()  # the person may have changed anything meanwhile
        await self._session.append(decide)

    # --- the model ------------------------------------------------------------------------------

    async def call_model(self, group: asyncio.TaskGroup) -> None:
        """`group` runs the calls that are complete before the reply is."""
        self.early.begin(group)
        self._asked = str(self._session.state.seq)
        await call_model(self._session, self._world, self._features.purse, self.early, self._ended)
        self._asked = ""

    async def compact(self) -> None:
        write = await compacted(self._session, self._world, self._features.purse)
        events = [await self._ended(one) if isinstance(one, Ended) else one for one in write.events]
        write = replace(write, events=events)
        await self._session.append(lambda now: write if now.compact or due(now) else None)

    async def keep_whole(self, problem: str) -> None:
        """The compaction that a person asked for between turns does not take place."""
        await self._session.append(lambda now: given_up(now, problem) if now.compact else None)

    async def _ended(self, ended: Ended) -> Ended:
        """The end of a turn that failed, with what became of its worktree."""
        state = self._session.state
        landed = await self._features.worktrees.landed(state, ended.stop, ended.message)
        return ended.model_copy(update={"message": landed.message})

    def deadline(self) -> float | None:
        """When the running turn must end, seconds since the epoch; None: no limit."""
        state = self._session.state
        turn, briefing = state.turn, state.conversation.briefing
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
        while (call := self._open(call_id)) and not call.judged:
            write = await self.early.verdict(call.call)
            write = write or await judge(self._session, self._world, self._features, call.call)
            try:
                await self._session.append(partial(_if_open, write, call_id))
            except Conflict:
                now = await self._world.project(self._session.state.root)
                if all(batch.after == now.head for batch in write.others):
                    raise

    async def refuse(self, calls: Sequence[str]) -> None:
        """Tells the model that the person said no to these calls, and why."""

        def decide(now: State) -> Write | None:
            events: list[Event] = []
            for id in calls:
                call = now.turn.calls.get(id) if now.turn else None
                if call and call.open and call.answered:
                    text = _refusal(call.answered)
                    events.append(Finished(call=id, status="denied", for_model=text))
            return Write(events) if events else None

        await self._session.append(decide)

    async def run_tool(self, call_id: str) -> None:
        call = self._open(call_id)
        if call is None or call.judged is None:
            return
        if ran := await self.early.ran(call_id):
            await self._append(ran.outcome, ran.duration, ran.events)
            return
        tool, context = await self._prepare(call)
        began = self._world.clock.now()
        try:
            outcome = await supervised(call.call, tool, context, self._world.results)
            await self._finish(outcome, context, began)
        finally:
            await context.close()

    async def recover(self, call_id: str) -> None:
        """Looks what became of a call whose process is gone; runs it again only if it had no
        effect, or none that happened."""
        call = self._open(call_id)
        if call is None or call.started is None:
            return
        tool, context = await self._prepare(call)
        began = self._world.clock.now()
        try:
            outcome = await self._recovered(call, call.started, tool, context)
            await self._finish(outcome, context, began)
        finally:
            await context.close()

    async def _recovered(
        self, call: CallState, begun: Evidence, tool: Tool, context: RunContext
    ) -> Outcome:
        try:
            result = await look(tool, context, begun, call.call.arguments)
        except ToolError as error:
            return await failed(context, "unknown", str(error))
        if result is None:
            return await supervised(call.call, tool, context, self._world.results)
        context.events.extend(result.events)
        return completed(context, result)

    async def _prepare(self, call: CallState) -> tuple[Tool, RunContext]:
        assert call.judged is not None
        now = await law(self._session, self._world)
        context = RunContext(self._session, self._world, self._features, call.judged, now)
        tool = await self._world.tools.named(self._session.state.root, call.call.name)
        assert tool is not None  # it was judged
        return tool, context

    async def _finish(self, outcome: Outcome, context: RunContext, began: float) -> None:
        duration = max(0.0, self._world.clock.now() - began)
        await self._append(outcome, duration, context.events)

    async def _append(self, outcome: Outcome, duration: float, more: Sequence[Event]) -> None:
        finished, blobs = outcome
        end = timed(finished, duration)
        try:
            await self._end_call(end, Write([end, *more], blobs))
        except ProposedElsewhere as error:  # nothing was done, and nothing is proposed
            end = Finished(call=end.call, status="failed", for_model=error.message)
            await self._end_call(end, Write([timed(end, duration), *more]))

    async def _end_call(self, end: Finished, write: Write) -> None:
        def decide(now: State) -> Write | None:
            if not _is_open(now, end.call):
                return None
            return replace(write, events=[*_unanswered(now, end.call), *write.events])

        await self._session.append(decide)

    def waits(self, call_id: str) -> bool:
        """Whether all that this call does is wait."""
        call = self._open(call_id)
        tool = self._tools.get(call.call.name) if call else None
        return tool is not None and tool.waits

    @property
    def _tools(self) -> Mapping[str, Tool]:
        return self._world.tools.there(self._session.state.root)

    def _open(self, call_id: str) -> CallState | None:
        turn = self._session.state.turn
        call = turn.calls.get(call_id) if turn else None
        return call if call and call.open else None

    # --- the end --------------------------------------------------------------------------------

    async def end(self, step: End) -> None:
        """Closes each open call as what it is, and the turn, in one append: a log is always a
        valid conversation."""
        self.early.discard()
        partials = dict(self._session.streaming.partials)
        before, late = self._session.state, await self._close_changed(partials)
        if before.opened:
            await self._features.changes.settle(before.place)
        landed = await self._features.worktrees.landed(before, step.stop, step.message)
        asked, self._asked = self._asked, ""

        def decide(now: State) -> Write | None:
            if now.turn is None:
                return None
            blobs = dict(landed.blobs)
            events: list[Event] = list(_said_so_far(now, asked, partials))
            for call in now.turn.open_calls:
                events += _unanswered(now, call.call.id)
                partial = partials.get(("output", call.call.id))
                said = partial.since(0) if partial else ""
                graph = _stopped("graph", partials, call.call.id, blobs)
                card = _stopped("deliberation", partials, call.call.id, blobs)
                events.append(closed(
                    call, said, graph=graph, deliberation=card, over=step.stop == "end_turn"
                ))  # fmt: skip
            if landed.note:
                events.append(Noted(id=landing(now.turn.id), text=landed.note))
            events.append(Ended(
                turn=now.turn.id, stop=step.stop, message=landed.message, changes=landed.changes
            ))  # fmt: skip
            return Write(events, blobs)

        try:
            await self._session.append(decide)
        except ProposedElsewhere as error:  # an earlier child's work waits for the person
            landed = Landed(landed.message, f"{landed.unproposed}\n{error.message}")
            await self._session.append(decide)
        for call in late:
            self._session.later(self._made_late(before, call))

    async def _close_changed(
        self, partials: Mapping[tuple[str, str], Partial]
    ) -> Sequence[CallState]:
        """A call that was stopped may have changed files all the same: they are under review. The
        answer: what of it the editor may still do."""
        state = self._session.state
        if state.turn is None or state.opened is None:
            return []
        late = []
        for call in state.turn.open_calls:
            changes = await happened(self._world.files, state.place, call)
            begun = call.started.changes if call.started else ()
            left = tuple(one for one in begun if one.via == "editor" and one not in changes)
            if left:
                late.append(replace(call, started=Evidence(changes=left)))
            if changes:
                partial = partials.get(("output", call.call.id))
                ended = closed(call, partial.since(0) if partial else "", changes)
                await self._append((ended, {}), 0.0, ())
        return late

    async def _made_late(self, before: State, call: CallState) -> None:
        """The editor asked the person, who said yes when the turn had been stopped: it is that
        turn's all the same. `before`: the session in that turn."""
        paths = [change.path for change in call.started.changes] if call.started else []
        if not any([await self._world.editor.late(path) for path in paths]):
            return
        if changes := await happened(self._world.files, before.place, call):
            names = ", ".join(relpath(change.path, before.place) for change in changes)
            text = f"{LATE}: {names}"
            id = call.call.id
            made = Finished(call=id, status="cancelled", for_model=text, changes=changes)
            note = Noted(id=f"late/{id}", text=f"Your call {call.call.name} was stopped. {text}")
            write = Write([made, note], during=before)
            await self._session.append(lambda now: write)


def _given(state: State, step: Admit, request: str, seldom: Sequence[str]) -> Iterator[Replied]:
    """What opens the turn in place of a model's reply, if its prompt is a call of the person's."""
    for prompt in state.queue.waiting:
        if prompt.id == step.turn and step.opens and isinstance(prompt, Prompted) and prompt.call:
            made = prompt.call
            call = Call(id=f"{request}.0", name=made.name, arguments=made.arguments,
                        wrapped=made.name in seldom)  # fmt: skip
            yield Replied(request=request, model="", content=(call,), stop="tool_use", cost=0.0)


def _stopped(
    kind: Literal["graph", "deliberation"],
    partials: Mapping[tuple[str, str], Partial],
    call: str,
    blobs: dict[Hash, bytes],
) -> Hash | None:
    """The graph or the deliberation that a stopped call was, as far as it had come."""
    partial = partials.get((kind, call))
    if partial is None:
        return None
    if kind == "graph":  # few sessions have either
        from magy_server.core.graphs.shown import stopped
    else:
        from magy_server.core.magi.card import stopped

    return put(stopped(partial.since(0)), blobs)


def _unanswered(state: State, call: str) -> Iterator[Answered]:
    """Closes what the server of this call still asks the person: nobody waits for it any more."""
    for question in state.questions.values():
        if question.asked.form and question.asked.call == call:
            yield Answered(id=question.asked.id, allow=False, by=OVER)


def _refusal(answered: Answered) -> str:
    """Returns what the model is told."""
    if answered.by == NOBODY:
        return f"Not allowed. {answered.reason}"
    return f"{REFUSED} Reason: {answered.reason}" if answered.reason else REFUSED


def _said_so_far(
    state: State, request: str, partials: Mapping[tuple[str, str], Partial]
) -> Iterator[Replied]:
    """A reply that was stopped: its text was read, so it is kept; what it cost was not said."""
    if request and state.conversation.briefing:
        partial = partials.get(("text", request))
        text = partial.since(0) if partial else ""
        content = (Text(text=text),) if text.strip() else ()
        yield Replied(
            request=request,
            model=state.conversation.briefing.model,
            content=content,
            stop="cancelled",
        )


def _if_open(write: Write, call_id: str, now: State) -> Write | None:
    return write if _is_open(now, call_id) else None


def _is_open(state: State, call_id: str) -> bool:
    call = state.turn.calls.get(call_id) if state.turn else None
    return call is not None and call.open
