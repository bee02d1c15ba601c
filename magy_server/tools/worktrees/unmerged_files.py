"""What cannot be merged becomes texts for review: each file as the person has it now, with what the
branch changed in it. Where both changed the same lines, the branch's stand there: the person takes
them or not, hunk by hunk."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence

from magy_server.core.errors import ToolError
from magy_server.dataclass import dataclass
from magy_server.tools.files import disk
from magy_server.tools.files.commits import Committed, listed
from magy_server.tools.temporary import temporary
from magy_server.tools.worktrees.writing import Writing

MOST = 100
"""Files that are put up for review at once."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file that the branch changed: what it was where the branch began, and what it is now. None:
    there is none."""

    name: bytes
    began: bytes | None
    now: bytes | None

    async def merged_into(self, git: Writing, live: bytes | None) -> bytes | None:
        """The file `live` with what the branch changed; None: it is removed. Raises ToolError."""
        if self.now is None or live is None or live == self.began:
            return self.now
        began, now = self.began or b"", self.now
        if b"\r\n" in live and b"\r\n" not in began:  # as git has written it for the person
            began, now = _windows(began), _windows(now)
        if live == began:
            return now
        async with temporary() as folder:
            texts = {"live": live, "began": began, "now": now}
            paths = await asyncio.to_thread(_written, folder, texts)
            ran = await git.look("merge-file", "-p", "-q", "--theirs", *paths)
        if ran.code != 0:
            raise ToolError(f"{os.fsdecode(self.name)} is no text.")
        return ran.out


@dataclass(frozen=True, slots=True)
class AllWanted:
    """`left`: names of what cannot be reviewed: links, submodules, large files."""

    files: Sequence[Wanted]
    left: Sequence[bytes]


async def wanted_files(git: Writing, base: str, tip: str) -> AllWanted:
    """All that the branch (its commit `tip`) changed since it left the base branch (at `base`).
    Raises ToolError."""
    began = await git.get("merge-base", base, tip)
    names = await git.changed(began, tip)
    if len(names) > MOST:
        raise ToolError(f"the branch changes {len(names)} files, more than {MOST} at once.")
    before = await listed(git.repository, began, names)
    after = await listed(git.repository, tip, names)
    files: list[Wanted] = []
    left: list[bytes] = []
    for name in names:
        old, new = before.get(name), after.get(name)
        if any(one and one.kind != "file" for one in (old, new)):
            left.append(name)
            continue
        try:
            files.append(Wanted(name, await _data(git, old), await _data(git, new)))
        except ToolError:
            left.append(name)
    return AllWanted(files, left)


async def _data(git: Writing, one: Committed | None) -> bytes | None:
    if one is None:
        return None
    size = int(await git.get("cat-file", "-s", one.oid))
    if size > disk.EDIT_LIMIT:
        raise ToolError("It is too large.")
    return await git.repository.git.get("cat-file", "blob", one.oid)


def _written(folder: str, texts: Mapping[str, bytes]) -> list[str]:
    """Blocks."""
    paths = [os.path.join(folder, name) for name in texts]
    for path, data in zip(paths, texts.values(), strict=True):
        with open(path, "wb") as file:
            file.write(data)
    return paths


def _windows(data: bytes) -> bytes:
    return data.replace(b"\n", b"\r\n")
