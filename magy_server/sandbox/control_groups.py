"""This module makes control groups, with which the kernel limits a sandbox as a whole.

That needs a group in which this process may make others: a service or a program of the desktop has
one as a rule (version 2), root as well (version 1 too). Where there is none, other limits hold.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Iterator
from contextlib import suppress

from magy_server.core.settings import SandboxLimits

_ROOT = "/sys/fs/cgroup"
_PREFIX = "magy-sandbox-"
_SWEPT: set[str] = set()


def make(limits: SandboxLimits) -> ControlGroup | None:
    """A group with these limits; None where none can be made."""
    for parent, memory in _parents():
        with suppress(OSError):
            _sweep(parent)
            path = os.path.join(parent, _PREFIX + secrets.token_hex(6))
            os.mkdir(path)
            try:
                # bubblewrap's own two processes, and the one that waits for the program
                _write(path, "pids.max", str(limits.processes + 3) if limits.processes else "max")
                if memory and limits.memory_mb:
                    _write(path, "memory.max", str(limits.memory_mb << 20))
            except OSError:
                os.rmdir(path)
                raise
            return ControlGroup(path)
    return None


class ControlGroup:
    def __init__(self, path: str) -> None:
        self._path = path

    @property
    def argv(self) -> list[str]:
        """What must run before the program, outside of the sandbox: it joins the group."""
        members = os.path.join(self._path, "cgroup.procs")
        return ["/bin/sh", "-c", 'echo $$ >"$0" && exec "$@"', members]

    async def close(self) -> None:
        """Removes it, once the processes that are being killed are gone."""
        for _ in range(50):
            try:
                os.rmdir(self._path)
            except FileNotFoundError:
                return
            except OSError:
                await asyncio.sleep(0.02)
            else:
                return


def _parents() -> Iterator[tuple[str, bool]]:
    """Groups below which there can be others that limit the number of processes; and whether they
    limit memory, too."""
    try:
        with open("/proc/self/cgroup") as file:
            own = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return
    for _, controllers, path in own:
        if "pids" in controllers.split(","):
            yield os.path.join(_ROOT, "pids", path.strip("/")), False
        elif not controllers:
            for group in dict.fromkeys((path, os.path.dirname(path))):
                full = os.path.join(_ROOT, group.strip("/"))
                with suppress(OSError), open(os.path.join(full, "cgroup.subtree_control")) as file:
                    offered = file.read().split()
                    if "pids" in offered:
                        yield full, "memory" in offered


def _sweep(parent: str) -> None:
    """Removes what killed processes left. One with processes in it cannot be removed."""
    if parent in _SWEPT:
        return
    _SWEPT.add(parent)
    for name in os.listdir(parent):
        if name.startswith(_PREFIX):
            with suppress(OSError):
                os.rmdir(os.path.join(parent, name))


def _write(path: str, name: str, value: str) -> None:
    with open(os.path.join(path, name), "w") as file:
        file.write(value)
