"""The work of a child lands: it is committed on its branch, which is merged into the base branch.

The person's index, stash and files stay as they are: merges are made in git's object store, and
where the base branch is checked out, only files that the merge changes and the person has not are
updated. Conflicts are known before anything is changed.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from magy_server.core.errors import ToolError
from magy_server.core.values import Worktree
from magy_server.dataclass import dataclass
from magy_server.tools.git.names import chunks, listed
from magy_server.tools.git.program import answer, explain
from magy_server.tools.worktrees.checkouts import Known, registered, worktrees
from magy_server.tools.worktrees.writing import Looking, Writing, pathspecs

Unsaved = Callable[[Sequence[str]], Awaitable[Sequence[str]]]
"""(paths) -> those whose text in an editor differs from the disk."""
AGAIN = 3
"""A base branch that others move meanwhile is merged into so often."""


class Stays(ToolError):
    """The work cannot land by itself; the branch and what is in the worktree stay as they are."""


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
        if await _moved(git, tree, base, commit, names, unsaved):
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
    there = next((one for one in await worktrees(git) if one.branch == tree.base), None)
    if there is not None:
        await _check_clean(git, there, old, new, names, unsaved)
        await git.run("update-index", "-q", "--refresh", at=there.path)
        await _files(git, there, old, new)
    said = f"magy: merge {tree.branch}"
    ran = await git.run("update-ref", "-m", said, f"refs/heads/{tree.base}", new, old)
    if ran.code == 0:
        return True
    if there is not None:
        await _files(git, there, new, old)
    if await git.tip(tree.base) == old:
        raise Stays(f"git update-ref: {explain(ran.err)}")
    return False


async def _files(git: Writing, there: Known, old: str, new: str) -> None:
    """Makes files and index as a checkout would. What has not changed between the two commits stays
    as the person has it, staged or not. Again, it finds that done. Raises Stays; nothing was
    changed then."""
    ran = await git.run("read-tree", "-m", "-u", "-n", old, new, at=there.path)
    if ran.code == 0:
        ran = await git.run("read-tree", "-m", "-u", old, new, at=there.path)
        if ran.code != 0:
            await _files_back(git, there, old, new)
    if ran.code != 0:
        raise Stays(f"the files in {there.path} cannot be updated: {explain(ran.err)}")


async def _files_back(git: Writing, there: Known, old: str, new: str) -> None:
    """It broke off in the middle (a full disk, say), and the index is as before: so are the files
    again. None of them was the person's."""
    names = await git.changed(old, new)
    out = await git.look("ls-tree", "-r", "-z", "--name-only", "--full-tree", old)
    before = set(answer("ls-tree", out).split(b"\0"))
    for name in names:
        if name not in before:
            with suppress(OSError):
                os.remove(os.path.join(os.fsencode(there.path), name))
    for few in chunks([name for name in names if name in before]):
        await git.run("checkout-index", "-q", "-f", "--", *map(os.fsdecode, few), at=there.path)


async def _check_clean(
    git: Writing, there: Known, old: str, new: str, names: Sequence[bytes], unsaved: Unsaved
) -> None:
    """Raises Unmerged if the person has changed files that the merge changes, or has others in
    their place."""
    own = await git.get("rev-parse", "--absolute-git-dir", at=there.path)
    if os.path.lexists(os.path.join(own, "index.lock")):
        raise Stays(f"another git is using {there.path}, or was killed ({own}/index.lock exists)")
    theirs: list[bytes] = []
    for few in chunks(names):
        ran = await git.look(
            "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all",
            "--ignored=matching", "--", *pathspecs(few), at=there.path,
        )  # fmt: skip
        found = [record[3:] for record in answer("status", ran).split(b"\0") if record]
        theirs += [name for name in found if not await _is_new(git, there, new, name)]
    paths = {os.path.join(there.path, os.fsdecode(name)): name for name in names}
    theirs += [paths[path] for path in await unsaved(list(paths))]
    if theirs:
        theirs = list(dict.fromkeys(theirs))
        has = "has" if len(theirs) == 1 else "have"
        raise Unmerged(
            f"{listed(theirs)} in {there.path} {has} changes that are not committed",
            old,
            await git.get("rev-parse", f"{new}^2"),
        )


async def _is_new(git: Writing, there: Known, commit: str, name: bytes) -> bool:
    """Whether index and file are as in the commit: an earlier try has come so far."""
    word = f":(literal,top){os.fsdecode(name)}"
    index = await git.look("diff", "--cached", "--quiet", commit, "--", word, at=there.path)
    file = await git.look("diff", "--quiet", "--", word, at=there.path)
    tracked = await git.look("ls-files", "--error-unmatch", "--", word, at=there.path)
    gone = not os.path.lexists(os.path.join(os.fsencode(there.path), name))
    return index.code == 0 and file.code == 0 and (tracked.code == 0 or gone)
