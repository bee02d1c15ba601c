"""This module gives what Magy ships as agents, skills, actions and common rules. They are worked
out beforehand (`shipped_agents.json`), since to read the YAML of these files takes a twelfth of a
short command; the files themselves are read if somebody has changed one."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from magy_server.config.resources import resource
from magy_server.core.actions import ActionSpec, parse_actions
from magy_server.core.permit import Rule, Ruleset
from magy_server.core.skills.skill import Skill, parse_skill
from magy_server.core.specs import AgentSpec, parse_agent, parse_rules
from magy_server.core.values import Value

COMMON = "common.yaml"
"""Rules that hold for every agent. The user's file of this name replaces the shipped one."""
ACTIONS = "actions.yaml"
"""Beside the agents: what editors offer. Action by action the nearest file counts."""
BASES = ("build", "plan", "explore", "general")
"""These agents others extend, and `build` each of these: they are read first."""
COMMON_RULES = "common rules"
"""What people read as the source of these rules."""


WORKED_OUT = Path(__file__).with_name("shipped_agents.json")


class Shipped(Value):
    """`rules` are the common ones. `~` in rules stands for the home directory still."""

    agents: Mapping[str, AgentSpec]
    actions: Mapping[str, ActionSpec | None]
    rules: Ruleset
    skills: Mapping[str, Skill]


@cache
def shipped() -> Shipped:
    """Raises InvalidConfig where somebody made a shipped file wrong."""
    return of(texts())


def of(texts: Mapping[str, str]) -> Shipped:
    """Takes texts as `texts` returns them. Raises InvalidConfig."""
    known = orjson.loads(WORKED_OUT.read_bytes())
    if digest(texts) == known["digest"]:
        return _unpacked(known)
    return parsed({str(resource(name)): text for name, text in texts.items()})


def texts() -> Mapping[str, str]:
    """Returns the texts of the files by their paths, from the directory that has all of them."""
    above = resource()
    files = (*above.glob("agents/*.md"), *above.glob("skills/*/SKILL.md"),
             *(above / "agents" / name for name in (ACTIONS, COMMON)))  # fmt: skip
    return {str(path.relative_to(above)): path.read_text("utf-8") for path in sorted(files)}


def digest(texts: Mapping[str, str]) -> str:
    found = hashlib.sha256()
    for name in sorted(texts):
        found.update(f"{name}\0{texts[name]}\0".encode())
    return found.hexdigest()


def parsed(texts: Mapping[str, str]) -> Shipped:
    """By the paths of the files."""
    agents: dict[str, AgentSpec] = {}
    actions: dict[str, ActionSpec | None] = {}
    skills: dict[str, Skill] = {}
    rules = Ruleset(source="")
    for where in sorted(texts, key=_place):
        path, text = Path(where), texts[where]
        if path.name == COMMON:
            rules = parse_rules(COMMON_RULES, text, where)
        elif path.name == ACTIONS:
            actions |= parse_actions(text, where)
        elif path.name == "SKILL.md":
            name = path.parent.name
            skills[name] = parse_skill(name, text, where)
        else:
            agents[path.stem] = parse_agent(path.stem, text, where, agents)
    return Shipped(agents=agents, actions=actions, rules=rules, skills=skills)


def _place(where: str) -> tuple[int, str]:
    name = Path(where).stem
    return BASES.index(name) if name in BASES else len(BASES), where


def packed(shipped: Shipped, digest: str) -> Mapping[str, Any]:
    """Returns what `WORKED_OUT` has of them, as JSON: each list of rules stands there once, as most
    agents share theirs with others."""
    lists: list[Any] = []

    def numbered(rules: dict[str, Any]) -> dict[str, Any]:
        for one in rules["keys"].values():
            if one not in lists:
                lists.append(one)
        return {**rules, "keys": {key: lists.index(one) for key, one in rules["keys"].items()}}

    values = shipped.model_dump(mode="json", exclude_defaults=True)
    agents = {name: {**a, "rules": numbered(a["rules"])} for name, a in values["agents"].items()}
    rules = numbered(values["rules"])
    return {"digest": digest, **values, "agents": agents, "rules": rules, "lists": lists}


def _unpacked(known: Mapping[str, Any]) -> Shipped:
    """Reverses `packed`, with the paths where the files are on this machine. Who has the same rules
    shares them."""
    above = resource()
    agents, actions, skills = known["agents"], known["actions"], known["skills"]
    own = (action for one in agents.values() for action in one.get("actions", ()))
    for one in (*agents.values(), *filter(None, actions.values()), *skills.values(), *own):
        one["where"] = str(above / one["where"])
    lists = [tuple(Rule(**rule) for rule in rules) for rules in known["lists"]]
    for one in agents.values():
        one["rules"] = _rules(one["rules"], lists)
    return Shipped(
        agents=agents, actions=actions, skills=skills, rules=_rules(known["rules"], lists)
    )


def _rules(about: Mapping[str, Any], lists: Sequence[tuple[Rule, ...]]) -> Ruleset:
    return Ruleset(**{**about, "keys": {key: lists[at] for key, at in about["keys"].items()}})
