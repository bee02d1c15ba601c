"""This module limits what a sandboxed program takes: the kernel limits each process, and a watchman
all of them together.

The kernel's own limits are of single processes; that on their number does not hold for root, and
those on memory count what a program only reserves (a sanitizer, terabytes). So the processes of a
sandbox are counted, and when there are too many, or they have too much memory together, the sandbox
ends with all that is in it. Until then the kernel, if memory runs out, ends these before others.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress

from magy_server.core.settings import SandboxLimits

EVERY = 0.2
"""Seconds between two looks."""
_ANEW = 16
"""After so many looks all processes of the machine are looked at, not only new ones."""
_PAGE = os.sysconf("SC_PAGE_SIZE")

_LAST = """\
exec 3>&2 2>/dev/null
"$@" 2>&3 3>&-; code=$?
for i in 1 2 3 4 5 6 7 8 9 10; do set -- /proc/[0-9]*; [ $# -le 2 ] && exit $code; sleep 0.05; done
[ $# -le 2 ] || echo "[Ended with the command: $(($# - 2)) of the processes that it started.]" >&3
exit $code
"""
"""What runs in a sandbox as its first process: the program, then a moment for what it left running,
a filter that still writes its last lines, say. Then the sandbox ends, and all in it. A polite
signal to end is for the program: this waits for it."""


def first(limits: SandboxLimits) -> list[str]:
    """The argv before that of the program. The limits are set inside, since the kernel counts the
    processes of a user namespace apart from those outside."""
    blocks = limits.file_mb * 2048
    asked = [
        "echo 1000 >/proc/self/oom_score_adj",
        f"ulimit -t {limits.cpu_seconds}" if limits.cpu_seconds else "",
        f"ulimit -f {blocks}" if blocks else "",
        # dash says -p, bash -u
        f"ulimit -u {limits.processes} || ulimit -p {limits.processes}" if limits.processes else "",
    ]
    set_ = "".join(f"{{ {one}; }} 2>/dev/null\n" for one in asked if one)
    return ["/bin/sh", "-c", f"{set_}trap : TERM INT HUP\n{_LAST}", "sh"]


class Watchman:
    """Ends the sandbox whose outermost process is `pid` when it takes too much."""

    def __init__(self, pid: int, limits: SandboxLimits) -> None:
        self.why = ""
        self._pid = pid
        self._limits = limits
        self._members = {pid}
        self._others: set[int] = set()
        self._task = asyncio.create_task(self._watch())

    async def close(self) -> str:
        """Returns why it ended the sandbox; "" if it did not."""
        self._task.cancel()
        await asyncio.wait([self._task])
        return self.why

    async def _watch(self) -> None:
        looks = 0
        while not self.why:
            await asyncio.sleep(EVERY)
            if looks % _ANEW == 0:
                self._others.clear()  # ids are given again
            looks += 1
            self.why = self._look()
        self._end()

    def _look(self) -> str:
        limits = self._limits
        self._find()
        if limits.processes and len(self._members) - 3 > limits.processes:
            return f"it had more than {limits.processes} processes (sandbox.limits.processes)"
        if limits.memory_mb:
            taken = sum(map(_memory, list(self._members)))
            if taken > limits.memory_mb << 20:
                return (
                    f"it took more than {limits.memory_mb} MB of memory (sandbox.limits.memory_mb)"
                )
        return ""

    def _find(self) -> None:
        there = {int(name) for name in os.listdir("/proc") if name.isdigit()}
        self._members &= there
        parents = {pid: _parent(pid) for pid in sorted(there - self._members - self._others)}
        more = {0}
        while more:
            more = {pid for pid, above in parents.items() if above in self._members}
            self._members |= more
            for pid in more:
                del parents[pid]
        self._others = (self._others & there) | set(parents)

    def _end(self) -> None:
        """Its outermost process takes all others with it."""
        with suppress(ProcessLookupError, PermissionError):
            os.kill(self._pid, signal.SIGKILL)


def _parent(pid: int) -> int:
    """0: it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def _memory(pid: int) -> int:
    """Bytes that are its own."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            words = file.read().split()
            return (int(words[1]) - int(words[2])) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0
