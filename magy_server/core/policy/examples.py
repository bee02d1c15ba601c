"""Rules may carry examples: calls, and the action that the rules must come to for each. They are
tried when the file is read, so that a pattern which means something else is found at once. Pure.

A call is judged by the rules of its file alone, and nothing is looked up on disk: a path is below
the workspace root unless it begins with `/` or `~/`, and a command names no files.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from magy_server.core.permit import EDITOR_KEYS, Ruleset, decide
from magy_server.core.values import Action, Decision, Effect, Facts, Resource

_ROOT = "/the-workspace"
_HOME = "/home/of-the-person"
_EFFECTS: Mapping[str, Effect] = {
    "read": "read", "edit": "write", "write": "write", "bash": "exec", "git": "exec",
    "net": "net", "http": "net", "github": "net", "browser": "net",
    "agent": "agent",
}  # fmt: skip
_FILES = ("read", "edit", "write")


def wrong_example(rules: Ruleset, key: str, call: str, expected: Action) -> str | None:
    """Returns a sentence that says what is wrong with an example, and None if nothing is. The
    patterns of the rules begin with `~/` as they are written."""
    found = decision(rules.at_home(_HOME), key, call)
    if found.action == expected:
        return None
    return (
        f"{key} {call!r} should come to {expected}, but comes to {found.action} by {found.rule!r}."
    )


def decision(rules: Ruleset, key: str, call: str) -> Decision:
    """Returns what these rules alone say to a call."""
    return decide(_facts(key, call), key, _EFFECTS.get(key, "exec"), [rules])


def _facts(key: str, call: str) -> Facts:
    if key in ("bash", "git"):
        return Facts(resources=tuple(_commands(call)))
    if key in _FILES:
        return Facts(resources=(_file(_EFFECTS[key], call),))
    if key in EDITOR_KEYS and not call:
        return Facts()
    return Facts(resources=(Resource(kind=_EFFECTS.get(key, "exec"), subject=call),))


def _commands(line: str) -> list[Resource]:
    from magy_server.core.shell.simple_commands import parse  # few examples tell of commands

    found = []
    for part in parse(line, _HOME):
        found.append(part.resource())
        found += [_file(one.mode, one.target) for one in part.redirects if one.target]
    return found


def _file(kind: Effect, path: str) -> Resource:
    """One outside the workspace counts as one inside: what is tried are the rules."""
    if path.startswith("~/"):
        path = _HOME + path[1:]
    subject = posixpath.normpath(posixpath.join(_ROOT, path))
    return Resource(kind=kind, subject=subject, relative=posixpath.relpath(subject, _ROOT))
