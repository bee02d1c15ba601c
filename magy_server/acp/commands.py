"""ACP knows only slash commands: Magy's actions, skills and agents all appear there.

`/NAME` is an action, or a skill, which Magy calls `@NAME`; `/spawn-AGENT TASK` gives a task to
another agent (`/spawn-AGENT --worktree TASK`: on a git branch of its own).
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from magy_server.acp.content import text
from magy_server.acp.options import Json
from magy_server.regex import regex

if TYPE_CHECKING:
    from magy_server.acp.workspace import Workspace

_COMMAND = regex(r"\s*/([a-z0-9][a-z0-9_-]*)(?!\S)[ \t]*(.*)")
_SPAWN = "spawn-"
"""Before the name of an agent, in the command that gives it a task."""
_COMPACT = {"name": "compact", "description": "Summarize the older part of the conversation",
            "input": {"hint": "what the summary must keep"}}  # fmt: skip


class Command(NamedTuple):
    name: str
    rest: str

    @property
    def agent(self) -> str | None:
        """Returns the agent that gets a task."""
        return self.name.removeprefix(_SPAWN) if self.name.startswith(_SPAWN) else None


def of(said: Sequence[Json]) -> Command | None:
    """Returns the command that a prompt begins with."""
    first = next((block["text"] for block in said if block["type"] == "text"), "")
    found = _COMMAND.match(first)
    return Command(found[1], first[found.start(2) :].strip()) if found else None


async def offered(home: Workspace, session_id: str) -> list[Json]:
    """Returns the commands of a session, in the shape of version 1."""
    from magy_server.tools.prompts.openings import SPAWN

    actions = await _complete(home, session_id, "/")
    found = [_command(item["label"][1:], item["detail"], "more words") for item in actions]
    found += [
        _command(item["label"][1:], f"Skill: {item['detail']}", "the task")
        for item in await _complete(home, session_id, "@")
        if item["kind"] == "skill"
    ]
    found += [
        _command(
            f"{_SPAWN}{item['label']}", f"Child agent: {item['detail']}", "[--worktree] the task"
        )
        for item in await _complete(home, session_id, f"{SPAWN} ")
    ]
    return [*found, _COMPACT]


async def meant(home: Workspace, session_id: str, said: Sequence[Json]) -> list[Json]:
    """The prompt, with a skill as Magy calls it."""
    command = of(said)
    if command is None:
        return [*said]
    skills = [item for item in await _complete(home, session_id, f"@{command.name}")
              if item["kind"] == "skill" and item["label"] == f"@{command.name}"]  # fmt: skip
    if not skills:
        return [*said]
    at = next(n for n, block in enumerate(said) if block["type"] == "text")
    return [*said[:at], text(f"@{command.name} {command.rest}"), *said[at + 1 :]]


async def spawn(home: Workspace, session_id: str, command: Command, said: Sequence[Json]) -> None:
    """Gives an agent the task that follows its name. Raises MagyError."""
    from magy_server.tools.prompts.openings import SPAWN, spawned

    at = next(n for n, block in enumerate(said) if block["type"] == "text")
    task = spawned(f"{SPAWN} {command.agent} {command.rest}")
    assert task is not None
    await home.ask(
        "child/spawn", parentSessionId=session_id, requestKey=str(uuid.uuid4()), agent=task.agent,
        prompt=[*said[:at], text(task.text), *said[at + 1 :]], worktree=task.worktree,
    )  # fmt: skip


async def _complete(home: Workspace, session_id: str, before: str) -> list[Json]:
    """One after the other: a completion ends an older one."""
    async with home.completing:
        found = await home.ask("prompt/complete", sessionId=session_id, before=before)
    items: list[Json] = found["items"]
    return items


def _command(name: str, description: str, hint: str) -> Json:
    return {"name": name, "description": description or name, "input": {"hint": hint}}
