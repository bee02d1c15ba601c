"""These verbs of `magy sessions` need an engine: resume, fork, title, compact, summary and
delete."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial

from magy_server.api.sessions.fresh_ids import fresh_id
from magy_server.api.sessions.settling import settled
from magy_server.api.sessions.totals import totals
from magy_server.cli import exit_codes
from magy_server.cli.commands.session_list import title_of
from magy_server.cli.commands.undo import redo, undo
from magy_server.cli.composition import Composition, Options, Verb
from magy_server.cli.screen.complaints import complain
from magy_server.cli.screen.terminal import Screen, standard_output
from magy_server.cli.screen.text import cost_of
from magy_server.cli.turn.interrupts import Interrupts, until_left
from magy_server.cli.turn.presentation import Shown
from magy_server.cli.turn.turn import Turn
from magy_server.core.errors import InvalidRequest
from magy_server.core.events import Compacted


async def resume(options: Options, app: Composition) -> int:
    return await until_left(partial(_resume, options, app, Shown.on(options)))


async def _resume(options: Options, app: Composition, shown: Shown, interrupts: Interrupts) -> int:
    async with app.acting(options.session) as (service, info):
        id = interrupts.session = info.id
        if info.summary.get("state") == "idle":
            complain(
                f"there is nothing to resume: the last turn of {id} is over. `magy run --resume "
                f'{id} "..."` gives it its next prompt.'
            )
            return exit_codes.DONE
        starts = await service.world.store.turn_starts(info.stream, 1)
        async with Turn(service, interrupts, shown, id) as turn:
            await service.resume(id)
            return await turn.watch(starts[0] - 1 if starts else 0, None)


async def fork(options: Options, app: Composition) -> int:
    output = standard_output()
    async with app.acting(options.session) as (service, info):
        new = await fresh_id(service.world.store)
        await service.fork(info.id, new, options.at)
    await output.write(f"{new}\n")
    return exit_codes.DONE


async def compact(options: Options, app: Composition) -> int:
    screen = Screen(standard_output())
    async with app.acting(options.session) as (service, info):
        async with _progress(screen, f"summing up {info.id}"):
            await service.compact(info.id, options.focus)
            session = await service.loaded.session(info.stream)
            try:
                await settled(session, lambda now: now.compact is None)
            except asyncio.CancelledError:
                await service.cancel(info.id, None)
                raise
        entries = await service.world.store.read(info.stream, after=info.head)
    if not any(isinstance(entry.event, Compacted) for entry in entries):
        await screen.write([("not compacted: it was cancelled\n", "yellow")])
        return exit_codes.CANCELLED
    cost = cost_of(totals(entries).spent)
    await screen.write([(f"compacted {screen.marks.dot} {cost}\n", "")])
    return exit_codes.DONE


async def summary(options: Options, app: Composition) -> int:
    screen = Screen(standard_output())
    async with (
        app.acting(options.session) as (service, info),
        _progress(screen, f"summing up {info.id}"),
    ):
        text = await service.summary(info.id)
    await screen.write([(f"{text.strip()}\n", "")])
    return exit_codes.DONE


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
    async with app.acting(options.session) as (service, info):
        await service.configure(info.id, "title", text)
    return exit_codes.DONE


async def delete(options: Options, app: Composition) -> int:
    async with app.acting(options.session) as (service, info):
        id = info.id
        name = f"{id} ({title_of(info)})"
        if not options.yes and not await asyncio.to_thread(sure, f"Delete {name} permanently?"):
            complain("nothing was deleted.")
            return exit_codes.ERROR
        await service.delete(id)
    complain(f"deleted {name}.")
    return exit_codes.DONE


def sure(question: str) -> bool:
    """Asks whether the person is sure. Raises InvalidRequest when it can ask nobody."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise InvalidRequest("There is nobody here to confirm this: add --yes.")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


VERBS: Mapping[str, Verb] = {
    "resume": resume, "fork": fork, "delete": delete, "compact": compact, "summary": summary,
    "title": title, "undo": undo, "redo": redo,
}  # fmt: skip
