"""Children in git worktrees, through the real process and with a real git."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.tools.repositories import git

from .harness import Person, person
from .test_api_tools import Api
from .test_child_tools import bypass, call, children, script, spawn, until
from .test_graphs import graph, task, told

LINES = "one\ntwo\nthree\nfour\nfive\n"


@pytest.fixture
def project(root: Path) -> Path:
    """A repository, in which the person has something staged, stashed, changed and new."""
    (root / "a.txt").write_text(LINES)
    (root / "b.txt").write_text(LINES)
    (root / "mine.txt").write_text("mine\n")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "First")
    (root / "mine.txt").write_text("stashed\n")
    git(root, "stash", "-q")
    (root / "mine.txt").write_text("staged\n")
    git(root, "add", "mine.txt")
    (root / "mine.txt").write_text("staged and changed\n")
    (root / "new.txt").write_text("new\n")
    return root


def persons(root: Path) -> tuple[str, ...]:
    """All of the repository that is the person's."""
    mine = "mine.txt", "new.txt"
    staged = git(root, "diff", "--cached")
    return (
        git(root, "stash", "list", "-p"), staged, git(root, "diff", "--", *mine),
        git(root, "symbolic-ref", "HEAD"), *((root / one).read_text() for one in mine),
    )  # fmt: skip


def edit(path: str, old: str, new: str) -> str:
    return call("edit_file", path=path, old_text=old, new_text=new)


def worker(id: str, path: str, old: str, new: str, gate: Path | None = None) -> str:
    """Once it is at work in its worktree, it waits for the gate."""
    wait = f"until [ -e {gate} ]; do sleep 0.05; done" if gate else "true"
    return script(
        f"prompt: do {id}\n" + call("bash", command=wait, timeout=600),
        "---\n" + call("read_file", path=path),
        "---\n" + edit(path, old, new),
        f"---\ntext: Did {id}.\n",
    )


def four(gate: Path) -> str:
    return script(
        "prompt: start",
        graph(*(task(id, f"do {id}", worktree=True) for id in ("w", "x", "y", "z"))),
        "---\ntext: {{last}}\n",
        worker("w", "a.txt", "one", "ONE", gate),
        worker("x", "a.txt", "five", "FIVE", gate),
        worker("y", "b.txt", "three", "drei", gate),
        worker("z", "b.txt", "three", "trois", gate),
    )


def worktrees(root: Path) -> list[str]:
    return git(root, "worktree", "list", "--porcelain").split("\n\n")[1:-1]


@pytest.mark.req("A045", "A052", "G045")
async def test_four_change_one_repository_at_once(project: Path, state: Path) -> None:
    """Two of them the same line: of these one lands, and the other becomes a review."""
    before, gate = persons(project), state.parent / "gate"
    async with person(project, state, four(gate)) as one:
        await bypass(one)
        await one.ask("start")
        await until(lambda: len(made(project)) == 4)
        gate.touch()
        await one.end()
        said = one.said()
        assert said.count("Merged into main as ") == 3, said
        assert "it conflicts with main in b.txt" in said
        landed = (project / "b.txt").read_text()
        assert landed in (LINES.replace("three", "drei"), LINES.replace("three", "trois"))
        (waiting,) = await reviews(one)
        assert waiting["uri"].endswith("/b.txt")
        about = {"uri": waiting["uri"], "proposed": True, "decision": "accept", "all": True}
        await one.client.request("magy/review/resolve", {**about, "requestKey": "k"})
        await until(lambda: len(worktrees(project)) == 0)
        other = "trois" if "drei" in landed else "drei"
        assert (project / "b.txt").read_text() == LINES.replace("three", other)
    assert (project / "a.txt").read_text() == "ONE\ntwo\nthree\nfour\nFIVE\n"
    assert persons(project) == before
    merges = git(project, "log", "--merges", "--format=%s%n%P", "main").splitlines()
    assert len(merges) == 6 and all(len(line.split()) == 2 for line in merges[1::2])
    assert not branches(project), "that of the review goes with its last decision"
    assert ".worktrees" not in git(project, "status", "--porcelain", "--untracked-files=all")


