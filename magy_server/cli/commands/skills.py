"""`magy skills` lists the skills of a project, tells what is wrong with one and when one goes
along, and writes, installs and removes them."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from magy_server.cli import exit_codes, project_directory
from magy_server.cli.commands.sessions import sure
from magy_server.cli.composition import Composition, Verb
from magy_server.cli.project_trust import trusted
from magy_server.cli.screen.complaints import complain
from magy_server.cli.screen.terminal import Screen, standard_output
from magy_server.cli.screen.text import Span, counted, filled, record
from magy_server.config import layers
from magy_server.config.shipped import shipped
from magy_server.core.errors import InvalidConfig, InvalidRequest
from magy_server.core.skills.fitting import ENOUGH, MOST, Fit, attached, fits
from magy_server.core.skills.skill import Skill, Skills, parse_skill
from magy_server.core.text.sanitizing import one_line, visible
from magy_server.plugins.switches import chosen
from magy_server.regex import regex
from magy_server.skills import finding, installing
from magy_server.tools.prompts.mentions import NAMED_SKILL

_MENTION = regex(r"(?<![\w.@/])@([^\s\"]+)")
BEGUN = """---
name: {name}
description: Says in one sentence what this is for. Use when it is plain that somebody wants that.
allowed-tools: read_file grep edit_file
---
# What this is for

Say what a good result is.

## Steps

1. What to look at first.
2. What to do, and in what order.
3. How to see that it worked.

