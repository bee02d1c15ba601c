"""A `Connection` is one MCP server for one workspace root: connected when it is first needed, and
again, when it was lost and is needed once more. One task owns it from beginning to end."""

from __future__ import annotations

import asyncio
import importlib
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from magy_server.core.errors import ToolError
from magy_server.core.events import Answered
from magy_server.core.mcp.server_settings import McpServer, hidden
from magy_server.core.mcp.status import Condition, ServerStatus
from magy_server.core.piped_programs import Programs
from magy_server.core.text.secrets import Secrets
from magy_server.core.values import Form
from magy_server.mcp.kept_logins import Kept
from magy_server.mcp.offers import (
    Answer,
    Ask,
    Link,
    LinkError,
    Notices,
    OfferedTool,
    Progress,
    Reach,
)
from magy_server.mcp.server_log import CONNECTED, NOT_CONNECTED
from magy_server.mcp.tool_making import Made, Picture, make_tools

SLOWEST = 60.0
"""The most seconds between two attempts."""
AGAIN = 1.0
"""Seconds between two lists of tools. Where each is changed at once, they become twice as many each
time, up to `SLOWEST`."""
BRIEFLY = 10.0
"""Seconds that somebody waits who writes a prompt."""
ANSWERS = 5.0
"""Seconds in which a server that let a call time out must name its tools, else it hangs."""
T = TypeVar("T")
OpenLink = Callable[[Notices], AbstractAsyncContextManager[Link]]


