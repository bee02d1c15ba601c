"""This module finds the project that a command works in: its root, and the working directory."""

from __future__ import annotations

import os
from pathlib import Path

from magy_server.core.errors import InvalidRequest
from magy_server.tools.files.paths import below


def directory(path: str) -> str:
    """Returns the canonical path. Raises InvalidRequest."""
    try:
        real = os.path.realpath(path)
    except ValueError:
        raise InvalidRequest(f"{path!r} is not a directory.") from None
    if not os.path.isdir(real):
        raise InvalidRequest(f"{path!r} is not a directory.")
    return real


def project(root: str | None, cwd: str | None) -> tuple[str, str]:
    """Returns (workspace root, working directory), canonical. The root is the top of the git work
    tree around `cwd` unless the caller names it; without either it is `cwd` itself. Raises
    InvalidRequest."""
    try:
        here = directory(cwd or os.getcwd())
    except FileNotFoundError:
        raise InvalidRequest("The current directory no longer exists.") from None
    if root is None:
        around = (here, *map(str, Path(here).parents))
        # In a linked work tree or a submodule `.git` is a file.
        top = next((path for path in around if os.path.lexists(os.path.join(path, ".git"))), here)
        return top, here
    top = directory(root)
    inside = below(top, here) is not None
    if cwd is not None and not inside:
        raise InvalidRequest(f"{here} is not inside {top}: --cwd must lie below --root.")
    return top, here if inside else top
