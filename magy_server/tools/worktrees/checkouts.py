"""A worktree is planned, made and removed here. Each step finds what was done of it before: who
goes on after a crash takes it from the beginning."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress

from magy_server.core.errors import ToolError
from magy_server.core.values import MAIN, Worktree, WorktreeSettings
from magy_server.regex import regex
from magy_server.tools.files.paths import below
from magy_server.tools.git.repository import Repository
from magy_server.tools.worktrees import records
from magy_server.tools.worktrees.records import Record
from magy_server.tools.worktrees.writing import Looking, Writing

PREFIX = "magy"
"""Branches are called `magy/NAME`."""
SLUG = 30
"""Characters of a title that stand in a name."""
TRIES = 100
HIDES = "# Magy's agents work here. `magy worktrees` lists them.\n*\n"
"""The .gitignore in a directory for worktrees."""
_NOT_PLAIN = regex(r"[^a-z0-9]+")


async def planned(
    root: str, env: Mapping[str, str], session: str, title: str, wanted: WorktreeSettings
) -> tuple[Worktree, str]:
    """The worktree that a new child (its session id) gets, and the directory in it that stands for
    `root`. Nothing is made yet. Raises ToolError: there can be none, and why."""
    repository = await Repository.open(root, env)
    base = await _base(repository, wanted.base_branch)
    directory = os.path.join(root, wanted.worktree_dir)
    if below(root, os.path.realpath(directory)) is None:
        raise ToolError(
            f"{directory} leads out of the workspace, so no worktree is made there; give "
            "worktree_dir another place."
        )
    slug = _NOT_PLAIN.sub("-", title.lower()).strip("-")[:SLUG].strip("-") or "task"
    name = f"{slug}{records.ending(session)}"
    ran = await repository.git.look("show-ref", "--verify", "-q", f"refs/heads/{PREFIX}")
    prefix = f"{PREFIX}-" if ran.code == 0 else f"{PREFIX}/"
    for number in range(1, TRIES):
        own = name if number == 1 else f"{name}-{number}"
        tree = Worktree(
            path=os.path.join(os.path.realpath(directory), own),
            branch=f"{prefix}{own}",
            base=base,
            directory=os.path.realpath(directory),
            on_success=wanted.on_success,
            on_failure=wanted.on_failure,
        )
        ran = await repository.git.look("show-ref", "--verify", "-q", f"refs/heads/{tree.branch}")
        if ran.code != 0 and not os.path.lexists(tree.path):
            inner = os.fsdecode(repository.prefix).rstrip("/")
            return tree, os.path.join(tree.path, inner) if inner else tree.path
    raise ToolError(f"Branches and directories called {name} to {name}-{TRIES} exist already.")


async def _base(repository: Repository, wanted: str) -> str:
    """Raises ToolError."""
    if not await repository.head() and not await _is_branch(repository, wanted):
        raise ToolError(
            f"The repository of {repository.root} has no commit yet, so nothing can be worked on "
            "beside it. Commit something first, or work without a worktree."
        )
    if await _is_branch(repository, wanted):
        return wanted
    if wanted != MAIN:
        raise ToolError(
            f"There is no branch {wanted!r} (base_branch) in {repository.root}. Name one that is "
            "there."
        )
    ran = await repository.git.look("symbolic-ref", "-q", "--short", "HEAD")
    if ran.code != 0:
        raise ToolError(
            f"The repository of {repository.root} has no branch `{MAIN}`, and no branch is checked "
            "out (HEAD is detached). Set base_branch in the agent's file, or check a branch out."
        )
    return ran.out.decode("utf-8", "surrogateescape").strip()


async def _is_branch(repository: Repository, name: str) -> bool:
    """By that name and no other: `main~1` is a commit."""
    ran = await repository.git.look("show-ref", "--verify", "-q", "--", f"refs/heads/{name}")
    return ran.code == 0


# --- making ---------------------------------------------------------------------------------------


async def make(git: Writing, record: Record) -> None:
    """The worktree is there, and complete; what another turn left in it stays. Raises ToolError."""
    tree = record.worktree
    known = await asyncio.to_thread(records.of, git.common, tree)
    if known is not None and known.session != record.session:
        raise ToolError(f"{tree.path} is the worktree of session {known.session}.")
    if known is not None and known.made and os.path.isdir(tree.path):
        return
    if known is None and os.path.lexists(tree.path):
        raise ToolError(
            f"{tree.path} exists, and Magy has not made it, so nothing was done there. Move it "
            "away, or spawn the agent again."
        )
    await _keep(git, record)
    await _clear(git, tree)
    tip = await git.tip(tree.branch)
    try:
        await _hide(git, record)
    except ToolError:
        if not tip:  # nothing of it is there that has to be known of
            await asyncio.to_thread(records.strike, git.common, tree)
        raise
    if not tip:
        base = await git.tip(tree.base)
        if not base:
            raise ToolError(f"The branch {tree.base}, where the work was to begin, is gone.")
        await git.done("update-ref", f"refs/heads/{tree.branch}", base, "")
    await git.done("worktree", "add", "-q", tree.path, tree.branch)
    await asyncio.to_thread(os.makedirs, record.place, exist_ok=True)
    await _keep(git, record.model_copy(update={"made": True}))


async def _keep(git: Writing, record: Record) -> None:
    try:
        await asyncio.to_thread(records.keep, git.common, record)
    except OSError as error:
        raise ToolError(f"{git.common} cannot be written: {error.strerror}.") from None


async def _hide(git: Writing, record: Record) -> None:
    """Git does not show the directory of worktrees, nor do tools that search: it ignores itself. No
    file of the person's is changed for that."""
    directory = record.worktree.directory
    probe = os.path.relpath(record.worktree.path, git.repository.top)
    try:
        await asyncio.to_thread(os.makedirs, directory, exist_ok=True)
        ran = await git.look("check-ignore", "-q", "--no-index", probe, at=git.repository.top)
        if ran.code != 0:
            await asyncio.to_thread(_ignore, directory)
    except OSError as error:
        raise ToolError(f"{directory} cannot be made: {error.strerror}.") from None


