"""This module reads the arguments of a call, as a model writes them: one JSON object."""

from __future__ import annotations

from typing import Any

from magy_server.core.text.surrogates import loads

DEEPEST = 100
"""Levels. What is nested twice as deeply can be written to the log, but not read from it again."""


def arguments_in(text: str) -> dict[str, Any] | None:
    """Returns the JSON object in `text`; {} for empty text, None for anything else, and for what is
    nested too deeply."""
    if not text.strip():
        return {}
    try:
        value = loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) and not _is_deep(value) else None


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST):
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return False
    return True