Never: what must not happen.
"""


async def listed(options: argparse.Namespace, app: Composition) -> int:
    root, skills = await _found(options, app)
    output = standard_output()
    screen = Screen(output)
    if vars(options).get("json"):
        await output.write(record(_as_json(skills)))
        return exit_codes.DONE
    spans: list[Span] = [(f"{one_line(root)}\n", "bold")]
    for skill in skills.values():
        about = "" if skill.source == "bundled" else f" ({skill.source})"
        spans += [(f"  {skill.name}", "cyan"), (f"{about}\n", "dim")]
        spans.append((filled(one_line(skill.description), screen.width, "      "), ""))
    for problem in skills.problems:
        spans.append((filled(one_line(problem), screen.width, "  "), "yellow"))
    if skills.untrusted:
        spans.append((filled(_unused(skills), screen.width, "  "), "yellow"))
    await screen.write(spans)
    return exit_codes.DONE


def _unused(skills: Skills) -> str:
    many = counted(len(skills.untrusted), "skill")
    return f"{many} of this project not used until you trust it: magy config trust\n"


def _as_json(skills: Skills) -> Mapping[str, Any]:
    rows = [
        {**one.model_dump(mode="json", include={"name", "description", "source", "where", "hash"}),
         "type": one.kind, "tools": one.used().tools}
        for one in skills.values()
    ]  # fmt: skip
    problems = list(skills.problems)
    return {"skills": rows, "problems": problems, "untrusted": sorted(skills.untrusted)}


async def show(options: argparse.Namespace, app: Composition) -> int:
    _, skills = await _found(options, app)
    skill = skills.named(options.name)
    await Screen(standard_output()).write([*_about(skill), (f"\n{visible(skill.body)}\n", "")])
    return exit_codes.DONE


def _about(skill: Skill, origin: str = "") -> Sequence[Span]:
    """`origin`: where it comes from, if it does not lie here yet."""
    lines = [
        ("what", skill.description),
        ("from", origin or f"{skill.source}: {skill.where}"),
        ("touches", _touches(skill)),
        ("hash", skill.hash),
    ]
    return [(f"{skill.name}\n", "bold"), *((f"  {k:<8}{one_line(v)}\n", "") for k, v in lines)]


def _touches(skill: Skill) -> str:
    """What a skill states, in words."""
    stated = skill.used().tools
    if stated is None:
        return "as the agent may; it is not limited"
    return ", ".join(stated) or "nothing: while it is at work, what changes anything is asked"


async def check(options: argparse.Namespace, app: Composition) -> int:
    screen = Screen(standard_output())
    if options.paths:
        paths = [one for path in options.paths for one in finding.below(path)]
        read = [_read(path) for path in paths]
        wrong, skills = [one for one in read if isinstance(one, str)], read
        count = len(paths)
    else:
        _, found = await _found(options, app)
        wrong, skills = list(found.problems), list(found.values())
        count = len(found) + len(found.broken)
        if found.untrusted:
            await screen.write([(_unused(found), "yellow")])
    for problem in wrong:
        complain(problem)
    for skill in skills:
        if isinstance(skill, Skill) and (names := _unknown_tools(skill)):
            said = (
                f"{visible(skill.where)}: Magy has no tool {', '.join(names)}. If no plugin or MCP "
                "server has it, correct `allowed-tools`; docs/reference/tools.md lists them.\n"
            )
            await screen.write([(said, "yellow")])
    await screen.write([(f"{counted(count, 'skill')} looked at, {len(wrong)} wrong\n", "")])
    return exit_codes.ERROR if wrong else exit_codes.DONE


def _read(path: str) -> Skill | str:
    """The skill, or what is wrong with it."""
    try:
        return finding.read_one(path)
    except InvalidConfig as error:
        return error.message


def _unknown_tools(skill: Skill) -> Sequence[str]:
    from magy_server.tools.tool_schemas import SCHEMAS

    stated = skill.tools or ()
    return [name for name in stated if name not in SCHEMAS and not name.endswith("*")
            and not name.startswith("mcp__")]  # fmt: skip


async def explain(options: argparse.Namespace, app: Composition) -> int:
    root, skills = await _found(options, app)
    names = [one.rstrip(".,;:") for one in _MENTION.findall(options.prompt)]
    files = [name for name in names if os.path.exists(os.path.join(root, name))]
    found = fits(skills.values(), options.prompt, files)
    along = {fit.skill.name for fit in attached(skills.values(), options.prompt, files)}
    spans = [span for fit in found for span in _explained(fit, fit.skill.name in along)]
    if (first := NAMED_SKILL.match(options.prompt)) and skills.wanted(first[1]):
        spans = [(f"{first[1]}: you name it, and it goes along\n", "green")]
    said = f"From {ENOUGH:g} on a skill goes along, at most {MOST}, unless you name one with `@`."
    nothing = "No skill's words stand in this prompt.\n"
    await Screen(standard_output()).write([*spans, (f"{said}\n" if spans else nothing, "dim")])
    return exit_codes.DONE


def _explained(fit: Fit, along: bool) -> Sequence[Span]:
    said = "goes along" if along else "does not go along"
    parts = ", ".join(fit.because)
    return [
        (f"{fit.skill.name} {fit.score:g}: {said}\n", "green" if along else ""),
        (f"  {parts}\n", "dim"),
    ]


async def new(options: argparse.Namespace, app: Composition) -> int:
    text = BEGUN.format(name=options.name)
    parse_skill(options.name, text, options.name)  # the name is checked
    own = finding.own_folder(str(layers.config_dir()))
    if options.project:
        own = finding.project_folders(project_directory.project(options.root, None)[0])[-1].path
    folder = os.path.join(own, options.name)
    if os.path.lexists(folder):
        raise InvalidRequest(f"{folder} is there already.")
    os.makedirs(folder)
    path = os.path.join(folder, finding.FILE)
    Path(path).write_text(text, "utf-8")
    said = f"written: {path}\nEdit it, then try `magy skills check {folder}`.\n"
    if options.project:
        said += "Magy uses it once you trust the project as it is then: `magy config trust`.\n"
    await Screen(standard_output()).write([(said, "")])
    return exit_codes.DONE


async def install(options: argparse.Namespace, app: Composition) -> int:
    screen = Screen(standard_output())
    config = str(layers.config_dir())
    with installing.candidate(options.origin, options.part) as one:
        held = f"  {'files':<8}{one.count}; {one.hash}\n"
        origin = os.path.join(one.origin, one.part) if one.part else one.origin
        await screen.write([*_about(one.skill, origin), (held, "")])
        if one.skill.name in shipped().skills:
            said = f"It takes the place of the skill {one.skill.name} that comes with Magy.\n"
            await screen.write([(said, "yellow")])
        if options.replace and (there := installing.written_by_hand(one.skill.name, config)):
            await screen.write([(f"{one_line(there)} is deleted.\n", "yellow")])
        question = f"Install {one.skill.name}?"
        if not options.yes and not await asyncio.to_thread(sure, question):
            complain("nothing was installed.")
            return exit_codes.CANCELLED
        where = installing.install(one, config, replace=options.replace)
    await screen.write([(f"installed in {one_line(where)}\n", "")])
    return exit_codes.DONE


async def remove(options: argparse.Namespace, app: Composition) -> int:
    question = f"Remove the skill {options.name}, with all of its files?"
    if not options.yes and not await asyncio.to_thread(sure, question):
        complain("nothing was removed.")
        return exit_codes.CANCELLED
    where = installing.remove(options.name, str(layers.config_dir()))
    await Screen(standard_output()).write([(f"removed {one_line(where)}\n", "")])
    return exit_codes.DONE


async def _found(options: argparse.Namespace, app: Composition) -> tuple[str, Skills]:
    root, _ = project_directory.project(options.root, None)
    config, home = str(layers.config_dir()), os.path.expanduser("~")
    vouched = await trusted(app, root)
    brought = chosen(config).skills
    return root, finding.find_skills(
        shipped().skills, config, home, root, trusted=vouched, brought=brought
    )


VERBS: Mapping[str | None, Verb] = {
    None: listed, "list": listed, "show": show, "check": check, "explain": explain, "new": new,
    "install": install, "remove": remove,
}  # fmt: skip
