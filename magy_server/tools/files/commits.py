"""This module tells what is committed: the commit checked out around a file, and what any commit
has of the file. A repository in the repository (a submodule, say) is one of its own.

Asked often and changed seldom. So git is run only when something moved: the files that say where
HEAD is are small, and are read each time. Nothing of the repository's is run (`program.py`), and
nothing of it is written.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import stat
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from magy_server.core.errors import ToolError
from magy_server.core.ports import Found
from magy_server.core.values import Kind, Version, digest
from magy_server.dataclass import dataclass
from magy_server.tools.files import disk
from magy_server.tools.files.paths import below
from magy_server.tools.files.versions import kind_of
from magy_server.tools.git.hostile_config import beginning
from magy_server.tools.git.names import chunks
from magy_server.tools.shell.processes import Processes

if TYPE_CHECKING:
    from magy_server.tools.git.repository import Repository

KEPT = 64
"""Files of commits that are kept."""
KEPT_BYTES = 8 << 20
_SYMBOLIC = 5
"""Symbolic references that lead to the next one."""

Mark = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Committed:
    """A file of a commit; `oid` names its blob."""

    kind: Kind
    oid: str


@dataclass(slots=True)
class _Root:
    """`lock`: one git at a time, so that the others find its answer."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    place: tuple[object, ...] = ()
    repository: Repository | None = None
    moved: tuple[object, ...] | None = None
    head: str | None = None
    files: OrderedDict[tuple[str, str], Found] = field(default_factory=OrderedDict)
    """By commit and path."""


