"""Each MCP server has a small log file: what it writes to standard error, what it says of itself,
and how its connections went."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from magy_server.core.text.sanitizing import one_line

LARGEST = 1 << 20
"""Bytes; then the file becomes `NAME.log.1`, and that which was there before goes."""
RATE = 100
"""Lines a second; more are left out, and counted."""
WIDTH = 1_000
"""Characters of a line."""
TAIL = 1 << 16
"""Bytes at the end of a log in which its last word on a connection is looked for."""
CONNECTED = "connected to "
NOT_CONNECTED = "not connected: "


def log_path(state: Path, server: str) -> Path:
    return state / "mcp" / "logs" / f"{server}.log"


def last_failure(path: Path) -> str:
    """Returns why the last attempt to connect failed; "" if it did not, or there was none."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    for line in reversed(lines):
        said = line.partition(" ")[2]
        if said.startswith(CONNECTED):
            return ""
        if said.startswith(NOT_CONNECTED):
            return said.removeprefix(NOT_CONNECTED)
    return ""


class ServerLog:
    """`clean` takes keys out. Lines that cannot be written are lost: a full disk is no reason to
    stop a server."""

    def __init__(self, path: Path, clean: Callable[[str], str] = str) -> None:
        self._path = path
        self._clean = clean
        self._second = 0
        self._count = 0

    def __call__(self, text: str) -> None:
        now = int(time.monotonic())
        if now != self._second:
            left, self._second, self._count = self._count - RATE, now, 0
            if left > 0:
                self._write(f"({left} lines left out)")
        self._count += 1
        if self._count <= RATE:
            self._write(text)

    def _write(self, text: str) -> None:
        stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        line = f"{stamp} {one_line(self._clean(text))[:WIDTH]}\n".encode("utf-8", "replace")
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(fd, line)
                full = os.fstat(fd).st_size > LARGEST
            finally:
                os.close(fd)
            if full:
                os.replace(self._path, f"{self._path}.1")
        except OSError:
            return
