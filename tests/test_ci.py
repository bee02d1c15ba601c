"""What runs before a change lands."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).parents[1]
GUARANTEES = ("A", "C", "G")
"""The parts of docs/requirements.md that say what the architecture guarantees."""
MARK = re.compile(r"^@pytest\.mark\.req\((.*)\)$", re.MULTILINE)


@pytest.mark.req("C058")
def test_ci_runs_every_test_and_78_show_what_the_architecture_guarantees() -> None:
    steps = (TOP / ".ci" / "run").read_text("utf-8").splitlines()
    assert "export CI=true" in steps, "with it, a test that is left out has failed"
    assert "if ! make test; then" in steps and ".ci/pythons" in steps
    told = subprocess.run(
        ["make", "-n", "-o", "setup", "test"], cwd=TOP, capture_output=True, text=True, check=True,
        env={k: v for k, v in os.environ.items() if not k.startswith("M")},  # those of another make
    )  # fmt: skip
    assert told.stdout == ".venv/bin/python -m pytest -n auto --dist worksteal\n", "with no choice"
    tests = [file.read_text("utf-8") for file in (TOP / "tests").rglob("test_*.py")]
    marks = [re.findall(r'"(\w)\d+"', mark) for text in tests for mark in MARK.findall(text)]
    assert sum(any(part in GUARANTEES for part in mark) for mark in marks) >= 78
