"""How long a test waits for what must come, and how it need not wait for a limit to pass."""

from __future__ import annotations

import asyncio

PATIENCE = 120.0
"""Seconds. It is generous, since a wait that is met costs nothing, and on a machine that is busy
with other things everything takes a multiple of its usual time."""


def pass_time(seconds: float) -> None:
    """The clock of the running loop goes ahead: what had this long to happen has not happened."""
    loop = asyncio.get_running_loop()
    time = loop.time
    vars(loop)["time"] = lambda: time() + seconds
