"""`OsSandbox` is this machine's sandbox: bubblewrap with what the settings of a root ask for."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path

from magy_server.core.errors import ToolError
from magy_server.core.sandbox import Bare, Launch, Prepared, stricter
from magy_server.core.settings import SandboxSettings
from magy_server.core.values import Confinement, SandboxLevel
from magy_server.sandbox import World


class OsSandbox:
    """`settings` are those of a workspace root, `world` what holds for all; `temporary` makes a
    directory for as long as this is open. All methods are to be called on the loop."""

    def __init__(
        self,
        settings: Callable[[str], SandboxSettings],
        world: World,
        temporary: Callable[[], AbstractAsyncContextManager[str]],
    ) -> None:
        self._settings = settings
        self._world = world
        self._temporary = temporary
        self._closing = AsyncExitStack()
        self._directories: dict[str, asyncio.Task[str]] = {}
        self._probed: asyncio.Task[str] | None = None

    async def close(self) -> None:
        await self._closing.aclose()

    async def confinement(
        self, root: str, at_least: SandboxLevel = "off", *, network: bool = True
    ) -> Confinement | None:
        asked = self._settings(root)
        level = stricter(asked.level, at_least)
        if level == "off":
            return None
        missing = await self.missing()
        if level == "standard" and missing:
            return Confinement(level=level, missing=missing)
        if level == "standard" and network:
            return Confinement(level=level)
        if level == "strict" and network and asked.hosts:
            return Confinement(level=level, network="listed", missing=missing)
        answers = level == "standard" and asked.allow_sandboxed
        return Confinement(level=level, network="none", missing=missing, answers=answers)

    async def prepare(self, launch: Launch) -> Prepared:
        confined = await self.confinement(launch.root, launch.at_least, network=launch.network)
        if confined is None:
            return Bare(launch.argv, launch.env)
        if confined.missing:
            if confined.level == "standard" and launch.network:
                return Bare(launch.argv, launch.env)
            raise ToolError(
                f"It was not started: it must run in the {confined.level} sandbox, and "
                f"{confined.missing}. Tell the user; `magy doctor` says more."
            )
        if os.path.realpath(launch.root) != launch.root:
            raise ToolError(
                f"It was not started: {launch.root} is not the directory any more that it was; "
                "something put a link in its place. Tell the user."
            )
        from magy_server.sandbox.confined import confine

        own = await self._directory(launch.root)
        return confine(launch, confined, self._settings(launch.root), self._world, own)

    async def _directory(self, root: str) -> str:
        """The directories for temporary files that all programs of one root share."""
        made = self._directories.get(root)
        if made is None or (made.done() and not os.path.isdir(made.result())):
            made = self._directories[root] = asyncio.create_task(self._new_directory())
        return await asyncio.shield(made)

    async def _new_directory(self) -> str:
        own = await self._closing.enter_async_context(self._temporary())
        for name in ("tmp", "var-tmp"):
            os.mkdir(os.path.join(own, name), 0o700)
        Path(own, "empty").touch()
        return own

    async def missing(self) -> str:
        """Why no sandbox can be made on this machine; "" if one can. Tried once."""
        if self._probed is None:
            from magy_server.sandbox.bubblewrap import missing

            self._probed = asyncio.create_task(missing())
        return await asyncio.shield(self._probed)
