"""Disks that take no more, and take it again later."""

from __future__ import annotations

import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def small_disk(path: Path) -> Iterator[bool]:
    """A file system of 2 MiB at `path`; False where this user may not mount one."""
    path.mkdir()
    options = ["-t", "tmpfs", "-o", "size=2m,mode=700", "none", str(path)]
    mount = shutil.which("mount")
    mounted = mount and subprocess.run([mount, *options], capture_output=True).returncode == 0
    try:
        yield bool(mounted)
    finally:
        if mounted:
            subprocess.run(["umount", str(path)], check=True)


@contextmanager
def filled(directory: Path) -> Iterator[None]:
    """The file system has no space left (ENOSPC)."""
    filler = directory / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"\0" * 4096)
    yield
    filler.unlink()


@contextmanager
def limited(pid: int) -> Iterator[None]:
    """No file that this process writes may be longer than a page: the kernel's own limit (EFBIG),
    where there is no small disk. (Linux)"""
    soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, hard))
    yield
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))
