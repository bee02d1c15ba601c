"""The loop asks what is next and performs it, until the session rests.

All decisions are `core/steps.py`, all effects `engine/perform.py`; this only keeps track of what
is being performed, so that nothing is started twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from magy_server.core.steps import (
    Admit,
    CallModel,
    Compact,
    End,
    Judge,
    Recover,
    Refuse,
    Rest,
    RunTools,
    Step,
    Wait,
    next_step,
    works,
)
from magy_server.engine.feature_ports import Slot
from magy_server.engine.perform import Performer
from magy_server.engine.session import Session


async def run(session: Session, perform: Performer, slot: Slot) -> None:
    """Returns when there is nothing left to do here. Cancelling it stops the running tools and
    leaves the turn open in the log. `slot` is held while there is work, and given back. Raises
    StoreError when the log cannot be written."""
    async with slot, asyncio.TaskGroup() as group, session.moving() as moved:
        running = Running(group, moved, slot)
        while True:
            moved.clear()
            step = running.with_slot(next_step(session.state), perform.waits)
            match step:
                case Rest():
                    break
                case Admit(opens=True) if not perform.serves(step):
                    break
                case Admit(opens=False) if running.has("model"):
                    pass  # the reply under way does not know it; it joins with the next request
                case Admit():
                    if step.opens:
                        await running.stop()
                    await perform.admit(step)
                case CallModel():
                    running.limit_time(perform)
                    running.start("model", perform.call_model(group))
                case Compact(cancelled=True):
                    await running.stop()
                    await perform.keep_whole("Cancelled.")
                case Compact() if running.has("model"):
                    pass  # what it costs must not be paid twice
                case Compact():
                    running.limit_time(perform)
                    running.start("compact", perform.compact())
                case Judge(calls):
                    running.each("judge", calls, perform.judge)
                case RunTools(calls):
                    running.each("run", calls, perform.run_tool, perform.waits)
                case Recover(calls):
                    running.each("run", calls, perform.recover, perform.waits)
                case Refuse(calls):
                    await perform.refuse(calls)
                case End():
                    await running.stop()
                    await perform.end(step)
                case Wait():
                    pass
            running.spare_slot()
            await moved.wait()
        await running.stop()
        perform.early.discard()


class Running:
    """What is being performed, by name."""

    def __init__(self, group: asyncio.TaskGroup, moved: asyncio.Event, slot: Slot) -> None:
        self._group = group
        self._moved = moved
        self._slot = slot
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._waits: set[str] = set()
        self._works = False

    def with_slot(self, step: Step, waits: Callable[[str], bool]) -> Step:
        """The step; or, as long as it is work and there is no slot for it, to wait. `waits`:
        whether a call only waits."""
        self._works = works(step, waits)
        if self._works and not self._slot.taken:
            self.start("slot", self._slot.take(), True)
            return Wait()
        return step

    def spare_slot(self) -> None:
        """Gives the slot to others while there is nothing to do but wait."""
        if not self._works and self._waits.issuperset(self._tasks):
            self._slot.give_back()

    def start(self, name: str, work: Coroutine[Any, Any, None], waits: bool = False) -> None:
        """`waits`: that is all it does."""
        if name in self._tasks:
            work.close()
            return
        if waits:
            self._waits.add(name)
        task = self._tasks[name] = self._group.create_task(work, name=name)
        task.add_done_callback(lambda _: self._ended(name))

    def each(
        self,
        kind: str,
        calls: Iterable[str],
        work: Callable[[str], Coroutine[Any, Any, None]],
        waits: Callable[[str], bool] = lambda call: False,
    ) -> None:
        for call in calls:
            self.start(f"{kind} {call}", work(call), waits(call))

    def has(self, name: str) -> bool:
        return name in self._tasks

    def _ended(self, name: str) -> None:
        self._tasks.pop(name, None)
        self._waits.discard(name)
        self._moved.set()

    def limit_time(self, perform: Performer) -> None:
        if perform.deadline():
            self.start("deadline", perform.keep_time(), True)

    async def stop(self) -> None:
        """Stops everything first: what is then appended is what has really happened."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for task in tasks:
            if not task.cancelled() and (error := task.exception()):
                raise error
