"""This module turns the `permission` table of a configuration file into rules."""

from __future__ import annotations

from collections.abc import Iterator

from magy_server.core.permit import Rule, Ruleset
from magy_server.core.settings import Patterns, Permission
from magy_server.core.values import Action


def ruleset(source: str, table: Permission) -> Ruleset:
    """Returns the rules as they are written; `source` names the file for people."""
    keys = {key: tuple(_rules(rules)) for key, rules in table.items()}
    return Ruleset(source=source, keys=keys)


def _rules(rules: Action | Patterns | list[Patterns]) -> Iterator[Rule]:
    if isinstance(rules, str):
        yield Rule(pattern="*", action=rules, bare=True)
        return
    for patterns in rules if isinstance(rules, list) else [rules]:
        for pattern, action in patterns.items():
            yield Rule(pattern=pattern, action=action)
