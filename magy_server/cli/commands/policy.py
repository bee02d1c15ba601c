"""`magy policy` tells which rules hold in a project, and what they come to for a call that nobody
makes: from the same facts as the judge, and with the reason."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from magy_server.api.service import Service
from magy_server.cli import exit_codes, project_directory
from magy_server.cli.composition import Composition, Options, Verb
from magy_server.cli.screen.terminal import Screen, standard_output
from magy_server.cli.screen.text import Span, record
from magy_server.core.errors import InvalidRequest, NotFound, ToolError
from magy_server.core.permit import Ruleset
from magy_server.core.text.sanitizing import one_line
from magy_server.core.tool import Tool
from magy_server.engine.feature_ports import Features
from magy_server.engine.rules import levels, rulesets
from magy_server.engine.session import Session
from magy_server.engine.trial import Trial, session_for_trials, tried
from magy_server.store.memory import MemoryStore
from magy_server.team.access import TeamAccess
from magy_server.team.reputations import Reputations

STYLE = {"allow": "green", "ask": "yellow", "deny": "red"}
KEYS: Mapping[str, str] = {
    "read": "read_file", "write": "write_file", "net": "web_fetch", "shell": "bash",
}  # fmt: skip
"""Permission keys that may stand for a tool on the command line."""
_CONTENT: Mapping[str, Any] = {"content": ""}
FILLED: Mapping[str, Mapping[str, Any]] = {"write_file": _CONTENT, "edit_file": _CONTENT}
"""What a call needs besides the words of the command line."""


async def test(options: Options, app: Composition) -> int:
    root, _ = project_directory.project(options.root, None)
    async with app.compose([root], {"titles": False}) as (service, _trust):
        asked = vars(options)
        session = await _session(service, root, asked.get("agent"))
        tool = _tool(await service.world.tools.gathered(root), options.tool)
        arguments = _arguments(tool, asked.get("words", ()), asked.get("arguments"))
        features = Features(
            changes=service.reviews,
            team=partial(
                TeamAccess,
                service.world,
                service.loaded,
                service.children,
                service.mailing,
                Reputations(service.world),
            ),
        )
        try:
            trial = await tried(session, service.world, features, tool, arguments)
        except ToolError as error:
            raise InvalidRequest(f"Such a call cannot be made. {error.message}") from None
    output = standard_output()
    if vars(options).get("json"):
        await output.write(record(_as_json(tool, trial)))
    else:
        await Screen(output).write(_lines(session.state.agent, tool, trial))
    return exit_codes.DONE


async def listed(options: Options, app: Composition) -> int:
    root, _ = project_directory.project(options.root, None)
    async with app.compose([root], {"titles": False}) as (service, _trust):
        session = await _session(service, root, vars(options).get("agent"))
        (level,) = await levels(service.world, session.state, ())
        found = rulesets(level.text)
    output = standard_output()
    if vars(options).get("json"):
        dumped = [one.model_dump(mode="json", exclude_defaults=True) for one in found]
        await output.write(record({"sources": dumped}))
    else:
        names = dict.fromkeys(one.source for one in found)
        parts = ((name, [one for one in found if one.source == name]) for name in names)
        spans = [span for name, some in parts for span in _source(name, some)]
        await Screen(output).write(spans)
    return exit_codes.DONE


async def _session(service: Service, root: str, agent: str | None) -> Session:
    world = service.world
    chosen = agent or world.settings(root).default_agent
    return await session_for_trials(world, MemoryStore(), root, chosen)


def _tool(tools: Mapping[str, Tool], name: str) -> Tool:
    if name == "edit":  # a change of a part, whatever the part is
        return replace(tools["write_file"], name="edit_file", key="edit")
    tool = tools.get(name) or tools.get(KEYS.get(name, ""))
    if tool is None:
        raise NotFound(f"There is no tool {name!r}. Tools are: {', '.join(sorted(tools))}.")
    return tool


def _arguments(tool: Tool, words: Sequence[str], given: str | None) -> dict[str, Any]:
    """The words are the first parameter that a call needs; `given`, JSON, is all of them."""
    if given is not None:
        try:
            arguments = json.loads(given)
        except ValueError as error:
            raise InvalidRequest(f"--arguments is not JSON: {error}.") from None
        if not isinstance(arguments, dict):
            raise InvalidRequest("--arguments must be a JSON object, as a model writes it.")
        return arguments
    if not words:
        return {}
    properties = tool.parameters.get("properties", {})
    first = next(iter(tool.parameters.get("required", properties)), None)
    if first is None:
        raise InvalidRequest(f"{tool.name} takes no arguments.")
    return {**FILLED.get(tool.name, {}), first: " ".join(words)}


# --- what is printed ------------------------------------------------------------------------------


def _lines(agent: str, tool: Tool, trial: Trial) -> list[Span]:
    decision = trial.decision
    firm = " (each time, by a person)" if decision.firm and decision.action == "ask" else ""
    spans: list[Span] = [
        (f"{one_line(trial.facts.title)}\n", "bold"),
        (decision.action, STYLE[decision.action]),
        (f"{firm}  {one_line(decision.rule)}\n", ""),
        (f"\nTool {tool.name}, permission key {tool.key}, agent {agent}.\n", "dim"),
    ]
    if not trial.offered:
        spans.append(("The model is not shown this tool: no call of it can pass.\n", "yellow"))
    spans.append(("\nWhat each source says by itself; deny beats ask, and ask beats allow:\n", ""))
    for source, said in trial.by_source:
        action = said.action if said else "-"
        why = one_line(said.rule) if said else f"{one_line(source)}: says nothing of it"
        spans += [(f"  {action:<6}", STYLE.get(action, "dim")), (f"{why}\n", "" if said else "dim")]
    if decision.action == "ask":
        lasting = ", ".join(f"`{one_line(one)}`" for one in trial.remembered) or "nothing"
        spans.append((f"\nA lasting yes would remember {lasting}.\n", "dim"))
    return spans


def _as_json(tool: Tool, trial: Trial) -> Mapping[str, Any]:
    return {
        "tool": tool.name,
        "key": tool.key,
        "decision": trial.decision.action,
        "rule": trial.decision.rule,
        "firm": trial.decision.firm,
        "offered": trial.offered,
        "resources": [
            one.model_dump(mode="json", exclude_defaults=True) for one in trial.facts.resources
        ],
        "sources": [
            {"source": source, "decision": said and said.action, "rule": said and said.rule}
            for source, said in trial.by_source
        ],
        "remembered": list(trial.remembered),
    }


def _source(name: str, parts: Sequence[Ruleset]) -> list[Span]:
    """The rules of a file, and its guardrails, are two parts of one source."""
    spans: list[Span] = [(f"{one_line(name)}\n", "bold")]
    for key, rules in [pair for one in parts for pair in one.keys.items()]:
        for rule in rules:
            pattern = "" if rule.bare else f" {one_line(rule.pattern)}"
            action = (f"  {rule.action:<6}", STYLE[rule.action])
            spans += [action, (f"{key}{pattern}\n", "")]
    for rail in [rail for one in parts for rail in one.guardrails]:
        message = f"  # {one_line(rail.message)}" if rail.message else ""
        spans += [(f"  {one_line(rail.text)}", ""), (f"{message}\n", "dim")]
    return spans


VERBS: Mapping[str | None, Verb] = {None: listed, "list": listed, "test": test}
