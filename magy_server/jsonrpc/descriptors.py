"""This module takes the process's standard descriptors for a protocol.

After `claim` nothing else can reach the client: file descriptor 1 is the error stream, so that a
stray print, a C library or a child process ends up in the log, and 0 is empty. This module imports
next to nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import threading
import time

PIPE_SIZE = 256 * 1024
"""Bytes the client may be behind before a write is cut in two; the usual 64 KiB is one page of
updates, and half the speed."""


def claim() -> tuple[int, int]:
    """Takes standard input and output for the protocol: the private descriptors, closed on exec.
    The process now lives no longer than the client."""
    stdin = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3)
    stdout = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    try:
        os.fstat(2)
    except OSError:
        os.dup2(null, 2)
    os.dup2(2, 1)
    os.close(null)
    if widen := getattr(fcntl, "F_SETPIPE_SZ", None):  # Linux
        with contextlib.suppress(OSError):  # no pipe, or more than the user may have
            fcntl.fcntl(stdout, widen, PIPE_SIZE)
    end_with_client(stdin)
    return stdin, stdout


def end_with_client(stdin: int, grace: float = 60.0) -> None:
    """Ends the process `grace` seconds after the client has gone, if it has not ended by then in
    the orderly way: something may keep its event loop from ever hearing of it."""
    watched = os.dup(stdin)

    def watch() -> None:
        gone = select.poll()
        gone.register(watched, 0)  # what is told without being asked for: that the other end closed
        if not any(told & (select.POLLHUP | select.POLLERR) for _, told in gone.poll()):
            return  # macOS cannot watch terminals and other devices, and says so at once
        time.sleep(grace)
        os._exit(1)

    threading.Thread(target=watch, name="client gone", daemon=True).start()