def branches(root: Path) -> list[str]:
    return git(root, "for-each-ref", "--format=%(refname:short)", "refs/heads/magy").split()


def made(root: Path) -> list[Path]:
    """The worktrees that are complete."""
    found = (root / ".git" / "magy" / "worktrees").glob("*.json")
    return [path for path in found if '"made":true' in path.read_text()]


async def reviews(one: Person) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await one.client.request("magy/review/list", {}))["files"]
    return found


# --- as an agent's file says ----------------------------------------------------------------------

AGENT = """---
description: Works on a branch of its own
extends: general
mode: all
worktree:
  enabled: true
  on_success: {success}
  on_failure: {failure}
  base_branch: {base}
  worktree_dir: {directory}
---
You do one task.
"""


def agent(state: Path, success: str = "auto_merge", failure: str = "keep", **more: str) -> None:
    """The user's agent `brancher`."""
    about = {"base": "main", "directory": ".worktrees", **more}
    file = state / "agent" / "brancher.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(AGENT.format(success=success, failure=failure, **about))


def delegating(*workers: str, agent: str = "brancher", times: int = 1, **more: Any) -> str:
    wait = "---\n" + call("wait_agent") + "---\ntext: {{last}}\n"
    return script("prompt: start", spawn("do it", agent, **more), wait, *workers)


@pytest.mark.req("A046", "A047", "A048")
async def test_tools_work_in_the_worktree_and_know_nothing_of_it(
    project: Path, state: Path
) -> None:
    agent(state, "branch_only", directory="trees")
    work = script(
        "prompt: do it\n" + call("bash", command="pwd > where; git branch --show-current >> where"),
        "---\n" + call("write_file", path="made.txt", content="made\n"),
        "---\n" + call("list_dir", path="."),
        "---\ntext: {{last}}\n",
    )
    before = persons(project)
    async with person(project, state, delegating(work)) as one:
        await bypass(one)
        await one.turn("start")
        said = one.said()
        assert "made.txt" in said and "Its work is on branch magy/do-it-" in said
        assert not await reviews(one), "nothing in a worktree is under review"
    (branch,) = git(project, "branch", "--format=%(refname:short)", "--list", "magy/*").split()
    where, current = git(project, "show", f"{branch}:where").splitlines()
    assert Path(where).parent == project / "trees" and current == branch
    assert not Path(where).exists() and not (project / "made.txt").exists()
    assert persons(project) == before


@pytest.mark.req("A049", "A050", "A051")
async def test_what_fails_is_kept_or_cleaned_up_as_the_file_says(
    project: Path, state: Path
) -> None:
    git(project, "branch", "trunk")
    failing = "prompt: do it\n" + call("write_file", path="half.txt", content="half\n")
    failing += "---\nerror: refused times=9\n"
    for failure in ("keep", "cleanup"):
        agent(state, failure=failure, base="trunk", directory="trees")
        async with person(project, state / failure, delegating(failing)) as one:
            (state / failure / "agent").symlink_to(state / "agent")
            await bypass(one)
            await one.turn("start")
            said = one.said()
        assert ("The work stays on branch magy/" in said) is (failure == "keep"), said
        assert ("Its worktree and branch are removed." in said) is (failure == "cleanup"), said
        assert len(list((project / "trees").glob("*/half.txt"))) == 1, "that of the first"
        assert len(worktrees(project)) == 1


