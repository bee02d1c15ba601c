"""A small web on loopback: pages, files, redirects, and what bad servers do.

async with WebServer() as web:
    web.page("/", "<h1>Hello</h1>")
    web.redirect("/old", "/")
    web.answer("/slow", handler)      # async (request, exchange) -> None
    ... web.url("/old") ...
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Self

from .http import Exchange, HttpServer, Request

Handler = Callable[[Request, Exchange], Awaitable[None]]


class WebServer(HttpServer):
    """What it does not know is answered with 404."""

    def __init__(self, port: int = 0, *, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(port, tls=tls)
        self._handlers: dict[str, Handler] = {}

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        """`host` may be any name that leads here."""
        return self.base_url.replace("127.0.0.1", host) + path

    def page(
        self,
        path: str,
        body: str | bytes,
        kind: str = "text/html; charset=utf-8",
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        data = body.encode() if isinstance(body, str) else body

        async def send(request: Request, exchange: Exchange) -> None:
            await exchange.send(status, data, kind, headers)

        self.answer(path, send)

    def redirect(self, path: str, location: str, status: int = 302) -> None:
        self.page(path, "", status=status, headers={"location": location})

    def answer(self, path: str, handler: Handler) -> None:
        self._handlers[path] = handler

    async def respond(self, request: Request, exchange: Exchange) -> None:
        handler = self._handlers.get(request.path)
        if handler is None:
            await exchange.send(404, b"<title>Not found</title>", "text/html")
        else:
            await handler(request, exchange)