def _ignore(directory: str) -> None:
    if os.listdir(directory):
        raise ToolError(
            f"{directory} has other files in it, and git would show worktrees there. Add a line "
            "`*` to a .gitignore in it, or give worktree_dir another place."
        )
    with open(os.path.join(directory, ".gitignore"), "x", encoding="utf-8") as file:
        file.write(HIDES)


async def proposed(git: Writing, tree: Worktree, tip: str) -> None:
    """Notes that the person was proposed all of the commit `tip`. Raises ToolError."""
    if known := await asyncio.to_thread(records.of, git.common, tree):
        await _keep(git, known.model_copy(update={"proposed": tip}))


# --- removing -------------------------------------------------------------------------------------


async def remove(git: Writing, tree: Worktree, *, tip: str = "") -> None:
    """Removes the worktree with all that is in it; and its branch, if that stands at the commit
    `tip`. Raises ToolError."""
    await _clear(git, tree)
    if tip and await git.tip(tree.branch) == tip:
        await git.done("update-ref", "-d", f"refs/heads/{tree.branch}", tip)
        await git.run("config", "--local", "--remove-section", f"branch.{tree.branch}")
    try:
        await asyncio.to_thread(records.strike, git.common, tree)
    except OSError as error:
        raise ToolError(f"The record of {tree.path} stays: {error.strerror}.") from None
    with suppress(OSError):  # others work there
        await asyncio.to_thread(_tidy, tree.directory)


async def _clear(git: Writing, tree: Worktree) -> None:
    """Removes the directory, and what git knows of it. One that is not finished yet is locked."""
    if await registered(git, tree):
        await git.done("worktree", "remove", "-f", "-f", tree.path)
    if os.path.lexists(tree.path):
        try:
            await asyncio.to_thread(shutil.rmtree, tree.path)
        except OSError as error:
            raise ToolError(f"{tree.path} cannot be removed: {error.strerror}.") from None


async def registered(git: Looking, tree: Worktree) -> bool:
    """Whether git knows a worktree there."""
    return any(one.path == tree.path for one in await worktrees(git))


class Known:
    """A worktree as git knows it. `branch` "": none is checked out."""

    def __init__(self, path: str, branch: str) -> None:
        self.path = path
        self.branch = branch


async def worktrees(git: Looking) -> list[Known]:
    out = await git.get("worktree", "list", "--porcelain", "-z")
    found = []
    for block in out.split("\0\0"):
        fields = dict(line.partition(" ")[::2] for line in block.split("\0") if line)
        if "worktree" in fields and "bare" not in fields:
            branch = fields.get("branch", "").removeprefix("refs/heads/")
            found.append(Known(os.path.realpath(fields["worktree"]), branch))
    return found


def _tidy(directory: str) -> None:
    """Removes the directory of worktrees when Magy's own .gitignore is all that is in it."""
    own = os.path.join(directory, ".gitignore")
    if os.listdir(directory) == [".gitignore"]:
        with open(own, encoding="utf-8") as file:
            if file.read() != HIDES:
                return
        os.remove(own)
        os.rmdir(directory)
