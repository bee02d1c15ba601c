"""`make requirements`, on tests made for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).parents[1]
SUITE = """
import pytest

@pytest.fixture
def broken():
    yield
    raise RuntimeError

@pytest.mark.req("E001", "E002")
def test_good(): pass

@pytest.mark.req("E002")
@pytest.mark.parametrize("n", [1, 2])
def test_bad(n): assert n == 1

@pytest.mark.req("E003")
def test_absent(): pytest.skip("no editor")

@pytest.mark.req("E004")
def test_torn(broken): pass

def test_no_requirement(): raise AssertionError("must not run")
"""
LINES = """
## E. A part

- **E001** One
- **E002** Two
- **E003** Three
- **E004** Four
- **E005** Five

## X. Another

- **X01** Here: this.
"""
KEEPING = """
from tests.outcomes import Keeper

def pytest_configure(config):
    config.pluginmanager.register(Keeper(config.rootpath))
"""
RUNS = """
import pathlib, pytest

@pytest.mark.req("E001")
def test_runs():
    with open({ran!r}, "a") as ran:
        ran.write("ran ")
"""


def requirements(project: Path) -> tuple[list[str], int]:
    """The lines of the table, and the exit code."""
    run = subprocess.run(
        [sys.executable, "-m", "scripts.requirements", str(project),
         "-o", "markers=req(*ids): shown", "--strict-markers", "--rootdir", str(project)],
        cwd=TOP, env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True, text=True,
    )  # fmt: skip
    return run.stdout[run.stdout.index("id    ") :].splitlines(), run.returncode


def write_page(project: Path) -> None:
    (project / "docs").mkdir(parents=True)
    (project / "docs" / "requirements.md").write_text(LINES)


def test_each_id_is_listed_with_how_its_tests_fared(tmp_path: Path) -> None:
    write_page(tmp_path)
    (tmp_path / "test_suite.py").write_text(SUITE)
    table, status = requirements(tmp_path)
    assert [" ".join(row.split()) for row in table] == [
        "id passed failed left out",
        "E001 1 0 0 passed",
        "E002 2 1 0 FAILED",
        "test_suite.py::test_bad[2]",
        "E003 0 0 1 not run",
        "E004 0 1 0 FAILED",
        "test_suite.py::test_torn",
        "",
        "No test shows:",
        "E005 Five",
        "",
        "1 of 4 requirements with a test have passing tests only; no test shows 1 of 5.",
    ]
    assert status == 1


def test_what_passed_runs_again_only_after_a_change(tmp_path: Path) -> None:
    project, ran = tmp_path / "project", tmp_path / "ran"
    write_page(project)
    subprocess.run(["git", "init", "--quiet", str(project)], check=True)
    (project / ".gitignore").write_text(".pytest_cache/\n__pycache__/\n")
    (project / "conftest.py").write_text(KEEPING)
    (project / "test_suite.py").write_text(RUNS.format(ran=str(ran)))
    first, again = requirements(project), requirements(project)
    assert ran.read_text() == "ran "
    assert first[1] == again[1] == 0
    assert again[0][: len(first[0])] == first[0]
    assert again[0][-1] == "1 tests passed before, with the project as it is, and did not run."
    (project / "other.py").write_text("x = 1\n")
    assert requirements(project) == first
    assert ran.read_text() == "ran ran "
