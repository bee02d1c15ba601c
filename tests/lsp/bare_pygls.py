"""The same toy on nothing but pygls: what the transport is measured against."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from pygls.lsp.server import LanguageServer

from tests.lsp.stalls import worst_stall

server = LanguageServer("bare", "0")


@server.feature("magy/echo")
async def echo(ls: LanguageServer, params: Any) -> Any:
    return params


@server.feature("magy/stream")
async def stream(ls: LanguageServer, params: Any) -> Any:
    for n in range(params.count):
        chunk = {"source": "a", "n": n, "text": "x" * params.size}
        ls.protocol.notify("magy/chunk", chunk)
        if n % 10 == 9:
            await asyncio.sleep(0)
    return "streamed"


@server.feature("magy/text")
async def text(ls: LanguageServer, params: Any) -> Any:
    return ls.workspace.get_text_document(params.uri).source


@server.feature("magy/ticks")
async def ticks(ls: LanguageServer, params: Any) -> Any:
    return await worst_stall(params.seconds)


if __name__ == "__main__":
    sys.exit(server.start_io())
