"""What the processes of tools get told, and do not get."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from magy_server.tools.environment import environment


def git(cwd: Path, *words: str, **base: str) -> str:
    env = environment({"PATH": os.environ["PATH"], "HOME": str(cwd), **base}, str(cwd), "s:1")
    run = subprocess.run(["git", *words], cwd=cwd, env=env, capture_output=True, check=False)
    return (run.stdout + run.stderr).decode()


@pytest.mark.needs("git")
def test_git_is_told_behind_what_the_person_told_it(tmp_path: Path) -> None:
    own = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "Me"}
    for base in (own, {}, {"GIT_CONFIG_COUNT": "x"}):
        assert git(tmp_path, "config", "safe.bareRepository", **base) == "explicit\n"
        assert git(tmp_path, "config", "core.fsmonitor", **base) == "false\n"
    assert git(tmp_path, "config", "user.name", **own) == "Me\n"


@pytest.mark.needs("git")
def test_a_committed_directory_is_no_repository(tmp_path: Path) -> None:
    """A clone brings it along like any other; its configuration is a stranger's."""
    for name in ("objects", "refs"):
        (tmp_path / name).mkdir()
    (tmp_path / "HEAD").write_text("ref: refs/heads/main\n")
    monitor = f"touch {tmp_path}/ran;false"
    (tmp_path / "config").write_text(
        f'[core]\nrepositoryformatversion=0\nbare=false\nworktree=.\nfsmonitor="{monitor}"\n'
    )
    git(tmp_path, "status")
    assert not (tmp_path / "ran").exists()
    plain = {name: os.environ[name] for name in ("PATH",)}
    subprocess.run(["git", "status"], cwd=tmp_path, env=plain, capture_output=True, check=False)
    assert (tmp_path / "ran").exists()  # a real trap


def test_programs_are_not_taken_from_where_one_happens_to_be() -> None:
    base = {"PATH": ".:/usr/bin::bin:/bin:"}
    assert environment(base, "/", "s:1")["PATH"] == "/usr/bin:/bin"
    assert "PATH" not in environment({}, "/", "s:1")