async def test_a_task_that_comes_later_is_done_on_what_was_merged(
    project: Path, state: Path
) -> None:
    agent(state)
    script_ = script(
        "prompt: start",
        spawn("do it", "brancher"),
        "---\n" + call("wait_agent"),
        "---\n" + call("send_agent_message", job_id="5.0", message="and more"),
        "---\n" + call("wait_agent"),
        "---\ntext: {{last}}\n",
        "prompt: do it\n" + call("write_file", path="made.txt", content="made\n"),
        "---\ntext: Did it.\n",
        "prompt: and more\n" + call("read_file", path="made.txt"),
        "---\n" + edit("made.txt", "made", "made again"),
        "---\ntext: Did more.\n",
    )
    async with person(project, state, script_) as one:
        await bypass(one)
        await one.turn("start")
        assert "Did more.\n\nMerged into main as " in one.said()
        (child,) = await children(one, includeClosed=True)
        assert "Told the agent" in (log := await told(one, child["sessionId"]))
        assert log.count("Merged into main as ") >= 2, "both turns say so"
    assert (project / "made.txt").read_text() == "made again\n"
    assert git(project, "rev-list", "--merges", "--count", "main") == "2\n"
    assert not worktrees(project) and not (project / ".worktrees").exists()


async def test_the_question_says_what_becomes_of_the_work(project: Path, state: Path) -> None:
    work = "prompt: do it\ntext: Nothing to do.\n"
    script_ = delegating(work, agent="general", worktree=True)
    async with person(project, state, script_) as one:
        await one.new()
        await one.ask("start")
        question = await one.question()
        shown = str(question["content"])
        assert "worktree: a branch of its own from main, merged into main when it is done" in shown
        await one.respond(question["interactionId"])
        await one.end()
        assert "It changed nothing, so there was nothing to merge." in one.said()
    assert not worktrees(project)


async def test_where_there_can_be_none_the_model_reads_why(root: Path, state: Path) -> None:
    script_ = script(
        "prompt: start",
        spawn("do it", worktree=True) + "---\ntext: {{last}}\n",
    )
    async with person(root, state, script_) as one:
        await bypass(one)
        await one.turn("start")
        assert "No worktree can be made:" in one.said() and "git init" in one.said()


async def test_rules_and_trust_are_those_of_the_project(project: Path, state: Path) -> None:
    """What the agent writes into Magy's files in its worktree holds nowhere."""
    (project / "magy.toml").write_text('[permission]\nbash = "deny"\n')
    git(project, "add", "magy.toml")
    git(project, "commit", "-q", "-m", "Strict", "magy.toml")
    agent(state, "branch_only")
    work = script(
        "prompt: do it\n" + call("write_file", path="magy.toml", content=""),
        "---\n" + call("bash", command="touch ran"),
        "---\ntext: {{last}}\n",
    )
    async with person(project, state, delegating(work)) as one:
        await bypass(one)
        await one.turn("start")
        assert "switched off here" in one.said(), one.said()
    branch = git(project, "branch", "--format=%(refname:short)", "--list", "magy/*").split()
    assert not branch or "ran" not in git(project, "ls-tree", "--name-only", branch[0])


async def test_what_is_only_proposed_is_not_merged(project: Path, state: Path) -> None:
    state.mkdir(exist_ok=True)
    (state / "magy.toml").write_text('[edits]\nreview = "propose"\n')
    work = script(
        "prompt: start",
        graph(*(task(id, "do it", worktree=True) for id in ("x", "y"))),
        "---\ntext: {{last}}\n",
        "prompt: do it\n" + call("read_file", path="a.txt"),
        "---\n" + edit("a.txt", "one", "ONE"),
        "---\n" + call("write_file", path="made.txt", content="made\n"),
        "---\ntext: Did it.\n",
    )
    async with person(project, state, work) as one:
        await bypass(one)
        await one.turn("start")
        said = one.said()
        assert said.count("Its changes of 2 files are proposed for review instead.") == 1
        assert said.count("so nothing was proposed") == 1, "the other's wait already"
        assert [Path(file["path"]).name for file in await reviews(one)] == ["a.txt", "made.txt"]
        await decide(one, "a.txt", "reject")
        assert len(worktrees(project)) == 2, "one file of it is not decided yet"
        await decide(one, "made.txt", "accept")
        await until(lambda: len(worktrees(project)) == 1)
    assert len(branches(project)) == 1, "nobody could review the other's work"
    assert (project / "a.txt").read_text() == LINES
    assert (project / "made.txt").read_text() == "made\n"


async def decide(one: Person, name: str, decision: str) -> None:
    about = {"uri": (one.root / name).as_uri(), "proposed": True, "decision": decision, "all": True}
    await one.client.request("magy/review/resolve", {**about, "requestKey": name})