class Connection:
    """`tools` are those that the server has, by Magy's names; those of a lost server stay until it
    cannot be connected to again."""

    def __init__(
        self,
        name: str,
        server: McpServer,
        opened: OpenLink,
        log: Callable[[str], None],
        picture: Picture,
    ) -> None:
        self.name = name
        self.server = server
        self.tools: Mapping[str, Made] = {}
        self.condition: Condition = "idle"
        self.problem = ""
        """Why it failed, in a sentence."""
        self.about = ""
        self.began = 0.0
        """When the attempt under way, or the last one, began; monotonic seconds."""
        self._opened = opened
        self.clean = Secrets(hidden(server)).clean
        """Takes out of a text what the server was given and nothing may show."""
        self._log: Callable[[str], None] = lambda text: log(self.clean(text))
        self._picture = picture
        self._link: Link | None = None
        self._wanted = asyncio.Event()
        self._moved = asyncio.Event()
        self._stale = asyncio.Event()
        self._lost = asyncio.Event()
        self._failures = 0
        self._answered = False
        """Whether the attempt under way has led to a connection."""

    @property
    def status(self) -> ServerStatus:
        tools = [(name, made.offered.description) for name, made in self.tools.items()]
        return ServerStatus(
            name=self.name,
            starts=self.server.starts,
            condition=self.condition,
            about=self.about,
            problem=self.problem,
            tools=tuple(tools),
        )

    def want(self) -> None:
        """It shall be connected, now or as soon as an earlier failure allows."""
        if self._link is None:
            self._wanted.set()

    async def settled(self, until: float) -> None:
        """Wants it, and waits until it is connected or cannot be, but no longer than `until`
        (monotonic seconds)."""
        self.want()
        try:
            async with asyncio.timeout_at(_loop_time(until)):
                while self.condition in ("idle", "connecting"):
                    await self._change()
                    self.want()
        except TimeoutError:
            return

    async def link(self) -> Link:
        """The open connection. Raises ToolError: there is none, and why."""
        before = self._failures
        if self._link is None:
            await sdk()  # what it takes to import that is no fault of the server
        until = time.monotonic() + self.server.start_timeout
        while self._link is None:
            self.want()
            if self._failures > before or time.monotonic() >= until or self._is_resting():
                raise ToolError(self.unreachable())
            try:
                async with asyncio.timeout_at(_loop_time(until)):
                    await self._change()
            except TimeoutError:
                continue
        return self._link

    def unreachable(self) -> str:
        why = self.problem or f"it has not answered within {self.server.start_timeout:g} seconds"
        return f"The MCP server {self.name!r} cannot be reached: {why}."

    async def call(
        self, tool: str, arguments: Mapping[str, Any], progress: Progress, ask: Ask
    ) -> Answer:
        """Raises ToolError. A call that shows progress may take any time, and so may a person who
        is asked something."""
        link, seconds = await self.link(), self.server.call_timeout
        try:
            async with asyncio.timeout(seconds) as limit:

                async def heard(done: float, total: float | None, message: str) -> None:
                    limit.reschedule(asyncio.get_running_loop().time() + seconds)
                    await progress(done, total, self.clean(message))

                async def asked(form: Form) -> Answered | None:
                    limit.reschedule(None)
                    said = await ask(form.model_copy(update={"message": self.clean(form.message)}))
                    with suppress(RuntimeError):  # the call is over
                        limit.reschedule(asyncio.get_running_loop().time() + seconds)
                    return said

                answer = await link.call(tool, arguments, heard, asked)
                return replace(answer, text=self.clean(answer.text))
        except TimeoutError:
            await self._check(link)
            raise ToolError(
                f"The MCP server {self.name!r} did not answer within {seconds:g} seconds. It is "
                "unknown whether the call took effect."
            ) from None
        except LinkError as error:
            said = self.clean(error.message)
            if not error.over:
                raise ToolError(f"The MCP server {self.name!r}: {said}.") from None
            self._give_up(link)
            raise ToolError(
                f"The MCP server {self.name!r} was lost during the call: {said}. It is "
                "unknown whether the call took effect: check before you do it again."
            ) from None

    async def asked(self, what: Callable[[Link], Awaitable[T]]) -> T:
        """Asks it for something that somebody waits for who writes a prompt. Raises ToolError."""
        try:
            async with asyncio.timeout(BRIEFLY):
                return await what(await self.link())
        except TimeoutError:
            raise ToolError(
                f"The MCP server {self.name!r} did not answer within {BRIEFLY:g} seconds."
            ) from None
        except LinkError as error:
            said = self.clean(error.message)
            raise ToolError(f"The MCP server {self.name!r}: {said}.") from None

    async def _check(self, link: Link) -> None:
        """Ends a server that answers nothing any more; it is started again when it is needed."""
        try:
            async with asyncio.timeout(ANSWERS):
                self._offers(await link.tools())
        except (TimeoutError, LinkError):
            self._log("it does not answer any more, and is ended")
            self._give_up(link)

    def _give_up(self, link: Link) -> None:
        """Nobody uses this connection any more, and its owner closes it."""
        if self._link is link:
            self._link, self.condition = None, "idle"
            self._lost.set()

    def _offers(self, offered: Iterable[OfferedTool]) -> None:
        self.tools = make_tools(self, offered, self.tools, self._picture)

    # --- the owner ------------------------------------------------------------------------------

    async def run(self) -> None:
        """Never returns; it is cancelled at the end, and closes the connection then."""
        while True:
            await self._wanted.wait()
            if self._failures:
                await asyncio.sleep(self._rest())
            problem = await self._supervised()
            if (me := asyncio.current_task()) and me.cancelling():
                # What closes a connection may fail of it, and so hide that this is the end.
                raise asyncio.CancelledError
            self._wanted.clear()
            self._link = None
            self.condition, self.problem = ("failed", problem) if problem else ("idle", "")
            self._failures = self._failures + 1 if problem else 0
            self._log(f"{NOT_CONNECTED}{problem}" if problem else "disconnected")
            self._turn()

    async def _supervised(self) -> str:
        """One connection, until it is over. Returns what was wrong; "" when it was connected."""
        self.condition, self.began = "connecting", time.monotonic()
        self._answered = False
        self._stale.clear()
        self._lost.clear()
        self._turn()
        try:
            return await self._connected()
        except TimeoutError:
            problem = f"it has not answered within {self.server.start_timeout:g} seconds"
        except Exception as error:
            module = await sdk()
            problem = self.clean(module.said(error))
        if self._answered:
            self._log(problem)
            return ""
        self._offers(())
        return problem

    async def _connected(self) -> str:
        await sdk()  # what follows imports it
        notices = Notices(self._log, self._stale.set)
        seconds = self.server.start_timeout
        async with asyncio.timeout(seconds) as limit, self._opened(notices) as link:
            offered = await link.tools()
            limit.reschedule(None)
            self._offers(offered)
            self._link, self.about = link, link.about
            self.condition, self.problem = "ready", ""
            self._answered, self._failures = True, 0
            self._log(f"{CONNECTED}{link.about}: {len(offered)} tools")
            self._turn()
            self._log(await self._over(link))
            self._give_up(link)
        return ""

    async def _over(self, link: Link) -> str:
        """Keeps the list of tools as it is there, until the connection is lost, and returns why
        it is."""
        lost = asyncio.create_task(link.lost())
        ends = (lost, asyncio.create_task(self._lost.wait()))
        others = [asyncio.create_task(work) for work in (self._keep_listed(link), link.follow())]
        try:
            await asyncio.wait([others[0], *ends], return_when=asyncio.FIRST_COMPLETED)
            return lost.result() if lost.done() else "it is given up"
        finally:
            for task in (*others, *ends):
                task.cancel()
            await asyncio.gather(*others, *ends, return_exceptions=True)

    async def _keep_listed(self, link: Link) -> None:
        pause = AGAIN
        while True:
            await self._stale.wait()
            self._stale.clear()
            async with asyncio.timeout(self.server.start_timeout):
                self._offers(await link.tools())
            await asyncio.sleep(pause)
            pause = min(SLOWEST, 2 * pause) if self._stale.is_set() else AGAIN

    # --- waiting --------------------------------------------------------------------------------

    def _rest(self) -> float:
        """Seconds until it may be tried again."""
        pause = min(SLOWEST, 2.0 ** (self._failures - 1))
        return max(0.0, self.began + pause - time.monotonic())

    def _is_resting(self) -> bool:
        return self.condition == "failed" and self._rest() > self.server.start_timeout

    def _turn(self) -> None:
        """Wakes all who wait for a change."""
        self._moved.set()
        self._moved = asyncio.Event()

    def _change(self) -> Awaitable[bool]:
        return self._moved.wait()


def opening(
    name: str,
    server: McpServer,
    root: str | None,
    scratch: Callable[[], str],
    programs: Programs,
    login: Kept,
) -> OpenLink:
    """Returns how a server is connected to for the sessions of a workspace root; those of None work
    in `scratch`."""
    place = root or scratch()
    reach = Reach(
        argv=[server.command, *server.args] if server.command else (),
        directory=os.path.normpath(os.path.join(place, os.path.expanduser(server.cwd))),
        env=server.env,
        url=server.url,
        headers=server.headers,
        login=login,
        root=root,
        place=place,
    )
    return partial(_linked, name, reach, programs)


def _linked(
    name: str, reach: Reach, programs: Programs, notices: Notices
) -> AbstractAsyncContextManager[Link]:
    """The SDK is in memory by then: the connection has seen to it."""
    from magy_server.mcp.sdk_link import linked

    return linked(name, reach, programs, notices)


async def sdk() -> Any:
    """The module that knows the SDK: it takes long to import."""
    return await asyncio.to_thread(importlib.import_module, "magy_server.mcp.sdk_link")


def _loop_time(monotonic: float) -> float:
    return asyncio.get_running_loop().time() + monotonic - time.monotonic()
