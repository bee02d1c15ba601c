"""The `[spawn]` settings as limits: clamped to what holds on any machine, whatever is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

from magy_server.config.settings import SpawnSettings
from magy_server.core.agents.child import SpawnLimits, clamped

WAITS = (1.0, 86_400.0)
"""Seconds."""
NAMES = {field.name: f"max_{field.name}" for field in fields(SpawnLimits)}
"""The setting of each limit."""


def wait_timeout(spawn: SpawnSettings) -> float:
    """Seconds."""
    low, high = WAITS
    return min(max(low, spawn.wait_timeout), high)


def limits(asked: Iterable[SpawnSettings]) -> SpawnLimits:
    """Those of one process that works for projects which ask for these: the lowest of each, not yet
    clamped."""
    all_asked = [_limits(one) for one in asked] or [SpawnLimits()]
    return SpawnLimits(**{name: min(getattr(one, name) for one in all_asked) for name in NAMES})


def held(spawn: SpawnSettings) -> SpawnSettings:
    """With the values that hold."""
    found, _ = clamped(_limits(spawn))
    values = {name: getattr(found, field) for field, name in NAMES.items()}
    return spawn.model_copy(update={**values, "wait_timeout": wait_timeout(spawn)})


def remarks(spawn: SpawnSettings) -> tuple[str, ...]:
    """A sentence for each value that does not hold as it is."""
    _, said = clamped(_limits(spawn))
    timeout = wait_timeout(spawn)
    if timeout == spawn.wait_timeout:
        return said
    low, high = WAITS
    what = f"spawn.wait_timeout: {spawn.wait_timeout:g} becomes {timeout:g} ({low:g} to {high:g})."
    return (*said, what)


def _limits(spawn: SpawnSettings) -> SpawnLimits:
    return SpawnLimits(**{field: getattr(spawn, name) for field, name in NAMES.items()})
