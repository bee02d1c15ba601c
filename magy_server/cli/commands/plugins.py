"""`magy plugins` lists the plugins of installed packages, switches them on and off, and opens their
doors."""

from __future__ import annotations

import argparse
import asyncio
import signal
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from magy_server.cli import exit_codes, project_directory
from magy_server.cli.commands.sessions import sure
from magy_server.cli.composition import Composition, Verb
from magy_server.cli.screen.complaints import complain
from magy_server.cli.screen.terminal import Screen, standard_output
from magy_server.cli.screen.text import Span, counted, filled, record
from magy_server.config import layers
from magy_server.core.text.sanitizing import one_line
from magy_server.plugins import switches
from magy_server.plugins.installed import Installed, installed
from magy_server.plugins.loading import Loaded, Plugins, load
from magy_server.tools.tool_schemas import SCHEMAS

RISK = (
    "A plugin is a program that runs inside Magy, with your rights: it can read your keys and "
    "files, whatever the rules say. Rules and questions hold for what agents do with its tools."
)

CLOSING = 30.0
"""Seconds that a door has to close in."""


_FOLLOWS = "no: it is installed for development, and follows its files"


async def listed(options: argparse.Namespace, app: Composition) -> int:
    there, wrong = await asyncio.to_thread(installed)
    plugins = await _loaded()
    problems = list(dict.fromkeys([*plugins.problems, *wrong]))
    output = standard_output()
    if vars(options).get("json"):
        await output.write(record(_as_json(there, plugins, problems)))
        return exit_codes.DONE
    screen = Screen(output)
    spans = [span for one in there.values() for span in _line(one, plugins, screen.width)]
    if not there:
        said = "No installed package has a plugin. docs/howto/plugins.md says how to write one."
        spans.append((filled(said, screen.width), "dim"))
    spans += [(filled(one_line(said), screen.width, "  "), "yellow") for said in problems]
    await screen.write(spans)
    return exit_codes.DONE


def _line(one: Installed, plugins: Plugins, width: int | None) -> Sequence[Span]:
    spans: list[Span] = [(one.name, "cyan"), (f"  {one_line(one.package)} {one.version}", "")]
    if one.name in plugins.used:
        spans.append(("\n", ""))
        return [*spans, *_brings(plugins.used[one.name], width)]
    state = "not used" if one.name in plugins.unusable else "off"
    spans.append((f"  ({state})\n", "dim"))
    if one.about:
        spans.append((filled(one_line(one.about), width, "      "), "dim"))
    return spans


def _brings(one: Loaded, width: int | None) -> Sequence[Span]:
    """What a plugin adds, a line for each kind."""
    plugin = one.plugin
    lines = [
        ("tools", ", ".join(f"{tool.name} ({tool.effect})" for tool in one.tools)),
        ("key", one.tools[0].key if one.tools else ""),
        ("hears", counted(len(plugin.listeners), "listener") if plugin.listeners else ""),
        ("prompts", counted(len(plugin.contexts), "context") if plugin.contexts else ""),
        ("doors", ", ".join(plugin.doors)),
        ("skills", one.installed.skills),
        ("pinned", _FOLLOWS if one.installed.editable else ""),
    ]
    shown = [f"{name:<8}{one_line(said)}" for name, said in lines if said]
    return [(filled(line, width, "      "), "") for line in shown or ["It adds nothing."]]


def _as_json(
    there: Mapping[str, Installed], plugins: Plugins, problems: Sequence[str]
) -> Mapping[str, Any]:
    rows = []
    for name, one in there.items():
        used = plugins.used.get(name)
        state = "off" if name not in plugins.unusable else "unusable"
        rows.append({
            "name": name, "package": one.package, "version": one.version,
            "state": "on" if used else state, "problem": plugins.unusable.get(name, ""),
            "tools": [tool.name for tool in used.tools] if used else [],
            "doors": list(used.plugin.doors) if used else [],
            "skills": one.skills,
        })  # fmt: skip
    return {"plugins": rows, "problems": problems}


async def _loaded() -> Plugins:
    chosen = await asyncio.to_thread(switches.chosen, str(layers.config_dir()))
    return await load(chosen, SCHEMAS)


async def enable(options: argparse.Namespace, app: Composition) -> int:
    screen = Screen(standard_output())
    one = await asyncio.to_thread(switches.named, options.name)
    about = f"{one.name}: {one.about or 'its author says nothing of it'}"
    head = f"{one_line(about)}\n  from {one_line(one.package)} {one.version}, {one.value}\n"
    await screen.write([(head, ""), (filled(RISK, screen.width), "yellow")])
    if not options.yes and not await asyncio.to_thread(sure, f"Switch {one.name} on?"):
        complain("nothing was changed.")
        return exit_codes.CANCELLED
    await asyncio.to_thread(switches.enable, one.name, str(layers.config_dir()))
    plugins = await _loaded()
    if one.name in plugins.unusable:
        complain(plugins.unusable[one.name])
        return exit_codes.ERROR
    said = f"{one.name} is on from the next start of Magy. It adds:\n"
    await screen.write([(said, "bold"), *_brings(plugins.used[one.name], screen.width)])
    return exit_codes.DONE


async def disable(options: argparse.Namespace, app: Composition) -> int:
    switch = switches.disable(options.name, str(layers.config_dir()))
    said = f"{options.name} is off from the next start of Magy; {switch.package} stays installed.\n"
    await Screen(standard_output()).write([(one_line(said.rstrip()) + "\n", "")])
    return exit_codes.DONE


async def run(options: argparse.Namespace, app: Composition) -> int:
    """Opens the door of a plugin, until the door returns or somebody ends the command."""
    from magy_server.plugins.supervising import supervised

    root, _ = project_directory.project(options.root, None)
    plugin, door = (await _loaded()).door(options.door)
    async with app.compose([root], {}) as (engine, _trust):
        work = partial(door, engine, root, tuple(options.words))
        said = f"the door {options.door}"
        opened = asyncio.ensure_future(supervised(plugin, said, work, CLOSING))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, opened.cancel)
        await asyncio.wait([opened])
        if opened.cancelled():
            return exit_codes.CANCELLED
        opened.result()
    return exit_codes.DONE


VERBS: Mapping[str | None, Verb] = {
    None: listed, "list": listed, "enable": enable, "disable": disable, "run": run,
}  # fmt: skip
