"""This module offers what a prompt may begin with besides words: `/action`, `@skill`, `@spawn AGENT
TASK` (or `@spawn AGENT --worktree TASK`) and the commands of clients. `mentions.expand` and the
clients understand all of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple

from magy_server.core.actions import ActionSpec, filled
from magy_server.core.errors import InvalidRequest
from magy_server.core.specs import Agents
from magy_server.dataclass import dataclass
from magy_server.regex import regex
from magy_server.tools.prompts.symbol_mentions import SYMBOL

COMMANDS = {
    "clear": "Start a new conversation",
    "compact": "Summarize the older part of the conversation for the model",
}
SPAWN = "@spawn"
WORKTREE = "--worktree"
HOLES = {"symbol": "…", "place": "…"}
"""For titles of actions: there is no cursor in a prompt, and what they are about follows."""
AT = regex(r'(?<![\w.@/\\+-])@(?:"(?P<quoted>[^"\n]*)|(?P<bare>[^\s"]*))\Z')
"""A mention that is being typed, at the end of what stands before the cursor."""
_ACTION = regex(r"\s*(/[a-z0-9_-]*)\Z")
_AGENT = regex(rf"\s*{SPAWN}[ \t]+(\S*)\Z")
_SWITCH = regex(rf"\s*{SPAWN}[ \t]+\S+[ \t]+(-\S*)\Z")
_SPAWN = regex(rf"\s*{SPAWN}(?!\S)[ \t]*(\S*)(?:[ \t]+({WORKTREE})(?!\S))?\s*(.*)", re.DOTALL)

Kind = Literal["action", "agent", "skill", "command", "file"]


@dataclass(frozen=True, slots=True)
class Opening:
    """`text` takes the place of what was typed."""

    label: str
    text: str
    kind: Kind
    detail: str


class Task(NamedTuple):
    """What `@spawn` gives an agent. `worktree`: it works on a git branch of its own."""

    agent: str
    text: str
    worktree: bool


def actions_of_prompts(actions: Mapping[str, ActionSpec]) -> Mapping[str, ActionSpec]:
    """Returns the actions that a prompt may name; that leaves out those that another agent does."""
    return {id: one for id, one in actions.items() if not one.agent and not id.startswith("@")}


def alone(before: str, agents: Agents) -> tuple[str, Sequence[Opening]] | None:
    """After a `/`, after `@spawn`, or at a `-` after its agent, at the beginning of a prompt: what
    was typed there, and what may stand in its place. None: the cursor is elsewhere."""
    if found := _ACTION.match(before):
        offered = [
            Opening(f"/{id}", f"/{id}", "action", filled(one.title, HOLES))
            for id, one in actions_of_prompts(agents.actions).items()
        ]
    elif found := _AGENT.match(before):
        offered = [Opening(name, f"{name} ", "agent", about) for name, about in _workers(agents)]
    elif found := _SWITCH.match(before):
        about = "Work on a git branch of its own, which is merged when done"
        offered = [Opening(WORKTREE, f"{WORKTREE} ", "command", about)]
    else:
        return None
    return found[1], [one for one in offered if one.label.startswith(found[1])]


def after_at(agents: Agents, skills: Mapping[str, str]) -> Sequence[Opening]:
    """What may begin with `@`. `skills`: name -> what it is for."""
    return [
        *(Opening(f"@{name}", f"@{name}", "skill", about) for name, about in skills.items()),
        *(Opening(f"@{name}", f"@{name}", "command", about) for name, about in COMMANDS.items()),
        Opening(SPAWN, f"{SPAWN} ", "agent", "Give a task to an agent: @spawn AGENT TASK"),
        *(
            Opening(f"@{name}", f"{SPAWN} {name} ", "agent", about)
            for name, about in _workers(agents)
        ),
    ]


def mention(name: str, taken: Collection[str]) -> str:
    """What it takes to mention a file or a directory (`name` ends in `/`). `taken` means something
    else where it would stand; and what ends in a full stop is not to end a sentence."""
    text = f"@{name}"
    if re.search(r"\s|[^\w/]\Z", name) or name.startswith(SYMBOL) or text in taken:
        return f'@"{name}' if name.endswith("/") else f'@"{name}"'
    return text


def spawned(text: str) -> Task | None:
    """Returns the task that a prompt gives an agent, and None when it gives none. Raises
    InvalidRequest when a part is missing."""
    found = _SPAWN.match(text)
    if found is None:
        return None
    if not found[3].strip():
        raise InvalidRequest(f"Name the agent and the task: {SPAWN} AGENT TASK.")
    return Task(found[1], found[3], found[2] is not None)


def _workers(agents: Agents) -> Sequence[tuple[str, str]]:
    """Those that take tasks of others, and what they are for."""
    fit = (one for one in agents.values() if one.mode != "primary" and not one.hidden)
    return [(one.name, one.description) for one in fit]
