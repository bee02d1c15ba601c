"""This module finds the files of a workspace that hooks and MCP servers run. Who changes one has
run what they write there, and nobody is asked then: so each change of one is asked about."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from magy_server.core.hooks import Hook
from magy_server.core.mcp.server_settings import Servers
from magy_server.core.permit import Rule, Ruleset
from magy_server.regex import regex

_PLACE = regex(r"\$\{?(?:MAGY|CLAUDE)_PROJECT_DIR\}?")
_QUOTES = regex(r"[\"'\\]")
_BETWEEN = regex(r"[\s`;|&()<>=]+")
_PATH = regex(r"[\w.@+/-]*\w")
_READ: Mapping[str, tuple[str, ...]] = {
    "make": ("Makefile", "makefile", "GNUmakefile"),
    "just": ("justfile", "Justfile"),
    **dict.fromkeys(("npm", "yarn", "pnpm", "bun"), ("package.json",)),
}
"""Programs that run what stands in files which nobody names."""
MOST = 200


def asking(root: str, hooks: Iterable[Hook], servers: Servers) -> tuple[Ruleset, ...]:
    """Returns a rule for each such file that lies in the workspace, or would."""
    commands = [(root, hook.command) for hook in hooks]
    for server in servers.values():
        cwd = os.path.join(root, os.path.expanduser(server.cwd))
        commands += [(cwd, word) for word in (server.command, *server.args)]
    files = dict.fromkeys(chain.from_iterable(_files(root, *one) for one in commands))
    rules = tuple(Rule(pattern=file, action="ask") for file in list(files)[:MOST])
    return (Ruleset(source="what is run unasked", keys={"edit": rules}),) if rules else ()


def _files(root: str, cwd: str, command: str) -> Iterator[str]:
    """The names of files of `root` in a command line or in one word of it, as they are written and
    as they are."""
    for word in _BETWEEN.split(_QUOTES.sub("", _PLACE.sub(lambda _: root, command))):
        for name in (*_READ.get(word, ()), os.path.expanduser(word)):
            path = os.path.join(cwd, name)
            if not _PATH.fullmatch(name) or os.path.isdir(path):
                continue
            if not ("/" in name or os.path.lexists(path)):
                continue
            for found in (os.path.normpath(path), os.path.realpath(path)):
                if found.startswith(f"{root}/"):
                    yield found.removeprefix(f"{root}/")
