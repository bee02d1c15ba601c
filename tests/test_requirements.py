"""`make requirements`, on tests made for it."""

from __future__ import annotations

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


def test_each_id_is_listed_with_how_its_tests_fared(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    run = subprocess.run(
        [sys.executable, str(TOP / "scripts" / "requirements.py"), str(tmp_path),
         "-c", str(TOP / "pyproject.toml"), "--rootdir", str(tmp_path)],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    table = run.stdout[run.stdout.index("id    ") :].splitlines()
    *rows, summary = table
    assert summary == "1 of 4 requirements with a test have passing tests only."
    assert [row.split() for row in rows] == [
        ["id", "passed", "failed", "left", "out"],
        ["E001", "1", "0", "0", "passed"],
        ["E002", "2", "1", "0", "FAILED"],
        ["test_suite.py::test_bad[2]"],
        ["E003", "0", "0", "1", "not", "run"],
        ["E004", "0", "1", "0", "FAILED"],
        ["test_suite.py::test_torn"],
    ]
    assert run.returncode == 1
