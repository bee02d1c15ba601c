"""`Hooks` asks the hooks of a project before a call, and tells them what has happened."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from magy_server.core import hooks as core
from magy_server.core.agents.tree import SESSIONS
from magy_server.core.events import (
    Asked,
    Compacted,
    Ended,
    Entry,
    Finished,
    Opened,
    Prompted,
)
from magy_server.core.hooks import Hook, HookEvent
from magy_server.core.sandbox import NO_SANDBOX, Sandbox
from magy_server.core.state.state import State
from magy_server.core.text.sanitizing import LINE, shortened
from magy_server.core.tool import Tool
from magy_server.core.values import Call, HookSaid, Text
from magy_server.tasks import Tasks

if TYPE_CHECKING:
    from magy_server.hooks.running import Outcome

LOG = logging.getLogger(__name__)
AT_ONCE = 4
"""Hooks that hear of something and run at the same time; those that are asked do not wait."""
LAST = 10.0
"""Seconds that hooks have at the end of the process to come to theirs."""
LONGEST = 20_000
"""Characters of a result or a prompt that a hook is told."""

HooksOf = Callable[[str | None], Sequence[Hook]]
"""The hooks of a workspace root, as they are configured now."""
Environment = Callable[[str, str, str], dict[str, str]]
"""(directory, session, call) -> what commands get of the environment."""
MARK = "hook"
"""Stands where the call does in the mark of a command's processes."""


class Hooks:
    """A listener, and the engine's port `Hooks`."""

    def __init__(
        self,
        found: HooksOf,
        environment: Environment,
        key: Callable[[str], str],
        sandbox: Sandbox = NO_SANDBOX,
    ) -> None:
        """`key`: gives the permission key of a tool by its name."""
        self._found = found
        self._sandbox = sandbox
        self._key = key
        self._environment = environment
        self._tasks = Tasks()
        self._free = asyncio.Semaphore(AT_ONCE)

    async def before(self, state: State, tool: Tool, call: Call) -> Sequence[HookSaid]:
        """Asks all hooks for this tool, side by side, and returns what they say in their order."""
        asked = self._for(state.root, "PreToolUse", tool.name)
        if not asked:
            return ()
        input = _about(state, "PreToolUse") | _of_call(call, state)
        said = await asyncio.gather(*(self._ask(hook, state, input) for hook in asked))
        return [one for one in said if one]

    def __call__(self, state: State, entries: Sequence[Entry]) -> None:
        if not state.stream.startswith(SESSIONS):
            return
        source = state.opened.forked_from if state.opened else None
        for entry in entries:
            if not (source and 1 < entry.seq <= source[1]):  # copied
                self._tell(state, entry)

    async def close(self) -> None:
        """Those that still run get a moment, then they are ended."""
        if not await self._tasks.settle(LAST):
            LOG.warning("Hooks that had not ended %g s after the end were stopped.", LAST)

    # --- inside ---------------------------------------------------------------------------------

    def _for(self, root: str | None, event: HookEvent, tool: str = "") -> list[Hook]:
        return [
            hook
            for hook in self._found(root)
            if hook.event == event and (not tool or hook.is_for(tool, self._key(tool)))
        ]

    async def _ask(self, hook: Hook, state: State, input: Mapping[str, Any]) -> HookSaid | None:
        outcome = await self._run(hook, state, input)
        said = opinion(hook, outcome)
        if said is None:
            if outcome.code != 0:
                LOG.warning("The hook `%s` failed: %s", hook.name, outcome.errors.strip()[:LINE])
            return None
        return said.model_copy(update={"reason": shortened(said.reason, LINE)})

    def _tell(self, state: State, entry: Entry) -> None:
        told = _moment(state, entry)
        if told is None:
            return
        event, more, tool = told
        for hook in self._for(state.root, event, tool):
            input = _about(state, event) | more
            self._tasks.begin(self._hear(hook, state, input))

    async def _hear(self, hook: Hook, state: State, input: Mapping[str, Any]) -> None:
        async with self._free:
            outcome = await self._run(hook, state, input)
        if outcome.code != 0:
            why = outcome.errors.strip() or f"it ended with code {outcome.code}"
            LOG.warning("The hook `%s` failed: %s", hook.name, shortened(why, LINE))

    async def _run(self, hook: Hook, state: State, input: Mapping[str, Any]) -> Outcome:
        from magy_server.hooks.running import run

        place, cwd = state.place, state.opened.cwd if state.opened else state.place
        if (
            state.opened
            and state.opened.worktree
            and not await asyncio.to_thread(os.path.isdir, cwd)
        ):
            place = cwd = state.root or place  # before the first turn, and after the last
        environment = self._environment(cwd, state.id, MARK) | {"MAGY_PROJECT_DIR": place}
        if hook.foreign:
            environment["CLAUDE_PROJECT_DIR"] = place
        return await run(hook, hook.told(input), cwd, environment, place, self._sandbox)


def opinion(hook: Hook, outcome: Outcome) -> HookSaid | None:
    """Returns what a hook says of a call by how it ended."""
    if outcome.code is None:
        return core.failed(hook, outcome.errors)
    said = core.said(hook, outcome.code, outcome.output, outcome.errors)
    if said is None and outcome.cut:  # it may have refused
        return HookSaid(hook=hook.name, action="ask", reason="it wrote more than Magy reads")
    return said


def _about(state: State, event: HookEvent) -> dict[str, Any]:
    """What every hook is told."""
    return {
        "session_id": state.id,
        "cwd": state.opened.cwd if state.opened else state.place,
        "hook_event_name": event,
        "permission_mode": "bypassPermissions" if state.bypass else "default",
        "agent": state.agent,
    }


def _of_call(call: Call, state: State) -> dict[str, Any]:
    """`file_path` stands beside `path`, which is Magy's name for it."""
    path = call.arguments.get("path")
    place = state.opened.cwd if state.opened else state.place
    also = {"file_path": os.path.join(place, path)} if isinstance(path, str) else {}
    return {
        "tool_name": call.name,
        "tool_input": {**call.arguments, **also},
        "tool_use_id": call.id,
    }


def _moment(state: State, entry: Entry) -> tuple[HookEvent, dict[str, Any], str] | None:
    """What a hook may want to hear of: the event, what it is told of it, and the tool, if any."""
    event = entry.event
    match event:
        case Opened():
            return "SessionStart", {"source": "fork" if event.forked_from else "startup"}, ""
        case Prompted():
            text = "\n".join(part.text for part in event.content if isinstance(part, Text))
            return "UserPromptSubmit", {"prompt": text[:LONGEST]}, ""
        case Finished():
            call = state.turn.calls.get(event.call) if state.turn else None
            if call is None or event.status in ("denied", "not_run"):
                return None
            response = {
                "status": event.status,
                "text": event.for_model[:LONGEST],
                "changed": [change.path for change in event.changes],
            }
            return (
                "PostToolUse",
                _of_call(call.call, state) | {"tool_response": response},
                call.call.name,
            )
        case Asked():
            return "Notification", {"message": event.title, "title": event.rule}, ""
        case Compacted(problem=""):
            return "PostCompact", {}, ""
        case Ended():
            child = state.opened is not None and state.opened.parent is not None
            name: HookEvent = "SubagentStop" if child else "Stop"
            return name, {"stop_reason": event.stop, "message": event.message}, ""
    return None
