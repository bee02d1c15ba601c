"""This module makes the files of the base branch, where that is checked out, those of the merge,
and touches no other file."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from magy_server.tools.git.names import chunks
from magy_server.tools.git.program import answer, explain
from magy_server.tools.worktrees.checkouts import Known
from magy_server.tools.worktrees.writing import Stays, Writing, pathspecs

Unsaved = Callable[[Sequence[str]], Awaitable[Sequence[str]]]
"""(paths) -> those whose text in an editor differs from the disk."""


async def replace(git: Writing, there: Known, old: str, new: str) -> None:
    """Makes files and index of one commit those of another, as a checkout would. What is the same
    in both stays as the person has it, staged or not. Again, it finds that done. Raises Stays;
    nothing was changed then."""
    await git.run("update-index", "-q", "--refresh", at=there.path)
    ran = await git.run("read-tree", "-m", "-u", "-n", old, new, at=there.path)
    if ran.code == 0:
        ran = await git.run("read-tree", "-m", "-u", old, new, at=there.path)
        if ran.code != 0:  # a full disk, say; the index is as before
            await _put_back(git, there, await git.changed(old, new))
    if ran.code != 0:
        raise Stays(f"the files in {there.path} cannot be updated: {explain(ran.err)}")


async def changed_there(
    git: Writing, there: Known, old: str, new: str, names: Sequence[bytes], unsaved: Unsaved
) -> list[bytes]:
    """Returns those of the names that the person has changed, or that are in the way of a file of
    the merge. What a process that was killed had made of the merge is put back. Raises Stays: they
    cannot be updated now."""
    if not os.path.isdir(there.path):
        raise Stays(
            f"git has {there.branch} checked out in {there.path}, which is not there. If that is "
            "gone for good, `git worktree prune` tells git so"
        )
    own = await git.get("rev-parse", "--absolute-git-dir", at=there.path)
    if os.path.lexists(os.path.join(own, "index.lock")):
        raise Stays(f"another git is using {there.path}, or was killed ({own}/index.lock exists)")
    theirs: list[bytes] = []
    begun: list[bytes] = []
    for name in await _dirty(git, there, names):
        if await _is_staged(git, there, new, name):
            continue
        half = await _is_staged_as(git, there, old, name) and await _is_file(git, there, new, name)
        (begun if half else theirs).append(name)
    paths = {os.path.join(there.path, os.fsdecode(name)): name for name in names}
    theirs += [paths[path] for path in await unsaved(list(paths))]
    if not theirs:
        await _put_back(git, there, begun)
    return list(dict.fromkeys(theirs))


async def _dirty(git: Writing, there: Known, names: Sequence[bytes]) -> list[bytes]:
    """Those that differ from HEAD, and those that git does not know or ignores."""
    found: list[bytes] = []
    for few in chunks(names):
        ran = await git.look(
            "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all",
            "--ignored=matching", "--", *pathspecs(few), at=there.path,
        )  # fmt: skip
        found += [record[3:] for record in answer("status", ran).split(b"\0") if record]
    return found


async def _put_back(git: Writing, there: Known, names: Sequence[bytes]) -> None:
    """Makes files as the index has them. None of them is the person's."""
    known: list[bytes] = []
    for few in chunks(names):
        ran = await git.look("ls-files", "-z", "--", *pathspecs(few), at=there.path)
        known += answer("ls-files", ran).split(b"\0")[:-1]
    for name in set(names) - set(known):  # first: that makes room
        with suppress(OSError):
            os.remove(os.path.join(os.fsencode(there.path), name))
    for few in chunks(known):
        await git.run("checkout-index", "-q", "-f", "--", *map(os.fsdecode, few), at=there.path)


# --- how one file stands --------------------------------------------------------------------------


async def _is_staged(git: Writing, there: Known, commit: str, name: bytes) -> bool:
    """Whether index and file are as in the commit."""
    ran = await git.look("diff", "--quiet", "--", _word(name), at=there.path)
    if ran.code != 0 or not await _is_staged_as(git, there, commit, name):
        return False
    tracked = await git.look("ls-files", "--error-unmatch", "--", _word(name), at=there.path)
    return tracked.code == 0 or not os.path.lexists(_path(there, name))


async def _is_staged_as(git: Writing, there: Known, commit: str, name: bytes) -> bool:
    ran = await git.look("diff", "--cached", "--quiet", commit, "--", _word(name), at=there.path)
    return ran.code == 0


async def _is_file(git: Writing, there: Known, commit: str, name: bytes) -> bool:
    """Whether the file is as in the commit, or neither has one."""
    wanted = await git.look("rev-parse", "--verify", "-q", f"{commit}:{os.fsdecode(name)}")
    path = _path(there, name)
    if wanted.code != 0 or not os.path.lexists(path):
        return wanted.code != 0 and not os.path.lexists(path)
    if os.path.islink(path) or not os.path.isfile(path):
        return False
    ran = await git.look("hash-object", "--", os.fsdecode(name), at=there.path)
    return ran.code == 0 and ran.out.strip() == wanted.out.strip()


def _path(there: Known, name: bytes) -> bytes:
    return os.path.join(os.fsencode(there.path), name)


def _word(name: bytes) -> str:
    return f":(literal,top){os.fsdecode(name)}"
