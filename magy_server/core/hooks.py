"""A hook is a command of the user's that is run at a named moment and told of it as JSON. What it
says before a call is a fact for the one decision. Pure.

Names of moments, and the shapes of input and output, are those of Claude Code's hooks, so that one
script serves both (`docs/howto/hooks.md` says what differs).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, Literal

from magy_server.core.skills.foreign_names import THEIRS
from magy_server.core.values import Action, HookSaid
from magy_server.dataclass import dataclass

HookEvent = Literal[
    "PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart", "Stop", "SubagentStop",
    "PostCompact", "Notification",
]  # fmt: skip
BLOCKS = 2
"""The exit code by which a hook refuses a call; what it wrote to standard error is the reason."""
_ANSWERS: Mapping[object, Action] = {
    "allow": "allow", "ask": "ask", "deny": "deny", "approve": "allow", "block": "deny",
}  # fmt: skip

_STRICTEST: tuple[Action, ...] = ("deny", "ask", "allow")
_DECIDES = ("permissionDecision", "decision")
_REASONS = ("permissionDecisionReason", "reason", "stopReason")


@dataclass(frozen=True, slots=True)
class Hook:
    """`match`: which tools it is for; "" or "*" for all. `timeout` is in seconds. `where` names the
    file that it stands in. `foreign`: it was written for Claude Code, whose names of tools it is
    told, and whose rule holds that a hook which fails has no say."""

    event: HookEvent
    match: str
    command: str
    timeout: float
    name: str
    where: str
    foreign: bool = False

    def is_for(self, tool: str, key: str) -> bool:
        """Takes the name of a tool and its permission key."""
        if self.match in ("", "*"):
            return True
        if not self.foreign:
            one_of = [part.strip() for part in self.match.split("|")]
            return any(fnmatchcase(name, part) for part in one_of for name in (tool, key))
        try:
            return re.fullmatch(self.match, told_name(tool)) is not None
        except re.error:
            return self.match == told_name(tool)

    def told(self, input: Mapping[str, Any]) -> bytes:
        """Returns the input for this hook as JSON."""
        tool = input.get("tool_name")
        if self.foreign and tool:
            input = {**input, "tool_name": told_name(tool)}
        return json.dumps(input).encode()


def told_name(tool: str) -> str:
    """Returns the tool's name in Claude Code, or its own."""
    return THEIRS.get(tool, tool)


def said(hook: Hook, code: int, output: str, errors: str) -> HookSaid | None:
    """Returns what a hook says of a call with its exit code and what it wrote; None: it has no
    opinion. One of ours that fails has the person asked: a guard that broke has not agreed."""
    if code == BLOCKS:
        return HookSaid(hook=hook.name, action="deny", reason=errors.strip() or "it gave no reason")
    if code != 0:
        return failed(hook, f"it ended with code {code}: {errors.strip()[-200:]}".rstrip(": "))
    text = output.strip().removeprefix("\ufeff")
    begins = re.search(r"^[{\[]", text, re.MULTILINE)  # programs say other things before it
    if begins is None:
        return None
    try:
        answer = json.loads(text[begins.start() :])
    except (ValueError, RecursionError):
        return failed(hook, f"what it wrote is no JSON: {text[:100]!r}")
    if not isinstance(answer, dict):
        return failed(hook, f"what it wrote is no object: {text[:100]!r}")
    return _answered(hook, answer)


def _answered(hook: Hook, answer: Mapping[str, Any]) -> HookSaid | None:
    """The strictest of what an answer decides, which may stand in several places."""
    inner = answer.get("hookSpecificOutput")
    inner = inner if isinstance(inner, dict) else {}
    wanted = [one[key] for one in (inner, answer) for key in _DECIDES if one.get(key) is not None]
    if answer.get("continue") is False:
        wanted.append("deny")
    actions = [_ANSWERS.get(one) if isinstance(one, str) else None for one in wanted]
    if None in actions:
        other = wanted[actions.index(None)]
        return failed(hook, f"it decided {other!r}, which is not allow, ask or deny")
    action = next((one for one in _STRICTEST if one in actions), None)
    if action is None:
        return None
    reasons = [one.get(key) for one in (inner, answer) for key in _REASONS]
    reason = next((str(one) for one in reasons if one), "it gave no reason")
    return HookSaid(hook=hook.name, action=action, reason=reason)


def failed(hook: Hook, why: str) -> HookSaid | None:
    if hook.foreign:
        return None
    return HookSaid(hook=hook.name, action="ask", reason=f"it failed: {why}")
