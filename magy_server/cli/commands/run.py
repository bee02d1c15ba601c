"""`magy run` takes one prompt, and shows its turn until that is over."""

from __future__ import annotations

import argparse
import asyncio
import secrets
from collections.abc import Sequence
from functools import partial

from magy_server.api.service import Service
from magy_server.api.sessions.fresh_ids import fresh_id
from magy_server.api.sessions.options import in_force
from magy_server.cli import project_directory, session_ids
from magy_server.cli.composition import ONCE, Composition
from magy_server.cli.given_prompt import prompt_of
from magy_server.cli.screen.complaints import complain
from magy_server.cli.turn.interrupts import Interrupts, until_left
from magy_server.cli.turn.presentation import Shown
from magy_server.cli.turn.turn import Turn
from magy_server.config.trust import Trust
from magy_server.core.agents.child import Spawn
from magy_server.core.agents.tree import SESSIONS
from magy_server.core.errors import InvalidRequest
from magy_server.core.ports import StreamInfo
from magy_server.core.summary import task_id
from magy_server.core.values import Content, Text
from magy_server.tools.prompts.openings import Task, spawned


def run(options: argparse.Namespace, app: Composition) -> int:
    """Runs the command, and returns the exit code. Raises MagyError, and KeyboardInterrupt while it
    reads standard input."""
    shown = Shown.on(options)
    content = prompt_of(" ".join(options.words) if options.words else _typed(options, app))
    return asyncio.run(until_left(partial(run_turn, options, app, shown, content)))


def _typed(options: argparse.Namespace, app: Composition) -> str:
    from magy_server.cli.typed_prompt import typed

    return typed(options, app)


async def run_turn(
    options: argparse.Namespace,
    app: Composition,
    shown: Shown,
    content: Sequence[Content],
    interrupts: Interrupts,
) -> int:
    """Prompts the session that the options mean, shows the turn, and returns the exit code. Raises
    MagyError."""
    root, cwd = project_directory.project(options.root, options.cwd)
    info = await _source(options, app, root)
    root = info.root or root if info else root
    async with app.compose([root], ONCE) as (service, trust):
        _say_ignored(trust, root)
        session_id = await _session(options, service, trust, info, root, cwd)
        interrupts.session = session_id
        task = spawned(content[0].text) if isinstance(content[0], Text) else None
        child = await _spawn(service, session_id, task, content[1:]) if task else None
        async with Turn(service, interrupts, shown, child or session_id) as turn:
            return await (turn.watch(0, task_id(child)) if child else turn.prompt(content))


async def _spawn(service: Service, parent: str, task: Task, attached: Sequence[Content]) -> str:
    """Spawns a child of the session, and returns its id. Raises MagyError."""
    asked = Spawn(
        key=f"t-{secrets.token_hex(6)}",
        agent=task.agent,
        prompt=(Text(text=task.text), *attached),
        by="magy run",
        worktree=task.worktree,
    )
    return (await service.children.spawn(parent, asked))[0].session


def _say_ignored(trust: Trust, root: str) -> None:
    if ignored := trust.ignored(root):
        complain(
            f"{root} is not trusted, so these settings are ignored: {', '.join(ignored)}. `magy "
            "config trust` trusts it."
        )
    for problem in dict.fromkeys([*trust.problems(root), *trust.problems(None)]):
        complain(problem)


async def _source(options: argparse.Namespace, app: Composition, root: str) -> StreamInfo | None:
    """Returns the session to go on with or to copy. Raises NotFound."""
    given = options.resume or options.fork
    if not given and not options.newest:
        return None
    async with app.store() as store:
        if given:
            return await session_ids.resolve(store, given)
        newest = (await store.streams(SESSIONS, root=root, flat=True, limit=1)).items
    if not newest:
        raise InvalidRequest(f"There is no session of {root} to continue.")
    return newest[0]


async def _session(
    options: argparse.Namespace,
    service: Service,
    trust: Trust,
    info: StreamInfo | None,
    root: str,
    cwd: str,
) -> str:
    """Opens the session, or prepares the one to go on with, and returns its id."""
    store = service.world.store
    if info is None:
        id = await fresh_id(store)
        agent = options.agent or trust.settings(root).default_agent
        await _check_model(service, {"agent": agent, "model": options.model or ""}, root)
        await service.open(id, root, cwd, agent, options.model or "")
        return id
    id = info.id
    if options.fork:
        source, id = id, await fresh_id(store)
        await service.fork(source, id, None)
    if options.agent:
        await service.configure(id, "agent", options.agent)
    if options.model:
        await service.configure(id, "model", options.model)
    return id


async def _check_model(service: Service, wanted: dict[str, str], root: str) -> None:
    """Checks the model before there is a session. Raises ProviderError that says what to set."""
    model = (await in_force(service.world, wanted, root))["model"]
    models = service.world.models(root)
    models.named(model or await models.default())
