"""Of what a project says about the sandbox, only what makes it stricter holds, trusted or not: an
agent may write the file that says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from magy_server.core.sandbox import stricter
from magy_server.core.settings import SandboxSettings


def narrowed(held: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the `[sandbox]` table that a project changes. `held`: as the user has it."""
    now, wanted = SandboxSettings.model_validate(held), SandboxSettings.model_validate(asked)
    found: dict[str, Any] = {}
    if (level := stricter(now.level, wanted.level)) != now.level:
        found["level"] = level
    if more := [path for path in wanted.hidden if path not in now.hidden]:
        found["hidden"] = [*now.hidden, *more]
    if now.allow_sandboxed and asked.get("allow_sandboxed") is False:
        found["allow_sandboxed"] = False
    lower: dict[str, int] = {}
    for name, cap in asked.get("limits", {}).items():
        have = getattr(now.limits, name)
        if cap and (not have or cap < have):
            lower[name] = cap
    if lower:
        found["limits"] = {**now.limits.model_dump(), **lower}
    return found


def widening(asked: Mapping[str, Any]) -> list[str]:
    """The keys that only the user's own settings can give a value to."""
    return [
        name
        for name, value in asked.items()
        if name in ("hosts", "writable", "shown") or (name == "allow_sandboxed" and value)
    ]
