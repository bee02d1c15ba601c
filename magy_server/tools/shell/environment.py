"""The processes that tools start get this environment: no keys, no surprises in the shell."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from magy_server.core.variables import holds_password, passes
from magy_server.regex import regex
from magy_server.tools.shell.process_groups import VARIABLE

SHORTEST = 8
"""Characters of what is looked for as a key in the values of others."""
_FIXED = {
    "PAGER": "cat", "GIT_PAGER": "cat", "TERM": "dumb", "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
}  # fmt: skip
_GIT = {"safe.bareRepository": "explicit", "core.fsmonitor": "false"}
"""A directory that was committed like any other may be a bare repository, with a configuration of
its own that git would follow there; and a monitor is a program that a repository names."""
_LETS_IN = regex(r"(?:extraheader|token|password|secret)$", re.IGNORECASE)
"""Names of git's settings with what servers are shown to be let in."""


def environment(
    base: Mapping[str, str],
    cwd: str,
    marked: str,
    hidden: Iterable[str] = (),
    more: Collection[str] = (),
) -> dict[str, str]:
    """What of `base` is known to hold no key and not to change what a command line means, with the
    mark by which the processes of a call are known. `hidden`: the variables with Magy's own keys;
    `more`: what a person wants passed besides (`core/variables.py`).

    What stands in PATH relative to the directory one happens to be in is left out: whatever lies
    there in a strange project would run as `ls`. Git is told what `_GIT` says, behind what the
    person's own variables tell it."""
    hidden = frozenset(hidden)
    keys = {base[name] for name in hidden if len(base.get(name, "")) >= SHORTEST}

    def harmless(name: str, value: str) -> bool:
        return name in more or not (holds_password(value) or any(key in value for key in keys))

    kept = {
        name: value
        for name, value in base.items()
        if name not in hidden and passes(name, more) and harmless(name, value)
    }
    if "PATH" in kept:
        kept["PATH"] = os.pathsep.join(filter(os.path.isabs, kept["PATH"].split(os.pathsep)))
    own = [(name, value) for name, value in _own(base) if harmless(name, f"{name} {value}")]
    return {**kept, **_FIXED, **git_settings([*own, *_GIT.items()]), "PWD": cwd, VARIABLE: marked}


def _own(base: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Returns what the person's variables tell git, without what it sends to servers to be let
    in."""
    count = base.get("GIT_CONFIG_COUNT", "0")
    most = int(count) if count.isascii() and count.isdigit() else 0
    for number in range(min(most, len(base))):
        name = base.get(f"GIT_CONFIG_KEY_{number}", "")
        value = base.get(f"GIT_CONFIG_VALUE_{number}")
        if name and value is not None and not _LETS_IN.search(name):
            yield name, value


def git_settings(pairs: Collection[tuple[str, str]]) -> dict[str, str]:
    """Settings of git as variables: names and values may hold anything."""
    told = {"GIT_CONFIG_COUNT": str(len(pairs))}
    for number, (name, value) in enumerate(pairs):
        told |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return told
