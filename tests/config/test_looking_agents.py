"""The agents that only look, on a real directory: whatever command line they may run, with every
question answered by yes, it is still the same afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from magy_server.config.agents import built_in_agents, common_rules
from magy_server.core.no_editor import NoEditor
from magy_server.core.permit import Ruleset, decide
from magy_server.tools.shell.processes import Processes
from magy_server.tools.shell.shell_tools import shell_tools
from tests.patience import PATIENCE
from tests.thorough import examples

LOOKING = [
    "ls", "ls -la src", "cat a.txt", "echo hi", "pwd", "cd src", "find . -name '*.txt'", "true",
    "head -1 a.txt", "wc -l a.txt", "sort", "uniq -c", "tr a b", "cut -c1", "sed -n 1p a.txt",
    "cmp a.txt src/b.txt", "git status", "git log", "git diff --stat", "stat a.txt",
    "test -f a.txt",
]  # fmt: skip
ACTING = [
    "touch made", "rm a.txt", "tee made", "cp a.txt made", "mv a.txt made", "mkdir made",
    "echo hi > made", "cat a.txt >> made", "ls 2> made", "echo hi &> made", ": > a.txt", "> made",
    "find . -name a.txt -delete", "find . -exec touch made +", "find . -fprintf made x",
    "sed -i s/a/b/ a.txt", "sed -n '1w made' a.txt", "sed -n 'e touch made' a.txt",
    "sort -o made a.txt", "sort --output=made a.txt", "uniq a.txt made", "tr a b > made",
    "git log --output=made", "git diff --output made", "git init made", "git add a.txt",
    "git branch made", "git -c alias.x='!touch made' x", "git commit --allow-empty -m x",
    "git checkout -b made", "git stash", "git tag made", "git config x.y z",
    "bash -c 'touch made'", "sh -c 'touch made'", "env touch made", "nice touch made",
    "timeout 5 touch made", "time touch made", "command touch made", "exec touch made",
    "eval touch made", "xargs touch", "python3 -c 'open(\"made\", \"w\")'", "X=1 touch made",
    "awk 'BEGIN{print > \"made\"}'", "echo $(touch made)", "echo `touch made`", "cat <(touch made)",
    "echo ${x:=$(touch made)}", "ln -s a.txt made", "truncate -s 0 a.txt", "dd of=made if=a.txt",
    "install a.txt made", "rsync a.txt made", "tar cf made a.txt", "printf x > made",
    "/usr/bin/touch made", "t=touch; $t made", "alias ls='touch made'", "ls() { touch made; }; ls",
    "split a.txt made", "printf -v x y", "rg --pre touch made", "trap 'touch made' EXIT",
    "date -r made", "test -v 'x[$(touch made)]'", "{ touch made; }", "( touch made )",
]  # fmt: skip
"""Some of them only look like it, or fail; they are refused all the same."""
JOINTS = [" && ", " ; ", " | ", " || ", "\n", " & ", " |& "]


@st.composite
def lines(draw: st.DrawFn) -> str:
    """Mostly of what may run, or nothing would be tried."""
    parts = draw(st.lists(st.sampled_from(LOOKING * 8 + ACTING), min_size=2, max_size=4))
    return parts[0] + "".join(draw(st.sampled_from(JOINTS)) + part for part in parts[1:])


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("looking") / "project"
    (root / "src").mkdir(parents=True)
    (root / "a.txt").write_text("a\nb\n")
    (root / "src" / "b.txt").write_text("b\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["init", "-q", "--template="], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], cwd=root, check=True, capture_output=True)
    return root


class Place:
    """`core.tool.FactContext` for a directory."""

    editor = NoEditor()
    session = "s1"

    def __init__(self, root: Path) -> None:
        self.root = self.cwd = str(root)


@cache
def rules(agent: str) -> list[Ruleset]:
    return [common_rules(), built_in_agents()[agent].rules]


async def permitted(root: Path, line: str, agent: str) -> bool:
    """By the facts that the real tool finds."""
    tools = shell_tools(Processes(base={"HOME": str(root.parent), "PATH": os.environ["PATH"]}))
    bash = next(tool for tool in tools if tool.name == "bash")
    facts, _ = await bash.facts(Place(root), **bash.arguments({"command": line}))
    return decide(facts, "bash", "exec", rules(agent), bypass=True).action == "allow"


def changes(project: Path, line: str) -> bool:
    """Runs it in a copy, and looks."""
    copy = project.parent / "copy"
    shutil.copytree(project, copy, symlinks=True)
    env = {"PATH": os.environ["PATH"], "HOME": str(project.parent), "GIT_PAGER": "cat"}
    subprocess.run(["bash", "-c", line], cwd=copy, env=env, stdin=subprocess.DEVNULL,
                   capture_output=True, timeout=PATIENCE)  # fmt: skip
    after = contents(copy)
    shutil.rmtree(copy)
    return after != contents(project)


def contents(root: Path) -> dict[str, bytes]:
    """Without the index, which `git status` may refresh."""
    return {str(path.relative_to(root)): path.read_bytes() if path.is_file() else b""
            for path in root.rglob("*") if path.name != "index"}  # fmt: skip


@pytest.mark.needs("bash", "git")
@pytest.mark.parametrize("agent", ["plan", "explore"])
async def test_no_line_that_may_run_changes_anything(project: Path, agent: str) -> None:
    for line in LOOKING:
        assert await permitted(project, line, agent), line
    for line in LOOKING + ACTING:
        if await permitted(project, line, agent):
            assert not changes(project, line), line


@pytest.mark.needs("bash", "git")
@settings(max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(line=lines())
async def test_nor_do_several_put_together(project: Path, line: str) -> None:
    if await permitted(project, line, "explore"):
        assert not changes(project, line)


@pytest.mark.needs("bash", "git")
def test_most_other_lines_would_change_something(project: Path) -> None:
    """So that the tests above can fail."""
    assert sum(changes(project, line) for line in ACTING) > 40
