"""This module reads the values of secrets from files that the configuration names, so that Magy
knows what it must not show."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from magy_server.regex import regex
from magy_server.regular_files import beginning

LARGEST = 1 << 18
"""Bytes of a file that are read."""
_SET = regex(r"\s*(?:export\s+)?[A-Za-z_][\w.-]*\s*[=:]\s*(.*)")
_QUOTED = regex(r"""("(?:[^"\\]|\\.)*+"|'[^']*+')""")


def values(files: Iterable[str], root: str | None) -> Iterator[str]:
    """Returns the values in these files: of lines `NAME=value` the value, without quotes and
    without a comment behind; of other lines all. A file that is not there has none."""
    for name in files:
        path = os.path.expanduser(name)
        if not os.path.isabs(path):
            if root is None:
                continue
            path = os.path.join(root, path)
        for line in _lines(path):
            if value := _value(line):
                yield value


def gh_tokens(environ: Mapping[str, str]) -> Iterator[str]:
    """Returns the tokens that the program `gh` keeps in its file; those in a keyring are not
    there."""
    config = environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    directory = environ.get("GH_CONFIG_DIR") or os.path.join(config, "gh")
    for line in _lines(os.path.join(directory, "hosts.yml")):
        if line.startswith("oauth_token:"):
            yield _value(line)


def _lines(path: str) -> Iterator[str]:
    try:
        data = beginning(path, LARGEST)
    except OSError:
        return
    yield from map(str.strip, (data or b"").decode("utf-8", "replace").splitlines())


def _value(line: str) -> str:
    if not line or line.startswith("#"):
        return ""
    if not (found := _SET.fullmatch(line)):
        return line
    value = found[1].strip()
    if quoted := _QUOTED.match(value):
        return quoted[1][1:-1]
    return value.partition(" #")[0].strip()
