"""What a login to an MCP server gave is kept in a file that only its owner can read."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from pathlib import Path
from typing import Protocol


class Kept(Protocol):
    """The place of one text. All but `alone` block."""

    def read(self) -> str:
        """Returns it; "" if there is none."""

    def write(self, text: str) -> None: ...

    def remove(self) -> bool:
        """Returns whether there was anything."""

    def alone(self) -> AbstractAsyncContextManager[None]:
        """For who changes what is there: no other who asks for this, in any process, is inside at
        the same time. To renew a login twice at once would end it at many servers."""


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

    def alone(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()


class KeptInFile:
    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> str:
        try:
            return self._path.read_text("utf-8")
        except FileNotFoundError:
            return ""

    def write(self, text: str) -> None:
        new = self._path.with_suffix(f".{os.urandom(8).hex()}")
        try:
            with open(self._own(new, os.O_WRONLY | os.O_EXCL), "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(new, self._path)
        except BaseException:
            new.unlink(missing_ok=True)
            raise

    def remove(self) -> bool:
        with suppress(FileNotFoundError):
            self._path.unlink()
            return True
        return False

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        descriptor = self._own(self._path.with_suffix(".lock"), os.O_RDWR)
        try:
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    await asyncio.sleep(0.05)
            yield
        finally:
            os.close(descriptor)

    def _own(self, path: Path, flags: int) -> int:
        """Returns the descriptor of a file beside the login, made if it is not there."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(path, flags | os.O_CREAT | os.O_CLOEXEC, 0o600)


def kept(state: Path, server: str, url: str) -> Kept:
    """Returns where the login to a server is kept: one of the same name at another address is
    another server."""
    name = f"{server}-{hashlib.sha256(url.encode()).hexdigest()[:12]}"
    return KeptInFile(state / "mcp" / "logins" / f"{name}.json")
