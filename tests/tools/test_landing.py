"""Git worktrees of agents, made and landed in real repositories: what is the person's stays."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from magy_server.core.errors import ToolError
from magy_server.core.values import WorktreeSettings
from magy_server.projects import Projects
from magy_server.store.memory import MemoryStore
from magy_server.tools.git.program import Ran
from magy_server.tools.shell.processes import Processes
from magy_server.tools.worktrees import checkouts, merging, outcomes, records
from magy_server.tools.worktrees.outcomes import Settled
from magy_server.tools.worktrees.pull_requests import Forge, Request, parts
from magy_server.tools.worktrees.records import Record
from magy_server.tools.worktrees.writing import Writing, writing
from tests.disks import limited, small_disk

from .repositories import git

LINES = "one\ntwo\nthree\nfour\nfive\n"
SESSION = "s/4.0"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    project = tmp_path.resolve() / "project"
    begin(project)
    return project


def begin(project: Path, branch: str = "main") -> None:
    project.mkdir(parents=True)
    git(project, "init", "-q", "-b", branch)
    (project / "a.txt").write_text(LINES)
    (project / "b.txt").write_text(LINES)
    (project / ".gitignore").write_text("*.ignored\n")
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "First")


async def nothing_unsaved(paths: Sequence[str]) -> Sequence[str]:
    return []


async def no_forge(*asked: str) -> str:
    raise ToolError("Nobody is there.")


class Agent:
    """What the engine does for one child."""

    def __init__(self, root: Path, session: str = SESSION) -> None:
        self.root = root
        self.session = session
        self.env = Processes().environment(str(root), session, "worktree")
        self.unsaved = nothing_unsaved
        self.record: Any = None

    async def plan(self, **settings: Any) -> Record:
        wanted = WorktreeSettings(**settings)
        planned = await checkouts.planned(str(self.root), self.env, self.session, "Fix it!", wanted)
        self.record = Record(
            session=self.session, root=str(self.root), place=planned[1], worktree=planned[0]
        )
        return self.record

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Writing]:
        async with writing(str(self.root), self.env) as git:
            yield git

    async def begin(self, **settings: Any) -> Path:
        """Returns the place where it works."""
        record = self.record or await self.plan(**settings)
        async with self.writing() as git:
            await checkouts.make(git, record)
        return Path(record.place)

    async def end(self, *, proposes: bool = False, forge: Any = no_forge) -> Settled:
        request = Request("Fix it!", "All is said.", Forge("forge.example", forge))
        async with self.writing() as git:
            return await outcomes.succeeded(
                git, self.record, request, self.unsaved, proposes=proposes
            )

    async def fail(self) -> str:
        async with self.writing() as git:
            return await outcomes.failed(git, self.record)

    @property
    def branch(self) -> str:
        return str(self.record.worktree.branch)


def branches(root: Path) -> list[str]:
    return git(root, "for-each-ref", "--format=%(refname:short)", "refs/heads").split()


def clean(root: Path) -> bool:
    """Nothing is left of any worktree."""
    return (
        git(root, "worktree", "list").count("\n") == 1
        and not (root / ".worktrees").exists()
        and not records.all_of(str(root / ".git"))
        and not git(root, "status", "--porcelain", "--untracked-files=all")
    )


# --- how it ends ----------------------------------------------------------------------------------


@pytest.mark.req("A045", "A052")
async def test_auto_merge_makes_a_merge_commit_and_cleans_up(root: Path) -> None:
    agent = Agent(root)
    place = await agent.begin()
    assert place.parent == root / ".worktrees" and place.name.startswith("fix-it-")
    assert not git(root, "status", "--porcelain", "--untracked-files=all", "--ignored=no")
    (place / "a.txt").write_text(LINES.replace("one", "ONE"))
    (place / "new.txt").write_text("new\n")
    (place / "b.txt").unlink()
    settled = await agent.end()
    commit = git(root, "rev-parse", "main").strip()
    assert settled.text == f"Merged into main as {commit[:10]} (3 files changed)."
    assert len(git(root, "log", "-1", "--format=%P", "main").split()) == 2
    assert (root / "a.txt").read_text().startswith("ONE\n")
    assert (root / "new.txt").exists() and not (root / "b.txt").exists()
    assert branches(root) == ["main"] and clean(root)


@pytest.mark.req("A054")
async def test_branch_only_keeps_the_branch_and_removes_the_worktree(root: Path) -> None:
    agent = Agent(root)
    place = await agent.begin(on_success="branch_only")
    (place / "new.txt").write_text("new\n")
    settled = await agent.end()
    assert agent.branch in settled.text and branches(root) == [agent.branch, "main"]
    assert git(root, "show", f"{agent.branch}:new.txt") == "new\n" and clean(root)
    again = await agent.begin()
    assert (again / "new.txt").exists(), "the next turn goes on there"


@pytest.mark.req("A055", "A056")
async def test_what_fails_is_kept_or_removed(root: Path) -> None:
    agent = Agent(root)
    place = await agent.begin()
    (place / "half.txt").write_text("half\n")
    said = await agent.fail()
    assert str(place) in said and agent.branch in said
    assert (await agent.begin() / "half.txt").read_text() == "half\n"
    other = Agent(root, "s/5.0")
    (await other.begin(on_failure="cleanup") / "half.txt").write_text("half\n")
    assert await other.fail() == "Its worktree and branch are removed."
    assert branches(root) == [agent.branch, "main"]
    assert git(root, "worktree", "list").count("\n") == 2


async def test_who_changed_nothing_leaves_nothing(root: Path) -> None:
    for way in ("auto_merge", "create_pr", "branch_only"):
        agent = Agent(root, f"s/{way}")
        await agent.begin(on_success=way)
        assert "changed nothing" in (await agent.end()).text
        assert branches(root) == ["main"] and clean(root)
    assert git(root, "rev-list", "--count", "main") == "1\n"


# --- what is the person's -------------------------------------------------------------------------


async def test_staged_stashed_changed_and_new_files_stay(root: Path) -> None:
    (root / "b.txt").write_text("stashed\n")
    git(root, "stash", "-q")
    (root / "b.txt").write_text("staged\n")
    git(root, "add", "b.txt")
    (root / "b.txt").write_text("changed\n")
    (root / "mine.txt").write_text("mine\n")
    (root / "x.ignored").write_text("ignored\n")
    before = git(root, "status", "--porcelain=v2", "--ignored", "--show-stash")
    agent = Agent(root)
    place = await agent.begin()
    assert not (place / "mine.txt").exists() and not (place / "x.ignored").exists()
    (place / "a.txt").write_text("agent\n")
    assert "Merged into main" in (await agent.end()).text
    assert (root / "a.txt").read_text() == "agent\n"
    assert git(root, "status", "--porcelain=v2", "--ignored", "--show-stash") == before
    assert git(root, "stash", "list").count("\n") == 1


@pytest.mark.parametrize("how", ["changed", "staged", "new", "ignored"])
async def test_a_file_that_the_person_changed_too_keeps_the_merge_away(
    root: Path, how: str
) -> None:
    agent = Agent(root)
    place = await agent.begin()
    name = {"new": "new.txt", "ignored": "x.ignored"}.get(how, "a.txt")
    (place / name).write_text("agent\n")
    git(place, "add", "-f", name)
    (root / name).write_text("person\n")
    if how == "staged":
        git(root, "add", name)
    head = git(root, "rev-parse", "HEAD")
    settled = await agent.end()
    assert settled.unmerged and f"{name} in {root} has changes" in settled.text
    assert (root / name).read_text() == "person\n" and git(root, "rev-parse", "HEAD") == head
    assert f"git merge {agent.branch}" in settled.text and place.exists()
    if how == "changed":
        git(root, "checkout", "-q", name)
        assert "Merged into main" in (await agent.end()).text and clean(root)


async def test_unsaved_text_in_an_editor_counts_as_a_change(root: Path) -> None:
    agent = Agent(root)
    (await agent.begin() / "a.txt").write_text("agent\n")

    async def unsaved(paths: Sequence[str]) -> Sequence[str]:
        return [path for path in paths if path == str(root / "a.txt")]

    agent.unsaved = unsaved
    assert "a.txt in" in (await agent.end()).text
    assert (root / "a.txt").read_text() == LINES


async def test_another_branch_is_checked_out(root: Path) -> None:
    git(root, "checkout", "-q", "-b", "feature")
    (root / "a.txt").write_text("feature\n")
    agent = Agent(root)
    (await agent.begin() / "b.txt").write_text("agent\n")
    assert "Merged into main" in (await agent.end()).text
    assert git(root, "symbolic-ref", "--short", "HEAD") == "feature\n"
    assert (root / "a.txt").read_text() == "feature\n" and (root / "b.txt").read_text() == LINES
    assert git(root, "show", "main:b.txt") == "agent\n"


async def test_the_base_branch_may_be_checked_out_in_another_worktree(
    root: Path, tmp_path: Path
) -> None:
    git(root, "checkout", "-q", "-b", "feature")
    elsewhere = tmp_path / "elsewhere"
    git(root, "worktree", "add", "-q", str(elsewhere), "main")
    agent = Agent(root)
    (await agent.begin() / "b.txt").write_text("agent\n")
    assert "Merged into main" in (await agent.end()).text
    assert (elsewhere / "b.txt").read_text() == "agent\n"
    assert not git(elsewhere, "status", "--porcelain")


async def test_the_base_branch_is_checked_out_where_nothing_is_any_more(
    root: Path, tmp_path: Path
) -> None:
    git(root, "checkout", "-q", "-b", "feature")
    gone = tmp_path.resolve() / "gone"
    git(root, "worktree", "add", "-q", str(gone), "main")
    agent = Agent(root)
    (await agent.begin() / "b.txt").write_text("agent\n")
    shutil.rmtree(gone)
    said = (await agent.end()).text
    assert f"git has main checked out in {gone}, which is not there." in said
    git(root, "worktree", "prune")
    assert "Merged into main" in (await agent.end()).text


async def test_a_base_branch_that_moved_meanwhile(root: Path) -> None:
    agent = Agent(root)
    (await agent.begin() / "a.txt").write_text(LINES.replace("one", "ONE"))
    (root / "a.txt").write_text(LINES.replace("five", "FIVE"))
    git(root, "commit", "-q", "-a", "-m", "Moved")
    assert "Merged into main" in (await agent.end()).text
    assert (root / "a.txt").read_text() == "ONE\ntwo\nthree\nfour\nFIVE\n"


async def test_a_conflict_is_known_before_anything_is_changed(root: Path) -> None:
    agent = Agent(root)
    place = await agent.begin()
    (place / "a.txt").write_text(LINES.replace("three", "drei"))
    (place / "new.txt").write_text("new\n")
    (root / "a.txt").write_text(LINES.replace("three", "trois"))
    git(root, "commit", "-q", "-a", "-m", "Moved")
    settled = await agent.end()
    assert settled.unmerged and "it conflicts with main in a.txt" in settled.text
    assert (root / "a.txt").read_text() == LINES.replace("three", "trois")
    assert not (root / "new.txt").exists() and not git(root, "status", "--porcelain")


async def test_where_edits_are_only_proposed_nothing_is_merged(root: Path) -> None:
    agent = Agent(root)
    (await agent.begin() / "a.txt").write_text("agent\n")
    assert (await agent.end(proposes=True)).unmerged
    assert (root / "a.txt").read_text() == LINES


@pytest.mark.parametrize("done", ["files", "one", "all"])
async def test_what_a_killed_git_had_done_of_the_merge_is_nobodys(root: Path, done: str) -> None:
    agent = Agent(root)
    place = await agent.begin()
    for name in ("a.txt", "new.txt"):
        (place / name).write_text("agent\n")
        if done != "one" or name == "new.txt":
            (root / name).write_text("agent\n")
    (place / "b.txt").unlink()
    (root / "b.txt").unlink()
    if done == "all":
        git(root, "add", "-A")
    assert "Merged into main" in (await agent.end()).text
    assert clean(root) and (root / "new.txt").exists() and not (root / "b.txt").exists()


@contextmanager
def nearly_full(disk: Path) -> Iterator[None]:
    """There is room for what git writes down, and not for a large file."""
    filler = disk / "filler"
    filler.write_bytes(b"x" * (shutil.disk_usage(disk).free - 200_000))
    yield
    filler.unlink()


async def test_a_full_disk_in_the_middle_of_a_merge(tmp_path: Path) -> None:
    with small_disk(tmp_path.resolve() / "disk") as mounted:
        root = tmp_path.resolve() / "disk" / "project"
        begin(root)
        shutil.rmtree(root / ".git" / "hooks")
        agent = Agent(root)
        place = await agent.begin()
        (place / "a.txt").write_text("agent\n")
        (place / "big.bin").write_bytes(os.urandom(400_000))
        async with agent.writing() as repository:
            await merging.committed(repository, agent.record.worktree, "Large")
        with nearly_full(root.parent) if mounted else limited(os.getpid()):
            settled = await agent.end()
        assert f"the files in {root} cannot be updated" in settled.text, settled.text
        assert (root / "a.txt").read_text() == LINES and not (root / "big.bin").exists()
        assert not git(root, "status", "--porcelain")
        assert git(root, "rev-list", "--count", "main") == "1\n"
        assert "Merged into main" in (await agent.end()).text
        assert (root / "a.txt").read_text() == "agent\n" and clean(root)


# --- what a repository may be ---------------------------------------------------------------------


async def refused(agent: Agent, **settings: Any) -> str:
    with pytest.raises(ToolError) as caught:
        await agent.begin(**settings)
    return caught.value.message


async def test_what_has_no_commits_is_refused(tmp_path: Path) -> None:
    empty = tmp_path.resolve() / "empty"
    empty.mkdir()
    assert "is not in a git repository" in await refused(Agent(empty))
    git(empty, "init", "-q", "-b", "main")
    assert "has no commit yet" in await refused(Agent(empty))
    bare = tmp_path.resolve() / "bare"
    bare.mkdir()
    git(bare, "init", "-q", "--bare")
    assert "bare repository" in await refused(Agent(bare))


async def test_the_base_branch(root: Path) -> None:
    assert "There is no branch 'other'" in await refused(Agent(root), base_branch="other")
    assert "There is no branch 'main~0'" in await refused(Agent(root), base_branch="main~0")
    git(root, "branch", "-m", "main", "trunk")
    assert (await Agent(root).plan()).worktree.base == "trunk"
    git(root, "checkout", "-q", "--detach")
    assert "HEAD is detached" in await refused(Agent(root))
    git(root, "branch", "main")
    agent = Agent(root)
    (await agent.begin() / "a.txt").write_text("agent\n")
    assert "Merged into main" in (await agent.end()).text
    assert (root / "a.txt").read_text() == LINES, "HEAD is detached: the files are another's"


async def test_a_path_and_a_branch_that_exist(root: Path) -> None:
    first = await Agent(root).plan()
    Path(first.worktree.path).mkdir(parents=True)
    second = await Agent(root).plan()
    assert second.worktree.path == f"{first.worktree.path}-2"
    git(root, "branch", second.worktree.branch)
    agent = Agent(root)
    third = await agent.plan()
    assert third.worktree.path == f"{first.worktree.path}-3"
    Path(third.place).mkdir()
    (Path(third.place) / "mine").touch()
    assert "Magy has not made it" in await refused(agent)
    assert (Path(third.place) / "mine").exists()


async def test_a_branch_called_magy_stands_in_nobodys_way(root: Path) -> None:
    git(root, "branch", "magy")
    agent = Agent(root)
    (await agent.begin() / "a.txt").write_text("agent\n")
    assert agent.branch.startswith("magy-") and "Merged" in (await agent.end()).text


async def test_a_directory_with_other_files_is_not_hidden(root: Path) -> None:
    (root / "trees").mkdir()
    (root / "trees" / "oak").touch()
    assert "has other files in it" in await refused(Agent(root), worktree_dir="trees")
    assert not records.all_of(str(root / ".git")), "of what was never made nothing is known"
    (root / ".gitignore").write_text("trees/fix-*\n")
    assert (await Agent(root).begin(worktree_dir="trees")).is_dir()
    (root / "away").symlink_to("/tmp")
    assert "leads out of the workspace" in await refused(Agent(root), worktree_dir="away")


async def test_a_workspace_below_the_top_of_the_repository(root: Path) -> None:
    inner = root / "packages" / "one"
    inner.mkdir(parents=True)
    (inner / "in.txt").write_text("in\n")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "Packages")
    agent = Agent(inner)
    place = await agent.begin()
    assert place.parts[-2:] == ("packages", "one") and (place / "in.txt").exists()
    assert records.project_of(str(place)) == str(inner)
    (place / "in.txt").write_text("agent\n")
    assert "Merged" in (await agent.end()).text
    assert (inner / "in.txt").read_text() == "agent\n"


def runs(root: Path, name: str) -> Path:
    """A hook that leaves a trace."""
    trace = root.parent / f"{name} ran"
    hook = root / ".git" / "hooks" / name
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch '{trace}'\nexit 1\n")
    hook.chmod(0o755)
    return trace


async def test_nothing_of_the_repository_runs(root: Path) -> None:
    names = ("pre-commit", "commit-msg", "post-commit", "post-checkout", "pre-merge-commit",
             "post-merge", "post-index-change", "reference-transaction")  # fmt: skip
    traces = [runs(root, name) for name in names]
    trace = root.parent / "driver ran"
    git(root, "config", "merge.evil.driver", f"touch '{trace}'; cp %B %A")
    git(root, "config", "core.fsmonitor", f"touch '{trace}'")
    (root / ".git" / "info" / "attributes").write_text("b.txt merge=evil\n")
    agent = Agent(root)
    place = await agent.begin()
    (place / "a.txt").write_text("agent\n")
    assert "Merged" in (await agent.end()).text
    other = Agent(root, "s/5.0")
    (await other.begin() / "b.txt").write_text(LINES.replace("one", "ONE"))
    (root / "b.txt").write_text(LINES.replace("five", "FIVE"))
    git(root, "-c", "core.hooksPath=/dev/null", "commit", "-q", "-a", "-m", "Moved")
    trace.unlink(missing_ok=True)  # the person's own git ran it
    assert "conflicts with main in b.txt" in (await other.end()).text
    assert not [one for one in (*traces, trace) if one.exists()]


async def test_nothing_is_fetched_from_where_the_repository_says(root: Path) -> None:
    """What a partial clone lacks comes by programs that its remote names."""
    trace = root.parent / "upload ran"
    blob = git(root, "rev-parse", "HEAD:b.txt").strip()
    (root / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    for key, value in (
        ("core.repositoryFormatVersion", "1"), ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"), ("remote.origin.url", str(root)),
        ("remote.origin.uploadpack", f"touch '{trace}';"),
    ):  # fmt: skip
        git(root, "config", key, value)
    with pytest.raises(ToolError, match=r"not on this machine \(a partial clone\)"):
        await Agent(root).begin()
    assert not trace.exists()


async def test_a_base_branch_that_is_being_rebased_stays_where_it_is(root: Path) -> None:
    agent = Agent(root)
    (await agent.begin() / "b.txt").write_text("agent\n")
    git(root, "branch", "other")
    for branch in ("other", "main"):
        git(root, "checkout", "-q", branch)
        (root / "a.txt").write_text(f"{branch}\n")
        git(root, "commit", "-q", "-a", "-m", branch)
    with pytest.raises(AssertionError, match="could not apply"):
        git(root, "rebase", "-q", "other")
    assert "a rebase of main is under way" in (await agent.end()).text
    git(root, "rebase", "--abort")
    assert "Merged into main" in (await agent.end()).text
    assert (root / "b.txt").read_text() == "agent\n"


async def test_files_of_the_repositorys_own_filters_are_left_to_the_person(root: Path) -> None:
    git(root, "config", "filter.secret.clean", "tr a-z n-za-m")
    (root / ".git" / "info" / "attributes").write_text("*.key filter=secret\n")
    agent = Agent(root)
    place = await agent.begin()
    (place / "new.key").write_text("plain\n")
    said = (await agent.end()).text
    assert "goes through a filter that this repository configures (secret)" in said
    assert (place / "new.key").exists() and "plain" not in git(root, "log", "-p", "--all")


async def test_a_repository_in_the_worktree_is_not_lost(root: Path) -> None:
    agent = Agent(root)
    place = await agent.begin()
    begin(place / "inner")
    assert "inner in the worktree is a repository of its own" in (await agent.end()).text
    assert (place / "inner" / "a.txt").exists()


async def test_an_agent_that_left_its_branch(root: Path) -> None:
    agent = Agent(root)
    place = await agent.begin()
    git(place, "checkout", "-q", "--detach")
    (place / "a.txt").write_text("agent\n")
    assert "is not checked out in its worktree any more" in (await agent.end()).text
    assert (place / "a.txt").read_text() == "agent\n"


async def test_commits_of_the_agents_own_are_merged_too(root: Path) -> None:
    agent = Agent(root)
    place = await agent.begin()
    (place / "a.txt").write_text("first\n")
    git(place, "commit", "-q", "-a", "-m", "Its own")
    (place / "b.txt").write_text("second\n")
    assert "2 files" in (await agent.end()).text
    assert "Its own" in git(root, "log", "--format=%s", "main")


async def test_submodules_stay_as_they_are(root: Path, tmp_path: Path) -> None:
    begin(tmp_path / "library")
    add = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add")
    git(root, *add, str(tmp_path / "library"), "library")
    git(root, "commit", "-q", "-m", "Library")
    agent = Agent(root)
    place = await agent.begin()
    assert list((place / "library").iterdir()) == []
    (place / "a.txt").write_text("agent\n")
    assert "Merged" in (await agent.end()).text
    assert (root / "library" / "a.txt").exists() and clean(root)
    assert "library" in git(root, "submodule", "status")


async def test_a_sparse_checkout(root: Path) -> None:
    for name in ("wide", "narrow"):
        (root / name).mkdir()
        (root / name / "x.txt").write_text(LINES)
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "Directories")
    git(root, "sparse-checkout", "set", "narrow")
    agent = Agent(root)
    place = await agent.begin()
    (place / "narrow" / "x.txt").write_text("agent\n")
    assert "Merged" in (await agent.end()).text
    assert (root / "narrow" / "x.txt").read_text() == "agent\n"
    assert not (root / "wide").exists() and git(root, "show", "main:wide/x.txt") == LINES


async def test_a_shallow_clone(root: Path, tmp_path: Path) -> None:
    (root / "a.txt").write_text("second\n")
    git(root, "commit", "-q", "-a", "-m", "Second")
    clone = tmp_path.resolve() / "clone"
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{root}", str(clone))
    agent = Agent(clone)
    (await agent.begin() / "b.txt").write_text("agent\n")
    assert "Merged" in (await agent.end()).text


async def test_large_file_pointers_stay_pointers(root: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    (root / "big.bin").write_text(pointer)
    (root / ".gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs -text\n")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "Large")
    agent = Agent(root)
    place = await agent.begin()
    assert (place / "big.bin").read_text() == pointer
    (place / "a.txt").write_text("agent\n")
    assert "Merged" in (await agent.end()).text
    assert (root / "big.bin").read_text() == pointer and clean(root)


# --- pull requests --------------------------------------------------------------------------------


@pytest.fixture
def remote(root: Path, tmp_path: Path) -> Path:
    place = tmp_path / "remote.git"
    git(tmp_path, "clone", "-q", "--bare", str(root), str(place))
    git(root, "remote", "add", "origin", str(place))
    return place


@pytest.mark.req("A053")
async def test_create_pr_pushes_and_asks_the_forge(root: Path, remote: Path) -> None:
    agent = Agent(root)
    (await agent.begin(on_success="create_pr") / "a.txt").write_text("agent\n")
    asked: list[tuple[str, ...]] = []

    async def forge(*about: str) -> str:
        asked.append(about)
        return "https://forge.example/me/it/pull/7"

    git(root, "config", "remote.origin.pushurl", "git@forge.example:me/it.git")
    git(root, "config", f"url.{remote}.pushInsteadOf", "git@forge.example:me/it.git")
    assert parts("git@forge.example:me/it.git") == ("forge.example", "me/it")
    assert parts("https://forge.example/me/it") == ("forge.example", "me/it")
    assert parts("ssh://git@forge.example:22/me/it.git") == ("forge.example", "me/it")
    git(root, "config", "--unset", "remote.origin.pushurl")
    settled = await agent.end(forge=forge)
    assert f"Branch {agent.branch} is pushed to origin." in settled.text
    assert f"Open a pull request for main yourself, at {remote}" in settled.text and not asked
    assert git(remote, "show", f"{agent.branch}:a.txt") == "agent\n"
    assert clean(root) and agent.branch in branches(root)


async def test_a_push_that_would_run_a_program_of_the_repository(root: Path, remote: Path) -> None:
    git(root, "config", "core.sshCommand", "touch ran")
    agent = Agent(root)
    place = await agent.begin(on_success="create_pr")
    (place / "a.txt").write_text("agent\n")
    said = (await agent.end()).text
    assert "core.sshcommand in the repository's configuration names a program" in said
    assert place.exists() and agent.branch not in branches(remote)
    git(root, "config", "--unset", "core.sshCommand")
    git(root, "config", "remote.origin.pushurl", str(root.parent / "first.git"))
    git(root, "config", "--add", "remote.origin.pushurl", str(remote))
    hook = remote / "hooks" / "update"
    hook.write_text(f"#!/bin/sh\ntouch '{root.parent}/ran'\n")
    hook.chmod(0o755)
    assert "is on this machine, and its hooks would run" in (await agent.end()).text
    hook.unlink()
    git(root, "config", "--unset-all", "remote.origin.pushurl")
    git(root, "config", "push.gpgSign", "true")
    git(root, "config", "gpg.program", "/bin/false")
    git(remote, "config", "receive.certNonceSeed", "x")
    assert "is pushed to origin" in (await agent.end()).text
    assert agent.branch in branches(remote) and not (root.parent / "ran").exists()


# --- again, and at once ---------------------------------------------------------------------------


async def test_each_step_finds_what_was_done_before(root: Path) -> None:
    """The process dies after each git command, and another begins anew."""
    for last in range(1, 60):
        agent = Agent(root, f"s/{last}.0")
        if await dies(agent, last):
            break
    else:
        raise AssertionError("it never came to an end")
    assert last > 10
    assert git(root, "rev-list", "--merges", "--count", "main") == f"{last}\n"
    assert branches(root) == ["main"] and clean(root)


class Died(BaseException):
    """As if the process had been killed."""


class Dying(Agent):
    """Its process dies right after its `last`th git command."""

    left = 0

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Writing]:
        async with super().writing() as git:
            yield Mortal(git, self)


class Mortal(Writing):
    def __init__(self, git: Writing, agent: Dying) -> None:
        super().__init__(git.repository, git.lock, git.marked)
        object.__setattr__(self, "agent", agent)

    async def run(self, *words: str, at: str = "", far: bool = False) -> Ran:
        ran = await super().run(*words, at=at, far=far)
        agent: Dying = self.agent  # type: ignore[attr-defined]
        agent.left -= 1
        if agent.left == 0:
            raise Died
        return ran


async def dies(agent: Agent, last: int) -> bool:
    """Whether it came to its end before it had to die; it has landed in any case."""
    mortal = Dying(agent.root, agent.session)
    mortal.left = last
    died = False
    agent.record = mortal.record = await mortal.plan()
    name = f"{last}.txt"
    try:
        (await mortal.begin() / name).write_text("agent\n")
        await mortal.end()
    except Died:
        died = True
    if died:
        written = any((agent.root / ".worktrees").glob(f"*/{name}"))
        landed = (agent.root / name).exists()
        if not (written or landed) and agent.branch in branches(agent.root):
            written = bool(git(agent.root, "ls-tree", agent.branch, "--", name))
        if not written and not landed:
            (await agent.begin() / name).write_text("agent\n")
        await agent.end()
    assert (agent.root / name).read_text() == "agent\n"
    assert git(agent.root, "show", f"main:{name}") == "agent\n"
    return not died


async def test_a_git_that_a_killed_process_left_is_ended_first(root: Path) -> None:
    agent = Agent(root)
    await agent.plan()
    left = subprocess.Popen(["sleep", "600"], env={**agent.env}, start_new_session=True)
    try:
        (root / ".git" / "magy" / "worktrees").mkdir(parents=True)
        (root / ".git" / "magy" / "lock").write_text(agent.env["MAGY_CALL"])
        await agent.begin()
        assert await asyncio.to_thread(left.wait, 30) != 0
    finally:
        left.kill()
        left.wait()


async def test_who_takes_up_the_work_of_a_killed_process_is_not_ended_with_what_that_left(
    root: Path,
) -> None:
    """Another agent may find first what the killed process has left."""
    agent, other = Agent(root), Agent(root, "s/2.0")
    await agent.plan()
    async with agent.writing() as git:
        killed = git.marked
    async with agent.writing() as git:
        env = {**agent.env, "MAGY_CALL": git.marked}
    again = subprocess.Popen(["sleep", "600"], env=env, start_new_session=True)
    try:
        (root / ".git" / "magy" / "lock").write_text(killed)
        await other.begin()
        assert again.poll() is None
    finally:
        again.kill()
        again.wait()


async def test_many_land_at_once(root: Path) -> None:
    agents = [Agent(root, f"s/{n}.0") for n in range(6)]
    places = await asyncio.gather(*(agent.begin() for agent in agents))
    for n, place in enumerate(places):
        (place / f"{n}.txt").write_text("agent\n")
    for settled in await asyncio.gather(*(agent.end() for agent in agents)):
        assert "Merged into main" in settled.text
    assert all((root / f"{n}.txt").exists() for n in range(6)) and clean(root)
    assert git(root, "rev-list", "--merges", "--count", "main") == "6\n"


def test_a_directory_that_is_no_worktree_belongs_to_no_project(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / ".git").write_text("gitdir: nowhere\n")
    assert records.project_of(str(tmp_path / "sub")) == ""
    assert os.path.isdir(tmp_path)


async def test_what_holds_in_the_project_holds_in_its_worktrees(root: Path) -> None:
    """Whatever Magy's files in the worktree say."""
    (root / "magy.toml").write_text('[sandbox]\nlevel = "isolated"\n')
    projects = Projects({}, MemoryStore())
    projects.add(str(root), None)
    agent = Agent(root)
    place = await agent.begin()
    (place / "magy.toml").write_text('[sandbox]\nlevel = "none"\n')
    assert projects.settings(str(place)).sandbox.level == "isolated"
    assert projects.of(str(place)) is projects.of(str(root))
    assert projects.of(str(root / "elsewhere")) is not projects.of(str(root))
