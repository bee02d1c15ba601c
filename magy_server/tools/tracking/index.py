"""This module asks git about a work tree: which files differ from its index, which it does not
know, and what those that did not differ held.

All questions are asked with a copy of the index as it was at one moment: what a command does to the
index meanwhile changes no answer. Nothing is run that the repository names, nothing is written.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator, Mapping, Sequence

from magy_server.core.values import Kind, Version, digest
from magy_server.dataclass import dataclass
from magy_server.regex import regex
from magy_server.tools.files.versions import kind_of
from magy_server.tools.git.names import chunks, literal
from magy_server.tools.git.program import Captured, answer
from magy_server.tools.git.repository import Repository, disarm
from magy_server.tools.tracking.known_changes import LARGEST
from magy_server.tools.tracking.snapshot import ALL, Held

CACHES = ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis")
"""Directories that programs make by themselves, and make again: nobody wants to judge what is in
them, whether or not the project ignores them."""
_STATED = regex(rb"\n  size: (\d+)\tflags: [0-9a-f]+\n")
_CHANGED = ("filter", "working-tree-encoding")
"""Attributes by which git has other bytes than the work tree."""


@dataclass(frozen=True, slots=True)
class Indexed:
    """An entry of the index; `kind` None: a submodule, or one of several of an unmerged file."""

    kind: Kind | None
    oid: str


@dataclass(frozen=True, slots=True)
class Listing:
    """`differ`: files that may differ from the index, as far as times and sizes tell; `unknown`:
    those that are neither in the index nor ignored, nor in a cache. Names are below the workspace
    root."""

    differ: Mapping[bytes, Indexed]
    unknown: frozenset[bytes]
    inner: bool
    """Other repositories are in it, which were not looked into."""


class Index:
    """A copy of the index in `folder`. `repository` is to be the one that there is now: it may be
    configured anew."""

    def __init__(self, repository: Repository, folder: str) -> None:
        self.repository = repository
        self._file = os.path.join(folder, "index")
        self._env = {"GIT_INDEX_FILE": self._file}

    async def copy(self) -> None:
        await self.repository.copy_index(self._file)

    async def listing(self) -> Listing:
        """Raises ToolError."""
        caches = [f"--exclude={name}/" for name in CACHES]
        others = ("ls-files", "-z", "--others", "--exclude-standard", *caches)
        try:
            async with asyncio.TaskGroup() as group:
                differ = group.create_task(self._differing())
                unknown = group.create_task(self.repository.git.get(*others, env=self._env))
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from None
        names = unknown.result().split(b"\0")[:-1]
        found = frozenset(name for name in names if not name.endswith(b"/"))
        modules = os.path.lexists(os.path.join(self.repository.top, ".gitmodules"))
        return Listing(_raw(differ.result()), found, inner=modules or len(found) < len(names))

    async def _differing(self) -> bytes:
        # of what was changed very shortly before it was added, git compares the contents: filtered
        await disarmed(self.repository)
        return await self.repository.git.get(
            "diff-files", "--raw", "-z", "--abbrev=64", "--no-renames", "--relative",
            "--ignore-submodules=all", env=self._env,
        )  # fmt: skip

    async def held(self, entries: Mapping[bytes, Indexed]) -> dict[bytes, Held]:
        """What these files, which did not differ from the index, had in them. Git has that, but
        maybe with other line ends, or filtered: only what is proved to have been the bytes of the
        work tree is taken. Raises ToolError."""
        sizes, foreign = await self._sizes(list(entries)), await self._foreign(entries)
        wanted = {
            entry.oid
            for name, entry in entries.items()
            if name not in foreign and sizes.get(name, LARGEST + 1) <= LARGEST
        }
        blobs = await self._blobs(sorted(wanted))
        return {
            name: _proved(entry, blobs.get(entry.oid), sizes.get(name), name in foreign)
            for name, entry in entries.items()
        }

    async def entries(self, names: Sequence[bytes]) -> dict[bytes, Indexed]:
        """Returns the entries of those of these files that are in the index. Raises ToolError."""
        found: dict[bytes, Indexed] = {}
        for few in chunks(names):
            out = await self.repository.git.get(
                "ls-files", "-z", "--stage", "--", *map(literal, few), env=self._env
            )
            for about, name in (one.split(b"\t", 1) for one in out.split(b"\0")[:-1]):
                mode, oid, stage = about.decode().split(" ")
                one = stage == "0" and name in few
                found[name] = Indexed(kind_of(int(mode, 8)) if one else None, oid)
        return found

    async def _sizes(self, names: Sequence[bytes]) -> dict[bytes, int]:
        """How large the files were when git last saw that they did not differ."""
        sizes: dict[bytes, int] = {}
        for few in chunks(names):
            out = await self.repository.git.get(
                "ls-files", "-z", "--debug", "--", *map(literal, few), env=self._env
            )
            # git prints the name as it is, then lines of numbers
            for name, _, after in (one.partition(b"\0") for one in _records(out)):
                if stated := _STATED.search(b"\n" + after):
                    sizes[name] = int(stated[1])
        return sizes

    async def _foreign(self, names: Mapping[bytes, Indexed]) -> set[bytes]:
        """Files that are not kept byte by byte, by the attributes of then or of now."""
        found: set[bytes] = set()
        given = b"".join(name + b"\0" for name in names)
        for source in ((), ("--cached",)):
            out = await self.repository.git.get(
                "check-attr", "-z", "--stdin", *source, *_CHANGED, env=self._env, given=given
            )
            fields = out.split(b"\0")[:-1]
            for name, value in zip(fields[::3], fields[2::3], strict=True):
                if value not in (b"unspecified", b"unset"):
                    found.add(name)
        return found

    async def _blobs(self, oids: Sequence[str]) -> dict[str, bytes]:
        if not oids:
            return {}
        captured = Captured(2 * ALL)
        given = "".join(f"{oid}\n" for oid in oids).encode()
        ran = await self.repository.git.look("cat-file", "--batch", sink=captured.feed, given=given)
        answer("cat-file", ran)
        return dict(_batch(captured.data))


async def as_committed(repository: Repository, commit: str) -> tuple[set[bytes], set[bytes]]:
    """Names of the files that differ from what `commit` has, and of those that it has. Raises
    ToolError."""
    await disarmed(repository)
    changed = await repository.changed(commit, paths=["."])
    tree = await repository.git.get("ls-tree", "-r", "-z", "--name-only", commit)
    return {one.name for one in changed}, set(tree.split(b"\0")[:-1])


async def has(repository: Repository, contents: Mapping[bytes, bytes], like: str) -> set[bytes]:
    """The names whose contents git has somewhere. `like` is any object id. Raises ToolError."""
    oids = {name: object_id(data, like) for name, data in contents.items()}
    given = "".join(f"{oid}\n" for oid in oids.values()).encode()
    out = await repository.git.get("cat-file", "--batch-check=%(objectname)", given=given)
    there = {line for line in out.decode().splitlines() if not line.endswith(" missing")}
    return {name for name, oid in oids.items() if oid in there}


def object_id(data: bytes, like: str) -> str:
    """The name of a blob, in the kind of `like`: SHA-1 or SHA-256."""
    import hashlib

    algorithm = hashlib.sha256 if len(like) == 64 else hashlib.sha1
    return algorithm(b"blob %d\0" % len(data) + data).hexdigest()


async def disarmed(repository: Repository) -> None:
    """So that no filter runs that was configured since."""
    if not repository.own:
        await disarm(repository.git)


def _raw(out: bytes) -> dict[bytes, Indexed]:
    """`:MODE MODE OID OID LETTER\\0NAME\\0`; of an unmerged file more than one."""
    fields = out.split(b"\0")[:-1]
    found: dict[bytes, Indexed] = {}
    for about, name in zip(fields[::2], fields[1::2], strict=True):
        mode, _, oid, _, _ = about[1:].decode().split(" ")
        several = name in found or about.endswith(b"U")
        found[name] = Indexed(None if several else kind_of(int(mode, 8)), oid)
    return found


def _records(out: bytes) -> Iterator[bytes]:
    """The entries of `ls-files --debug -z`: the numbers end before the next name."""
    return (match[0] for match in re.finditer(rb"[^\0]+\0(?:  [^\0\n]*\n){5}", out))


def _batch(data: bytes) -> Iterator[tuple[str, bytes]]:
    at = 0
    while at < len(data):
        end = data.index(b"\n", at)
        words = data[at:end].decode().split(" ")
        at = end + 1
        if len(words) == 3:  # else it is missing
            size = int(words[2])
            yield words[0], data[at : at + size]
            at += size + 1


def _proved(entry: Indexed, blob: bytes | None, size: int | None, foreign: bool) -> Held:
    """Line ends and `$Id$` are all that git changes by itself, and each way it does, the size says
    whether it did: turning line ends and expanding both only add bytes."""
    if size is not None and size > LARGEST:
        return Held(problem=f"{size:,} bytes before")
    if entry.kind is not None and blob is not None and size is not None:
        if entry.kind == "link" or (not foreign and len(blob) == size):
            return _held(entry.kind, blob)
        if not foreign and b"$Id" not in blob and len(blob) + blob.count(b"\n") == size:
            return _held(entry.kind, blob.replace(b"\n", b"\r\n"))
    return Held(problem="its earlier content is unknown")


def _held(kind: Kind, data: bytes) -> Held:
    return Held(Version(hash=digest(data), kind=kind), data)
