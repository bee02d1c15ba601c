"""The loop: ask what is next, perform it, until the session rests.

All decisions are `core/steps.py`, all effects `engine/perform.py`; this only keeps track of what
is being performed, so that nothing is started twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
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
    Wait,
    next_step,
)
from magy_server.engine.perform import Performer
from magy_server.engine.session import Session


async def run(session: Session, perform: Performer) -> None:
    """Returns when there is nothing left to do here. Cancelling it stops the running tools and
    leaves the turn open in the log. Raises StoreError when the log cannot be written."""
    async with asyncio.TaskGroup() as group:
        running = Running(group, session)
        perform.early.group = group
        while True:
            session.moved.clear()
            step = next_step(session.state)
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
                    running.start("model", perform.call_model())
                case Compact(cancelled=True):
                    await running.stop()
                    await perform.keep_whole("Cancelled.")
                case Compact() if running.has("model"):
                    pass  # what it costs must not be paid twice
                case Compact():
                    running.limit_time(perform)
                    running.start("compact", perform.compact())
                case Judge(calls):
                    for call in calls:
                        running.start(f"judge {call}", perform.judge(call))
                case RunTools(calls):
                    for call in calls:
                        running.start(f"run {call}", perform.run_tool(call))
                case Recover(calls):
                    for call in calls:
                        running.start(f"run {call}", perform.recover(call))
                case Refuse(calls):
                    await perform.refuse(calls)
                case End():
                    await running.stop()
                    await perform.end(step)
                case Wait():
                    pass
            await session.moved.wait()
        await running.stop()
        perform.early.discard()


class Running:
    """What is being performed, by name."""

    def __init__(self, group: asyncio.TaskGroup, session: Session) -> None:
        self._group = group
        self._session = session
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def start(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        if name in self._tasks:
            work.close()
            return
        task = self._tasks[name] = self._group.create_task(work, name=name)
        task.add_done_callback(lambda _: self._ended(name))

    def has(self, name: str) -> bool:
        return name in self._tasks

    def _ended(self, name: str) -> None:
        self._tasks.pop(name, None)
        self._session.moved.set()

    def limit_time(self, perform: Performer) -> None:
        if perform.deadline():
            self.start("deadline", perform.keep_time())

    async def stop(self) -> None:
        """Stops everything first: what is then appended is what has really happened."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for task in tasks:
            if not task.cancelled() and (error := task.exception()):
                raise error
