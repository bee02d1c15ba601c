"""A child may be spawned with rules of its own: they forbid and ask, and permit nothing. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping

from magy_server.core.errors import InvalidRequest
from magy_server.core.mcp.names import is_key
from magy_server.core.permit import EDITOR_KEYS, KEYS, Rule, Ruleset
from magy_server.core.values import Action

SOURCE = "spawned with"
ACTIONS: tuple[Action, ...] = ("allow", "ask", "deny")
MOST = 200
"""The most rules."""


def narrowing(table: Mapping[str, str | Mapping[str, str]], of_tools: Collection[str]) -> Ruleset:
    """Returns the rules of `{key: action}` or `{key: {pattern: action}}`, as in agent files.
    `of_tools`: the keys of all tools. An allow is an exception to what the same key denies or asks,
    so an allow alone has no effect. Raises InvalidRequest naming what is wrong: a rule that is
    silently not read would be a permission that silently does not hold."""
    known = tuple(dict.fromkeys((*KEYS, *EDITOR_KEYS, *sorted(of_tools))))
    keys = {_key(key, known): tuple(_rules(key, said)) for key, said in table.items()}
    if sum(map(len, keys.values())) > MOST:
        raise InvalidRequest(f"permissions: no more than {MOST} rules.")
    for key, rules in keys.items():
        if all(rule.action == "allow" for rule in rules):
            raise InvalidRequest(
                f"permissions: {key} only allows, but this setting can only restrict: a child may "
                "never do more than its agent and its parents. Write an ask or a deny, or "
                "leave it out."
            )
    return Ruleset(source=SOURCE, keys=keys, narrows=True)


def _key(key: str, known: Collection[str]) -> str:
    if key in known or is_key(key):
        return key
    near = difflib.get_close_matches(key.lower(), known, n=1, cutoff=0.7)
    meant = f" Did you mean {near[0]!r}?" if near else ""
    raise InvalidRequest(
        f"permissions: no tool has the key {key!r}.{meant} Known are: {', '.join(known)}."
    )


def _rules(key: str, said: str | Mapping[str, str]) -> Iterator[Rule]:
    if isinstance(said, str):
        yield Rule(pattern="*", action=_action(key, said), bare=True)
        return
    if not said:
        raise InvalidRequest(f"permissions: there are no rules for {key}; write an action.")
    for pattern, action in said.items():
        if not pattern:
            raise InvalidRequest(f'permissions: {key} has an empty pattern; "*" is everything.')
        yield Rule(pattern=pattern, action=_action(key, action))


def _action(key: str, text: str) -> Action:
    for action in ACTIONS:
        if text == action:
            return action
    raise InvalidRequest(f"permissions: {key}: an action must be allow, ask or deny, not {text!r}.")
