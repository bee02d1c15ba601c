"""This module notices when the same calls come again and again."""

from __future__ import annotations

import hashlib
import json

from magy_server.core.events import Finished
from magy_server.core.values import Call, Evidence

HISTORY = 30
"""How many finished calls are kept for loop detection: ten rounds of the longest cycle."""
MOMENT = 0.5
"""Seconds. A call that ends sooner has waited for nothing."""
_ENCODE = json.JSONEncoder(sort_keys=True).encode


def signature(call: Call, finished: Finished) -> str:
    """Returns a text that is equal for calls that asked the same and got the same."""
    asked = _ENCODE([call.name, call.arguments, call.invalid])
    text = f"{asked}\0{finished.status}\0{finished.for_model}"
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def waited(started: Evidence | None, finished: Finished) -> bool:
    """Returns whether the call was a wait, and took time. Others worked meanwhile, so the same
    question may get another answer after it: nothing before it counts any more."""
    return bool(started and started.deadline) and finished.duration >= MOMENT


def repeats(history: tuple[str, ...]) -> int:
    """Returns how often the newest calls repeat: one call, or a cycle of two or three (A032)."""
    best = 1 if history else 0
    for period in (1, 2, 3):
        cycle = history[-period:]
        count = 0
        end = len(history)
        while end >= period and history[end - period : end] == cycle:
            count, end = count + 1, end - period
        best = max(best, count)
    return best
