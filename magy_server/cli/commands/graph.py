"""`magy graph` has graphs of tasks done and shows how they are."""

from __future__ import annotations

import argparse
import json
import secrets
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from magy_server.api.graphs.shown_graphs import graphs_of
from magy_server.api.sessions.fresh_ids import fresh_id
from magy_server.cli import exit_codes, project_directory, session_ids
from magy_server.cli.composition import ONCE, Composition, Options, Verb
from magy_server.cli.given_prompt import standard_input
from magy_server.cli.screen.terminal import Screen, standard_output
from magy_server.cli.screen.text import Span, counted, record
from magy_server.core.errors import InvalidConfig, InvalidRequest, NotFound
from magy_server.core.graphs.pictures import dot, mermaid
from magy_server.core.text.sanitizing import one_line
from magy_server.core.text.yaml_nodes import Nodes
from magy_server.regular_files import text as text_of

if TYPE_CHECKING:
    from magy_server.api.service import Service
    from magy_server.cli.turn.interrupts import Interrupts
    from magy_server.cli.turn.presentation import Shown
    from magy_server.config.trust import Trust

LARGEST = 16 << 20
"""Bytes of a file with tasks."""
KEYS = ("tasks", "shape", "rounds")
STYLES = {
    "completed": "green", "failed": "red", "asking": "question", "running": "yellow",
    "cancelled": "yellow", "skipped": "dim", "waiting": "dim", "ready": "dim",
}  # fmt: skip


# --- run ------------------------------------------------------------------------------------------


async def run(options: Options, app: Composition) -> int:
    from magy_server.cli.turn.interrupts import until_left
    from magy_server.cli.turn.presentation import Shown

    if bool(options.file) is bool(options.resume):
        raise InvalidRequest("Give a file with tasks, or --resume SESSION.")
    arguments = {} if options.resume else read(options.file)
    return await until_left(partial(_run, options, app, Shown.on(options), arguments))


async def _run(
    options: Options,
    app: Composition,
    shown: Shown,
    arguments: Mapping[str, Any],
    interrupts: Interrupts,
) -> int:
    from magy_server.api.graphs import given_graphs
    from magy_server.cli.turn.turn import Turn

    root, cwd = project_directory.project(options.root, options.cwd)
    info = None
    if given := options.resume or options.session:
        async with app.store() as store:
            info = await session_ids.resolve(store, given)
        root = info.root or root
    async with app.compose([root], ONCE) as (service, trust):
        if info is None:
            id = await _new(options, service, trust, root, cwd)
        else:
            id = info.id
            for option in ("agent", "model"):
                if value := getattr(options, option):
                    await service.configure(id, option, value)
        interrupts.session = id
        async with Turn(service, interrupts, shown, id) as turn:
            if options.resume and info and info.summary.get("state") != "idle":
                starts = await service.world.store.turn_starts(info.stream, 1)
                await service.resume(id)
                return await turn.watch(starts[0] - 1 if starts else 0, None, graph=True)
            if options.resume:
                arguments = {"go_on": await _left(service, id)}
            message = f"graph-{secrets.token_hex(8)}"
            start = (await service.info(id)).head
            await given_graphs.run(service, id, message, arguments)
            return await turn.watch(start, message, graph=True)


async def _new(options: Options, service: Service, trust: Trust, root: str, cwd: str) -> str:
    id = await fresh_id(service.world.store)
    agent = options.agent or trust.settings(root).default_agent
    model = options.model or ""
    models = service.world.models(root)
    models.named(model or service.world.agent(agent, root).model or await models.default())
    await service.open(id, root, cwd, agent, model)
    return id


async def _left(service: Service, id: str) -> str:
    """The id of the latest graph, of which something is left to be done. Raises InvalidRequest."""
    from magy_server.cli.turn.outcome import LEFT

    found = await graphs_of(service.world.store, (await service.info(id)).stream, most=1)
    if not found:
        raise InvalidRequest(f"Session {id!r} has no graph to go on with.")
    if not LEFT & found[-1]["counts"].keys():
        raise InvalidRequest(
            f"Graph {found[-1]['graphId']} of session {id!r} is at its end: nothing of it is left "
            f"to be done. `magy graph show {id}` says how it went."
        )
    return str(found[-1]["graphId"])


