"""This module tells which files a URI of any kind may be about. Editors name files in many ways,
rules know paths: `git:/project/.env?ref=HEAD`, `vscode-vfs://host/project/.env`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from urllib.parse import unquote

from magy_server.core.values import Resource
from magy_server.regex import regex
from magy_server.tools.files.paths import resource

LONGEST = 8_000
"""Characters of a URI that are looked at."""
PARTS = 40
"""So many characters of a path are kept, from its end."""
_HEAD = 3
"""Parts before a path at most: `jar:`, `file:`, a host."""
_SPLIT = regex(r"""[?#&=!|"'{}\s]+""")


def named(root: str, uri: str) -> tuple[Resource, ...]:
    """Every file below `root` (canonical) that it may mean: whatever ends as it does, its links
    followed. Rather too many than too few."""
    found: dict[str, None] = {}
    for word in _words(uri[:LONGEST]):
        parts = [part for part in word.split("/") if part not in ("", ".", "..")][-PARTS:]
        found.update(dict.fromkeys(_ends(parts)))
        for first in range(min(len(parts), _HEAD + 1)):
            path = "/" + "/".join(parts[first:])
            if (real := os.path.realpath(path)) != path:
                found.update(dict.fromkeys(_ends(real.split("/")[1:][-PARTS:])))
    below = root.rstrip("/")
    return tuple(resource(root, f"{below}/{end}", "read") for end in found)


def _words(uri: str) -> Iterator[str]:
    once = unquote(uri)
    for text in dict.fromkeys((once, unquote(once))):
        text = text.replace("\\", "/").replace("\0", "")
        yield text
        yield from _SPLIT.split(text)


def _ends(parts: list[str]) -> Iterator[str]:
    for first in range(len(parts)):
        yield "/".join(parts[first:])
