"""How long an event loop stood still."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

_STATISTICS = Path("/proc/thread-self/schedstat")


async def worst_stall(seconds: float) -> float:
    """The longest time in seconds that the loop did not run, measured while it waits. The time in
    which other processes had the processors is not the loop's."""
    worst, end = 0.0, time.monotonic() + seconds
    while (before := time.monotonic()) < end:
        others = _others()
        await asyncio.sleep(0.01)
        worst = max(worst, time.monotonic() - before - (_others() - others))
    return worst


def _others() -> float:
    """Seconds that this thread has waited for a processor; none where the system does not say."""
    if not _STATISTICS.exists():
        return 0.0
    return int(_STATISTICS.read_text().split()[1]) / 1e9