def read(path: str) -> Mapping[str, Any]:
    """Returns what a file says, YAML or JSON. Raises InvalidRequest, InvalidConfig."""
    where = "standard input" if path == "-" else path
    if path == "-":
        text = standard_input()
        if text is None:
            raise InvalidRequest(
                "`-` reads the tasks from standard input, but standard input is empty."
            )
    else:
        text = text_of(path, LARGEST, "give fewer tasks, or shorter prompts")
    found = _json(text, where) if text.lstrip()[:1] in ("{", "[") else _yaml(text, where)
    if isinstance(found, list):
        found = {"tasks": found}
    if not isinstance(found, dict) or "tasks" not in found:
        raise InvalidRequest(f"{where}: expected `tasks:` and a list of tasks below it.")
    if unknown := [str(key) for key in found if key not in KEYS]:
        raise InvalidRequest(f"{where}: unknown key {unknown[0]!r}; a graph has {', '.join(KEYS)}.")
    try:
        json.dumps(found)
    except (TypeError, ValueError, RecursionError):
        raise InvalidRequest(
            f"{where}: a value here is neither text nor number, true, false, list or mapping (a "
            "date, perhaps, or `!!binary`). Put quotes around it."
        ) from None
    return found


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise InvalidRequest(f"{where}: not valid JSON (nested too deeply).") from None
    except ValueError as error:
        try:  # a flow mapping of YAML begins like JSON
            return _yaml(text, where)
        except (InvalidRequest, InvalidConfig):
            raise InvalidRequest(f"{where}: neither valid JSON ({error}) nor YAML.") from None


def _yaml(text: str, where: str) -> Any:
    import yaml

    node = Nodes(where).compose(text)
    loader = yaml.SafeLoader("")
    try:
        return None if node is None else loader.construct_document(node)
    except (yaml.YAMLError, ValueError) as error:
        raise InvalidRequest(f"{where}: not valid YAML ({one_line(str(error))}).") from None
    finally:
        loader.dispose()


# --- show -----------------------------------------------------------------------------------------


async def show(options: argparse.Namespace, app: Composition) -> int:
    output = standard_output()
    async with app.store() as store:
        info = await session_ids.resolve(store, options.session)
        found = await graphs_of(store, info.stream)
    if not found:
        raise NotFound(f"Session {info.id!r} has no graph. `magy graph run` begins one.")
    ids = [one["graphId"] for one in found]
    wanted = options.graph or ids[-1]
    graph = next((one for one in found if one["graphId"] == wanted), None)
    if graph is None:
        raise NotFound(f"Session {info.id!r} has no graph {wanted!r}. It has: {', '.join(ids)}.")
    if options.json:
        await output.write(record({"sessionId": info.id, **graph}))
    elif options.dot or options.mermaid:
        await output.write(f"{dot(graph) if options.dot else mermaid(graph)}\n")
    else:
        screen = Screen(output)
        await screen.write(_table(graph, screen.width))
    return exit_codes.DONE


def _table(graph: Mapping[str, Any], width: int | None) -> list[Span]:
    rows = [["task", "state", "agent", "model", "attempts", "time", "tokens", "cost"]]
    rows += [_row(task) for task in graph["tasks"]]
    wide = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    spans: list[Span] = []
    for number, row in enumerate(rows):
        line = "  ".join(
            cell.ljust(room) if place < 4 else cell.rjust(room)
            for place, (cell, room) in enumerate(zip(row, wide, strict=True))
        )
        state = graph["tasks"][number - 1]["state"] if number else ""
        style = STYLES.get(state, "") if number else "bold"
        spans.append((line.rstrip()[: width - 1 if width else None] + "\n", style))
    counts = ", ".join(f"{count} {state}" for state, count in graph["counts"].items())
    total = counted(sum(graph["counts"].values()), "task")
    running = "; at work" if graph["running"] else ""
    spans.append((f"{graph['graphId']}: {total}, {counts}{running}\n", "dim"))
    return spans


def _row(task: Mapping[str, Any]) -> list[str]:
    cost = task["cost"]
    unknown = cost["unpriced"] and not cost["amount"]
    tried = task["attempts"] > 0
    return [
        "  " * min(task["depth"], 8) + task["id"],
        task["state"],
        one_line(task["agent"]),
        one_line(task["model"]),
        str(task["attempts"]),
        f"{task['seconds']:.1f} s" if task["seconds"] else "",
        f"{task['tokens']:,}" if tried else "",
        "" if not tried else "unknown" if unknown else f"${cost['amount']:.4f}",
    ]


VERBS: Mapping[str, Verb] = {"run": run, "show": show}
