"""Tools of MCP servers are named `mcp__SERVER__TOOL`; so are their permission keys. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from magy_server.core.patterns import matches_command
from magy_server.regex import regex

PREFIX = "mcp__"
LONGEST = 64
"""Characters of a tool's name that all providers take."""
SERVER = regex(r"[A-Za-z0-9](?:[A-Za-z0-9-]|_(?!_)){0,31}(?<!_)")
"""The name of a server: without `__`, so that the parts of a tool's name can be told apart."""
_KEY = regex(r"mcp__[A-Za-z0-9_*-]*")
_STRANGE = regex(r"[^A-Za-z0-9_-]")


def tool_name(server: str, tool: str) -> str:
    """Returns the name under which a tool of a server is known. What providers do not take in a
    name is replaced; two tools whose names then are the same must be told apart by the caller."""
    whole = f"{PREFIX}{server}__{_STRANGE.sub('_', tool)}"
    return whole if len(whole) <= LONGEST else told_apart(whole, tool)


def told_apart(name: str, tool: str) -> str:
    """Returns another name that begins like `name`, for the tool whose server calls it `tool`."""
    return f"{name[: LONGEST - 7]}_{_mark(tool)}"


def tool_key(server: str, tool: str, name: str) -> str:
    """Returns the permission key of the tool that is known as `name`: that, with nothing cut off,
    since a rule may be about its end."""
    whole = f"{PREFIX}{server}__{_STRANGE.sub('_', tool)}"
    if name == tool_name(server, tool):
        return whole
    return f"{whole}_{_mark(tool)}"


def _mark(tool: str) -> str:
    return hashlib.sha256(tool.encode("utf-8", "replace")).hexdigest()[:6]


def server_of(name: str) -> str:
    """Returns the server that the tool or permission key is of; "" for any other."""
    if not name.startswith(PREFIX):
        return ""
    return name.removeprefix(PREFIX).partition("__")[0]


def is_key(key: str) -> bool:
    """Returns whether this is a permission key for tools of MCP servers: the name of one
    (`mcp__github__get_issue`), of a server (`mcp__github`), or a pattern with stars."""
    return _KEY.fullmatch(key) is not None


@lru_cache(maxsize=4096)
def covers(pattern: str, name: str) -> bool:
    """Returns whether a key or an entry of an agent's `tools` is for the tool of this name, letter
    by letter."""
    if not pattern.startswith(PREFIX):
        return False
    return pattern == name or (
        matches_command(pattern, name)
        if "*" in pattern
        else "__" not in pattern.removeprefix(PREFIX) and name.startswith(f"{pattern}__")
    )


def keys_for(name: str, keys: Iterable[str]) -> list[str]:
    """Returns those of the permission keys that are for this tool, but for its own, if upper and
    lower case do not matter: those that speak of tools before those of whole servers, then the
    longest pattern first."""
    folded = name.lower()
    found = (key for key in keys if key != name and covers(key.lower(), folded))
    return sorted(found, key=lambda key: ("__" not in key.removeprefix(PREFIX), -len(key), key))


def fingerprint(tool: Mapping[str, Any]) -> str:
    """Returns 12 hex digits that are others as soon as a tool says anything else of itself:
    description, parameters, hints."""
    text = json.dumps(tool, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]


def subject(tool: str, version: str) -> str:
    """Returns what a permission for one tool, as it is now, is for."""
    return f"{re.sub(r'[@*]', '_', tool)}@{version}"


def in_words(key: str, subject: str) -> str:
    """Returns for a person what the subject of a call under `key` is; that of other tools says it
    by itself."""
    server = server_of(key)
    return f"{subject.rpartition('@')[0]} of the MCP server {server}" if server else subject


def is_earlier(pattern: str, now: str) -> bool:
    """Returns whether `pattern` is for the same tool as the subject `now`, as it was before."""
    name, at, _ = pattern.rpartition("@")
    return bool(at) and name == now.rpartition("@")[0] and pattern != now
