# ruff: noqa: E501
"""What people do all day works in the standard sandbox."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from magy_server.core.values import SandboxLevel
from magy_server.sandbox import mounts
from tests.sandbox.conftest import Machine, Project

pytestmark = pytest.mark.needs("bwrap", "git", "make")
GIT = "git -c user.name=N -c user.email=e@x.y"


def repository(machine: Machine, name: str = "repository") -> Project:
    project = machine.project(name)
    for command in ("init -q -b main .", "add -A", "commit -q -m first"):
        subprocess.run([*GIT.split(), *command.split()], cwd=project.root, check=True)
    return project


async def ok(project: Project, script: str, **more: bool) -> str:
    ran = await project.run(f"set -e; {script}", **more)
    assert ran.code == 0, ran.said
    return ran.said


@pytest.mark.parametrize("network", [True, False], ids=["standard", "alone"])
@pytest.mark.parametrize(
    ("script", "said"),
    [
        (f"echo x > a; git add a; {GIT} commit -q -m two; git log --oneline | wc -l", "2"),
        (f"git switch -q -c b; {GIT} commit -q --allow-empty -m c; git rebase -q main; git status -s", ""),
        (f"git stash list; git tag v1; git gc -q; {GIT} merge -q v1; git worktree list | wc -l", "1"),
        ("git worktree add -q w -b w; cd w; echo x > y; git add y; git status -s", "A  y"),
        ("git clone -q . copy; cd copy; git log --oneline | wc -l", "1"),
        ("printf 'all:\\n\\t@echo made > out; cat out\\n' > Makefile; make", "made"),
        ("echo 'int main(){return 0;}' > a.c; cc a.c -o a; ./a; echo built", "built"),
        ("python3 -m venv --without-pip v; v/bin/python -c 'import sys; print(sys.prefix != sys.base_prefix)'", "True"),
        ("python3 -c 'import multiprocessing as m; print(m.Pool(2).map(abs, [-1, -2]))'", "[1, 2]"),
        ("python3 -c 'import tempfile; print(tempfile.gettempdir())'", "/tmp"),
        ("echo kept > /tmp/f; cat /tmp/f; mktemp >/dev/null", "kept"),
        ("python3 -c 'import sqlite3; sqlite3.connect(\"d.db\").execute(\"create table t(x)\"); print(1)'", "1"),
        ("python3 -c 'import http.server as h, threading, urllib.request as u; s = h.HTTPServer((\"127.0.0.1\", 0), h.SimpleHTTPRequestHandler); threading.Thread(target=s.serve_forever, daemon=True).start(); print(u.urlopen(f\"http://127.0.0.1:{s.server_port}/\").status)' 2>/dev/null", "200"),
        ("echo a | tee x | tr a b; sort <(echo 2; echo 1) | head -1", "b\n1"),
        ("cat ~/.ssh/known_hosts | wc -l; ls ~/.ssh | wc -l; test ! -s ~/.netrc; ls ~/.aws | wc -l", "1\n1\n0"),
        ("id -u; whoami >/dev/null; date >/dev/null; nproc >/dev/null; df . >/dev/null; echo fine", f"{os.getuid()}\nfine"),
        ("test -z \"$(ls /run)\" || ls /run >/dev/null; stat / /usr /etc >/dev/null; echo fine", "fine"),
        ("ulimit -n >/dev/null; kill -0 $$; sleep 0.01; echo $PWD | tail -c 5", "work"),
        ("strace -o t true 2>/dev/null || true; env -i true; timeout 5 true; xargs echo < /dev/null", ""),
    ],
)  # fmt: skip
async def test_it_works(machine: Machine, script: str, said: str, network: bool) -> None:
    machine.set("standard", allow_sandboxed=not network)
    assert (await ok(repository(machine), script, network=network)).strip() == said


@pytest.mark.needs("npm")
async def test_npm_works_with_a_cache_that_is_listed(machine: Machine) -> None:
    cache = machine.home / ".npm"
    cache.mkdir()
    machine.set("standard", writable=["~/.npm"])
    project = repository(machine)
    (project.root / "lib").mkdir()
    (project.root / "lib/package.json").write_text('{"name": "lib", "version": "1.0.0"}')
    await ok(
        project, "npm init -y >/dev/null; npm install --offline ./lib >/dev/null; ls node_modules"
    )
    assert list(cache.iterdir())


async def test_what_is_listed_is_written_and_seen(machine: Machine) -> None:
    cache, hidden = machine.home / "cache", machine.home / "private"
    cache.mkdir()
    hidden.mkdir()
    (hidden / "x").write_text("")
    machine.set(
        "standard", writable=["~/cache", "~/not-there"], hidden=["~/private"], shown=["~/.aws"]
    )
    said = await ok(
        repository(machine), "touch ~/cache/x; ls ~/private | wc -l; cat ~/.aws/credentials"
    )
    assert said.split("\n") == ["0", "the-secret-of-the-house"]
    assert (cache / "x").exists()
    # but a program without a question writes in the workspace alone
    machine.set("standard", writable=["~/cache"], allow_sandboxed=True)
    ran = await machine.project("other").run("touch ~/cache/y", network=False)
    assert ran.code != 0
    assert not (cache / "y").exists()


async def test_what_magy_keeps_is_shown_to_nobody(machine: Machine) -> None:
    machine.set(
        "standard", writable=[str(machine.state)], shown=[str(machine.state / "magy.sqlite")]
    )
    ran = await machine.project().run("cat $STATE/magy.sqlite; touch $STATE/new")
    assert "the-secret" not in ran.said
    assert not (machine.state / "new").exists()


async def test_a_scratch_directory_in_what_is_hidden(machine: Machine) -> None:
    """A session without a project works in a directory of Magy's."""
    machine.set("standard")
    root = machine.state / "scratch"
    root.mkdir()
    project = machine.project()
    project.root = root
    assert await ok(project, "echo x > y; cat y; ls $STATE") == "x\nscratch\n"


