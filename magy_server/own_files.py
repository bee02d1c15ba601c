"""Magy's own files may be replaced while it runs, by an update: what it then imports is of another
version, and fails in ways that nobody can read."""

from __future__ import annotations

import os

import magy_server


def _stamp() -> tuple[int, int] | None:
    """Of the file that each update replaces."""
    try:
        about = os.stat(magy_server.__file__)
    except OSError:
        return None
    return about.st_ino, about.st_mtime_ns


_AT_START = _stamp()


def advice() -> str:
    """Returns what to do if they were replaced since the start, to be said after an error; else
    ""."""
    return "" if _stamp() == _AT_START else " (Magy was updated while it ran: start it again.)"
