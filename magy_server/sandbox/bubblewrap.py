"""This module finds bubblewrap, tries whether it makes a sandbox, and writes its command line."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Iterator, Sequence

from magy_server.dataclass import dataclass
from magy_server.sandbox.mounts import Mount

_PATIENCE = 10.0

_NAMESPACES = (
    "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
)  # fmt: skip
"""Of its own, besides that of mounts. Root, too, gets a user namespace: without one it would keep
what it may do to the machine."""
_PLACES = (
    "/usr/bin/bwrap",
    "/bin/bwrap",
    "/usr/local/bin/bwrap",
    "/run/current-system/sw/bin/bwrap",
)


_KERNEL = ("sys", "sysrq-trigger", "fs", "acpi", "scsi", "mtrr")
"""Below /proc. These are about the whole machine, and root writes there without any capability.
bubblewrap protects only what it finds writable before it has given up its own."""


def program() -> str:
    """Its path, "" if it is not installed. Where packages put it comes before PATH: a directory
    there may be one that commands write in."""
    for path in _PLACES:
        if os.access(path, os.X_OK):
            return path
    return shutil.which("bwrap") or ""


def line(
    bwrap: str, mounts: Sequence[Mount], cwd: str, empty: str, *, network: bool, seccomp: int = -1
) -> list[str]:
    """The argv up to the program. `empty` is an empty file; `seccomp` a descriptor to read the
    filter from, if there is one."""
    return [
        bwrap, *_NAMESPACES, *([] if network else ["--unshare-net"]),
        "--die-with-parent", "--cap-drop", "ALL",
        "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
        *(word for name in _KERNEL for word in ("--ro-bind-try", f"/proc/{name}", f"/proc/{name}")),
        *_mounted(mounts, empty),
        *(["--seccomp", str(seccomp)] if seccomp >= 0 else []),
        "--chdir", cwd, "--",
    ]  # fmt: skip


def _mounted(mounts: Sequence[Mount], empty: str) -> Iterator[str]:
    for mount in mounts:
        match mount.kind:
            case "hidden":
                yield from ("--perms", "0755", "--tmpfs", mount.path)
            case "write":
                yield from ("--bind", mount.source or mount.path, mount.path)
            case "read":
                yield from ("--ro-bind", mount.source or mount.path, mount.path)
            case "empty":
                yield from ("--ro-bind", empty, mount.path)
    for mount in mounts:
        if mount.kind == "hidden":
            yield from ("--remount-ro", mount.path)


@dataclass(frozen=True, slots=True)
class _Tried:
    code: int | None
    said: str


async def missing() -> str:
    """Why no sandbox can be made on this machine, as a part of a sentence; "" if one can."""
    if sys.platform != "linux":
        return f"there is no sandbox for {sys.platform} yet"
    path = program()
    if not path:
        return "bubblewrap is not installed"
    tried = await _run([*line(path, [], "/", "", network=False), "/bin/sh", "-c", "exit 0"])
    if tried.code == 0:
        return ""
    why = tried.said.splitlines()[-1] if tried.said else f"exit code {tried.code}"
    return f"bubblewrap cannot make one here ({why})"


async def _run(argv: Sequence[str]) -> _Tried:
    try:
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT, env={"PATH": os.defpath},
        )  # fmt: skip
    except OSError as error:
        return _Tried(None, str(error))
    try:
        async with asyncio.timeout(_PATIENCE):
            said, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return _Tried(None, f"it did not end within {_PATIENCE:g} s")
    return _Tried(process.returncode, said.decode("utf-8", "replace").strip())
