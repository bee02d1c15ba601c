"""Which tests that show a requirement passed, kept beside pytest's cache for `make requirements`.

What is kept holds for one content of the project: after any change none of it counts.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from pathlib import Path

import pytest

PAGE = Path("docs") / "requirements.md"
KEPT = Path(".pytest_cache") / "requirements.json"


def requirement_lines(top: Path) -> dict[str, str]:
    """Each line that a test can show, by its id. The decisions of part X are none."""
    page = (top / PAGE).read_text("utf-8")
    return dict(re.findall(r"^- \*\*([A-G]\d{3})\*\* (.+)$", page, re.MULTILINE))


def content(top: Path) -> str | None:
    """A hash of every file of the project; None if this is no git checkout."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=top, capture_output=True, check=False,
    )  # fmt: skip
    if listed.returncode:
        return None
    hashed = hashlib.sha256()
    for name in sorted(listed.stdout.decode().split("\0")):
        if (path := top / name).is_file():
            hashed.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\0".encode())
    return hashed.hexdigest()


def kept(top: Path) -> set[str]:
    """The tests with a `req` mark that passed with the project as it is now."""
    try:
        read = json.loads((top / KEPT).read_text("utf-8"))
    except (OSError, ValueError):
        return set()
    return set(read["passed"]) if read["content"] == content(top) else set()


class Keeper:
    """A pytest plugin: adds what this run shows to what is kept."""

    def __init__(self, top: Path) -> None:
        self._top = top
        self._before = content(top)
        self._passed: set[str] = set()
        self._others: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test passed if its call did and neither set-up nor tear-down did otherwise."""
        if "req" not in report.keywords:
            return
        if not report.passed:
            self._others.add(report.nodeid)
        elif report.when == "call":
            self._passed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """What a run shows while the project changes belongs to no content."""
        if self._before is None or not self._passed or content(self._top) != self._before:
            return
        passed = sorted((kept(self._top) | self._passed) - self._others)
        (self._top / KEPT).parent.mkdir(exist_ok=True)
        (self._top / KEPT).write_text(json.dumps({"content": self._before, "passed": passed}))
