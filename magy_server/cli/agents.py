"""`magy agents` works with the children of sessions, from a terminal. A command that only looks
needs the store alone."""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, TypeVar

from magy_server.api.service import Service
from magy_server.cli import below, ending, place
from magy_server.cli import run as running
from magy_server.cli.door import Composition
from magy_server.cli.listing import title_of
from magy_server.cli.prompt import prompt_of
from magy_server.cli.screen.printers import record
from magy_server.cli.screen.terminal import Screen, standard_output
from magy_server.cli.screen.text import Span, harmless, one_line
from magy_server.cli.sessions import acting, reading
from magy_server.core import wire_values
from magy_server.core.agents import tree
from magy_server.core.agents.child import ChildInfo, Result, Spawn, Waited
from magy_server.core.agents.mail import DataPayload, Payload, SignalPayload
from magy_server.core.agents.tree import SESSIONS, stream_of
from magy_server.core.errors import InvalidRequest
from magy_server.core.ports import Store, StreamInfo
from magy_server.core.summary import row, task_id
from magy_server.engine import trees

BY = "magy agents"
PAGE = 200

Options = argparse.Namespace
T = TypeVar("T")
Begun = tuple[str, str, int]
"""(session; id of its prompt, "": there is none; the entry after which to look)."""


def agents(options: Options, app: Composition) -> int:
    """Runs the command, and returns the exit code. Raises MagyError."""
    verbs: dict[str, Callable[[Options, Composition], Awaitable[int]]] = {
        "list": listed, "spawn": spawn, "send": send, "wait": wait, "close": close,
    }  # fmt: skip
    return asyncio.run(_interruptible(verbs[options.verb or "list"], options, app))


async def _interruptible(
    verb: Callable[[Options, Composition], Awaitable[int]], options: Options, app: Composition
) -> int:
    if verb in (spawn, send):  # they watch a turn, and leave as `magy run` does
        return await verb(options, app)
    try:
        return await verb(options, app)
    except asyncio.CancelledError:
        return ending.CANCELLED


# --- looking --------------------------------------------------------------------------------------


async def listed(options: Options, app: Composition) -> int:
    asked = vars(options)
    output = standard_output()
    screen = Screen(output)
    async with reading(app) as store:
        given = asked.get("session")
        root, _ = place.project(options.root, None)
        if given:
            parents = [await place.resolve(store, given)]
        else:
            parents = await _roots(store, None if asked.get("everywhere") else root)
        closed = asked.get("all", False)
        trees = [(info, await _tree(store, info.id, closed=closed)) for info in parents]
    found = [child for _, children in trees for child in children]
    if asked.get("ids"):
        await output.write("".join(f"{child.session}\n" for child in found))
    elif asked.get("json"):
        await output.write(record({"children": [wire_values.child(child) for child in found]}))
    else:
        await screen.write(_lines(screen, trees))
    return ending.DONE


async def _roots(store: Store, root: str | None) -> list[StreamInfo]:
    """Returns the sessions that have children, of a project or of all, the newest first."""
    found: dict[str, None] = {}
    cursor: str | None = None
    while True:
        page = await store.streams(SESSIONS, root=root, cursor=cursor, limit=PAGE)
        ids = (info.id for info in page.items)
        found |= {tree.root(id): None for id in ids if tree.parent(id) is not None}
        cursor = page.cursor
        if cursor is None:
            break
    infos = [await store.info(stream_of(id)) for id in found]
    return [info for info in infos if info]


async def _tree(store: Store, id: str, *, closed: bool) -> list[ChildInfo]:
    """Returns the agents of a tree, each after its parent."""
    rows = [one for info in await trees.below(store, id) if (one := row(info))]
    infos = (
        one.info([o for o in rows if tree.is_below(o.session, one.session)], queued=False)
        for one in rows
    )
    return [info for info in infos if closed or info.status != "closed"]


def _lines(screen: Screen, trees: Sequence[tuple[StreamInfo, Sequence[ChildInfo]]]) -> list[Span]:
    spans: list[Span] = []
    for info, children in trees:
        if children:
            spans += [(one_line(info.id), "bold"), (f"  {title_of(info)}\n", "")]
        for child in children:
            *line, end = below.line(child, screen.marks, tree.depth(info.id))
            spans += [*line, (end[0].rstrip("\n"), end[1]), (f"  {child.session}\n", "dim")]
    return spans or [("There are no child agents. `magy agents spawn` starts one.\n", "dim")]


# --- acting ---------------------------------------------------------------------------------------


async def spawn(options: Options, app: Composition) -> int:
    content = prompt_of(options.prompt)
    wanted = Spawn(
        key=options.key or f"t-{secrets.token_hex(6)}",
        agent=options.agent or "",
        prompt=tuple(content),
        name=options.name or "",
        context=options.context,
        model=options.model or "",
        cwd=place.directory(options.cwd) if options.cwd else "",
        by=BY,
    )

    async def begin(service: Service, parent: StreamInfo) -> Begun:
        child, known = await service.children.spawn(parent.id, wanted)
        if known and child.turns < 2 and not options.detach:  # its task may have been left open
            await service.resume(child.session)
        return child.session, task_id(child.session), 0

    return await _watched(options, app, begin)


