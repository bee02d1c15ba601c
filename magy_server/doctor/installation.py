"""These checks look at Python, Magy, the packages it needs, and SQLite."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import operator
import os
import re
import sys
from typing import Any

from magy_server import __version__
from magy_server.doctor.finding import Around, Finding, note, ok, problem, warning
from magy_server.regex import regex

PYTHON = (3, 11)
_NEEDS = regex(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*\(?([<>=!~0-9., ]*)\)?\s*")
_BOUND = regex(r"(>=|<=|==|!=|~=|<|>)\s*([0-9][0-9.]*)")
_HOLDS = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt,
    "==": operator.eq, "!=": operator.ne, "~=": operator.ge,
}  # fmt: skip


async def check(around: Around) -> list[Finding]:
    return [_python(), *_magy(), *_packages(), *_loads()]


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < PYTHON:
        what = f"Python {version} ({sys.executable}) is older than Magy needs."
        mend = f"Install Magy with Python {PYTHON[0]}.{PYTHON[1]} or newer."
        return problem(what, mend)
    return ok(f"Python {version} ({sys.executable}).")


def _magy() -> list[Finding]:
    where = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    findings = [ok(f"Magy {__version__} ({where}).")]
    try:
        installed = importlib.metadata.version("magy")
    except importlib.metadata.PackageNotFoundError:
        what = (
            "Magy runs from its directory and is not installed, so the doctor cannot compare "
            "package versions."
        )
        mend = f"Install it: `{sys.executable} -m pip install {os.path.dirname(where)}`."
        return [*findings, note(what, mend)]
    if installed != __version__:
        what = f"Version {installed} is installed, but version {__version__} runs."
        mend = f"Find out which one you want; the running one is in {where}."
        findings.append(warning(what, mend))
    return findings


def _packages() -> list[Finding]:
    try:
        needs = importlib.metadata.requires("magy") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    wrong = []
    needed = [need for need in needs if ";" not in need]  # extras are not needed
    for need in needed:
        matched = _NEEDS.fullmatch(need)
        if matched and (said := _unmet(matched[1], matched[2])):
            wrong.append(said)
    if not wrong:
        return [ok(f"{len(needed)} packages, in versions that Magy supports.")]
    mend = f"Install them: `{sys.executable} -m pip install --upgrade magy`."
    return [problem(what, mend) for what in wrong]


def _loads() -> list[Finding]:
    """Finds out whether all of Magy can be imported. It runs before the other checks run side by
    side: Python tells only the first import the reason of a failure."""
    try:
        importlib.import_module("magy_server.app")
    except ImportError as error:
        mend = f"Reinstall it: `{sys.executable} -m pip install --force-reinstall magy`."
        return [problem(f"Magy cannot be loaded: {error}.", mend)]
    return []


def _unmet(name: str, bounds: str) -> str:
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return f"The package {name} is not installed."
    if satisfies(version, bounds):
        return ""
    return f"The package {name} has version {version}, but Magy needs {bounds.strip()}."


def satisfies(version: str, bounds: str) -> bool:
    """Returns whether a version is within bounds such as `>=2.11,<3`, by the numbers of the
    release."""
    have = _numbers(version)
    return all(_within(have, sign, _numbers(text)) for sign, text in _BOUND.findall(bounds))


def _within(have: tuple[int, ...], sign: str, bound: tuple[int, ...]) -> bool:
    size = max(len(have), len(bound))
    mine, other = (numbers + (0,) * (size - len(numbers)) for numbers in (have, bound))
    same_series = sign != "~=" or have[: len(bound) - 1] == bound[:-1]
    return same_series and bool(_HOLDS[sign](mine, other))


def _numbers(version: str) -> tuple[int, ...]:
    release = re.match(r"[0-9]+(?:\.[0-9]+)*", version)
    return tuple(int(part) for part in release[0].split(".")) if release else ()


def sqlite(around: Around) -> list[Finding]:
    try:
        import sqlite3
    except ImportError as error:
        what = f"This Python has no SQLite, so Magy cannot keep its sessions: {error}."
        mend = "Install Magy with a Python that was built with SQLite."
        return [problem(what, mend)]
    version = sqlite3.sqlite_version
    if _has_text_search(sqlite3):
        first = ok(f"SQLite {version} with full-text search (FTS5).")
    else:
        what = f"SQLite {version} of this Python has no full-text search (FTS5)."
        mend = "Use a Python whose SQLite has FTS5, such as those of python.org or uv."
        first = warning(what, mend)
    return [first, _vectors()]


def _has_text_search(module: Any) -> bool:
    db = module.connect(":memory:")
    try:
        db.execute("CREATE VIRTUAL TABLE t USING fts5(x)")
    except module.OperationalError:
        return False
    finally:
        db.close()
    return True


def _vectors() -> Finding:
    """Looks whether SQLite can load extensions. Some builds of Python cannot; `pysqlite3` then
    serves in their place."""
    for name in ("sqlite3", "pysqlite3"):
        if version := _vector_version(name):
            instead = " (this Python's own SQLite cannot load extensions)"
            said = f"through {name}{instead if name != 'sqlite3' else ''}"
            return ok(f"sqlite-vec {version} loads {said}.")
    what = "This Python's SQLite cannot load extensions, so Magy has no vector search."
    mend = f"Install one that can: `{sys.executable} -m pip install pysqlite3-binary`."
    return note(what, mend)


def _vector_version(name: str) -> str:
    """Returns the version that sqlite-vec gives from inside that SQLite; "" when it cannot
    answer."""
    if not all(importlib.util.find_spec(module) for module in (name, "sqlite_vec")):
        return ""
    try:
        module, sqlite_vec = importlib.import_module(name), importlib.import_module("sqlite_vec")
    except ImportError:
        return ""
    db = module.connect(":memory:")
    try:
        db.enable_load_extension(True)
        sqlite_vec.load(db)
        return str(db.execute("SELECT vec_version()").fetchone()[0])
    except (AttributeError, module.Error):
        return ""
    finally:
        db.close()
