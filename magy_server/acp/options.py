"""This module writes a session's options in the shape of version 1: as config options, and as modes
for those clients that know only these. Agents are the modes. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Json = dict[str, Any]
Listed = Sequence[Mapping[str, Any]]
"""`ConfigOption`s of Magy's wire, as JSON."""
MODE = "agent"
"""The option whose values are modes."""
_CATEGORY = {"agent": "mode", "model": "model"}
_SAID = {
    "agent": "Who works: the agent decides about tools, rules and instructions",
    "review": "What becomes of an agent's edits: review them in the file, propose them only, or "
    "accept them at once",
    "bypass": "Whether questions are answered with yes; deny rules still hold",
}


def v1(options: Listed) -> list[Json]:
    return [_option(one) for one in options if _values(one)]


def changed(options: Listed, id: str, value: str) -> list[Json] | None:
    """The options with one that has another value; None if it has that already."""
    now = {one["configId"]: one["currentValue"] for one in options}
    if id not in now or now[id] == value:
        return None
    return [{**one, "currentValue": value} if one["configId"] == id else {**one} for one in options]


def modes(options: Listed, agents: Listed) -> Json | None:
    """`agents` of `magy/agent/list`."""
    about = {one["name"]: one["description"] for one in agents}
    for one in options:
        if one["configId"] == MODE and (names := _values(one)):
            available = [{"id": name, "name": name, **_said(about.get(name))} for name in names]
            return {"currentModeId": one["currentValue"], "availableModes": available}
    return None


def _values(option: Mapping[str, Any]) -> list[str]:
    """What it may be, what it is among them; a model that nobody chose is none."""
    return [
        *dict.fromkeys(value for value in (*option["options"], option["currentValue"]) if value)
    ]


def _option(option: Mapping[str, Any]) -> Json:
    id, values = option["configId"], _values(option)
    category = {"category": _CATEGORY[id]} if id in _CATEGORY else {}
    return {
        "id": id,
        "name": option["name"],
        **_said(_SAID.get(id)),
        **category,
        "type": "select",
        "currentValue": option["currentValue"] or values[0],
        "options": [{"value": value, "name": value} for value in values],
    }


def _said(description: str | None) -> Json:
    """Left out rather than null: to Lua, say, that is something."""
    return {"description": description} if description else {}
