"""This module finds the hooks of a project: those of the configuration, and those that people have
for Claude Code, in the settings files of that."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from magy_server.core.hooks import Hook, HookEvent
from magy_server.core.settings import Settings
from magy_server.regular_files import beginning

LARGEST = 1 << 20
"""Bytes of a settings file."""
TIMEOUT = 60.0
"""Seconds, where none is said."""
LONGEST = 600.0


PROJECT = (".claude/settings.json", ".claude/settings.local.json")


def files(root: str | None) -> list[str]:
    """Returns the settings files: the user's, then those of a project."""
    personal = os.path.expanduser("~/.claude/settings.json")
    return [personal, *(os.path.join(root, name) for name in PROJECT if root)]


def configured(settings: Settings, trusted: str | None) -> tuple[list[Hook], list[str]]:
    """Returns the hooks, and what is wrong with files that are there: a sentence each. `trusted` is
    the root of a project that is trusted."""
    if not settings.claude_hooks:
        return own(settings), []
    foreign, problems = read(files(trusted))
    return [*own(settings), *foreign], problems


def own(settings: Settings) -> list[Hook]:
    """Returns the hooks of the configuration."""
    return [
        Hook(
            event=one.event, match=one.match, command=one.command, timeout=one.timeout,
            name=one.name or one.command, where="magy.toml",
        )
        for one in settings.hook
    ]  # fmt: skip


def unused(settings: Settings, root: str) -> list[str]:
    """Returns the files with hooks of a project that is not trusted."""
    found = [os.path.join(root, name) for name in PROJECT]
    return list(filter(os.path.lexists, found)) if settings.claude_hooks else []


def read(paths: Sequence[str]) -> tuple[list[Hook], list[str]]:
    """Moments that Magy does not know, and hooks that are no commands, are left out and said."""
    hooks: list[Hook] = []
    problems: list[str] = []
    for path in paths:
        try:
            data = beginning(path, LARGEST)
        except FileNotFoundError:
            continue
        except OSError as error:
            problems.append(f"{path} cannot be read: {error.strerror}.")
            continue
        try:
            if data is None or len(data) > LARGEST:
                raise ValueError("it is no regular file, or too large")
            tree = json.loads(data)
            found = tree.get("hooks") or {}
            hooks += list(_hooks(found, path, problems))
        except (ValueError, RecursionError, AttributeError, TypeError, KeyError) as error:
            problems.append(f"{path}: its hooks are not used: {error}.")
    return hooks, problems


def _hooks(found: Mapping[str, Any], path: str, problems: list[str]) -> Iterator[Hook]:
    known: tuple[HookEvent, ...] = get_args(HookEvent)
    if left_out := sorted(set(found) - set(known)):
        problems.append(f"{path}: Magy has no hooks for {', '.join(left_out)}.")
    for event in known:
        for group in found.get(event) or ():
            for one in group.get("hooks") or ():
                if one.get("type", "command") != "command":
                    problems.append(f"{path}: {event}: Magy runs no hook of type {one['type']!r}.")
                    continue
                command = str(one["command"])
                timeout = one.get("timeout") or TIMEOUT
                if not isinstance(timeout, int | float) or not 0 < timeout < math.inf:
                    problems.append(
                        f"{path}: {event}: the time-out of a hook is a number of seconds above 0, "
                        f"not {timeout!r:.40}; it gets {TIMEOUT:g}."
                    )
                    timeout = TIMEOUT
                yield Hook(
                    event=event, match=str(group.get("matcher") or ""), command=command,
                    timeout=float(min(timeout, LONGEST)), name=command, where=path, foreign=True,
                )  # fmt: skip
