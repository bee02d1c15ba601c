"""The environment of the processes that tools start: no keys, no surprises in the shell."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from magy_server.tools.groups import VARIABLE

_SECRET = (
    "*API_KEY*", "*APIKEY*", "*ACCESS_KEY*", "*PRIVATE_KEY*", "*TOKEN", "*_TOKEN_*", "*SECRET*",
    "*PASSWORD*", "*PASSWD*", "*PASSPHRASE*", "*CREDENTIAL*",
)  # fmt: skip
_SHELL = frozenset({"BASH_ENV", "ENV", "CDPATH", "SHELLOPTS", "BASHOPTS", "GLOBIGNORE", "OLDPWD"})
"""What would make a command line mean something else than was judged."""
_FIXED = {
    "PAGER": "cat", "GIT_PAGER": "cat", "TERM": "dumb", "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
}  # fmt: skip
_GIT = {"safe.bareRepository": "explicit", "core.fsmonitor": "false"}
"""A directory that was committed like any other may be a bare repository, with a configuration of
its own that git would follow there; and a monitor is a program that a repository names."""


def holds_key(name: str, hidden: Iterable[str] = ()) -> bool:
    """By its name; `hidden` are names that are known to hold keys."""
    upper = name.upper()
    return name in hidden or any(fnmatchcase(upper, pattern) for pattern in _SECRET)


def environment(
    base: Mapping[str, str], cwd: str, marked: str, hidden: Iterable[str] = ()
) -> dict[str, str]:
    """`base` without the variables that hold keys or change what a command line means, with the
    mark by which the processes of a call are known.

    What stands in PATH relative to the directory one happens to be in is left out: whatever lies
    there in a strange project would run as `ls`. Git is told what `_GIT` says, behind what the
    person's own variables tell it."""
    hidden = frozenset(hidden)
    kept = {
        name: value
        for name, value in base.items()
        if not holds_key(name, hidden) and name not in _SHELL and not name.startswith("BASH_FUNC_")
    }
    if "PATH" in kept:
        kept["PATH"] = os.pathsep.join(filter(os.path.isabs, kept["PATH"].split(os.pathsep)))
    return {**kept, **_FIXED, **_told(kept), "PWD": cwd, VARIABLE: marked}


def _told(base: Mapping[str, str]) -> dict[str, str]:
    """`_GIT` as variables, counted on from those that are in `base`."""
    count = base.get("GIT_CONFIG_COUNT", "0")
    first = int(count) if count.isascii() and count.isdigit() else 0
    told = {"GIT_CONFIG_COUNT": str(first + len(_GIT))}
    for number, (name, value) in enumerate(_GIT.items(), first):
        told |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return told
