"""This module carries out what the settings say becomes of a worktree when its child is done or has
failed; to merge is for `merging.py`."""

from __future__ import annotations

import os

from magy_server.core.errors import ToolError
from magy_server.core.shell.simple_commands import quote
from magy_server.core.values import Worktree
from magy_server.dataclass import dataclass
from magy_server.tools.worktrees import merging
from magy_server.tools.worktrees.base_files import Unsaved
from magy_server.tools.worktrees.checkouts import remove
from magy_server.tools.worktrees.merging import Unmerged
from magy_server.tools.worktrees.pull_requests import Request, open_request
from magy_server.tools.worktrees.records import Record
from magy_server.tools.worktrees.writing import Writing


@dataclass(frozen=True, slots=True)
class Settled:
    """`text` is a sentence or two for agents and people. `unmerged`: what a person may review."""

    text: str
    unmerged: Unmerged | None = None


async def succeeded(
    git: Writing, record: Record, request: Request, unsaved: Unsaved, *, proposes: bool
) -> Settled:
    """Lands the work. `request` says what it is. `proposes`: nothing is changed of the person's
    that they have not accepted, so that nothing is merged. Again, it finds what was done of it."""
    tree, title = record.worktree, request.title
    try:
        tip = await merging.committed(git, tree, title)
        if not tip:
            return Settled(await _gone(git, tree))
        base = await git.tip(tree.base)
        if tree.on_success != "auto_merge" and base and await git.holds(base, tip):
            await remove(git, tree, tip=tip)
            return Settled("It changed nothing, so its branch is removed.")
        if tree.on_success == "auto_merge":
            if proposes and base and not await git.holds(base, tip):
                raise Unmerged("here edits are only proposed", base, tip)
            return await _merged(git, tree, tip, title, unsaved)
        said = f"Its work is on branch {tree.branch}."
        if tree.on_success == "create_pr":
            said = await open_request(git, tree, request)
        await remove(git, tree)
        return Settled(said)
    except Unmerged as error:
        return Settled(f"Not merged: {error.message}. {_left(tree)}", error)
    except ToolError as error:
        return Settled(f"Not landed: {error.message.rstrip('.')}. {_left(tree)}")


async def failed(git: Writing, record: Record) -> str:
    """Returns what is left, and where."""
    tree = record.worktree
    if tree.on_failure == "cleanup":
        try:
            await remove(git, tree, tip=await git.tip(tree.branch))
        except ToolError as error:
            return f"Not cleaned up: {error.message.rstrip('.')}. {_left(tree)}"
        return "Its worktree and branch are removed."
    if not os.path.isdir(tree.path):
        return ""
    return _left(tree)


async def _merged(git: Writing, tree: Worktree, tip: str, title: str, unsaved: Unsaved) -> Settled:
    done = await merging.merged(git, tree, tip, title, unsaved)
    await remove(git, tree, tip=done.tip)
    if not done.commit:
        return Settled("It changed nothing, so there was nothing to merge.")
    files = "1 file" if done.files == 1 else f"{done.files} files"
    return Settled(f"Merged into {tree.base} as {done.commit[:10]} ({files} changed).")


async def _gone(git: Writing, tree: Worktree) -> str:
    """The branch is not there: it was merged before this process, or somebody removed it."""
    await remove(git, tree)
    subject = f"Merge branch '{tree.branch}' into {tree.base}"
    ran = await git.look(
        "log", "-1", "--merges", "--fixed-strings", f"--grep={subject}", "--format=%H",
        f"refs/heads/{tree.base}", "--",
    )  # fmt: skip
    commit = ran.out.decode().strip()
    if commit:
        return f"Merged into {tree.base} as {commit[:10]}."
    return f"Its branch {tree.branch} is gone."


def _left(tree: Worktree) -> str:
    """Where it is, and how a person goes on."""
    where = f"branch {tree.branch}"
    if os.path.isdir(tree.path):
        where += f", checked out in {tree.path}"
    return (
        f"The work stays on {where}. To merge it: git merge {quote(tree.branch)}. To remove it: "
        f"magy worktrees prune --force {os.path.basename(tree.path)}"
    )
