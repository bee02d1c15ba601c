"""The git tools through the wire: what runs unasked, what a person is asked, and what they see."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from .harness import Person, person


def git(root: Path, *words: str) -> str:
    return subprocess.check_output(["git", "-C", root, *words], text=True)


@pytest.fixture
def repository(root: Path) -> Path:
    """The project, with its file committed."""
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "Say hello")
    return root


def script(*calls: tuple[str, Mapping[str, Any]]) -> str:
    """A model that makes these calls, one after the other, and repeats each answer."""
    steps = [f"call: git_{name} {json.dumps(arguments)}\n" for name, arguments in calls]
    return "---\ntext: <answer>{{last}}\n".join([*steps, ""])


def answers(one: Person) -> list[str]:
    """What the model read, call by call."""
    return one.said().split("<answer>")[1:]


def questions(one: Person) -> list[dict[str, Any]]:
    return [update["open"] for update in one.updates("_magy_interaction") if "open" in update]


def alive(pid: int) -> bool:
    """A zombie whose parent is gone is dead."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.req("A094")
async def test_status_diff_commit_branch_log_and_checkout(repository: Path, state: Path) -> None:
    """Looking is not asked about; what changes something is, and bound to the workspace."""
    (repository / "app.py").write_text("def greet():\n    return 'goodbye'\n")
    (repository.parent / "outside.txt").write_text("not ours")
    steps = script(
        ("status", {}),
        ("diff", {}),
        ("diff", {"paths": ["../outside.txt"]}),
        ("commit", {"message": "Say goodbye", "paths": ["app.py"]}),
        ("branch", {"action": "create", "name": "later"}),
        ("log", {"stat": True}),
        ("checkout", {"branch": "later"}),
        ("branch", {}),
    )
    async with person(repository, state, steps) as one:
        await one.new()
        await one.ask("Commit it, and go on on a branch")
        for _ in ("commit", "branch", "checkout"):
            await one.answer()
        await one.end()
        said = answers(one)
        assert "On branch main" in said[0] and "modified: app.py" in said[0]
        assert "-    return 'hello'\n+    return 'goodbye'" in said[1]
        assert "outside the workspace" in said[2]
        assert "Committed" in said[3] and "Created branch later" in said[4]
        assert "Say goodbye" in said[5] and "app.py" in said[5]
        assert "Now on branch later" in said[6] and "* later" in said[7]
        assert [question["title"] for question in questions(one)] == [
            "Commit 1 file on branch main: Say goodbye",
            "Create branch later",
            "Switch to later",
        ]
    assert git(repository, "log", "--format=%s", "later").split("\n")[0] == "Say goodbye"
    assert git(repository, "status", "--porcelain") == ""


async def test_a_commit_shows_its_diff_before_it_is_allowed(repository: Path, state: Path) -> None:
    (repository / "app.py").write_text("def greet():\n    return 'goodbye'\n")
    steps = script(("commit", {"message": "Say goodbye", "all": True}))
    async with person(repository, state, steps) as one:
        await one.new()
        await one.ask("Commit it")
        question = await one.question()
        assert "`*` -> ask" in question["rule"]
        assert question["remember"] == [{"key": "bash", "pattern": "git commit *"}]
        shown = [block for update in one.updates("tool_call_update")
                 for block in update.get("content", []) if block["type"] == "diff"]  # fmt: skip
        assert "+    return 'goodbye'" in shown[0]["patch"]["text"]
        await one.respond(question["interactionId"], False, reason="Not yet.")
        await one.end()
        assert "Not yet." in one.said()
    assert git(repository, "rev-list", "--count", "HEAD") == "1\n"


async def test_a_rule_about_a_command_holds_for_the_tool(repository: Path, state: Path) -> None:
    settings = {"permission": {"bash": [{"git checkout *": "deny"}], "read": [{"app.py": "deny"}]}}
    (repository / "app.py").write_text("secret\n")
    (repository / "other.py").write_text("open\n")
    git(repository, "add", "-N", "other.py")
    steps = script(("checkout", {"branch": "x", "create": True}), ("diff", {}))
    async with person(repository, state, steps, settings=settings) as one:
        await one.new()
        await one.turn("Go")
        checkout, diff = answers(one)
        assert "git checkout *" in checkout
        assert "+open" in diff and "left out, because reading them is not allowed: app.py" in diff
        assert "secret" not in diff
        assert questions(one) == []
    assert git(repository, "branch", "--show-current") == "main\n"


async def test_what_a_hook_says_is_shown_while_it_runs(repository: Path, state: Path) -> None:
    hook, go = repository / ".git/hooks/pre-commit", repository / ".git/go"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\necho checking; read x < {go}; exit 1\n")
    hook.chmod(0o755)
    os.mkfifo(go)
    (repository / "app.py").write_text("changed\n")
    async with person(repository, state, script(("commit", {"message": "m", "all": True}))) as one:
        await one.new()
        await one.ask("Commit it")
        await one.answer()
        chunk = await one.update("tool_call_content_chunk")
        assert chunk["content"]["content"]["text"] == "checking\n"
        go.write_text("x\n")
        await one.end()
        assert "Nothing was committed" in one.outputs()[0]


@pytest.mark.parametrize(
    ("hook", "said"),
    [("pre-commit", "[main "), ("post-commit", "(seen after an interruption)")],
)
async def test_a_commit_whose_server_was_killed_is_made_once(
    repository: Path, state: Path, hook: str, said: str
) -> None:
    """Killed before the commit, it is made again; after it, it is found. In both cases the hook
    that was running has ended."""
    pid = repository / ".git/hook.pid"
    path = repository / ".git/hooks" / hook
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n[ -e {pid} ] && exit\necho $$ > {pid}\nexec sleep 600\n")
    path.chmod(0o755)
    (repository / "app.py").write_text("changed\n")
    (repository / "new.py").write_text("new\n")
    steps = script(("commit", {"message": "Once", "paths": ["app.py", "new.py"]}))
    async with person(repository, state, steps) as one:
        await one.new()
        await one.ask("Commit it")
        await one.answer()
        while not (pid.exists() and pid.read_text().strip()):
            await asyncio.sleep(0.02)
        one.client.process.kill()
        await one.client.process.wait()
    async with person(repository, state, steps) as one:
        await one.request("session/resume")
        await one.request("session/subscribe")
        await one.end()
        (answer,) = answers(one)
        assert "Committed" in answer and said in answer
    assert not alive(int(pid.read_text()))
    assert git(repository, "log", "--format=%s") == "Once\nSay hello\n"
    assert git(repository, "status", "--porcelain") == ""