async def send(options: Options, app: Composition) -> int:
    key = options.key or f"t-{secrets.token_hex(8)}"
    said = _payload(options)
    what = prompt_of(options.message or "") if said is None else said

    async def begin(service: Service, to: StreamInfo) -> Begun:
        id = to.id
        outcome = await service.mailing.send(id, what, key=key, delivery=options.delivery)
        running.complain(f"{id}: {outcome}.")
        return id, key if said is None and outcome != "known" else "", to.head

    return await _watched(options, app, begin)


def _payload(options: Options) -> Payload | None:
    """Returns what the options give; None when the message is text. Raises InvalidRequest."""
    given = [what for what in (options.message, options.data, options.signal) if what is not None]
    if len(given) != 1:
        raise InvalidRequest("Give exactly one of: a message, --data, --signal.")
    if options.signal:
        return SignalPayload(signal=options.signal)
    if options.data is None:
        return None
    try:
        data = json.loads(options.data)
    except ValueError as error:
        raise InvalidRequest(f"--data is not JSON: {error}.") from None
    if not isinstance(data, dict):
        raise InvalidRequest("--data must be a JSON object.")
    return DataPayload(data=data)


async def _watched(
    options: Options,
    app: Composition,
    begin: Callable[[Service, StreamInfo], Awaitable[Begun]],
) -> int:
    """Begins something and shows the turn that comes of it, as `magy run` does; with `--detach` it
    only prints the id."""
    interrupts = running.Interrupts()
    shown = running.Shown.on(options)
    named: list[str] = []
    try:
        async with acting(app, options.session) as (service, info):
            id, prompt, start = await begin(service, info)
            named.append(id)
            if options.detach or not prompt:
                await shown.output.write(f"{id}\n")
                return ending.DONE
            turn = running.Turn(service, interrupts, shown, id)
            async with running.Bypass(service, id, options.bypass):
                return await turn.watch(start, prompt)
    except asyncio.CancelledError:
        return running.left(interrupts, named)


async def wait(options: Options, app: Composition) -> int:
    output = standard_output()
    screen = Screen(output)
    async with reading(app) as store:
        ids = [(await place.resolve(store, given)).id for given in options.session]
    waiter = _waiter(ids)
    async with acting(app, waiter) as (service, _):
        await service.resume(waiter)
        waited = await service.mailing.wait(
            waiter,
            [] if ids == [waiter] else ids,
            until="any" if options.any else "all",
            after=options.after,
            deadline=service.world.clock.now() + options.timeout,
        )
    if options.json:
        await output.write(record(_as_json(waited)))
    else:
        await screen.write(_results(screen, waited))
    return ending.LIMIT if waited.why == "timed_out" else ending.DONE


def _waiter(ids: Sequence[str]) -> str:
    """Returns who waits. For one session: that session waits for its children; for several, all of
    one parent: that parent waits. Raises InvalidRequest."""
    if len(ids) == 1 and tree.parent(ids[0]) is None:
        return ids[0]
    parents = {tree.parent(id) for id in ids}
    if len(parents) > 1 or None in parents:
        raise InvalidRequest("Name one session, or children of a single session.")
    return str(parents.pop())


def _as_json(waited: Waited) -> dict[str, Any]:
    return {
        "results": [_result(one) for one in waited.results],
        "timedOut": waited.why == "timed_out",
        "seq": waited.cursor,
    }


def _result(one: Result) -> dict[str, Any]:
    report = wire_values.report(one.report) if one.report else None
    return {
        "child": wire_values.child(one.child),
        "text": one.text,
        "report": report,
        "seq": one.seq,
    }


def _results(screen: Screen, waited: Waited) -> list[Span]:
    spans: list[Span] = []
    for one in waited.results:
        spans += below.line(one.child, screen.marks, one.child.depth - 1)
        if one.text:
            spans.append((f"{harmless(one.text).strip()}\n\n", ""))
    if waited.why == "timed_out":
        spans.append(("the time ran out before they were done; nothing was cancelled\n", "yellow"))
    return spans


async def close(options: Options, app: Composition) -> int:
    mode: Literal["finish", "cancel"] = "cancel" if options.cancel else "finish"
    async with acting(app, options.session) as (service, info):
        before, closed = await service.children.close(
            info.id, mode, options.reason, recursive=not options.only, by=BY
        )
        if mode == "cancel":
            for id in closed:
                session = await service.loaded.session(stream_of(id))
                await running.settled(session, lambda now: now.turn is None)
    if options.json:
        line = record({"previousState": before, "closed": list(closed)})
        await standard_output().write(line)
    else:
        said = ", ".join(closed) if closed else "nothing changed: it was already closed"
        running.complain(f"closed {said}.")
    return ending.DONE
