"""`magy agents` works with the children of sessions: it spawns them, writes to them, waits for them
and closes them."""

from __future__ import annotations

import json
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Literal

from magy_server.api.children import present
from magy_server.api.service import Service
from magy_server.api.sessions.settling import settled
from magy_server.cli import exit_codes, project_directory, session_ids
from magy_server.cli.composition import Composition, Options, Verb
from magy_server.cli.given_prompt import prompt_of
from magy_server.cli.screen.child_lines import line
from magy_server.cli.screen.complaints import complain
from magy_server.cli.screen.terminal import Screen, standard_output
from magy_server.cli.screen.text import Span, record
from magy_server.cli.turn.interrupts import Interrupts, until_left
from magy_server.cli.turn.presentation import Shown
from magy_server.cli.turn.turn import Turn
from magy_server.core.agents import tree
from magy_server.core.agents.child import Spawn, Waited
from magy_server.core.agents.mail import DataPayload, Payload, SignalPayload
from magy_server.core.agents.tree import stream_of
from magy_server.core.errors import InvalidRequest
from magy_server.core.ports import StreamInfo
from magy_server.core.summary import task_id

BY = "magy agents"

Begun = tuple[str, str, int]
"""(session; id of its prompt, "": there is none; the entry after which to look)."""


async def spawn(options: Options, app: Composition) -> int:
    content = prompt_of(options.prompt)
    wanted = Spawn(
        key=options.key or f"t-{secrets.token_hex(6)}",
        agent=options.agent or "",
        prompt=tuple(content),
        name=options.name or "",
        context=options.context,
        model=options.model or "",
        cwd=project_directory.directory(options.cwd) if options.cwd else "",
        by=BY,
        worktree=options.worktree,
        plugin=options.plugin or "",
    )

    async def begin(service: Service, parent: StreamInfo) -> Begun:
        child, known = await service.children.spawn(parent.id, wanted)
        if known and child.turns < 2 and not options.detach:  # its task may have been left open
            await service.resume(child.session)
        return child.session, task_id(child.session), 0

    return await until_left(partial(_watched, options, app, begin))


async def send(options: Options, app: Composition) -> int:
    key = options.key or f"t-{secrets.token_hex(8)}"
    said = _payload(options)
    what = prompt_of(options.message or "") if said is None else said

    async def begin(service: Service, to: StreamInfo) -> Begun:
        id = to.id
        outcome = await service.mailing.send(id, what, key=key, delivery=options.delivery)
        complain(f"{id}: {outcome}.")
        return id, key if said is None and outcome != "known" else "", to.head

    return await until_left(partial(_watched, options, app, begin))


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
    interrupts: Interrupts,
) -> int:
    """Begins something and shows the turn that comes of it, as `magy run` does; with `--detach` it
    only prints the id."""
    shown = Shown.on(options)
    async with app.acting(options.session) as (service, info):
        id, prompt, start = await begin(service, info)
        interrupts.session = id
        if options.detach or not prompt:
            await shown.output.write(f"{id}\n")
            return exit_codes.DONE
        async with Turn(service, interrupts, shown, id) as turn:
            return await turn.watch(start, prompt)


async def wait(options: Options, app: Composition) -> int:
    output = standard_output()
    screen = Screen(output)
    async with app.store() as store:
        ids = [(await session_ids.resolve(store, given)).id for given in options.session]
    waiter = _waiter(ids)
    async with app.acting(waiter) as (service, _):
        await service.resume(waiter)
        waited = await service.mailing.wait(
            waiter,
            [] if ids == [waiter] else ids,
            until="any" if options.any else "all",
            after=options.after,
            deadline=service.world.clock.now() + options.timeout,
        )
    if options.json:
        found = present.waited(waited)
        await output.write(record(found.model_dump(mode="json", by_alias=True)))
    else:
        await screen.write(_results(screen, waited))
    return exit_codes.LIMIT if waited.why == "timed_out" else exit_codes.DONE


def _waiter(ids: Sequence[str]) -> str:
    """Returns who waits. For one session: that session waits for its children; for several, all of
    one parent: that parent waits. Raises InvalidRequest."""
    if len(ids) == 1 and tree.parent(ids[0]) is None:
        return ids[0]
    parents = {tree.parent(id) for id in ids}
    if len(parents) > 1 or None in parents:
        raise InvalidRequest("Name one session, or children of a single session.")
    return str(parents.pop())


def _results(screen: Screen, waited: Waited) -> list[Span]:
    spans: list[Span] = []
    for one in waited.results:
        spans += line(one.child, screen.marks, one.child.depth - 1)
        if one.text:
            spans.append((f"{one.text.strip()}\n\n", ""))
    if waited.why == "timed_out":
        spans.append(("the time ran out before they were done; nothing was cancelled\n", "yellow"))
    return spans


async def close(options: Options, app: Composition) -> int:
    mode: Literal["finish", "cancel"] = "cancel" if options.cancel else "finish"
    async with app.acting(options.session) as (service, info):
        before, closed = await service.children.close(
            info.id, mode, options.reason, recursive=not options.only, by=BY
        )
        if mode == "cancel":
            for id in closed:
                session = await service.loaded.session(stream_of(id))
                await settled(session, lambda now: now.turn is None)
    if options.json:
        line = record({"previousState": before, "closed": list(closed)})
        await standard_output().write(line)
    else:
        said = ", ".join(closed) if closed else "nothing changed: it was already closed"
        complain(f"closed {said}.")
    return exit_codes.DONE


VERBS: Mapping[str, Verb] = {
    "spawn": spawn, "send": send, "wait": wait, "close": close,
}  # fmt: skip