async def test_temporary_files_last_from_one_command_to_the_next(machine: Machine) -> None:
    machine.set("standard")
    project = machine.project()
    await ok(project, "echo 1 > /tmp/kept; echo 2 > /var/tmp/kept")
    assert await ok(project, "cat /tmp/kept /var/tmp/kept") == "1\n2\n"
    assert not Path("/tmp/kept").exists()
    assert (await machine.project("another").run("cat /tmp/kept")).code == 1


async def test_a_work_tree_and_a_folder_of_a_repository_can_commit(machine: Machine) -> None:
    machine.set("standard")
    project = repository(machine)
    tree = machine.place / "tree"
    subprocess.run(
        ["git", "worktree", "add", "-q", str(tree), "-b", "t"], cwd=project.root, check=True
    )
    folder = project.root / "folder"
    folder.mkdir()
    for root in (tree, folder):
        inside = machine.project(f"in-{root.name}")
        inside.root = root
        await ok(inside, f"echo x > {root.name}; git add .; {GIT} commit -q -m x")
        ran = await inside.run("git config core.pager evil")
        assert ran.code != 0


@pytest.mark.parametrize("level", ["standard", "strict"])
async def test_a_git_file_that_leads_elsewhere_opens_nothing(
    machine: Machine, level: SandboxLevel
) -> None:
    """What a program may have written there makes nothing else writable."""
    machine.set(level)
    project = machine.project()
    bare = project.outside / "repo/worktrees/x"
    bare.mkdir(parents=True)
    (project.outside / "repo/config").write_text("")
    subprocess.run(["rm", "-rf", ".git"], cwd=project.root, check=True)
    (project.root / ".git").write_text(f"gitdir: {bare}\n")
    assert mounts.git_directories(str(project.root)) == []
    ran = await project.run("touch $OUT/repo/x")
    assert ran.code != 0
    (bare / "gitdir").write_text(f"{project.root}/.git\n")
    assert mounts.git_directories(str(project.root)) == [str(project.outside / "repo")]
