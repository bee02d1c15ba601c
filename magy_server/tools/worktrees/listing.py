"""This module lists the worktrees of agents: how they stand, how large they are, and which of them
can go without anything being lost."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal

from magy_server.core.errors import NotFound, ToolError
from magy_server.dataclass import dataclass
from magy_server.tools.worktrees import checkouts, records
from magy_server.tools.worktrees.merging import dirty
from magy_server.tools.worktrees.records import Record
from magy_server.tools.worktrees.writing import Looking, Writing

Standing = Literal["merged", "proposed", "unmerged", "changed", "unfinished", "unknown"]
"""All of it is in the base branch; what is not was proposed to the person; commits of its are not;
files are not committed; it was never complete, so no agent has worked in it; git cannot say."""
HARMLESS: tuple[Standing, ...] = ("merged", "unfinished")


@dataclass(frozen=True, slots=True)
class Left:
    """`size` in bytes, on disk. `why`: of `unknown`, what git says."""

    record: Record
    standing: Standing
    size: int
    why: str = ""


async def left(git: Looking) -> list[Left]:
    """Returns all worktrees of the repository, by name."""
    found = []
    for record in await asyncio.to_thread(records.all_of, git.common):
        size = await asyncio.to_thread(_size, record.worktree.path)
        try:
            found.append(Left(record, await standing(git, record), size))
        except ToolError as error:
            found.append(Left(record, "unknown", size, error.message))
    return found


async def removed(git: Writing, one: Left) -> None:
    """Removes worktree and branch; the branch only if it still stands where it was seen. Raises
    ToolError."""
    tree = one.record.worktree
    await checkouts.remove(git, tree, tip=await git.tip(tree.branch))


async def standing(git: Looking, record: Record) -> Standing:
    """Raises ToolError where git cannot say."""
    tree = record.worktree
    if not record.made:
        return "unfinished"
    commits = [await git.tip(tree.branch)]
    if os.path.isdir(tree.path):
        top = await git.get("rev-parse", "--show-toplevel", at=tree.path)
        if os.path.realpath(top) != tree.path:
            raise ToolError("its .git is gone, so that it is no worktree any more")
        if await dirty(git, tree.path):
            return "changed"
        commits.append(await git.get("rev-parse", "HEAD", at=tree.path))  # it may be detached
    base = await git.tip(tree.base)
    for commit in filter(None, commits):
        if not base or not await git.holds(base, commit):
            return "proposed" if {*commits} == {record.proposed} else "unmerged"
    return "merged"


def _size(path: str) -> int:
    """Blocks."""
    size = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with suppress(OSError):
                size += os.lstat(os.path.join(folder, name)).st_blocks * 512
    return size


def named(found: Sequence[Left], names: Sequence[str]) -> list[Left]:
    """Returns those with these names; all, if there are no names. Raises NotFound for others."""
    known = {one.record.name: one for one in found}
    if unknown := [name for name in names if name not in known]:
        there = f" There are: {', '.join(known)}." if known else " There are none."
        raise NotFound(f"There is no worktree {unknown[0]!r} here.{there}")
    return [known[name] for name in dict.fromkeys(names)] if names else list(found)
