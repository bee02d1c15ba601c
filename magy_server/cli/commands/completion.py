"""`magy completion` prints what a shell needs to complete the command line. It makes that from the
parser."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

SESSIONS = (
    "{ magy sessions list --ids --all; magy agents list --ids --everywhere --all; } 2>/dev/null"
)
"""A shell runs this for the ids of sessions and children, which nobody knows beforehand."""
DIRECTORIES = {"root", "cwd"}
FILES = {"output", "file"}
IDS = {"session", "resume", "fork"}


def completion(parser: argparse.ArgumentParser, shell: str) -> str:
    """Returns the script for `bash`, `zsh` or `fish`."""
    import shtab

    kinds: dict[str, Any] = {
        **dict.fromkeys(DIRECTORIES, shtab.DIRECTORY),
        **dict.fromkeys(FILES, shtab.FILE),
        **dict.fromkeys(IDS, shtab.cmd(SESSIONS)),
    }
    for action in _actions(parser):
        if kind := kinds.get(action.dest):
            vars(action)["complete"] = kind  # where shtab looks
    return shtab.complete(parser, shell)


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _actions(inner)
