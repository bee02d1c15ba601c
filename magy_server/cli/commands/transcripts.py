"""`magy sessions show` prints a transcript for people, and `export` writes it as Markdown or as
JSON lines. Both read the store alone."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import suppress

from magy_server.api.sessions.pages import page, stamped, texts_of, whole
from magy_server.api.sessions.paragraphs import Paragraphs
from magy_server.cli import exit_codes, session_ids
from magy_server.cli.composition import Composition, Options
from magy_server.cli.screen.terminal import Output, OutputError, Screen, standard_output, write_all
from magy_server.cli.screen.text import record
from magy_server.cli.screen.updates_view import View
from magy_server.core import codec
from magy_server.core.ports import Store, StreamInfo
from magy_server.core.text.log_lines import header, line
from magy_server.core.values import Hash


async def show(options: Options, app: Composition) -> int:
    output = standard_output()
    screen = Screen(output)
    view = View(screen.marks, thinking=options.thinking, whole=True, rendered=screen.renders)
    async with app.store() as store:
        info = await session_ids.resolve(store, options.session)
        async for entries in whole(store, info.stream):
            texts = await texts_of(store, entries)
            found = [stamped(item) for item in page(entries, texts)]
            if options.json:
                lines = (record({"sessionId": info.id, "update": one}) for one in found)
                await output.write("".join(lines))
            else:
                spans = [span for one in found for span in view.update(one, screen.width)]
                await screen.write(spans)
    if not options.json:
        await screen.write(view.close(screen.width))
    return exit_codes.DONE


async def export(options: Options, app: Composition) -> int:
    output = None if options.output else standard_output()
    async with app.store() as store:
        info = await session_ids.resolve(store, options.session)
        pieces = _jsonl(store, info) if options.format == "jsonl" else _markdown(store, info)
        if output:
            await _print(pieces, output)
        else:
            await _save(pieces, options.output)
    return exit_codes.DONE


async def _print(pieces: AsyncIterator[str], output: Output) -> None:
    output.encoding = "utf-8"
    async for piece in pieces:
        await output.write(piece)


async def _save(pieces: AsyncIterator[str], path: str) -> None:
    """Writes all of the file or nothing; nobody else can read it. Raises OutputError."""
    folder = os.path.dirname(os.path.abspath(path))
    try:
        descriptor, made = tempfile.mkstemp(prefix=".magy-", dir=folder)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}.", quiet=False) from None
    try:
        try:
            async for piece in pieces:
                write_all(descriptor, piece.encode())
        finally:
            os.close(descriptor)
        os.replace(made, path)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}.", quiet=False) from None
    finally:
        with suppress(FileNotFoundError):
            os.unlink(made)


async def _jsonl(store: Store, info: StreamInfo) -> AsyncIterator[str]:
    written: set[Hash] = set()
    yield record(header(info.id) | {"entries": info.head})
    async for entries in whole(store, info.stream):
        for entry in entries:
            new = [hash for hash in dict.fromkeys(codec.blobs(entry.event)) if hash not in written]
            written.update(new)
            yield record(line(entry, await store.blobs(new) if new else {}))


async def _markdown(store: Store, info: StreamInfo) -> AsyncIterator[str]:
    async for paragraph in Paragraphs(store, info).more():
        yield f"{paragraph}\n\n"
