"""What a login to an MCP server gave is kept in a file that only its owner can read."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import Protocol


class Kept(Protocol):
    """The place of one text. All block."""

    def read(self) -> str:
        """Returns it; "" if there is none."""

    def write(self, text: str) -> None: ...

    def remove(self) -> bool:
        """Returns whether there was anything."""


class KeptInMemory:
    """For a login that is under way."""

    def __init__(self) -> None:
        self._text = ""

    def read(self) -> str:
        return self._text

    def write(self, text: str) -> None:
        self._text = text

    def remove(self) -> bool:
        there, self._text = bool(self._text), ""
        return there


class KeptInFile:
    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> str:
        try:
            return self._path.read_text("utf-8")
        except FileNotFoundError:
            return ""

    def write(self, text: str) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = self._path.with_suffix(f".{os.getpid()}")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(new, self._path)

    def remove(self) -> bool:
        with suppress(FileNotFoundError):
            self._path.unlink()
            return True
        return False


def kept(state: Path, server: str, url: str) -> Kept:
    """Returns where the login to a server is kept: one of the same name at another address is
    another server."""
    name = f"{server}-{hashlib.sha256(url.encode()).hexdigest()[:12]}"
    return KeptInFile(state / "mcp" / "logins" / f"{name}.json")
