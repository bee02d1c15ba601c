"""Process groups of commands: this module tells who is alive in one, and ends all of it.

Every process of a command carries `MAGY_CALL=<session>:<call>` in its environment, also one that
left the group (setsid, daemons). A dead server's group id may belong to someone else by now, so at
takeover only processes with that mark are touched.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from typing import TYPE_CHECKING

from magy_server.tasks import to_end

if TYPE_CHECKING:
    import psutil

VARIABLE = "MAGY_CALL"
GRACE = 2.0
"""Between the polite signal and the deadly one lie so many seconds."""


def mark(session: str, call: str) -> str:
    """Returns the value of `MAGY_CALL` for the processes of a call."""
    return f"{session}:{call}"


async def end_group(
    group: int | None, marked: str, grace: float = GRACE, *, ours: bool = False
) -> int:
    """Ends every process with the mark: SIGTERM, after `grace` seconds SIGKILL. The answer is how
    many there were; 0 when none was left.

    With `ours`, this process started the group and knows that the id is still its: then its
    members are ended even when they carry no mark (any more). Takes what time it needs, but not
    much more than `grace`; a cancellation is raised afterwards.
    """
    return await to_end(asyncio.to_thread(_end, group if ours else None, marked, grace))


def group_alive(group: int | None, marked: str, *, ours: bool = False) -> bool:
    """Returns whether `end_group` would find anyone. It reads the process table, which takes some
    milliseconds."""
    return bool(_alive(group if ours else None, marked))


def is_empty(group: int) -> bool:
    """A quick look: True means that no process, dead or alive, is in the group."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def empties(group: int, seconds: float) -> bool:
    """Waits so long for the group to become empty; blocks."""
    until = time.monotonic() + seconds
    while not (empty := is_empty(group)) and time.monotonic() < until:
        time.sleep(0.02)
    return empty


def _end(group: int | None, marked: str, grace: float) -> int:
    seen: set[int] = set()
    alive = _signal(group, marked, signal.SIGTERM, seen)
    until = time.monotonic() + grace
    while alive and time.monotonic() < until:
        time.sleep(0.03)
        alive = _alive(group, marked)
    for _ in range(20):  # one may fork while it is being killed
        if not alive:
            break
        _signal(group, marked, signal.SIGKILL, seen)
        time.sleep(0.03)
        alive = _alive(group, marked)
    return len(seen)


def _signal(
    group: int | None, marked: str, number: signal.Signals, seen: set[int]
) -> list[psutil.Process]:
    import psutil

    found = _alive(group, marked)
    for process in found:
        seen.add(process.pid)
        try:
            process.send_signal(number)  # checks that the id was not given to another process
        except psutil.Error:
            continue
    return found


def _alive(group: int | None, marked: str) -> list[psutil.Process]:
    import psutil

    return [process for process in psutil.process_iter() if _belongs(process, group, marked)]


def _belongs(process: psutil.Process, group: int | None, marked: str) -> bool:
    import psutil

    if process.pid == os.getpid():
        return False
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        if group is not None and os.getpgid(process.pid) == group:
            return True
        return process.environ().get(VARIABLE) == marked
    except (psutil.Error, OSError):
        return False  # gone meanwhile, or not ours to look at
