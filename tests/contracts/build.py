"""Events and blobs to fill logs with."""

from __future__ import annotations

import hashlib

from magy_server.core.events import Finished, Opened, Prompted
from magy_server.core.values import Text


def opened(root: str | None = "/proj") -> Opened:
    return Opened(root=root, cwd="/proj", agent="build", model="fake/one")


def said(text: str) -> Prompted:
    return Prompted(id=text, content=(Text(text=text),))


def finished(output: str) -> Finished:
    """The end of a call whose output is a blob."""
    return Finished(call="1.0", status="completed", for_model="...", output=hash_of(output))


def hash_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def blob(text: str) -> dict[str, bytes]:
    return {hash_of(text): text.encode()}
