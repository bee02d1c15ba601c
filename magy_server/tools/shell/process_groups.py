"""This module tells who is alive in the process group of a command, and ends all of it, also for a
process of Magy that has died.

Every process of a command carries `MAGY_CALL=<session>:<call>` in its environment, also one that
left the group (setsid, daemons). A dead server's group id may belong to someone else by now, so at
takeover only processes with that mark are touched.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import IO, TYPE_CHECKING, BinaryIO

from magy_server.tasks import to_end

if TYPE_CHECKING:
    import psutil

VARIABLE = "MAGY_CALL"
GATE = ("/bin/sh", "-c", 'read -r _ && exec "$@" </dev/null', "sh")
"""The beginning of an argv that waits for a line on its input before it runs the rest."""
GRACE = 2.0
"""Between the polite signal and the deadly one lie so many seconds."""
LEFT = 0.5
"""Seconds that what a command left running gets to come to its own end."""
CHUNK = 1 << 16


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


async def end_left(group: int, marked: str) -> int:
    """Ends what a command of ours that is over left running, `server &` say; the answer is how many
    processes there were. A filter that still writes its last lines gets a moment; daemons that left
    the group on purpose live on."""
    if _is_empty(group) or await asyncio.to_thread(_empties, group):
        return 0
    return await end_group(group, marked, ours=True)


def _is_empty(group: int) -> bool:
    """A quick look: True means that no process, dead or alive, is in the group."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _empties(group: int) -> bool:
    until = time.monotonic() + LEFT
    while not (empty := _is_empty(group)) and time.monotonic() < until:
        time.sleep(0.02)
    return empty


@contextmanager
def given(data: bytes) -> Iterator[BinaryIO | None]:
    """The input of a process, if there is any; no pipe, so that nobody has to write while its
    answer is read."""
    import tempfile  # few processes have any

    with tempfile.TemporaryFile() if data else nullcontext() as file:
        if file is not None:
            file.write(data)
            file.seek(0)
        yield file


async def reading(pipe: IO[bytes]) -> tuple[asyncio.StreamReader, asyncio.BaseTransport]:
    """Returns a reader of the pipe, and its transport, which the caller must close."""
    reader = asyncio.StreamReader(limit=CHUNK)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), pipe
    )
    return reader, transport


async def drained(*pumps: asyncio.Task[None]) -> None:
    """Waits for those that read the pipes of processes which are over, and raises what they did."""
    await asyncio.wait(pumps, timeout=1)  # a daemon may keep a pipe open for good
    for pump in pumps:
        pump.cancel()
    await asyncio.wait(pumps)
    for pump in pumps:
        if not pump.cancelled():
            pump.result()


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
        if number == signal.SIGTERM and _holds_sandbox(process):
            continue
        seen.add(process.pid)
        try:
            process.send_signal(number)  # checks that the id was not given to another process
        except psutil.Error:
            continue
    return found


def _holds_sandbox(process: psutil.Process) -> bool:
    """When this process ends, all in its sandbox is killed. It ends after them by itself."""
    import psutil

    try:
        return process.name() == "bwrap"
    except psutil.Error:
        return False


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