@pytest.mark.req("G045")
async def test_what_a_review_could_not_show_stays(project: Path, state: Path) -> None:
    """A link is no text: it is only in the branch."""
    (project / "a.txt").write_text(LINES.replace("one", "mine"))
    work = script(
        "prompt: do it\n" + call("bash", command="ln -s b.txt link && sed -i s/one/ONE/ a.txt"),
        "---\ntext: Did it.\n",
    )
    agent(state)
    async with person(project, state, delegating(work)) as one:
        await bypass(one)
        await one.turn("start")
        assert "Only in the branch, which therefore stays: link." in one.said(), one.said()
        await decide(one, "a.txt", "accept")
    assert (project / "a.txt").read_text() == LINES.replace("one", "ONE")
    assert len(branches(project)) == len(worktrees(project)) == 1


@pytest.mark.req("G045")
async def test_what_nobody_removed_after_the_last_decision_is_pruned(
    project: Path, state: Path
) -> None:
    """The process dies when the person has decided, and before the worktree is gone."""
    (project / "a.txt").write_text(LINES.replace("one", "mine"))
    agent(state)
    work = script("prompt: do it\n" + call("read_file", path="a.txt"),
                  "---\n" + edit("a.txt", "one", "ONE"), "---\ntext: Did it.\n")  # fmt: skip
    async with person(project, state, delegating(work)) as one:
        await bypass(one)
        await one.turn("start")
        assert pruned(project, state)["removed"] == [], "nothing is decided"
        with (project / ".git" / "magy" / "lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            await decide(one, "a.txt", "reject")
            one.client.process.kill()
            await one.client.process.wait()
    assert len(branches(project)) == 1
    assert len(pruned(project, state)["removed"]) == 1
    assert not branches(project) and not worktrees(project)


def pruned(root: Path, state: Path) -> dict[str, list[str]]:
    own = {"MAGY_STATE_DIR": str(state), "MAGY_CONFIG_DIR": str(state)}
    words = [sys.executable, "-m", "magy_server", "worktrees", "prune", "--json"]
    ran = subprocess.run(words, cwd=root, env=os.environ | own, capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr
    found: dict[str, list[str]] = json.loads(ran.stdout)
    return found


MAKES = "prompt: do it\n" + call("write_file", path="made.txt", content="made\n")
MAKES += "---\ntext: I made it.\n"


def forge(project: Path, state: Path) -> tuple[Path, Path]:
    """Where a push to the forge comes to, and the program that brings it there in place of ssh."""
    remote, ssh = state.parent / "remote.git", state.parent / "ssh"
    git(project, "clone", "-q", "--bare", str(project), str(remote))
    git(project, "remote", "add", "origin", "ssh://git@127.0.0.1/me/it.git")
    ssh.write_text(f"#!/bin/sh\nexec git-receive-pack '{remote}'\n")
    ssh.chmod(0o755)
    return remote, ssh


@pytest.mark.req("A053")
async def test_a_pull_request_is_opened(project: Path, state: Path) -> None:
    """The forge speaks on loopback; a push to it comes here by ssh."""
    agent(state, "create_pr")
    remote, ssh = forge(project, state)
    env = {"GH_TOKEN": "ghp_0123456789abcdef", "GIT_SSH_COMMAND": str(ssh)}
    async with Api() as api:
        opened = {"html_url": "https://forge.example/me/it/pull/7"}
        api.json("/repos/me/it/pulls", [], posted=opened)
        settings = {"tools": {"github_url": api.url("")}}
        script_ = delegating(MAKES, task_name="Make it")
        async with person(project, state, script_, env=env, settings=settings) as one:
            await bypass(one)
            await one.turn("start")
            said = one.said()
        (asked,) = [dict(request.body) for request in api.seen]
    assert "Pull request for main: https://forge.example/me/it/pull/7" in said
    branch = asked.pop("head")
    assert asked == {"title": "Make it", "body": "I made it.", "base": "main"}
    assert git(remote, "show", f"{branch}:made.txt") == "made\n"
    assert not worktrees(project) and branch in git(project, "branch")


async def test_where_gh_is_not_logged_in_it_is_said_how_to_open_the_pull_request(
    project: Path, state: Path
) -> None:
    """The program answers as gh 2.23 does then."""
    agent(state, "create_pr")
    remote, ssh = forge(project, state)
    gh = state.parent / "bin" / "gh"
    gh.parent.mkdir()
    gh.write_text("#!/bin/sh\necho no oauth token >&2\nexit 1\n")
    gh.chmod(0o755)
    path = f"{gh.parent}{os.pathsep}{os.environ['PATH']}"
    env = {"PATH": path, "GIT_SSH_COMMAND": str(ssh), "GH_TOKEN": "", "GITHUB_TOKEN": ""}
    async with Api() as api:
        settings = {"tools": {"github_url": api.url("")}}
        script_ = delegating(MAKES, task_name="Make it")
        async with person(project, state, script_, env=env, settings=settings) as one:
            await bypass(one)
            await one.turn("start")
            said = one.said()
        assert not api.seen
    (branch,) = {*git(remote, "branch", "--format=%(refname:short)").split()} - {"main"}
    assert f"Branch {branch} is pushed to origin. No pull request was opened:" in said
    assert "set GH_TOKEN before Magy starts, or to log in with `gh auth login`" in said
    assert f"By hand: https://127.0.0.1/me/it/compare/main...{branch}?expand=1" in said
    assert not worktrees(project) and branch in git(project, "branch")


async def test_two_servers_on_one_store(project: Path, state: Path) -> None:
    """Each has agents that land in one repository at the same time."""
    tasks = [task(id, "make a file", worktree=True) for id in ("a", "b", "c")]
    made_ = call("bash", command='echo made > "$(basename "$PWD").txt"')
    script_ = script(
        "prompt: start",
        graph(*tasks) + "---\ntext: {{last}}\n",
        f"prompt: make a file\n{made_}---\ntext: Made.\n",
    )
    before = persons(project)
    async with person(project, state, script_) as one, person(project, state, script_) as two:
        await bypass(one)
        await two.new("second")
        on = {"configId": "bypass", "value": "on", "sessionId": "second"}
        await two.request("session/set_config_option", **on)
        await one.ask("start")
        await two.ask("start", sessionId="second")
        await one.end()
        await two.end("second")
        assert one.said().count("Merged into main as ") == 3
        assert two.said("second").count("Merged into main as ") == 3
    assert git(project, "rev-list", "--merges", "--count", "main") == "6\n"
    files = git(project, "ls-tree", "--name-only", "main").split()
    assert len([name for name in files if name[1:2] == "-"]) == 6
    assert not worktrees(project) and not (project / ".worktrees").exists()
    assert persons(project) == before


async def test_hooks_run_where_there_is_something(project: Path, state: Path) -> None:
    """Before the worktree is made, and after it was removed, that is the workspace root."""
    agent(state)
    heard = state.parent / "heard"
    hooks = [
        f'[[hook]]\nevent = "{event}"\ncommand = "echo {event} $PWD >> {heard}"\n'
        for event in ("SessionStart", "PostToolUse", "SubagentStop")
    ]
    (state / "magy.toml").write_text("\n".join(hooks))
    work = script(
        "prompt: do it\n" + call("write_file", path="made.txt", content="made\n"),
        "---\n" + call("bash", command=f"until grep -q PostToolUse.*trees/ {heard}; do :; done"),
        "---\ntext: Did it.\n",
    )
    async with person(project, state, delegating(work)) as one:
        await bypass(one)
        await one.turn("start")
        await until(lambda: "SubagentStop" in heard.read_text())
    lines = heard.read_text().splitlines()
    assert [line for line in lines if line.startswith(("Sub", "Sess"))] == [
        f"SessionStart {project}", f"SessionStart {project}", f"SubagentStop {project}",
    ]  # fmt: skip
    assert any(line.startswith(f"PostToolUse {project}/.worktrees/") for line in lines)
