"""This module writes log entries as JSON objects, with the blobs that they refer to."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from magy_server.core.events import Entry
from magy_server.core.values import Hash

VERSION = 1
"""The version of the JSON lines."""


def header(session: str) -> dict[str, Any]:
    return {"type": "session", "version": VERSION, "sessionId": session}


def line(entry: Entry, blobs: Mapping[Hash, bytes]) -> dict[str, Any]:
    """Returns the line of an entry, with the blobs that were in no line before. It writes bytes
    that are not UTF-8 as {"base64": ...}."""
    written: dict[str, Any] = {
        "type": "entry", "seq": entry.seq, "at": entry.at,
        "event": entry.event.model_dump(mode="json"),
    }  # fmt: skip
    if blobs:
        written["blobs"] = {hash: _blob(data) for hash, data in blobs.items()}
    return written


def _blob(data: bytes) -> Any:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}
