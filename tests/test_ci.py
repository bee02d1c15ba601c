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


MADE = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "CHECKED", "FAST")
"""Variables that another make hands on, with what it was given."""


def make(*words: str) -> list[str]:
    """The commands that it would run."""
    told = subprocess.run(
        ["make", "-n", "-o", "setup", *words], cwd=TOP, capture_output=True, text=True, check=True,
        env={k: v for k, v in os.environ.items() if k not in MADE},
    )  # fmt: skip
    return told.stdout.splitlines()


@pytest.mark.req("C058")
def test_ci_runs_every_test_and_78_show_what_the_architecture_guarantees() -> None:
    steps = (TOP / ".ci" / "run").read_text("utf-8").splitlines()
    assert "export CI=true" in steps, "with it, a test that is left out has failed"
    tested = steps.index(
        'if ! PYTEST_ADDOPTS=--durations=50 "${memory[@]}" make test CHECKED=1; then'
    )
    assert steps.index("make check") < tested < steps.index("end others")
    assert steps.index('begin others nice -n 10 "${memory[@]}" .ci/pythons') < tested
    all_tests = ".venv/bin/python -m pytest -n auto --dist worksteal"
    assert make("test") == [all_tests], "with no choice"
    (rest,) = make("test", "CHECKED=1")
    left_out = re.findall(r" --ignore=(\S+)", rest)
    assert rest == all_tests + "".join(f" --ignore={file}" for file in left_out)
    assert f".venv/bin/python -m pytest {' '.join(left_out)}" in make("check"), "run there, whole"
    tests = [file.read_text("utf-8") for file in (TOP / "tests").rglob("test_*.py")]
    marks = [re.findall(r'"(\w)\d+"', mark) for text in tests for mark in MARK.findall(text)]
    assert sum(any(part in GUARANTEES for part in mark) for mark in marks) >= 78
