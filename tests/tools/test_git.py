"""The git tools that look, on real repositories, kind and hostile ones."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from magy_server.tools.git import program as git_program
from tests.guard import SESSION

from .conftest import Workspace
from .repositories import Person, in_repository


@pytest.fixture
async def person(workspace: Workspace) -> AsyncIterator[Person]:
    async with in_repository(workspace.root) as one:
        yield one


# --- status -------------------------------------------------------------------------------------


async def test_status_says_branch_and_what_is_where(person: Person) -> None:
    assert await person.say("status") == (
        "On branch main\nNothing to commit, the work tree is clean."
    )
    person.file("a.py", "changed\n")
    person.file("new.py", "n\n")
    person.file("with space/ä.txt", "x\n")
    person.git("mv", "b.py", "c.py")
    result = await person.do("status")
    assert result.for_model == (
        "On branch main\n"
        "Staged (1):\n  renamed: b.py -> c.py\n"
        "Changed, not staged (1):\n  modified: a.py\n"
        "Untracked (2):\n  new.py\n  with space/"
    )
    assert result.for_user == "branch main: 1 staged, 1 changed, 2 untracked"


async def test_status_before_the_first_commit_and_detached(person: Person, tmp_path: Path) -> None:
    person.git("checkout", "-q", "--detach")
    assert f"On detached HEAD at {person.head()[:10]}" in await person.say("status")
    other = Person(tmp_path.resolve() / "empty")
    other.root.mkdir()
    other.git("init", "-q", "-b", "trunk")
    assert (await other.say("status")).startswith("No commits yet on branch trunk")
    assert await other.say("log") == "There are no commits yet."
    other.file("x", "x")
    other.git("add", "x")
    assert "+x" in await other.say("diff", staged=True)


async def test_status_tells_upstream_stash_and_conflict(person: Person) -> None:
    person.git("branch", "up")
    person.git("branch", "-q", "--set-upstream-to=up")
    assert "level with up" in await person.say("status")
    person.commit("mine", a_py="mine\n")
    assert "On branch main, 1 ahead of up" in await person.say("status")
    person.git("checkout", "-q", "up")
    person.commit("theirs", a_py="theirs\n")
    person.git("checkout", "-q", "main")
    assert "1 ahead of and 1 behind up" in await person.say("status")
    person.file("b.py", "stashed\n")
    person.git("stash", "-q")
    with pytest.raises(AssertionError):
        person.git("merge", "-q", "up")
    said = await person.say("status")
    assert "In the middle of a merge" in said
    assert "In conflict (1):\n  both modified: a.py" in said
    assert "Stashes: 1" in said


async def test_names_that_are_hard_to_show(person: Person) -> None:
    strange = os.path.join(os.fsencode(person.root), b"caf\xe9.txt")
    Path(os.fsdecode(strange)).write_text("x")
    person.file("two\nlines", "x")
    person.file('"quoted"', "x")
    person.file(":(top)magic*", "old\n")
    said = await person.say("status")
    for name in (r"caf\xe9.txt", r'"two\nlines"', r'"\"quoted\""', ":(top)magic*"):
        assert f"\n  {name}" in said
    person.git("add", "-A")
    assert "new file" in await person.say("diff", staged=True)
    person.commit("strange")
    person.file(":(top)magic*", "new\n")
    person.file("a.py", "other\n")
    said = await person.say("diff", paths=[":(top)magic*"])
    assert "+new" in said and "a.py" not in said


async def test_long_answers_come_by_page(person: Person) -> None:
    for number in range(1500):
        person.file(f"many/{number:04}.txt", "x")
    person.git("add", "-A")
    first = await person.do("status")
    assert "[lines 1-1000 of 1502; continue with offset=1001]" in first.for_model
    assert first.output is not None and b"many/1499.txt" in first.output
    second = await person.say("status", offset=1001)
    assert "many/1499.txt" in second and "[lines 1001-1502 of 1502]" in second
    assert "has only 1502 lines; offset 2000 is past the end" in await person.error(
        "status", offset=2000
    )


# --- diff ---------------------------------------------------------------------------------------


async def test_diff_shows_what_was_asked_for(person: Person) -> None:
    first = person.head()
    person.commit("second", a_py="one\n2\nthree\n")
    person.file("b.py", "staged\n")
    person.git("add", "b.py")
    person.file("a.py", "one\n2\n3\n")
    plain = await person.do("diff")
    assert "-three\n+3" in plain.for_model and "b.py" not in plain.for_model
    assert plain.for_user == "1 file differs"
    staged = await person.say("diff", staged=True)
    assert "-b\n+staged" in staged and "a.py" not in staged
    assert "-two\n+2" in await person.say("diff", old=first, new="HEAD")
    assert "-two\n-three\n+2\n+3" in await person.say("diff", old=first, paths=["a.py"])
    assert "+staged" in await person.say("diff", old=first, staged=True, paths=["b.py"])
    stat = await person.say("diff", old=first, stat=True)
    assert "2 files changed" in stat and "+2" not in stat
    assert await person.say("diff", paths=["b.py"]) == "Nothing differs."
    assert await person.say("diff", old="HEAD", new="HEAD") == "Nothing differs."


async def test_diff_of_ranges(person: Person) -> None:
    person.git("checkout", "-qb", "side")
    person.commit("on side", side_py="s\n")
    person.git("checkout", "-q", "main")
    person.commit("on main", main_py="m\n")
    assert "deleted file" in await person.say("diff", old="main..side")
    since = await person.say("diff", old="main...side")
    assert "side.py" in since and "main.py" not in since
    assert "main.py" in await person.say("diff", old="side...")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"old": "--output=stolen"}, "is not a revision"),
        ({"old": "main", "new": "--no-index"}, "is not a revision"),
        ({"old": "HEAD:a.py", "new": "HEAD:b.py"}, "names no commit"),
        ({"old": "nosuch"}, "names no commit"),
        ({"old": "a\nb"}, "is not a revision"),
        ({"new": "main"}, "new needs old"),
        ({"staged": True, "old": "main", "new": "main"}, "one revision at most"),
        ({"paths": ["../secret"]}, "outside the workspace"),
        ({"paths": ["/etc/passwd"]}, "outside the workspace"),
        ({"paths": [""]}, "path is empty"),
        ({"paths": ["a\0b"]}, "control characters"),
        ({"offset": 0}, "greater than or equal to 1"),
    ],
)
async def test_diff_refuses(person: Person, arguments: dict[str, Any], words: str) -> None:
    assert words in await person.error("diff", **arguments)
    assert not (person.root / "stolen").exists()


async def test_diff_leaves_out_what_may_not_be_read(person: Person) -> None:
    person.commit("secrets", sub_env="KEY=old\n", a_py="1\n")
    (person.root / "sub.env").write_text("KEY=hunter2\n")
    person.file("a.py", "2\n")
    person.reading = lambda path: "ask" if path == str(person.root / "sub.env") else "allow"
    result = await person.do("diff")
    assert "+2" in result.for_model and "KEY" not in result.for_model
    assert "[left out, because reading them is not allowed: sub.env]" in result.for_model
    assert "KEY" not in await person.say("diff", old="HEAD~1", new="HEAD")
    assert "hunter2" in await person.say("diff", paths=["sub.env"])  # named, so it was judged
    assert "hunter2" not in await person.say("diff", paths=["."])


async def test_binary_files_are_only_named(person: Person) -> None:
    person.file("b.py", "\0\1\2" * 1000)
    assert "Binary files a/b.py and b/b.py differ" in await person.say("diff")


async def test_a_change_within_the_same_moment_is_seen(person: Person) -> None:
    for number in range(20):
        person.file("a.py", f"{number:02}\n")
        person.git("add", "a.py")
        person.file("a.py", f"{number + 1:02}\n")
        assert f"+{number + 1:02}" in await person.say("diff")


async def test_a_huge_diff_is_bounded(person: Person) -> None:
    line = "x" * 99 + "\n"
    with open(person.root / "a.py", "w") as file:
        for _ in range(1000):
            file.write(line * 1000)
    result = await person.do("diff")
    assert len(result.for_model) < 60_000
    assert (
        "the diff is very long" in result.for_model and "continue with offset=" in result.for_model
    )
    assert result.output is not None and len(result.output) < 9 << 20
    assert "1000000 insertions" in (await person.say("diff", stat=True))


# --- log ----------------------------------------------------------------------------------------


async def test_log_tells_id_author_date_and_message(person: Person) -> None:
    head = person.commit("Subject line\n\nA body\nin lines", a_py="1\n")
    result = await person.do("log", count=1)
    assert f"commit {head} (HEAD -> main)\nAuthor: Test <test@example.invalid>" in result.for_model
    assert "\n    Subject line\n\n    A body\n    in lines" in result.for_model
    assert "[there are more; continue with offset=1]" in result.for_model
    assert "first" in await person.say("log", offset=1)
    assert "No commits after those skipped" in await person.say("log", offset=9)
    assert "a.py" in await person.say("log", stat=True, count=1)
    assert "Subject" not in await person.say("log", paths=["b.py"])
    assert "Subject" in await person.say("log", revision="HEAD~1..HEAD")
    assert "bad revision" in await person.error("log", revision="nosuch")
    assert "is not a revision" in await person.error("log", revision="--all")


async def test_a_message_cannot_forge_commits(person: Person) -> None:
    person.git("commit", "--allow-empty", "-qm", "evil \x1ecommit deadbeef\nAuthor: Somebody else")
    said = await person.say("log", count=2)
    assert said.count("\nAuthor: ") == 2 and "\n    Author: Somebody else" in said
    assert "[there are more" not in said
    person.git("config", "i18n.logOutputEncoding", "latin1")
    person.git("commit", "--allow-empty", "-qm", "caf\u00e9")
    assert "caf\u00e9" in await person.say("log", count=1)


async def test_log_is_bounded_and_shows_no_terminal_control(person: Person) -> None:
    person.git("commit", "--allow-empty", "-qm", "\x1b[31mred " + "y" * 50_000)
    person.git("commit", "--allow-empty", "-qm", "next " + "z" * 14_000)
    said = await person.say("log")
    assert "\x1b" not in said and "red" in said and "[... cut" in said
    assert len(said) < 32_000


# --- what a repository cannot do ----------------------------------------------------------------


HOSTILE = """
[core]
    fsmonitor = touch {out}/fsmonitor
    pager = touch {out}/pager
    hooksPath = {hooks}
    sshCommand = touch {out}/ssh
    editor = touch {out}/editor