class Commits:
    """Watches the commits in all workspace roots of a process, and the repositories in them."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self._roots: dict[str, _Root] = {}
        self._count = itertools.count(1)

    async def head(self, root: str, path: str = "") -> str | None:
        """The commit checked out in the innermost git work tree around `path`, or around `root`
        (canonical); None: there is no work tree, no commit yet, no git, or a repository that is not
        looked into (another's)."""
        return await self._head_of(await asyncio.to_thread(_innermost, root, path))

    async def _head_of(self, folder: str) -> str | None:
        one = self._roots.setdefault(folder, _Root())
        async with one.lock:
            return await self._head(folder, one)

    async def heads(self, places: Sequence[tuple[str, str]]) -> list[str | None]:
        """The same for many (root, path) at once: each repository is looked at once."""
        folders = await asyncio.to_thread(_all_innermost, places)
        heads = {folder: await self._head_of(folder) for folder in dict.fromkeys(folders)}
        return [heads[folder] for folder in folders]

    async def committed(self, root: str, path: str, commit: str) -> Found:
        """What `commit` has of a file below `root`, as git keeps it: no filter and no change of
        line ends is applied. Raises ToolError: that cannot be said (the commit is not on this
        machine, is damaged, or the file has more than `disk.EDIT_LIMIT`)."""
        folder = await asyncio.to_thread(_innermost, root, path)
        one = self._roots.setdefault(folder, _Root())
        async with one.lock:
            await self._open(folder, one)
            name = below(one.repository.top, path) if one.repository else None
            if one.repository is None or name is None:
                raise ToolError(f"{path} is not in a readable git work tree.")
            key = commit, path
            if key not in one.files:
                data = await _blob(one.repository, commit, os.fsencode(name))
                one.files[key] = await asyncio.to_thread(_found, path, data)
            one.files.move_to_end(key)
            found = one.files[key]
            kept = one.files.values()
            while len(kept) > KEPT or sum(len(file.data) for file in kept) > KEPT_BYTES:
                one.files.popitem(last=False)
            return found

    async def repository(self, root: str) -> Repository | None:
        """The repository around `root`; None as in `head`, but for one without a commit."""
        one = self._roots.setdefault(root, _Root())
        async with one.lock:
            await self._open(root, one)
            return one.repository

    async def _head(self, root: str, one: _Root) -> str | None:
        await self._open(root, one)
        if one.repository is None:
            return None
        # read before git is asked: what moves meanwhile is seen next time
        moved = await asyncio.to_thread(_moved, one.repository)
        if moved != one.moved:
            try:
                one.head = await one.repository.head() or None
            except ToolError:
                one.moved = None
                return None
            one.moved = moved
        return one.head

    async def _open(self, root: str, one: _Root) -> None:
        place = await asyncio.to_thread(_place, root, one.repository)
        if one.repository is not None and place == one.place:
            return
        one.repository, one.moved = None, None
        one.files.clear()
        if not any(place[:-1]):
            return  # no `.git` anywhere above
        from magy_server.tools.git.repository import Repository

        asker = f"commits-{os.getpid()}"  # its processes are not another server's
        env = self._processes.environment(root, asker, f"look-{next(self._count)}")
        try:
            repository = await Repository.open(root, env)
        except ToolError:
            return
        one.repository = repository
        one.place = await asyncio.to_thread(_place, root, repository)


async def listed(
    repository: Repository, commit: str, names: Sequence[bytes]
) -> Mapping[bytes, Committed]:
    """Returns what the commit has of these names (below the work tree). Raises ToolError."""
    found: dict[bytes, Committed] = {}
    for few in chunks(names):
        out = await repository.git.get(
            "ls-tree", "-z", "--full-tree", commit, "--", *map(os.fsdecode, few)
        )
        for record in out.split(b"\0")[:-1]:
            about, _, name = record.partition(b"\t")
            mode, _, oid = about.decode().split(" ")
            if kind := kind_of(int(mode, 8)):
                found[name] = Committed(kind, oid)
    return found


async def _blob(repository: Repository, commit: str, name: bytes) -> tuple[Kind, bytes] | None:
    found = (await listed(repository, commit, [name])).get(name)
    if found is None:
        return None
    data = await repository.git.get("cat-file", "blob", found.oid)
    if len(data) > disk.EDIT_LIMIT:
        raise ToolError(f"{os.fsdecode(name)} is too large in commit {commit} to be compared.")
    return found.kind, data


def _found(path: str, blob: tuple[Kind, bytes] | None) -> Found:
    if blob is None:
        return Found(path)
    kind, data = blob
    return Found(path, Version(hash=digest(data), kind=kind), data)


def _innermost(root: str, path: str) -> str:
    """Returns the folder between `path` and `root` that may have a repository of its own; else
    `root`."""
    folder = os.path.dirname(path)
    while below(root, folder) not in (None, "", "."):
        if _stat(os.path.join(folder, ".git")):
            return folder
        folder = os.path.dirname(folder)
    return root


def _all_innermost(places: Sequence[tuple[str, str]]) -> list[str]:
    """`_innermost` for each; files of one folder have the same."""
    known: dict[tuple[str, str], str] = {}
    found = []
    for root, path in places:
        key = root, path.rpartition(os.sep)[0]  # a third of what `dirname` costs
        if key not in known:
            known[key] = _innermost(root, path)
        found.append(known[key])
    return found


# --- what must have changed if something moved --------------------------------------------------


def _place(root: str, repository: Repository | None) -> tuple[object, ...]:
    """Which repository it is, and how it is configured: one stamp for each directory from the root
    up that may hold a `.git`, and a last one."""
    folders = (root, *map(str, Path(root).parents))
    marks = [_stat(os.path.join(folder, ".git")) for folder in folders]
    if repository is None:
        return (*marks, None)
    about = [f"{repository.directory}/config.worktree", f"{repository.common}/config"]
    return (*map(_same, marks), *(_stat(path, os.stat) for path in about))


def _moved(repository: Repository) -> tuple[object, ...]:
    """Where HEAD is, by what the files say. A reference is one line, so it is read; the others are
    replaced whole when they change."""
    folders = repository.directory, repository.common
    refs: list[object] = []
    at = "HEAD"
    for _ in range(_SYMBOLIC):
        texts = [beginning(os.path.join(folder, at)) for folder in folders]
        refs.append(texts)
        said = next((text for text in texts if text), b"")
        at = os.fsdecode(said.partition(b"ref: ")[2].strip())
        if not at.startswith("refs/") or ".." in at:
            break
    packed = _stat(f"{repository.common}/packed-refs")
    tables = [beginning(f"{folder}/reftable/tables.list") for folder in folders]
    return (*map(repr, refs), packed, *tables)


def _stat(path: str, look: Callable[[str], os.stat_result] = os.lstat) -> Mark | None:
    try:
        found = look(path)
    except (OSError, ValueError):
        return None
    times = (found.st_mtime_ns, found.st_ctime_ns)
    return (found.st_dev, found.st_ino, found.st_mode, found.st_size, *times)


def _same(mark: Mark | None) -> Mark | None:
    """A directory is the same whatever is done in it."""
    return mark and (mark[:3] if stat.S_ISDIR(mark[2]) else mark)
