"""Magy changes a repository by itself through this: one change at a time, whichever process makes
it, and nothing runs that the repository names, since nobody was asked about that.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress

from magy_server.core.errors import ToolError
from magy_server.core.values import Evidence
from magy_server.dataclass import dataclass
from magy_server.tools.git.names import chunks, literal
from magy_server.tools.git.program import Ran, answer, explain
from magy_server.tools.git.repository import Repository
from magy_server.tools.shell.process_groups import VARIABLE, end_group
from magy_server.tools.worktrees import records

PATIENCE = 600.0
"""Seconds to wait for another Magy that changes this repository."""
PAUSE = 0.05
NOBODY = ("-c", "user.name=Magy", "-c", "user.email=magy@localhost")
"""Who makes a commit where the person has not told git who they are."""


class Stays(ToolError):
    """The work cannot land by itself; the branch and what is in the worktree stay as they are."""


@dataclass(frozen=True, slots=True)
class Looking:
    """The repository around a workspace root, for looking."""

    repository: Repository

    @property
    def common(self) -> str:
        """Returns the git directory that all worktrees share (canonical)."""
        return os.path.realpath(self.repository.common)

    async def look(self, *words: str, at: str = "") -> Ran:
        place = ("-C", at) if at else ()
        return await self.repository.git.look(*place, *words)

    async def get(self, *words: str, at: str = "") -> str:
        """Returns what git says to a command that looks. Raises ToolError when it fails."""
        out = answer(_verb(words), await self.look(*words, at=at))
        return out.decode("utf-8", "surrogateescape").strip()

    async def own(self, keys: str) -> list[str]:
        """Returns the settings that the repository itself makes, of those whose names match."""
        ran = await self.look("config", "--show-scope", "-z", "--name-only", "--get-regexp", keys)
        fields = ran.out.split(b"\0")[:-1]
        pairs = zip(fields[::2], fields[1::2], strict=True)
        return [os.fsdecode(key) for scope, key in pairs if scope in (b"local", b"worktree")]

    async def tip(self, branch: str) -> str:
        """Returns the commit that a local branch stands at; "" when there is none."""
        ran = await self.look("rev-parse", "--verify", "-q", f"refs/heads/{branch}^{{commit}}")
        return ran.out.decode().strip() if ran.code == 0 else ""

    async def holds(self, commit: str, older: str) -> bool:
        """Whether `older` is in the history of `commit`."""
        ran = await self.look("merge-base", "--is-ancestor", older, commit)
        if ran.code not in (0, 1):
            raise ToolError(f"git merge-base: {explain(ran.err)}")
        return ran.code == 0

    async def changed(self, old: str, new: str) -> list[bytes]:
        """Returns the names, from the top of the repository, that differ between two commits."""
        ran = await self.look(
            "diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new, at=self.repository.top
        )
        return answer("diff-tree", ran).split(b"\0")[:-1]

    async def check_plain(self, names: Sequence[bytes], at: str) -> None:
        """Raises ToolError if files among these go through a filter that the repository itself
        configures, which Magy does not run unasked: without it git would keep other bytes."""
        filters = self.repository.filters
        found: list[bytes] = []
        for few in chunks(names) if filters else ():
            ran = await self.look("check-attr", "-z", "filter", "--", *map(os.fsdecode, few), at=at)
            fields = answer("check-attr", ran).split(b"\0")
            pairs = zip(fields[::3], fields[2::3], strict=False)
            found += [name for name, value in pairs if os.fsdecode(value) in filters]
        if found:
            raise ToolError(
                f"{os.fsdecode(found[0])!r} goes through a filter that this repository configures "
                f"({', '.join(filters)}), and Magy runs no program of a repository unasked"
            )

    async def identity(self) -> Sequence[str]:
        """Options with which a commit can be made."""
        known = ("-c", "user.useConfigOnly=true", "var", "GIT_COMMITTER_IDENT")
        return () if (await self.look(*known)).code == 0 else NOBODY


@dataclass(frozen=True, slots=True)
class Writing(Looking):
    """Changes it, while nobody else does. `lock` is the open file that says so; `marked` is in the
    environment of what runs."""

    lock: int
    marked: str

    async def run(self, *words: str, at: str = "", far: bool = False) -> Ran:
        """Runs git with effects, in the directory `at`; `far`: with a remote. Who finds the lock
        free after this process was killed ends what it left running."""
        place = ("-C", at) if at else ()
        act = self.repository.git.act
        try:
            ran = await act(*place, *words, started=self._running, unasked=True, far=far)
        finally:
            os.ftruncate(self.lock, 0)
        if ran.code is None:
            raise ToolError(f"git {words[0]} took too long and was stopped.")
        return ran

    async def done(self, *words: str, at: str = "") -> str:
        """The same; returns what git says. Raises ToolError when it fails."""
        ran = await self.run(*words, at=at)
        if ran.code != 0:
            said = ran.err.strip() or ran.out.decode("utf-8", "replace")
            raise ToolError(f"git {_verb(words)}: {explain(said)}")
        return ran.out.decode("utf-8", "surrogateescape").strip()

    async def _running(self, evidence: Evidence) -> None:
        try:
            os.pwrite(self.lock, self.marked.encode(), 0)
        except OSError as error:
            raise ToolError(f"git was not started: {error.strerror}.") from None


def pathspecs(names: Sequence[bytes]) -> list[str]:
    """Returns pathspecs for exactly these names from the top."""
    return [literal(name) for name in names]


def _verb(words: Sequence[str]) -> str:
    return next((word for word in words if not word.startswith("-") and "=" not in word), "")


@asynccontextmanager
async def writing(root: str, env: Mapping[str, str]) -> AsyncIterator[Writing]:
    """The repository of a workspace root, for changes, while no other Magy changes it. `env` is the
    environment for git. Raises ToolError."""
    # A mark of its own: who ends what a killed process left running must not meet this one, which
    # takes up the same work.
    marked = f"{env.get(VARIABLE, '')}.{secrets.token_hex(4)}"
    repository = await Repository.open(root, {**env, VARIABLE: marked})
    common = os.path.realpath(repository.common)
    try:
        os.makedirs(records.folder(common), exist_ok=True)
        path = os.path.join(common, records.FOLDER, "lock")
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise ToolError(f"{common} cannot be written: {error.strerror}.") from None
    try:
        await _taken(lock, root)
        await _end_left(lock)
        yield Writing(repository, lock, marked)
    finally:
        os.close(lock)


async def _taken(lock: int, root: str) -> None:
    """The kernel frees it however its holder ends."""
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                with suppress(BlockingIOError):
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return
                await asyncio.sleep(PAUSE)
    except TimeoutError:
        raise ToolError(
            f"Another Magy has been changing the repository of {root} for {PATIENCE:.0f} s."
        ) from None


async def _end_left(lock: int) -> None:
    """Ends the git of a holder that was killed: what it still did would come in between."""
    if marked := os.pread(lock, 4096, 0).decode("utf-8", "replace"):
        await end_group(None, marked)
        os.ftruncate(lock, 0)
