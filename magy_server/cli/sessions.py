"""`magy sessions`: a command that only reads needs the store alone; one that acts needs the
engine."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from magy_server.api.service import Service
from magy_server.api.sessions.follow import page, stamped
from magy_server.cli import ending, listing, place
from magy_server.cli import run as running
from magy_server.cli import undo as undoing
from magy_server.cli.door import ONCE, Composition
from magy_server.cli.screen.printers import record
from magy_server.cli.screen.terminal import Output, OutputError, Screen, standard_output, write_all
from magy_server.cli.screen.text import harmless
from magy_server.cli.screen.view import View
from magy_server.core import codec, updates
from magy_server.core.agents.tree import Stream
from magy_server.core.errors import InvalidRequest
from magy_server.core.events import Compacted, Entry, Hash
from magy_server.core.ports import Store, StreamInfo
from magy_server.core.text.log_lines import header, line
from magy_server.core.text.markdown import Markdown, shown_blobs

PAGE = 200
"""Entries read at once."""

Options = argparse.Namespace


def sessions(options: Options, app: Composition) -> int:
    """Runs the command, and returns the exit code. Raises MagyError."""
    verbs: dict[str, Callable[[Options, Composition], Awaitable[int]]] = {
        "list": listed, "show": show, "resume": resume, "fork": fork, "export": export,
        "delete": delete, "compact": compact, "summary": summary, "title": title,
        "undo": undo, "redo": redo,
    }  # fmt: skip
    return asyncio.run(_interruptible(verbs[options.verb or "list"], options, app))


async def _interruptible(
    verb: Callable[[Options, Composition], Awaitable[int]], options: Options, app: Composition
) -> int:
    if verb is resume:
        return await resume(options, app)
    try:
        return await verb(options, app)
    except asyncio.CancelledError:
        return ending.CANCELLED


@asynccontextmanager
async def reading(app: Composition) -> AsyncIterator[Store]:
    store = await app.store()
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def acting(app: Composition, given: str) -> AsyncIterator[tuple[Service, StreamInfo]]:
    """Returns the engine for the project of the session that is meant."""
    async with reading(app) as store:
        info = await place.resolve(store, given)
    async with app.compose([info.root] if info.root else [], ONCE) as (service, _):
        yield service, info


async def _entries(store: Store, stream: Stream, after: int = 0) -> AsyncIterator[list[Entry]]:
    """Reads the log, a page at a time."""
    while entries := await store.read(stream, after=after, limit=PAGE):
        yield entries
        after = entries[-1].seq


# --- looking ------------------------------------------------------------------------------------


async def listed(options: Options, app: Composition) -> int:
    root, _ = place.project(options.root, None)
    asked = vars(options)
    output = standard_output()
    screen = Screen(output)
    async with reading(app) as store:
        found = await listing.read(
            store,
            root,
            only=asked.get("here", False),
            cursor=asked.get("cursor"),
            limit=asked.get("limit", listing.LIMIT),
            whole=asked.get("all", False),
        )
    if asked.get("ids"):
        await output.write("".join(f"{info.id}\n" for info in found.items))
    elif asked.get("json"):
        await output.write(record(listing.as_json(found)))
    else:
        await screen.write(listing.lines(found, root, screen.marks, screen.width))
    return ending.DONE


async def show(options: Options, app: Composition) -> int:
    output = standard_output()
    screen = Screen(output)
    view = View(screen.marks, thinking=options.thinking, whole=True, rendered=screen.renders)
    async with reading(app) as store:
        info = await place.resolve(store, options.session)
        async for entries in _entries(store, info.stream):
            hashes = {hash for entry in entries for hash in updates.shown(entry.event)}
            texts = _texts(await store.blobs(list(hashes)))
            found = [stamped(item) for item in page(entries, texts)]
            if options.json:
                lines = (record({"sessionId": info.id, "update": one}) for one in found)
                await output.write("".join(lines))
            else:
                spans = [span for one in found for span in view.update(one, screen.width)]
                await screen.write(spans)
    if not options.json:
        await screen.write(view.close(screen.width))
    return ending.DONE


def _texts(blobs: dict[Hash, bytes]) -> dict[Hash, str]:
    return {hash: data.decode("utf-8", "replace") for hash, data in blobs.items()}


# --- going on -----------------------------------------------------------------------------------


async def resume(options: Options, app: Composition) -> int:
    interrupts = running.Interrupts()
    shown = running.Shown.on(options)
    named: list[str] = []
    try:
        async with acting(app, options.session) as (service, info):
            named.append(info.id)
            if info.summary.get("state") == "idle":
                running.complain(
                    f"there is nothing to continue: the last turn of {named[0]} is over. "
                    f'`magy run --resume {named[0]} "..."` gives it another prompt.'
                )
                return ending.DONE
            starts = await service.world.store.turn_starts(info.stream, 1)
            turn = running.Turn(service, interrupts, shown, named[0])
            async with running.Bypass(service, named[0], options.bypass):
                return await turn.resume(starts[0] - 1 if starts else 0)
    except asyncio.CancelledError:
        return running.left(interrupts, named)


async def fork(options: Options, app: Composition) -> int:
    output = standard_output()
    async with acting(app, options.session) as (service, info):
        new = await place.fresh_id(service.world.store)
        await service.fork(info.id, new, options.at)
    await output.write(f"{new}\n")
    return ending.DONE


async def compact(options: Options, app: Composition) -> int:
    screen = Screen(standard_output())
    async with acting(app, options.session) as (service, info):
        async with _progress(screen, f"summing up {info.id}"):
            await service.compact(info.id, options.focus)
            session = await service.loaded.session(info.stream)
            try:
                await running.settled(session, lambda now: now.compact is None)
            except asyncio.CancelledError:
                await service.cancel(info.id, None)
                raise
        entries = await service.world.store.read(info.stream, after=info.head)
    if not any(isinstance(entry.event, Compacted) for entry in entries):
        await screen.write([("not compacted: it was cancelled\n", "yellow")])
        return ending.CANCELLED
    cost = ending.cost_of(ending.totals(entries))
    await screen.write([(f"compacted {screen.marks.dot} {cost}\n", "")])
    return ending.DONE


async def summary(options: Options, app: Composition) -> int:
    screen = Screen(standard_output())
    async with (
        acting(app, options.session) as (service, info),
        _progress(screen, f"summing up {info.id}"),
    ):
        text = await service.summary(info.id)
    await screen.write([(f"{harmless(text).strip()}\n", "")])
    return ending.DONE


@asynccontextmanager
async def _progress(screen: Screen, what: str) -> AsyncIterator[None]:
    """Says what is being done, and for how long, where that can be wiped again."""

    async def tick() -> None:
        seconds = 0
        while True:
            await screen.write([], f"{what} ({seconds} s)" if seconds >= 2 else what)
            await asyncio.sleep(1)
            seconds += 1

    if not screen.passing:
        yield
        return
    ticking = asyncio.create_task(tick())
    try:
        yield
    finally:
        ticking.cancel()
        await asyncio.gather(ticking, return_exceptions=True)
        await screen.write([])


async def title(options: Options, app: Composition) -> int:
    text = " ".join(options.title.encode("utf-8", "replace").decode().split())
    if not text:
        raise InvalidRequest("The title is empty.")
    async with acting(app, options.session) as (service, info):
        await service.configure(info.id, "title", text)
    return ending.DONE


async def undo(options: Options, app: Composition) -> int:
    async with acting(app, options.session) as (service, info):
        return await undoing.undo(service, info, options)


async def redo(options: Options, app: Composition) -> int:
    async with acting(app, options.session) as (service, info):
        return await undoing.redo(service, info, options)


# --- files --------------------------------------------------------------------------------------


async def export(options: Options, app: Composition) -> int:
    output = None if options.output else standard_output()
    async with reading(app) as store:
        info = await place.resolve(store, options.session)
        pieces = _jsonl(store, info) if options.format == "jsonl" else _markdown(store, info)
        if output:
            await _print(pieces, output)
        else:
            await _save(pieces, options.output)
    return ending.DONE


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
    async for entries in _entries(store, info.stream):
        for entry in entries:
            new = [hash for hash in dict.fromkeys(codec.blobs(entry.event)) if hash not in written]
            written.update(new)
            yield record(line(entry, await store.blobs(new) if new else {}))


async def _markdown(store: Store, info: StreamInfo) -> AsyncIterator[str]:
    markdown = Markdown(str(info.summary.get("title") or ""))
    texts: dict[Hash, str] = {}
    async for entries in _entries(store, info.stream):
        hashes = {hash for entry in entries for hash in shown_blobs(entry.event)}
        # A diff may be shown a little later than it is known, on the next page.
        texts = {**texts, **_texts(await store.blobs(list(hashes - texts.keys())))}
        for paragraph in markdown.paragraphs(entries, texts):
            yield f"{paragraph}\n\n"


async def delete(options: Options, app: Composition) -> int:
    async with acting(app, options.session) as (service, info):
        id = info.id
        name = f"{id} ({listing.title_of(info)})"
        if not options.yes and not await asyncio.to_thread(_sure, f"Delete {name} permanently?"):
            running.complain("nothing was deleted.")
            return ending.ERROR
        await service.delete(id)
    running.complain(f"deleted {name}.")
    return ending.DONE


def _sure(question: str) -> bool:
    """Asks whether the person is sure. Raises InvalidRequest when it can ask nobody."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise InvalidRequest("There is nobody here to confirm this: add --yes.")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
