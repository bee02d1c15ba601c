"""The work of a child lands: it is committed on its branch, which is merged into the base branch.

The person's index, stash and files stay as they are: merges are made in git's object store, and
where the base branch is checked out, only files that the merge changes and the person has not are
updated. Conflicts are known before anything is changed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress

from magy_server.core.values import Worktree
from magy_server.dataclass import dataclass
from magy_server.tasks import to_end
from magy_server.tools.git.hostile_config import beginning
from magy_server.tools.git.names import listed
from magy_server.tools.git.program import answer, explain
from magy_server.tools.worktrees import base_files
from magy_server.tools.worktrees.base_files import Unsaved
from magy_server.tools.worktrees.checkouts import Known, registered, worktrees
from magy_server.tools.worktrees.writing import Looking, Stays, Writing

_REBASED = ("rebase-merge/head-name", "rebase-merge/update-refs", "rebase-apply/head-name")
"""Files of a git directory that name the branches which a rebase will move."""
AGAIN = 3
"""A base branch that others move meanwhile is merged into so often."""


class Unmerged(Stays):
    """It could, if the person decided about it. `base` and `tip` are the two commits."""

    def __init__(self, message: str, base: str, tip: str) -> None:
        super().__init__(message)
        self.base = base
        self.tip = tip


@dataclass(frozen=True, slots=True)
class Merged:
    """`commit` "": there was nothing to merge. `tip`: what the branch stood at."""

    tip: str
    commit: str = ""
    files: int = 0


# --- the work -------------------------------------------------------------------------------------


async def committed(git: Writing, tree: Worktree, message: str) -> str:
    """Commits what is in the worktree; returns the commit that the branch then stands at; "": there
    is no such branch. Raises Stays, ToolError."""
    tip = await git.tip(tree.branch)
    if not os.path.isdir(tree.path):
        return tip
    if not await registered(git, tree):
        raise Stays(f"git knows no worktree at {tree.path} any more")
    head = await git.look("symbolic-ref", "-q", "HEAD", at=tree.path)
    if head.out.decode("utf-8", "replace").strip() != f"refs/heads/{tree.branch}":
        raise Stays(f"the branch {tree.branch} is not checked out in its worktree any more")
    own = await git.get("rev-parse", "--absolute-git-dir", at=tree.path)
    for name, what in (("MERGE_HEAD", "a merge"), ("rebase-merge", "a rebase"),
                       ("rebase-apply", "a rebase"), ("CHERRY_PICK_HEAD", "a cherry-pick"),
                       ("REVERT_HEAD", "a revert")):  # fmt: skip
        if os.path.lexists(os.path.join(own, name)):
            raise Stays(f"{what} was begun in the worktree and not concluded")
    names = await dirty(git, tree.path)
    if names:
        await git.check_plain(names, tree.path)
        await git.done("add", "-A", at=tree.path)
        await _check_added(git, tree)
        identity = await git.identity()
        ran = await git.look("diff", "--cached", "--quiet", "HEAD", at=tree.path)
        if ran.code != 0:
            await git.done(
                *identity, "commit", "-q", "--no-verify", "--no-gpg-sign", "--cleanup=verbatim",
                "-m", message, at=tree.path,
            )  # fmt: skip
    return await git.tip(tree.branch)


async def dirty(git: Looking, at: str) -> list[bytes]:
    """The names, from the top, that differ from HEAD or are new."""
    ran = await git.look(
        "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", at=at
    )
    return [record[3:] for record in answer("status", ran).split(b"\0") if record]


async def _check_added(git: Writing, tree: Worktree) -> None:
    """A repository inside the worktree would become a reference to commits that nobody has."""
    ran = await git.look("diff", "--cached", "--raw", "-z", "--no-renames", "HEAD", at=tree.path)
    fields = answer("diff", ran).split(b"\0")[:-1]
    for about, name in zip(fields[::2], fields[1::2], strict=True):
        if about.startswith(b":000000 160000"):
            raise Stays(f"{os.fsdecode(name)} in the worktree is a repository of its own")


# --- merging --------------------------------------------------------------------------------------


async def merged(git: Writing, tree: Worktree, tip: str, title: str, unsaved: Unsaved) -> Merged:
    """Merges the branch, which stands at `tip`, into the base branch, with a merge commit. Again,
    it finds that done. Raises Stays, Unmerged (nothing was changed), ToolError."""
    for _ in range(AGAIN):
        base = await git.tip(tree.base)
        if not base:
            raise Stays(f"the branch {tree.base} is gone")
        if await git.holds(base, tip):
            return Merged(tip, *(await _made(git, tree, base, tip)))
        made = await _tree(git, tree, base, tip)
        identity = await git.identity()
        message = f"Merge branch '{tree.branch}' into {tree.base}\n\n{title}"
        commit = await git.done(
            *identity, "commit-tree", made, "-p", base, "-p", tip, "-m", message
        )
        names = await git.changed(base, commit)
        await git.check_plain(names, git.repository.top)
        # not left half-way when the process ends meanwhile
        if await to_end(_moved(git, tree, base, commit, names, unsaved)):
            return Merged(tip, commit, len(names))
    raise Stays(f"others move the branch {tree.base} all the time")


async def _made(git: Writing, tree: Worktree, base: str, tip: str) -> tuple[str, int]:
    """The merge commit that an earlier try has made, and how many files it changed; ("", 0): there
    was nothing to merge."""
    out = await git.get("rev-list", "--merges", "--parents", "--ancestry-path", f"{tip}..{base}")
    for line in out.splitlines():
        commit, *parents = line.split()
        if parents[1:] == [tip]:
            return commit, len(await git.changed(parents[0], commit))
    return "", 0


async def _tree(git: Writing, tree: Worktree, base: str, tip: str) -> str:
    """The merged tree. Raises Unmerged with the names that are in conflict."""
    drivers = await _drivers(git)
    ran = await git.run(
        *drivers, "merge-tree", "--write-tree", "--name-only", "-z", "--no-messages", base, tip
    )
    fields = ran.out.split(b"\0")
    if ran.code == 0:
        return fields[0].decode().strip()
    if ran.code == 1:
        names = list(dict.fromkeys(name for name in fields[1:] if name))
        raise Unmerged(f"it conflicts with {tree.base} in {listed(names)}", base, tip)
    if "usage" in ran.err or "not a git command" in ran.err:
        raise Stays("to merge without touching files takes git 2.38 or newer")
    raise Stays(f"git merge-tree: {explain(ran.err)}")


async def _drivers(git: Writing) -> list[str]:
    """Switches off the merge drivers that the repository itself configures: files that are theirs
    are in conflict then, for the person."""
    keys = await git.own(r"^merge\..*\.driver$")
    return [word for key in keys for word in ("-c", f"{key}=false")]


async def _moved(
    git: Writing, tree: Worktree, old: str, new: str, names: Sequence[bytes], unsaved: Unsaved
) -> bool:
    """Moves the base branch, and the files where it is checked out. False: somebody else has moved
    it, and nothing was changed."""
    everywhere = await worktrees(git)
    await _check_still(git, tree.base, everywhere)
    there = next((one for one in everywhere if one.branch == tree.base), None)
    if there is not None:
        if theirs := await base_files.changed_there(git, there, old, new, names, unsaved):
            has = "has" if len(theirs) == 1 else "have"
            why = f"{listed(theirs)} in {there.path} {has} changes that are not committed"
            raise Unmerged(why, old, await git.get("rev-parse", f"{new}^2"))
        await base_files.replace(git, there, old, new)
    said = f"magy: merge {tree.branch}"
    ran = await git.run("update-ref", "-m", said, f"refs/heads/{tree.base}", new, old)
    if ran.code == 0:
        return True
    if there is not None:
        await base_files.replace(git, there, new, old)
    if await git.tip(tree.base) == old:
        raise Stays(f"git update-ref: {explain(ran.err)}")
    return False


async def _check_still(git: Looking, branch: str, everywhere: Sequence[Known]) -> None:
    """Raises Stays where a rebase is under way that will move the branch: it could neither end nor
    be taken back without loss if somebody else moved it. And where it is checked out twice."""
    linked = os.path.join(git.common, "worktrees")
    own = [git.common]
    with suppress(OSError):
        own += [os.path.join(linked, name) for name in await asyncio.to_thread(os.listdir, linked)]
    for path in (os.path.join(one, name) for one in own for name in _REBASED):
        if f"refs/heads/{branch}" in os.fsdecode(beginning(path)).splitlines():
            raise Stays(f"a rebase of {branch} is under way")
    if sum(one.branch == branch for one in everywhere) > 1:
        raise Stays(f"{branch} is checked out in more than one worktree")
