"""`magy sessions prune` deletes the sessions that nobody has used for long, having said which."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from threading import Event
from typing import Any

from magy_server.api.sessions import pruning
from magy_server.api.sessions.pruning import Plan, Pruned
from magy_server.cli import exit_codes, project_directory
from magy_server.cli.commands import session_list
from magy_server.cli.commands.sessions import sure
from magy_server.cli.composition import ONCE, Composition, Options
from magy_server.cli.screen.complaints import complain
from magy_server.cli.screen.terminal import Screen, standard_output
from magy_server.cli.screen.text import Span, counted, record, size_of
from magy_server.core.ports import Page
from magy_server.store.shrinking import Shrunk


async def prune(options: Options, app: Composition) -> int:
    before = time.time() - options.older_than
    output = standard_output()
    screen = Screen(output)
    root = os.path.realpath(options.project) if options.project else None
    async with app.store() as store:
        plan = await pruning.planned(store, before, options.keep, root)
    if not options.json:
        await screen.write([*_listed(plan, screen), *_summed_up(plan)])
    done, shrunk = Pruned(), None
    if not options.dry_run:
        if (plan.sessions or plan.settled) and not await _wanted(options, plan):
            complain("nothing was deleted.")
            return exit_codes.ERROR
        done = await _carried_out(app, plan, screen)
        await screen.write([], "giving room back to the file system")
        shrunk = await _shrunk(app)
    if options.json:
        await output.write(record(_as_json(plan, options.dry_run, done, shrunk)))
    elif shrunk is not None:
        await screen.write(list(_told(plan, done, shrunk)))
    return exit_codes.DONE


async def _wanted(options: Options, plan: Plan) -> bool:
    what = f"Delete {_what(len(plan.sessions), len(plan.settled))} permanently?"
    return bool(options.yes) or await asyncio.to_thread(sure, what)


async def _carried_out(app: Composition, plan: Plan, screen: Screen) -> Pruned:
    done = Pruned()

    async def told(now: Pruned) -> None:
        nonlocal done
        done = now
        await screen.write([], f"deleted {_what(now.sessions, now.settled)}")

    try:
        if plan.sessions or plan.settled:
            async with app.compose([], ONCE) as (service, _):
                done = await pruning.prune(service, plan, told)
    except asyncio.CancelledError:
        await screen.write([])
        complain(f"stopped: {_what(done.sessions, done.settled)} had been deleted by then.")
        raise
    return done


async def _shrunk(app: Composition) -> Shrunk:
    """Where it is cancelled, the database is as it was."""
    stopped = Event()
    shrinking = asyncio.create_task(asyncio.to_thread(app.shrink, stopped.is_set))
    try:
        return await asyncio.shield(shrinking)
    except asyncio.CancelledError:
        stopped.set()
        await asyncio.wait([shrinking])
        raise


# --- what is said of it ---------------------------------------------------------------------------


def _listed(plan: Plan, screen: Screen) -> list[Span]:
    if not plan.sessions:
        return []
    here, _ = project_directory.project(None, None)
    sizes: dict[str, str] = {one.info.stream: size_of(one.bytes) for one in plan.sessions}
    page = Page([one.info for one in plan.sessions], None)
    return [*session_list.lines(page, here, screen.marks, screen.width, sizes), ("\n", "")]


def _summed_up(plan: Plan) -> Iterator[Span]:
    if plan.sessions or plan.settled:
        what = _what(len(plan.sessions), len(plan.settled))
        yield f"{what} can go: {size_of(plan.bytes)}.\n", "bold"
    else:
        yield "There is nothing to delete.\n", ""
    stay = {why: number for why, number in plan.stay.items() if number}
    if stay:
        reasons = ", ".join(f"{number:,} {why}" for why, number in stay.items())
        yield f"{counted(sum(stay.values()), 'session')} {_stays(stay)}: {reasons}.\n", "dim"


def _stays(stay: dict[str, int]) -> str:
    return "stays" if sum(stay.values()) == 1 else "stay"


def _what(sessions: int, settled: int) -> str:
    found = [counted(sessions, "session")] if sessions or not settled else []
    found += [counted(settled, "settled review")] if settled else []
    return " and ".join(found)


def _told(plan: Plan, done: Pruned, shrunk: Shrunk) -> Iterator[Span]:
    if plan.sessions or plan.settled:
        yield f"Deleted {_what(done.sessions, done.settled)}.", ""
        left = len(plan.sessions) + len(plan.settled) - done.sessions - done.settled
        yield f" {left:,} stayed: they were used meanwhile.\n" if left else "\n", ""
    if shrunk.given:
        yield f"The database is {size_of(shrunk.given)} smaller.\n", ""
    elif shrunk.why:
        text = (
            f"{size_of(shrunk.spare)} in the database are free for what Magy writes next. The "
            f"file did not get smaller, because {shrunk.why}. `magy sessions prune` tries again.\n"
        )
        yield text, ""


def _as_json(plan: Plan, dry: bool, done: Pruned, shrunk: Shrunk | None) -> dict[str, Any]:
    sessions = [{**session_list.one_as_json(one.info), "bytes": one.bytes} for one in plan.sessions]
    made = {"sessions": done.sessions, "settledReviews": done.settled}
    room = shrunk and {"given": shrunk.given, "spare": shrunk.spare, "why": shrunk.why}
    return {
        "dryRun": dry,
        "sessions": sessions,
        "settledReviews": len(plan.settled),
        "bytes": plan.bytes,
        "stay": {why: number for why, number in plan.stay.items() if number},
        "deleted": None if dry else made,
        "room": room,
    }
