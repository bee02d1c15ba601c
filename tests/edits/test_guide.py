"""What the guide shows is so: its Python sessions, and its commands in a shell."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE

GUIDE = Path(__file__).parents[2] / "docs" / "howto" / "edit.md"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = FENCE.findall(GUIDE.read_text(encoding="utf-8"))
SESSIONS = [body for kind, body in BLOCKS if kind == "pycon"]
COMMANDS = "".join(body for kind, body in BLOCKS if kind == "console")


def test_there_are_examples() -> None:
    assert len(SESSIONS) >= 5 and COMMANDS.count("$ magy edit") >= 2


def test_python_sessions() -> None:
    """One after the other, as they are read."""
    source = "\n".join(SESSIONS)
    test = doctest.DocTestParser().get_doctest(source, {}, "edit.md", str(GUIDE), 0)
    said: list[str] = []
    doctest.DocTestRunner().run(test, out=said.append)
    assert not said, "".join(said)


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """An environment in which `magy` is the one under test."""
    program = tmp_path / "bin" / "magy"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m magy_server "$@"\n')
    program.chmod(0o755)
    return {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}


def steps() -> list[tuple[str, str]]:
    """(command, what it prints)."""
    found: list[tuple[str, str]] = []
    for line in COMMANDS.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append((line[2:], ""))
        elif line.startswith("> "):
            found[-1] = (found[-1][0] + line[2:], "")
        else:
            found[-1] = (found[-1][0], found[-1][1] + line)
    return found


def test_commands(tmp_path: Path, shell: dict[str, str]) -> None:
    """In one shell; `...` in what is said stands for more."""
    folder = tmp_path / "folder"
    folder.mkdir()
    mark = "=== next command ===\n"
    script = "".join(
        f"{command}code=$?\nprintf '{mark[:-1]}\\n'\n(exit $code)\n" for command, _ in steps()
    )
    done = subprocess.run(
        ["bash", "-c", script + "true"], cwd=folder, env=shell, text=True, check=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        timeout=3 * PATIENCE,  # a process for each command
    )  # fmt: skip
    printed = done.stdout.split(mark)[:-1]
    assert len(printed) == len(steps())
    for (command, expected), output in zip(steps(), printed, strict=True):
        pattern = re.escape(expected).replace(re.escape("..."), "(?s:.*)", 1)
        wanted = pattern if expected.startswith("magy:") else re.escape(expected)
        assert re.fullmatch(wanted, output), (command, output)
