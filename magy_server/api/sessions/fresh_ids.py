"""This module makes ids for new sessions."""

from __future__ import annotations

import secrets
import time

from magy_server.core.agents.tree import stream_of
from magy_server.core.ports import Store

_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base 32 sorts as it counts, and none of its letters looks like a digit."""
_EPOCH = 1_704_067_200
"""The year 2024 begins: six digits of seconds last for 34 years from there."""


def session_id(now: float) -> str:
    """Returns ten characters: the second when it was made, and chance. Such ids sort by time."""
    seconds = max(0, int(now) - _EPOCH)
    stamp = "".join(_DIGITS[seconds >> shift & 31] for shift in range(25, -1, -5))
    return stamp + "".join(secrets.choice(_DIGITS) for _ in range(4))


async def fresh_id(store: Store) -> str:
    while True:
        id = session_id(time.time())
        if not await store.head(stream_of(id)):
            return id
