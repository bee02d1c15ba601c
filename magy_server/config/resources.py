"""This module finds what Magy ships beside its code: built-in agents, skills, editor clients."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def resource(*parts: str) -> Path:
    """The path of a shipped file or directory, say `resource("agents", "build.md")`.

    A wheel carries them in `magy_server/_data`, a checkout has them beside `magy_server`. The path
    is absolute; that it exists is for the caller to find out.
    """
    installed = _PACKAGE / "_data"
    return (installed if installed.is_dir() else _PACKAGE.parent).joinpath(*parts)
