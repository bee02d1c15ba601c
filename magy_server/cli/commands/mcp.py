"""`magy mcp` lists, adds, removes and tests MCP servers, shows their logs, and takes those that
other agents have."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from magy_server.cli import exit_codes, project_directory
from magy_server.cli.composition import ONCE, Composition, Verb
from magy_server.cli.project_trust import trusted
from magy_server.cli.screen.terminal import Screen, standard_output
from magy_server.cli.screen.text import Span, filled, record
from magy_server.config import layers, mcp_file
from magy_server.config.mcp_imports import Found, found
from magy_server.core.errors import InvalidConfig, InvalidRequest, NotFound
from magy_server.core.mcp.server_settings import McpServer, usable
from magy_server.core.mcp.status import ServerStatus
from magy_server.core.text.sanitizing import one_line
from magy_server.mcp.server_log import last_failure, log_path

FILE = "magy.toml"
TAIL = 200
"""Lines of a log that are shown."""


async def listed(options: argparse.Namespace, app: Composition) -> int:
    root, here = await loaded(options, app)
    output = standard_output()
    screen = Screen(output)
    servers = here.settings.mcp
    problems = [*here.problems, *_unusable(here)]
    if vars(options).get("json"):
        await output.write(record(_as_json(here, problems)))
        return exit_codes.DONE
    spans: list[Span] = [(f"{one_line(root)}\n", "bold")]
    for name, one in servers.items():
        spans.append((f"  {name}", "cyan" if one.enabled else "dim"))
        state = "" if one.enabled else "  (off)"
        spans.append((f"  {one_line(one.starts)}{state}\n", ""))
        spans.append((filled(_from(here, name), screen.width, "      "), "dim"))
        if why := _last_failure(name):
            spans.append((filled(f"last time: {why}", screen.width, "      "), "yellow"))
    if not servers:
        spans.append((filled("No MCP server is configured here.", screen.width, "  "), "dim"))
    for problem in problems:
        spans.append((filled(one_line(problem), screen.width, "  "), "yellow"))
    if any("mcp" in one for one in here.ignored):
        said = "This project names servers, too; they wait until you trust it: magy config trust"
        spans.append((filled(said, screen.width, "  "), "yellow"))
    await screen.write(spans)
    return exit_codes.DONE


def _as_json(loaded: layers.Loaded, problems: Sequence[str]) -> Mapping[str, Any]:
    rows = [
        {
            "name": name,
            "starts": one.starts,
            "enabled": one.enabled,
            "from": _from(loaded, name),
            "last_failure": _last_failure(name),
        }
        for name, one in loaded.settings.mcp.items()
    ]
    return {"servers": rows, "ignored": list(loaded.ignored), "problems": problems}


def _last_failure(name: str) -> str:
    return one_line(last_failure(log_path(layers.state_dir(), name)))


def _from(loaded: layers.Loaded, name: str) -> str:
    return one_line(loaded.origins.get(f"mcp.{name}", ""))


def _unusable(loaded: layers.Loaded) -> Iterable[str]:
    for name, server in loaded.settings.mcp.items():
        if server.enabled and (why := _problem(name, server)):
            yield f"MCP server {name!r}: {why}"


def _problem(name: str, server: McpServer) -> str:
    try:
        usable(name, server, os.environ)
    except InvalidConfig as error:
        return error.message
    return ""


async def loaded(options: argparse.Namespace, app: Composition) -> tuple[str, layers.Loaded]:
    """Returns the project that is meant, and what is configured there."""
    root, _ = project_directory.project(options.root, None)
    return root, layers.load(root, trusted=await trusted(app, root), options={})


# --- changing -----------------------------------------------------------------------------------


async def add(options: argparse.Namespace, app: Composition) -> int:
    path, where = _file(options)
    if options.name in layers.read(path).values.get("mcp", {}):
        raise InvalidRequest(f"{path} has a server {options.name!r} already; remove it first.")
    values = _table(options)
    usable(options.name, McpServer.model_validate(values).model_copy(update={"env": {}}), {})
    mcp_file.rewritten(path, mcp_file.added(_text(path), options.name, values))
    said = f"added {options.name} to {where}; `magy mcp test {options.name}` tries it\n"
    await Screen(standard_output()).write([(said, "")])
    return exit_codes.DONE


def _table(options: argparse.Namespace) -> dict[str, Any]:
    if options.starts.startswith(("http://", "https://")):
        if options.arguments:
            raise InvalidRequest("An address takes no arguments.")
        values: dict[str, Any] = {"url": options.starts}
    else:
        values = {"command": options.starts, "args": options.arguments}
    pairs = {"env": _pairs(options.env), "headers": _pairs(options.header)}
    return {**values, **{key: value for key, value in pairs.items() if value}}


def _pairs(given: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise InvalidRequest(f"{text!r} is not NAME=VALUE.")
        found[name] = value
    return found


async def remove(options: argparse.Namespace, app: Composition) -> int:
    path, where = _file(options)
    text = mcp_file.removed(_text(path), options.name)
    if text == _text(path):
        raise NotFound(f"There is no [mcp.{options.name}] in {where}.")
    mcp_file.rewritten(path, text)
    await Screen(standard_output()).write([(f"removed {options.name} from {where}\n", "")])
    return exit_codes.DONE


def _file(options: argparse.Namespace) -> tuple[Path, str]:
    """The settings file that is meant, and what it is for people."""
    if not options.project:
        path = layers.config_dir() / FILE
        return path, f"your settings ({path})"
    root, _ = project_directory.project(options.root, None)
    path = Path(root) / FILE
    return path, f"the project's settings ({path}), which you must trust again"


def _text(path: Path) -> str:
    layers.read(path)  # says what is wrong with it
    return path.read_text("utf-8") if path.exists() else ""


async def imported(options: argparse.Namespace, app: Composition) -> int:
    root, _ = project_directory.project(options.root, None)
    screen = Screen(standard_output())
    servers, problems = found(root, os.path.expanduser("~"))
    path = layers.config_dir() / FILE
    known = dict(layers.read(path).values.get("mcp", {}))
    spans: list[Span] = [
        (filled(one_line(said), screen.width, "  "), "yellow") for said in problems
    ]
    text, taken = _text(path), 0
    for one in servers:
        why = _left(one, known)
        said = f"{one.name} of {one.of} ({one.where})"
        if not why:
            text, taken = mcp_file.added(text, one.name, one.table), taken + 1
            known[one.name] = one.table
        line = f"{said}: {why}" if why else said
        spans.append((filled(one_line(line), screen.width, "  "), "dim" if why else ""))
    await screen.write(spans)
    if not taken:
        await screen.write([("There is nothing new to take.\n", "")])
        return exit_codes.DONE
    if not options.yes and not _confirmed(taken, path):
        return exit_codes.CANCELLED
    mcp_file.rewritten(path, text)
    await screen.write([(f"{taken} written to {one_line(str(path))}\n", "")])
    return exit_codes.DONE


def _left(one: Found, known: Mapping[str, Any]) -> str:
    """Why a server is not taken; "" if it is."""
    if one.name in known:
        return "you have one of this name"
    server = McpServer.model_validate(one.table)
    why = _problem(one.name, server)
    return "" if "no variable" in why else why


def _confirmed(taken: int, path: Path) -> bool:
    if not sys.stdin.isatty():
        raise InvalidRequest("Nobody can be asked here: give --yes.")
    answer = input(f"Write these {taken} to {path}, with the values of their variables? [y/N] ")
    return answer.strip().lower() in ("y", "yes")


# --- looking --------------------------------------------------------------------------------------


async def test(options: argparse.Namespace, app: Composition) -> int:
    root, _ = project_directory.project(options.root, None)
    screen = Screen(standard_output())
    failed = False
    async with app.compose([root], ONCE) as (service, trust):
        tools = service.world.tools
        names = options.names or [status.name for status in tools.servers(root)]
        for name in names:
            status = await tools.tried(root, name)
            if status is None:
                known = ", ".join(one.name for one in tools.servers(root)) or "none"
                raise NotFound(
                    f"There is no MCP server {name!r} that can be used here. These can: {known}."
                )
            failed = failed or status.condition != "ready"
            await screen.write(_tested(status, screen))
        problems = [said for said in trust.problems(root) if "MCP server" in said]
        await screen.write([(filled(one_line(said), screen.width), "yellow") for said in problems])
    if not names:
        await screen.write([("No MCP server is configured here.\n", "dim")])
    return exit_codes.ERROR if failed else exit_codes.DONE


def _tested(status: ServerStatus, screen: Screen) -> list[Span]:
    if status.condition != "ready":
        said = f"{status.name}: {one_line(status.problem)}"
        return [(f"{screen.marks.failed} ", "red"), (filled(said, screen.width), "")]
    head = f"{status.name}: {one_line(status.about)}, {len(status.tools)} tools\n"
    spans: list[Span] = [(f"{screen.marks.done} ", "green"), (head, "bold")]
    for name, about in status.tools:
        spans.append((f"    {name}\n", "cyan"))
        spans.append((filled(one_line(about)[:200], screen.width, "        "), "dim"))
    return spans


async def logs(options: argparse.Namespace, app: Composition) -> int:
    path = log_path(layers.state_dir(), options.name)
    if os.sep in options.name or not path.is_file():
        raise NotFound(f"The MCP server {options.name!r} has no log: it was never connected to.")
    lines = path.read_text("utf-8", "replace").splitlines()[-TAIL:]
    await Screen(standard_output()).write([(f"{one_line(line)}\n", "") for line in lines])
    return exit_codes.DONE


VERBS: Mapping[str | None, Verb] = {
    None: listed, "list": listed, "add": add, "remove": remove, "test": test, "logs": logs,
    "import": imported,
}  # fmt: skip
