"""These settings limit child agents: the `[spawn]` table of `magy.toml`, brought into its
ranges."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from magy_server.core.values import Value


class SpawnSettings(Value):
    """Limits of child agents. Magy clamps a value that is out of range, and says so."""

    max_depth: int = Field(
        default=2, description="The most levels of children below a session: 1 to 3."
    )
    max_children: int = Field(
        default=4, description="The most open children of one session: 1 to 4."
    )
    max_total: int = Field(
        default=24, description="The most working children in one process: 1 to 256."
    )
    max_concurrent: int = Field(
        default=8,
        description="The most turns of children that run at once; the others wait: 1 to 10.",
    )
    max_queue: int = Field(
        default=200, description="The most children that may wait for a turn: 1 to 200."
    )
    wait_timeout: float = Field(
        default=300.0,
        description="Seconds that `wait_agent` waits by default: 1 to 86,400.",
    )

    @property
    def held(self) -> SpawnSettings:
        """Returns the settings with each value in its range."""
        return clamped(self)[0]


RANGES: Mapping[str, tuple[float, float]] = {
    "max_depth": (1, 3),
    "max_children": (1, 4),
    "max_total": (1, 256),
    "max_concurrent": (1, 10),
    "max_queue": (1, 200),
    "wait_timeout": (1.0, 86_400.0),
}
"""What holds on any machine, whatever is asked for (C049 to C054)."""


def clamped(asked: SpawnSettings) -> tuple[SpawnSettings, tuple[str, ...]]:
    """Returns the settings that hold, and a sentence for each that differs from what was asked."""
    held, said = {}, []
    for name, (low, high) in RANGES.items():
        value = getattr(asked, name)
        held[name] = min(max(low, value), high)
        if held[name] != value:
            said.append(
                f"spawn.{name}: {_short(value)} becomes {held[name]:g} ({low:g} to {high:g})."
            )
    return asked.model_copy(update=held), tuple(said)


def _short(value: float) -> str:
    """Whole numbers of any length, which a float may not hold."""
    said = f"{value:.15g}" if isinstance(value, float) else str(value)
    return said if len(said) <= 20 else f"{said[:20]}…"
