"""The git tools that change something: commit, branch, checkout."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

import pytest

from magy_server.config.agents import built_in_agents, common_rules
from magy_server.core import permit
from magy_server.core.errors import ToolError
from magy_server.core.permit import Rule, Ruleset
from magy_server.core.tool import Result, Tool
from magy_server.core.values import Decision, Evidence, Facts

from .conftest import Context, FakeEditor, Workspace
from .repositories import Person, git, in_repository


@pytest.fixture
async def person(workspace: Workspace) -> AsyncIterator[Person]:
    async with in_repository(workspace.root) as one:
        yield one


# --- commit -------------------------------------------------------------------------------------


async def test_commit_takes_what_is_staged(person: Person) -> None:
    person.file("a.py", "staged\n")
    person.git("add", "a.py")
    person.file("b.py", "not staged\n")
    facts = await person.facts("commit", message="Change a\n\nBecause.")
    assert facts.title == "Commit 1 file on branch main: Change a ⏎  ⏎ Because."
    result = await person.do("commit", message="Change a\n\nBecause.")
    head = person.head()
    assert f"Committed {head[:10]}." in result.for_model and "1 file changed" in result.for_model
    assert person.git("log", "-1", "--format=%B").strip() == "Change a\n\nBecause."
    assert person.git("diff", "--name-only").split() == ["b.py"]
    assert len(person.last.evidence) == 1 and person.last.evidence[0].group


async def test_commit_takes_exactly_the_paths(person: Person) -> None:
    person.file("b.py", "staged by the person\n")
    person.git("add", "b.py")
    person.file("a.py", "changed\n")
    person.file("new dir/ü.txt", "new\n")
    person.file("other.txt", "stays\n")
    preview = await person.preview(message="m", paths=["a.py", "new dir"])
    assert "+changed" in preview and "+new" in preview and "staged" not in preview
    await person.do("commit", message="m", paths=["a.py", "new dir"])
    assert sorted(person.git("-c", "core.quotePath=false", "show", "--name-only", "--format=")
                  .splitlines()) == ["a.py", "new dir/ü.txt"]  # fmt: skip
    assert person.git("diff", "--cached", "--name-only").split() == ["b.py"]
    assert person.git("status", "--porcelain").splitlines() == ["M  b.py", "?? other.txt"]


async def test_commit_of_deletions_and_of_all(person: Person) -> None:
    (person.root / "b.py").unlink()
    person.file("a.py", "changed\n")
    person.file("new", "untracked\n")
    await person.do("commit", message="Gone", paths=["b.py"])
    assert person.git("show", "--name-status", "--format=").split() == ["D", "b.py"]
    await person.do("commit", message="All", all=True)
    assert person.git("status", "--porcelain").split() == ["??", "new"]


async def test_the_first_commit(workspace: Workspace) -> None:
    one = Person(workspace.root)
    one.git("init", "-q", "-b", "main")
    one.file("a", "a\n")
    assert "Nothing is staged" not in await one.error("commit", message="m")
    assert "+a" in await one.preview(message="m", paths=["a"])
    await one.do("commit", message="m", paths=["."])
    assert one.git("ls-files").split() == ["a"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"message": " \n"}, "message is empty"),
        ({"message": "a\0b"}, "NUL"),
        ({"message": "\ud800"}, "half a character"),
        ({"message": "m" * 70_000}, "longer than"),
        ({"message": "m", "paths": ["a.py"], "all": True}, "exclude each other"),
        ({"message": "m", "paths": ["b.py"]}, "nothing to commit in b.py"),
        ({"message": "m", "paths": ["a.py", "nosuch"]}, "nothing to commit in nosuch"),
        ({"message": "m", "paths": ["ignored.log"]}, "nothing to commit in ignored.log"),
        ({"message": "m", "paths": ["../x"]}, "outside the workspace"),
        ({"message": "m"}, "Nothing is staged. Give paths, or all=true; changed are: a.py"),
    ],
)
async def test_commit_refuses(person: Person, arguments: dict[str, Any], words: str) -> None:
    person.commit("ignore", _gitignore="*.log\n")
    person.file("ignored.log", "x")
    person.file("a.py", "changed\n")
    head = person.head()
    assert words in await person.error("commit", **arguments)
    assert person.head() == head


async def test_messages_are_taken_as_they_are(person: Person) -> None:
    for message in ("--", "-m", "--amend", "$(touch pwned) `touch pwned`; touch pwned", "ünï ✓"):
        person.file("a.py", message)
        await person.do("commit", message=message, all=True)
        assert person.git("log", "-1", "--format=%B").strip() == message
    assert not (person.root / "pwned").exists()
    assert person.git("rev-list", "--count", "HEAD").strip() == "6"


async def test_what_was_shown_is_what_is_committed(person: Person) -> None:
    person.file("a.py", "shown\n")
    arguments = {"message": "m", "paths": ("a.py",)}
    tool = person.tools["git_commit"]
    context = await person.prepare(tool, **arguments)
    person.file("a.py", "something else\n")
    with pytest.raises(ToolError, match="no longer those that were shown"):
        await tool.run(context, **tool.arguments(arguments))
    assert context.evidence == [] and person.git("rev-list", "--count", "HEAD") == "1\n"


async def test_what_is_too_long_to_show_is_held_to_as_well(person: Person) -> None:
    tool = person.tools["git_commit"]
    for name, long, other in (
        ("a.py", "x\n" * 200_000, "x\n" * 199_999 + "y\n"),
        ("new.txt", "x\n" * 200_000, "x\n" * 199_999 + "y\n"),
        ("binary", "\0\1", "\0\2"),
    ):
        person.file(name, long)
        arguments = {"message": "m", "paths": (name,)}
        context = await person.prepare(tool, **arguments)
        person.file(name, other)
        with pytest.raises(ToolError, match="no longer those that were shown"):
            await tool.run(context, **tool.arguments(arguments))
    assert len(await person.preview(message="m", paths=["a.py", "new.txt"])) < 250_000
    (person.root / "nested").mkdir()
    git(person.root / "nested", "init", "-q")
    person.file("nested/x", "x")
    assert "nested/ is a git repository of its own" in await person.error(
        "commit", message="m", paths=["."]
    )


async def test_a_hook_refuses_and_its_words_are_shown(person: Person) -> None:
    person.hook("pre-commit", "echo linting; echo 'line 3 is bad' >&2; exit 1")
    person.file("new.py", "x\n")
    said = await person.error("commit", message="m", paths=["new.py"])
    assert "Nothing was committed" in said and "linting" in said and "line 3 is bad" in said
    assert "line 3 is bad" in "".join(person.last.emitted)
    assert person.git("status", "--porcelain").split() == ["??", "new.py"]


async def test_what_hooks_say_and_leave_running_after_a_good_commit(person: Person) -> None:
    person.hook("post-commit", "echo all well; sleep 60 & exit 3")
    person.file("a.py", "x\n")
    said = await person.say("commit", message="m", all=True)
    assert "Committed" in said and "all well" in said and "left 1 processes running" in said


async def test_a_cancelled_commit_ends_its_hooks_and_leaves_the_index_as_it_was(
    person: Person,
) -> None:
    ready = person.root / ".git/ready"
    os.mkfifo(ready)
    person.hook("pre-commit", f"echo > {ready}; sleep 60 & sleep 60")
    person.file("new.py", "x\n")
    arguments = {"message": "m", "paths": ("new.py",)}
    tool = person.tools["git_commit"]
    context = await person.prepare(tool, **arguments)
    task = asyncio.ensure_future(tool.run(context, **tool.arguments(arguments)))
    await asyncio.to_thread(ready.read_text)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not (person.root / ".git/index.lock").exists()
    assert person.git("status", "--porcelain").split() == ["??", "new.py"]


async def test_nothing_runs_when_the_start_cannot_be_recorded(person: Person) -> None:
    person.file("a.py", "x\n")
    tool, arguments = person.tools["git_commit"], {"message": "m", "all": True}
    context = await person.prepare(tool, **arguments)

    def fail() -> None:
        raise OSError("the log is full")

    context.on_started = fail
    with pytest.raises(OSError, match="the log is full"):
        await tool.run(context, **tool.arguments(arguments))
    assert person.git("rev-list", "--count", "HEAD") == "1\n"


async def test_without_an_identity(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    for role in ("AUTHOR", "COMMITTER"):
        for what in ("NAME", "EMAIL"):
            monkeypatch.delenv(f"GIT_{role}_{what}")
    person.git("config", "user.useConfigOnly", "true")
    person.file("a.py", "x\n")
    said = await person.error("commit", message="m", all=True)
    assert "git config --global user.name" in said


async def test_amending(person: Person) -> None:
    first = person.head()
    person.file("a.py", "x\n")
    facts = await person.facts("commit", message="Better", amend=True, all=True)
    assert facts.resources[0].subject == "git commit --amend -a -m Better"
    assert facts.title == "Amend the last commit with 1 file on branch main: Better"
    await person.do("commit", message="Better", amend=True, all=True)
    assert person.git("rev-list", "--count", "HEAD") == "1\n" and person.head() != first
    person.git("update-ref", "refs/remotes/origin/main", "HEAD")
    facts = await person.facts("commit", message="Best", amend=True)
    assert "already in origin/main" in facts.title


async def test_a_merge_is_concluded_as_a_whole(person: Person) -> None:
    person.git("checkout", "-qb", "side")
    person.commit("side", a_py="side\n")
    person.git("checkout", "-q", "main")
    person.commit("main", a_py="main\n")
    with pytest.raises(AssertionError):
        person.git("merge", "side")
    assert "in conflict: a.py" in await person.error("commit", message="m")
    person.file("a.py", "both\n")
    person.git("add", "a.py")
    assert "not concluded" in await person.error("commit", message="m", paths=["a.py"])
    assert "In the middle of a merge" in await person.error("checkout", branch="side")
    facts = await person.facts("commit", message="Merge side")
    assert "in the middle of a merge" in facts.title
    await person.do("commit", message="Merge side")
    assert len(person.git("log", "-1", "--format=%P").split()) == 2


async def test_a_lock_is_waited_for_and_told(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = person.root / ".git/index.lock"
    lock.touch()
    person.file("a.py", "x\n")
    task = asyncio.ensure_future(person.do("commit", message="m", all=True))
    await asyncio.sleep(0.5)
    assert not task.done()
    lock.unlink()
    assert "Committed" in (await task).for_model
    lock.touch()
    person.file("a.py", "y\n")
    said = await person.error("commit", message="m", all=True)
    assert str(lock) in said and "Try again" in said


async def test_what_became_of_a_commit_is_found_by_looking(person: Person) -> None:
    person.file("a.py", "x\n")
    tool = person.tools["git_commit"]
    arguments = {"message": "Found again", "all": True}
    context = await person.prepare(tool, **arguments)
    facts, blobs = await tool.facts(context, **tool.arguments(arguments))
    assert isinstance(context, Context)
    context.facts, context.blobs = facts, dict(blobs)
    evidence = Evidence(group=1)
    assert tool.recover is not None
    assert await tool.recover(context, evidence, arguments) is None
    lock = person.root / ".git/index.lock"
    lock.touch()
    with pytest.raises(ToolError, match=r"index\.lock still exists"):
        await tool.recover(context, evidence, arguments)
    lock.unlink()
    person.git("commit", "-qam", "Found again")
    found = await tool.recover(context, evidence, arguments)
    assert found is not None and f"Committed {person.head()[:10]} (seen" in found.for_model
    person.commit("Another", a_py="z\n")
    with pytest.raises(ToolError, match="not the commit that you asked for"):
        await tool.recover(context, evidence, arguments)


# --- branches -----------------------------------------------------------------------------------


async def test_branches_are_listed_made_renamed_and_deleted(person: Person) -> None:
    first = person.head()
    person.commit("second", a_py="2\n")
    assert await person.say("branch", action="create", name="old", start_point=first) == (
        "Created branch old."
    )
    assert "Created branch feature/x." in await person.say(
        "branch", action="create", name="feature/x"
    )
    listed = (await person.say("branch")).splitlines()
    assert listed[0].startswith(("* main", "  feature/x")) and len(listed) == 3
    assert f"  old {first[:7]} first" in listed
    await person.say("branch", action="rename", name="old", new_name="older")
    assert "Deleted branch older" in await person.say("branch", action="delete", name="older")
    assert person.git("branch", "--format=%(refname:short)").split() == ["feature/x", "main"]
    person.git("update-ref", "refs/remotes/origin/up", first)
    assert "origin/up" not in await person.say("branch")
    assert f"  origin/up {first[:7]} first" in await person.say("branch", all=True)
    tracking = person.tools["git_branch"]
    for arguments, subject in (
        ({}, "git branch"),
        ({"all": True}, "git branch -a"),
        ({"action": "create", "name": "n", "start_point": "main"}, "git branch n main"),
        ({"action": "delete", "name": "n"}, "git branch -d n"),
        ({"action": "rename", "name": "n", "new_name": "m"}, "git branch -m n m"),
    ):
        assert (await person.judge(tracking, **arguments)).resources[0].subject == subject


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"action": "create"}, "create needs name"),
        ({"action": "create", "name": "main"}, "A branch main already exists"),
        ({"action": "create", "name": "a b"}, "cannot be a branch name"),
        ({"action": "create", "name": "@{-1}"}, "cannot be a branch name"),
        ({"action": "create", "name": "-D"}, "is not a revision"),
        ({"action": "create", "name": "x", "start_point": "nosuch"}, "names no commit"),
        ({"action": "rename", "name": "main"}, "rename needs new_name"),
        ({"action": "rename", "name": "main", "new_name": "side"}, "A branch side"),
        ({"action": "rename", "name": "nosuch", "new_name": "x"}, "There is no branch 'nosuch'"),
        ({"action": "delete", "name": "main"}, "Cannot delete branch 'main' checked out"),
        ({"action": "delete", "name": "side"}, "not fully merged"),
        ({"action": "delete", "name": "side", "new_name": "x"}, "delete takes no new_name"),
        ({"action": "list", "name": "x"}, "list takes no name"),
    ],
)
async def test_branch_refuses(person: Person, arguments: dict[str, Any], words: str) -> None:
    person.git("checkout", "-qb", "side")
    person.commit("side", side_py="s\n")
    person.git("checkout", "-q", "main")
    before = person.git("show-ref")
    assert words in await person.error("branch", **arguments)
    assert person.git("show-ref") == before


async def test_what_became_of_a_branch_is_found_by_looking(person: Person) -> None:
    async def look(**wish: str) -> Result | None:
        tool = person.tools["git_branch"]
        assert tool.recover is not None
        return await tool.recover(person.context(), Evidence(group=1), wish)

    assert await look(action="create", name="x") is None
    person.git("branch", "x")
    assert await look(action="create", name="x") is not None
    assert await look(action="delete", name="x") is None
    assert await look(action="rename", name="x", new_name="y") is None
    person.git("branch", "-m", "x", "y")
    assert await look(action="rename", name="x", new_name="y") is not None
    person.git("branch", "-D", "y")
    assert await look(action="delete", name="y") is not None
    with pytest.raises(ToolError, match="neither name exists"):
        await look(action="rename", name="x", new_name="y")


# --- checkout -----------------------------------------------------------------------------------


async def test_checkout_switches_and_says_what_changed(person: Person) -> None:
    person.git("checkout", "-qb", "side")
    person.commit("side", a_py="side\n", c_py="c\n")
    person.git("checkout", "-q", "main")
    person.editor = FakeEditor()
    person.editor.open(person.root / "a.py")
    person.editor.open(person.root / "b.py")
    said = await person.say("checkout", branch="side")
    assert "Now on branch side at" in said
    assert "Files that changed (2): a.py, c.py" in said
    assert "Of these, read again those that are open in the editor: a.py\n" in said
    assert person.git("branch", "--show-current") == "side\n"
    assert (
        await person.say("checkout", branch="side") == "Already on branch side; nothing was done."
    )
    assert "a.py" in await person.error("checkout", branch="main")  # the editor still has the old
    person.editor.open(person.root / "a.py")
    assert "Now on branch new" in await person.say(
        "checkout", branch="new", create=True, start_point="main"
    )
    assert (person.root / "a.py").read_text() == "one\ntwo\nthree\n"
    facts = await person.facts("checkout", branch="new", create=True, start_point="main")
    assert facts.resources[0].subject == "git checkout -b new main"


async def test_checkout_of_commits_tags_and_remote_branches(person: Person) -> None:
    first = person.head()
    person.git("tag", "v1")
    person.commit("second", a_py="2\n")
    assert "give detach=true" in await person.error("checkout", branch="v1")
    assert "give detach=true" in await person.error("checkout", branch="HEAD~1")
    assert f"Now on detached HEAD at {first[:10]}." in await person.say(
        "checkout", branch="v1", detach=True
    )
    assert "Already on" in await person.say("checkout", branch="v1", detach=True)
    person.git("remote", "add", "origin", str(person.root))
    person.git("fetch", "-q", "origin", "main:refs/remotes/origin/theirs")
    assert "Now on branch theirs" in await person.say("checkout", branch="theirs")
    assert "level with origin/theirs" in await person.say("status")
    person.git("remote", "add", "fork", str(person.root))
    for remote in ("origin", "fork"):
        person.git("update-ref", f"refs/remotes/{remote}/both", first)
    assert "There are several: fork/both, origin/both" in await person.error(
        "checkout", branch="both"
    )


async def test_checkout_before_the_first_commit(workspace: Workspace) -> None:
    one = Person(workspace.root)
    one.git("init", "-q", "-b", "main")
    assert "Now on branch trunk." in await one.say("checkout", branch="trunk", create=True)
    assert "names no commit" in await one.error("checkout", branch="main")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"branch": "nosuch"}, "names no commit"),
        ({"branch": "--force"}, "is not a revision"),
        ({"branch": "a.py"}, "names no commit"),
        ({"branch": "main", "create": True}, "A branch main already exists"),
        ({"branch": "x", "start_point": "main"}, "goes with create=true"),
        ({"branch": "x", "create": True, "detach": True}, "exclude each other"),
        ({"branch": "x", "create": True, "start_point": "nosuch"}, "names no commit"),
    ],
)
async def test_checkout_refuses(person: Person, arguments: dict[str, Any], words: str) -> None:
    assert words in await person.error("checkout", **arguments)
    assert person.git("status", "--porcelain", "--branch") == "## main\n"


async def test_checkout_loses_no_work(person: Person) -> None:
    person.git("checkout", "-qb", "side")
    person.commit("side", a_py="side\n", c_py="c\n")
    person.git("checkout", "-q", "main")
    person.file("a.py", "my work\n")
    said = await person.error("checkout", branch="side")
    assert "Nothing was switched" in said and "a.py" in said and "overwritten" in said
    person.git("checkout", "-q", "a.py")
    person.file("c.py", "untracked work\n")
    assert "c.py" in await person.error("checkout", branch="side")
    (person.root / "c.py").unlink()
    person.file("b.py", "goes along\n")
    assert "M\tb.py" in await person.say("checkout", branch="side")
    assert (person.root / "b.py").read_text() == "goes along\n"


async def test_checkout_minds_what_is_not_saved(person: Person) -> None:
    person.git("checkout", "-qb", "side")
    person.commit("side", a_py="side\n")
    person.git("checkout", "-q", "main")
    person.editor = FakeEditor()
    person.editor.open(person.root / "b.py", "b\nunsaved, but the same file there\n")
    person.editor.open(person.root / "a.py", "unsaved\n")
    said = await person.error("checkout", branch="side")
    assert "the text of a.py in the editor differs" in said and person.last.evidence == []
    person.editor.open(person.root / "a.py")
    assert "Now on branch side" in await person.say("checkout", branch="side")


async def test_checkout_below_the_work_tree_says_that_it_reaches_further(person: Person) -> None:
    person.file("sub/in.py", "in\n")
    person.commit("sub")
    person.git("branch", "side")
    below = Person(person.root / "sub")
    facts = await below.facts("checkout", branch="side")
    assert facts.title == f"Switch to side, also outside the workspace in all of {person.root}"


async def test_what_became_of_a_checkout_is_found_by_looking(person: Person) -> None:
    async def look(**wish: Any) -> Result | None:
        tool = person.tools["git_checkout"]
        assert tool.recover is not None
        return await tool.recover(person.context(), Evidence(group=1), wish)

    person.git("branch", "side")
    (person.root / ".git/index.lock").touch()
    with pytest.raises(ToolError, match=r"still on branch main.*index\.lock still exists"):
        await look(branch="side")
    (person.root / ".git/index.lock").unlink()
    person.git("checkout", "-q", "side")
    assert (await look(branch="side")) is not None
    person.git("checkout", "-q", "--detach", "main")
    assert (await look(branch="main", detach=True)) is not None


# --- rules --------------------------------------------------------------------------------------


def decided(facts: Facts, tool: Tool, *sources: Ruleset) -> Decision:
    return permit.decide(facts, tool.key, tool.effect, sources)


async def test_one_set_of_command_rules_holds_however_a_command_is_made(person: Person) -> None:
    build = built_in_agents()["build"].rules
    mine = Ruleset(source="mine", keys={"bash": (Rule(pattern="git checkout *", action="deny"),)})
    person.file("a.py", "x\n")
    for name, arguments, action in (
        ("status", {}, "allow"),
        ("log", {"paths": ["a.py"], "stat": True}, "allow"),
        ("diff", {}, "allow"),
        ("diff", {"paths": ["a.py"], "old": "HEAD"}, "allow"),
        ("branch", {}, "allow"),
        ("branch", {"action": "create", "name": "x"}, "ask"),
        ("commit", {"message": "m", "all": True}, "ask"),
        ("checkout", {"branch": "main"}, "deny"),
    ):
        facts = await person.facts(name, **arguments)
        decision = decided(facts, person.tools[f"git_{name}"], build, mine, common_rules())
        assert (name, decision.action) == (name, action), decision.rule
    commit = await person.facts("commit", message="m", all=True)
    (grant,) = permit.proposals(commit, "bash")
    assert (grant.key, grant.pattern) == ("bash", "git commit *")


async def test_files_are_held_against_the_rules_for_reading(person: Person) -> None:
    build = built_in_agents()["build"].rules
    person.commit("secret", config_env="KEY=1\n")
    person.file("config.env", "KEY=hunter2\n")
    for name, arguments in (
        ("diff", {"paths": ["config.env"]}),
        ("commit", {"message": "m", "all": True}),
        ("commit", {"message": "m", "paths": ["config.env"]}),
    ):
        facts = await person.facts(name, **arguments)
        decision = decided(facts, person.tools[f"git_{name}"], build, common_rules())
        assert decision.action == "deny" and "*.env" in decision.rule
    (person.root / "config.env").unlink()
    facts = await person.facts("commit", message="m", all=True)
    assert decided(facts, person.tools["git_commit"], build, common_rules()).action == "ask"