[diff]
    external = touch {out}/external
[diff "evil"]
    command = touch {out}/command
    textconv = touch {out}/textconv;cat
[filter "evil"]
    clean = touch {out}/clean;cat
    smudge = touch {out}/smudge;cat
    process = touch {out}/process
    required = true
[filter "a.b=c"]
    clean = touch {out}/dotted;cat
[filter ""]
    clean = touch {out}/nameless;cat
[gpg]
    program = {hooks}/gpg
[log]
    showSignature = true
[alias]
    status = !touch {out}/alias
"""


async def test_looking_runs_nothing_that_the_repository_names(
    person: Person, tmp_path: Path
) -> None:
    out, hooks = tmp_path / "out", tmp_path / "hooks"
    out.mkdir()
    hooks.mkdir()
    for name in ("post-index-change", "pre-commit", "gpg", "fsmonitor-watchman"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {out}/{name}\n")
        (hooks / name).chmod(0o755)
    person.file("c.py", "c\n")
    attributes = "*.py diff=evil filter=evil\nb.py filter=a.b=c\nc.py filter=\n"
    person.file(".gitattributes", attributes)
    person.commit("attributes")
    with open(person.root / ".git/config", "a") as config:
        config.write(HOSTILE.format(out=out, hooks=hooks))
    for name in ("a.py", "b.py", "c.py"):
        person.file(name, "changed\n")
    said = await person.say("status")
    assert "modified: a.py" in said
    assert 'filters of the repository were not run: "", a.b=c, evil' in said
    assert "+changed" in await person.say("diff")
    assert "+changed" in await person.say("diff", old="HEAD")
    await person.say("diff", staged=True)
    await person.say("log", stat=True)
    await person.say("branch")
    assert "+changed" in await person.preview(message="m", paths=["a.py"])
    assert os.listdir(out) == []
    for name in ("b.py", "c.py"):  # a real trap
        subprocess.run(["git", "-C", person.root, "diff", name], capture_output=True)
    assert {"dotted", "nameless", "command", "fsmonitor"} <= set(os.listdir(out))


async def test_a_partial_clone_fetches_nothing(person: Person, tmp_path: Path) -> None:
    out = tmp_path / "fetched"
    blob = person.git("rev-parse", "HEAD:a.py").strip()
    (person.root / ".git/objects" / blob[:2] / blob[2:]).unlink()
    for key, value in {
        "core.repositoryFormatVersion": "1", "extensions.partialClone": "origin",
        "remote.origin.promisor": "true", "remote.origin.url": str(tmp_path),
        "remote.origin.uploadpack": f"touch {out};false",
    }.items():  # fmt: skip
        person.git("config", key, value)
    person.file("a.py", "changed\n")
    assert "not on this machine" in await person.error("diff")
    assert not out.exists()


async def test_variables_of_the_server_do_not_reach_git(
    person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Person(tmp_path.resolve() / "other")
    other.root.mkdir()
    other.git("init", "-q")
    seen = tmp_path / "seen"
    person.hook("pre-commit", f"env > {seen}")
    for name in ("ANTHROPIC_API_KEY", "CORP_GATEWAY", "GITHUB_TOKEN", "UNKNOWN", "NODE_ENV"):
        monkeypatch.setenv(name, "hunter2")
    monkeypatch.setenv("GIT_DIR", str(other.root / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.root))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    monkeypatch.setenv("GIT_TRACE", str(tmp_path / "trace"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    person.file("a.py", "changed\n")
    assert "modified: a.py" in await person.say("status")
    await person.say("commit", message="With a hook", paths=["a.py"])
    env = dict(line.partition("=")[::2] for line in seen.read_text().splitlines())
    assert [name for name, value in env.items() if value == "hunter2"] == ["NODE_ENV"]
    assert env["MAGY_CALL"] == f"{SESSION}:1.0" and env["LC_CTYPE"] == "C.UTF-8"
    assert "LC_ALL" not in env and "GIT_TRACE" not in env and not (tmp_path / "trace").exists()


async def test_git_that_hangs_is_ended(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(person.root / ".git/pipe")
    person.git("config", "core.excludesFile", str(person.root / ".git/pipe"))
    task = asyncio.ensure_future(person.do("status"))
    while not any(child.name() == "git" for child in psutil.Process().children()):
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    monkeypatch.setattr(git_program, "LOOK", 0.3)
    assert "took longer than" in await person.error("status")


async def test_looking_needs_no_lock_and_leaves_the_index_alone(person: Person) -> None:
    index = person.root / ".git/index"
    os.utime(person.root / "a.py", (1, 1))
    before = index.stat().st_mtime_ns, index.read_bytes()
    assert "clean" in await person.say("status")
    assert await person.say("diff") == "Nothing differs."
    person.file("b.py", "changed\n")
    assert "+changed" in await person.say("diff", old="HEAD")
    person.git("update-index", "--split-index")
    split = index.stat().st_mtime_ns, index.read_bytes()
    assert "+changed" in await person.say("diff")
    assert (index.stat().st_mtime_ns, index.read_bytes()) == split
    person.git("update-index", "--no-split-index")
    person.git("checkout", "-q", "b.py")
    os.utime(person.root / "a.py", (1, 1))
    before = index.stat().st_mtime_ns, index.read_bytes()
    assert await person.say("diff") == "Nothing differs."
    assert (index.stat().st_mtime_ns, index.read_bytes()) == before
    (person.root / ".git/index.lock").touch()
    assert "clean" in await person.say("status")
    assert await person.say("diff") == "Nothing differs."


# --- where the repository is --------------------------------------------------------------------


async def test_outside_of_any_work_tree(workspace: Workspace) -> None:
    one = Person(workspace.root)
    for name in ("status", "diff", "log", "branch"):
        assert "is not in a git repository; use bash `git init`" in await one.error(name)
    facts = await one.facts("commit", message="m")
    assert facts.problem is not None and "not in a git repository" in facts.problem
    one.git("init", "-q", "--bare")
    assert "bare repository" in await one.error("status")


async def test_a_work_tree_elsewhere_is_refused(person: Person, tmp_path: Path) -> None:
    elsewhere = tmp_path.resolve() / "elsewhere"
    elsewhere.mkdir()
    person.git("config", "core.worktree", str(elsewhere))
    said = await person.error("status")
    assert str(elsewhere) in said and "work only in the workspace" in said
    assert "not in a git repository" in await Person(elsewhere).error("status")


async def test_a_git_file_that_stands_for_anothers_repository(
    person: Person, tmp_path: Path
) -> None:
    person.commit("a diary", diary_txt="private\n")
    archive = Person(tmp_path.resolve() / "archive")
    archive.file(".git", f"gitdir: {person.root}/.git\n")
    said = await archive.error("diff", old="HEAD~1", new="HEAD")
    assert "does not point back" in said and "private" not in said
    person.git("config", "core.worktree", str(archive.root))  # as it advises
    assert "private" in await archive.say("diff", old="HEAD~1", new="HEAD")
    person.git("config", "--unset", "core.worktree")
    (archive.root / ".git").unlink()
    for name in ("objects", "refs"):
        (archive.root / ".git" / name).mkdir(parents=True)
    archive.file(".git/HEAD", "ref: refs/heads/main\n")
    archive.file(".git/commondir", f"{person.root}/.git\n")
    assert "does not point back" in await archive.error("log")


async def test_git_is_not_taken_from_where_one_happens_to_be(
    person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap = tmp_path / "git"
    trap.write_text(f'#!/bin/sh\ntouch {tmp_path}/ran\nexec git "$@"\n')
    trap.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    person.use({**os.environ, "PATH": f".:{os.environ['PATH']}"})
    assert "clean" in await person.say("status")
    person.use({**os.environ, "PATH": "."})
    assert "git is not installed" in await person.error("status")
    assert not (tmp_path / "ran").exists()


async def test_a_status_of_too_many_names_says_what_to_do(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_program, "CAPTURED", 1_000)
    for number in range(100):
        person.file(f"file-{number}")
    assert ".gitignore" in await person.error("status")


async def test_a_workspace_below_the_work_tree(person: Person) -> None:
    person.file("sub/in.py", "in\n")
    person.commit("sub")
    person.file("sub/in.py", "in changed\n")
    person.file("a.py", "outside changed\n")
    below = Person(person.root / "sub")
    said = await below.say("status")
    assert "  modified: in.py" in said and "a.py" not in said
    assert "only what lies below the workspace root" in said
    said = await below.say("diff")
    assert "b/in.py" in said and "outside" not in said
    assert "first" not in await below.say("log")
    person.git("add", "a.py")
    assert "Files outside the workspace are staged" in await below.error("commit", message="m")
    assert "outside the workspace" in await below.error("commit", message="m", paths=["../a.py"])
    await below.do("commit", message="Below", all=True)
    assert person.git("show", "--name-only", "--format=%s").split() == ["Below", "sub/in.py"]
    assert person.git("diff", "--cached", "--name-only").split() == ["a.py"]


async def test_worktrees_and_submodules_are_repositories(person: Person, tmp_path: Path) -> None:
    tree = tmp_path.resolve() / "tree"
    person.git("worktree", "add", "-q", str(tree), "-b", "side")
    there = Person(tree)
    assert "On branch side" in await there.say("status")
    there.file("a.py", "in the worktree\n")
    await there.do("commit", message="There", all=True)
    assert f"(checked out in {tree})" in await person.say("branch")
    person.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(tree), "module")
    person.commit("module")
    module = Person(person.root / "module")
    module.file("a.py", "in the module\n")
    assert "modified: a.py" in await module.say("status")
    assert "clean" in await person.say("status")
    await module.do("commit", message="In the module", all=True)
    assert "modified: module" in await person.say("status")
    assert "+Subproject commit" in await person.say("diff")


async def test_a_repository_with_sha256(workspace: Workspace) -> None:
    one = Person(workspace.root)
    one.git("init", "-q", "-b", "main", "--object-format=sha256")
    one.file("a", "a\n")
    assert "Committed" in await one.say("commit", message="One", paths=["a"])
    assert len(one.head()) == 64
    one.file("a", "b\n")
    assert "+b" in await one.say("diff", old=one.head())
    assert "One" in await one.say("log")
    assert "Now on branch x" in await one.say("checkout", branch="x", create=True)
