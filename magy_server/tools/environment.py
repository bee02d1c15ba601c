"""The environment of the processes that tools start: no keys, no surprises in the shell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from magy_server.tools.groups import VARIABLE

_SECRET = (
    "*API_KEY*", "*APIKEY*", "*ACCESS_KEY*", "*PRIVATE_KEY*", "*TOKEN", "*_TOKEN_*", "*SECRET*",
    "*PASSWORD*", "*PASSWD*", "*PASSPHRASE*", "*CREDENTIAL*",
)  # fmt: skip
_SHELL = frozenset({"BASH_ENV", "ENV", "CDPATH", "SHELLOPTS", "BASHOPTS", "GLOBIGNORE", "OLDPWD"})
"""What would make a command line mean something else than was judged."""
_FIXED = {"PAGER": "cat", "GIT_PAGER": "cat", "TERM": "dumb", "GIT_TERMINAL_PROMPT": "0"}


def holds_key(name: str, hidden: Iterable[str] = ()) -> bool:
    """By its name; `hidden` are names that are known to hold keys."""
    upper = name.upper()
    return name in hidden or any(fnmatchcase(upper, pattern) for pattern in _SECRET)


def environment(
    base: Mapping[str, str], cwd: str, marked: str, hidden: Iterable[str] = ()
) -> dict[str, str]:
    """`base` without the variables that hold keys or change what a command line means, with the
    mark by which the processes of a call are known."""
    hidden = frozenset(hidden)
    kept = {
        name: value
        for name, value in base.items()
        if not holds_key(name, hidden) and name not in _SHELL and not name.startswith("BASH_FUNC_")
    }
    return {**kept, **_FIXED, "PWD": cwd, VARIABLE: marked}
