"""A person logs in to an MCP server by OAuth. Registration, PKCE and the check of the state are the
SDK's work; the browser comes back to a port of this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import TracebackType
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client import Client
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.shared.auth import AuthorizationCodeResult
from mcp.shared.exceptions import MCPError

from magy_server.mcp.http_streams import client_for, http_streams
from magy_server.mcp.kept_logins import KeptInMemory
from magy_server.mcp.oauth import Storage, about
from magy_server.mcp.offers import LinkError, Reach
from magy_server.mcp.sdk_link import said

PATIENCE = 300.0
"""Seconds that the person has to log in."""
LONGEST = 100
"""Lines of a request of the browser that are read."""
PARTING = 5.0
"""Seconds in which the last page reaches the browser."""
_DONE = b"You are logged in, and can close this page."
_NOT = b"The login did not work. The terminal says why."
_OTHER = b"This page does not belong to the login that is under way, which waits on."
_WRONG = (LinkError, OAuthFlowError, MCPError, httpx2.HTTPError, OSError, ValueError)
"""What the network, the server and the SDK raise."""


async def log_in(name: str, reach: Reach, show: Callable[[str], None]) -> str:
    """Logs in anew, and returns what the server calls itself. `show` gets the address that a person
    has to open in a browser. An earlier login stays as it is where this one fails. Raises
    LinkError."""
    new = KeptInMemory()
    storage = Storage(new)
    async with _Callback() as callback:

        async def sent(url: str) -> None:
            page = urlsplit(url)
            if page.scheme not in ("http", "https"):
                raise LinkError(f"it sends you to {url[:100]!r}, which is no web page")
            callback.state = parse_qs(page.query)["state"][0]
            show(url)

        provider = OAuthClientProvider(
            reach.url, about(callback.url), storage, sent, callback.result
        )
        loop = asyncio.get_running_loop()
        try:
            async with (
                client_for(name, reach, provider) as http,
                Client(http_streams(reach.url, http, loop.create_future()), cache=None) as client,
            ):
                await client.list_tools()
                info = client.server_info
        except (*_WRONG, ExceptionGroup) as error:
            if not isinstance(found := _first(error), _WRONG):
                raise
            whole = str(found)[:500] if isinstance(found, OAuthFlowError) else said(found)
            raise LinkError(whole) from None
        if not new.read():
            raise LinkError("it asks for no login")
        await storage.set_place(provider.context.oauth_metadata)
        async with reach.login.alone():
            await asyncio.to_thread(reach.login.write, new.read())
    return f"{info.name} {info.version}" if info else name


def _first(error: Exception) -> Exception:
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


class _Callback:
    """The port to which the browser comes back. Every program of this machine can reach it: only
    who knows `state`, which stands in the address that the person opened, decides the login. The
    page says how it went when this is left."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.state = ""
        self._came: asyncio.Future[AuthorizationCodeResult] = loop.create_future()
        self._worked: asyncio.Future[bool] = loop.create_future()
        self._serving: set[asyncio.Task[None] | None] = set()

    async def __aenter__(self) -> _Callback:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/callback"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()
        self._worked.set_result(kind is None)
        self._came.cancel()
        if pages := [task for task in self._serving if task]:
            await asyncio.wait(pages, timeout=PARTING)

    async def result(self) -> AuthorizationCodeResult:
        """Raises LinkError: nobody came in time, or who came brought no code."""
        try:
            async with asyncio.timeout(PATIENCE):
                return await self._came
        except TimeoutError:
            raise LinkError(f"nobody logged in within {PATIENCE:g} seconds") from None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._serving.add(task := asyncio.current_task())
        try:
            async with asyncio.timeout(10):
                line = (await reader.readline()).decode("latin-1").split()
                for _ in range(LONGEST):
                    if not (await reader.readline()).strip():
                        break
            status, said = await self._page(line[1] if len(line) > 1 else "")
            head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nConnection: close\r\n"
            writer.write(f"{head}Content-Length: {len(said)}\r\n\r\n".encode() + said)
            await writer.drain()
        except (TimeoutError, ValueError, OSError):
            return  # some other program looked at the port
        finally:
            self._serving.discard(task)
            writer.close()

    async def _page(self, target: str) -> tuple[str, bytes]:
        """Returns the status and the text of the page, once it is known how the login went."""
        parts = urlsplit(target)
        if parts.path != "/callback":
            return "404 Not Found", b""
        given = {key: values[0] for key, values in parse_qs(parts.query).items()}
        if not self.state or given.get("state") != self.state:
            return "400 Bad Request", _OTHER
        if not self._came.done():
            self._take(given)
        return "200 OK", _DONE if await self._worked else _NOT

    def _take(self, given: Mapping[str, str]) -> None:
        if "code" not in given:
            why = given.get("error_description") or given.get("error") or "it brought no code"
            self._came.set_exception(LinkError(f"the login was refused: {why[:300]}"))
            return
        self._came.set_result(
            AuthorizationCodeResult(
                code=given["code"], state=given.get("state"), iss=given.get("iss")
            )
        )
