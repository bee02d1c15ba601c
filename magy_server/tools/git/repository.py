"""This module reads a workspace root's git repository: where it is, its state, what differs.

Everything here only looks. Names are bytes below the workspace root, as git has them.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import shutil
from collections.abc import (
    AsyncIterator,
    Callable,
    Container,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)

from magy_server.core.errors import ToolError
from magy_server.core.shell.simple_commands import quote
from magy_server.core.tool import FactContext, ToolContext
from magy_server.core.values import Action
from magy_server.dataclass import dataclass
from magy_server.tools.files.paths import below
from magy_server.tools.git.hostile_config import foreign
from magy_server.tools.git.names import Entry, check_revision, shown
from magy_server.tools.git.program import ACT, CAPTURED, Git, Ran, Sink, Spool, answer, explain
from magy_server.tools.shell.output import clean
from magy_server.tools.shell.process_groups import VARIABLE
from magy_server.tools.shell.processes import Processes
from magy_server.tools.temporary import temporary

DIFF = (
    "--no-ext-diff", "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/",
    "--relative", "--submodule=short", "--ignore-submodules=dirty",
)  # fmt: skip
"""How a diff looks that is shown."""
MANY = 1_000
"""Files that one call can leave out by name."""
_UNDER_WAY = (
    ("MERGE_HEAD", "a merge"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
)


@dataclass(frozen=True, slots=True)
class Changed:
    """`letter` as in `git diff --name-status`."""

    name: bytes
    letter: str


@dataclass(frozen=True, slots=True)
class Status:
    """`oid` is "" before the first commit, `branch` when HEAD is detached."""

    oid: str
    branch: str
    upstream: str
    ahead: int
    behind: int
    stashes: int
    entries: Sequence[Entry]

    @property
    def conflicts(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.conflict]

    @property
    def staged(self) -> list[Entry]:
        return [e for e in self.entries if e.index not in ".?" and not e.conflict]

    @property
    def unstaged(self) -> list[Entry]:
        return [e for e in self.entries if e.tree not in ".?" and not e.conflict]

    @property
    def untracked(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.index == "?"]

    @property
    def place(self) -> str:
        """Where HEAD is, in words."""
        return f"branch {self.branch}" if self.branch else f"detached HEAD at {self.oid[:10]}"


@dataclass(frozen=True, slots=True)
class Repository:
    """`top` is its work tree, the workspace root or above it; `directory` the `.git` of that, and
    `common` the one that linked work trees share."""

    git: Git
    root: str
    top: str
    directory: str
    common: str
    filters: tuple[str, ...]
    """Filters that the repository itself configures: not run while looking."""
    own: bool = True
    """Its configuration includes no file: it says the same as long as its own files do."""

    @classmethod
    async def open(cls, root: str, env: Mapping[str, str]) -> Repository:
        """Raises ToolError unless `root` lies in the work tree of a repository."""
        git = Git(root, env, env.get(VARIABLE, ""))
        await git.ready()
        ran = await git.look("rev-parse", "--show-toplevel")
        if ran.code != 0:
            raise ToolError(_none(root, ran.err))
        top = os.path.realpath(os.fsdecode(ran.out[:-1]))
        if below(top, root) is None:
            raise ToolError(
                f"The repository of {root} has its work tree elsewhere, at {top} (core.worktree): "
                "the git tools work only in the workspace. Tell the user."
            )
        directory = os.fsdecode((await git.get("rev-parse", "--absolute-git-dir"))[:-1])
        shared = os.fsdecode((await git.get("rev-parse", "--git-common-dir"))[:-1])
        common = os.path.join(root, shared)
        if elsewhere := foreign(top, directory, common):
            raise ToolError(
                f"The .git of {top} stands for the repository {elsewhere}, which does not point "
                "back to this directory, so it may belong to another one: the git tools do "
                "not show it. If it is right, the person can confirm it with: "
                f"git --git-dir={quote(directory)} config core.worktree {quote(top)}"
            )
        return cls(git, root, top, directory, common, *await disarm(git))

    @property
    def prefix(self) -> bytes:
        """What git's names begin with below the root."""
        inner = below(self.top, self.root)
        return b"" if inner in (None, ".") else os.fsencode(f"{inner}/")

    @property
    def scope(self) -> list[str]:
        """The pathspec of what may be shown; empty for everything."""
        return ["."] if self.prefix else []

    def note(self) -> str:
        """What a reader of any answer should know."""
        notes = ""
        if self.prefix:
            notes += f"\n[only what lies below the workspace root; the repository is {self.top}]"
        if self.filters:
            names = ", ".join(shown(os.fsencode(name)) or '""' for name in self.filters[:5])
            notes += f"\n[filters of the repository were not run: {names}; their files may differ]"
        return notes

    def under_way(self) -> str:
        """ "a merge" and the like, when one was begun and not concluded."""
        for name, what in _UNDER_WAY:
            if os.path.lexists(os.path.join(self.directory, name)):
                return what
        return ""

    def locked(self) -> str:
        """The path of the index lock, if it is there."""
        lock = os.path.join(self.directory, "index.lock")
        return lock if os.path.lexists(lock) else ""

    async def commit(self, revision: str) -> str:
        """The object id of the commit that `revision` names. Raises ToolError."""
        check_revision(revision)
        wanted = f"{revision}^{{commit}}"
        ran = await self.git.look("rev-parse", "--verify", "-q", "--end-of-options", wanted)
        if ran.code != 0:
            raise ToolError(
                f"{revision!a} names no commit here; git_branch and git_log show what there is."
            )
        return ran.out.decode().strip()

    async def head(self) -> str:
        """The object id of HEAD's commit; "" before the first."""
        ran = await self.git.look("rev-parse", "--verify", "-q", "HEAD")
        return ran.out.decode().strip() if ran.code == 0 else ""

    async def head_or_nothing(self) -> str:
        """What a commit is compared with: HEAD's, or the empty tree before the first."""
        empty = ("hash-object", "-t", "tree", os.devnull)
        return await self.head() or (await self.git.get(*empty)).decode().strip()

    async def diff(self, *words: str, sink: Sink | None = None) -> Ran:
        """`git diff`, on a copy of the index: it would refresh the index itself, and lock it."""
        async with temporary() as folder:
            index = os.path.join(folder, "index")
            await self.copy_index(index)
            env = {"GIT_INDEX_FILE": index}
            return await self.git.look("diff", *words, sink=sink, env=env)

    @contextlib.asynccontextmanager
    async def shown_diff(self, *words: str) -> AsyncIterator[Spool]:
        """What `git diff WORDS` says, or its beginning, as long as it is looked at. Raises
        ToolError."""
        spool = Spool()
        try:
            ran = await self.diff(*words, sink=spool.feed)
            spool.output.feed(b"", final=True)
            if ran.code != 0 and not spool.cut:
                raise ToolError(f"git diff: {explain(ran.err)}")
            yield spool
        finally:
            spool.output.close()

    async def copy_index(self, to: str) -> None:
        """Copies the index with its time: git compares files changed at or after that time by
        content."""
        with contextlib.suppress(FileNotFoundError):  # before the first file is added
            await asyncio.to_thread(shutil.copy2, os.path.join(self.directory, "index"), to)

    async def status(self, *, untracked: bool = True, everywhere: bool = False) -> Status:
        """Returns the status; with `everywhere`, also of what lies outside the root, by names that
        begin with `../`."""
        which = "normal" if untracked else "no"
        ran = await self.git.look(
            "status", "--porcelain=v2", "-z", "--branch", "--show-stash", "--find-renames",
            f"--untracked-files={which}", "--ignored=no", "--ignore-submodules=dirty", "--",
            *([] if everywhere else self.scope),
        )  # fmt: skip
        if ran.cut:
            raise ToolError(
                f"git status: more than {CAPTURED >> 20} MB of names. If most are of files that "
                "git should not know, put their directory into .gitignore; or look at a part with "
                "bash: git status --short -- DIR | head -100"
            )
        return _status(answer("status", ran), self.relative)

    def relative(self, name: bytes) -> bytes:
        """A name below the work tree -> below the root."""
        if name.startswith(self.prefix):
            return name[len(self.prefix) :]
        return os.path.relpath(name, self.prefix)

    async def changed(self, *what: str, paths: Sequence[str] = ()) -> list[Changed]:
        """What `git diff WHAT` would show, without looking for renames."""
        ran = await self.diff(
            "--name-status", "-z", "--no-renames", "--relative", "--no-ext-diff",
            "--no-textconv", "--ignore-submodules=dirty", *what, "--", *(paths or self.scope),
        )  # fmt: skip
        fields = answer("diff", ran).split(b"\0")[:-1]
        pairs = zip(fields[::2], fields[1::2], strict=True)
        return [Changed(name, letter.decode()[:1]) for letter, name in pairs]

    def full(self, name: bytes) -> str:
        """Returns the path for the rules; what is not UTF-8 in it is replaced."""
        return os.path.join(self.root, name.decode("utf-8", "replace"))


class Repositories:
    """Opens the repository of a session's workspace, with an environment that `processes` makes."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self._count = itertools.count(1)

    async def look(self, ctx: FactContext) -> Repository:
        """Opens the repository for looking only: what it starts is not a part of any call."""
        return await self._open(ctx, f"look-{next(self._count)}")

    async def act(self, ctx: ToolContext) -> Repository:
        return await self._open(ctx, ctx.call)

    async def _open(self, ctx: FactContext | ToolContext, call: str) -> Repository:
        env = self._processes.environment(ctx.root, ctx.session, call)
        return await Repository.open(ctx.root, env)


def split_allowed(
    repository: Repository,
    names: Iterable[bytes],
    judged: Container[str],
    may_read: Callable[[str], Action],
) -> tuple[list[bytes], list[bytes]]:
    """The names that may be shown, and the others; the call may read the files in `judged`. Raises
    ToolError when the others are too many."""
    good: list[bytes] = []
    bad: list[bytes] = []
    for name in dict.fromkeys(names):
        path = repository.full(name)
        (good if path in judged or may_read(path) == "allow" else bad).append(name)
    if len(bad) > MANY:
        raise ToolError(
            f"{len(bad)} of the files may not be read; name the files to show in paths."
        )
    return good, bad


async def wait_for_lock(repository: Repository, seconds: float = 3.0) -> None:
    """Editors hold the index for a moment when they refresh. Raises ToolError when it stays
    locked."""
    pause = 0.05
    for _ in range(int(seconds / pause)):
        if not repository.locked():
            return
        await asyncio.sleep(pause)
    if lock := repository.locked():
        raise ToolError(
            "Nothing was done: another git is using this repository, or was killed while it did: "
            f"{lock} exists. Try again in a moment; if no git is running, the person may "
            "remove it."
        )


def failure(what: str, ran: Ran, repository: Repository) -> str:
    """Why a command with effects failed, in git's and the hooks' words."""
    said = "\n".join(filter(None, (explain(ran.err), ran.out.decode("utf-8", "replace").strip())))
    if ran.code is None:
        said = f"{what} did not end within {ACT:.0f} s (a hook?) and was stopped.\n{said}"
    if lock := repository.locked():
        said += f"\nIt left {lock}; if no git is running, the person may remove that file."
    return clean(said)


# --- reading git --------------------------------------------------------------------------------


def _none(root: str, err: str) -> str:
    if "not a git repository" in err and "(or any" in err:
        return (
            f"{root} is not in a git repository; use bash `git init` if the person wants one there."
        )
    if "must be run in a work tree" in err:
        return (
            f"{root} is a bare repository, or inside a .git directory: there is no work tree, so "
            "the git tools have nothing to show. Use bash instead."
        )
    return f"The git repository of {root} cannot be used: {explain(err)}"


async def disarm(git: Git) -> tuple[tuple[str, ...], bool]:
    """Switches off the filters that the repository itself configures, by now. These, and whether
    its configuration includes no file (`Repository.own`)."""
    ran = await git.look(
        "config",
        "--show-scope",
        "-z",
        "--name-only",
        "--get-regexp",
        r"^(filter|include|includeif)\.",
    )
    if ran.code != 0:
        return (), True  # there is none
    fields = ran.out.split(b"\0")[:-1]
    keys = [
        os.fsdecode(key)
        for scope, key in zip(fields[::2], fields[1::2], strict=True)
        if scope in (b"local", b"worktree")
    ]
    names = {key.partition(".")[2].rpartition(".")[0] for key in keys if key.startswith("filter.")}
    for name in names:
        off = {"clean": "", "smudge": "", "process": "", "required": "false"}
        git.disarmed |= {f"filter.{name}.{key}": value for key, value in off.items()}
    return tuple(sorted(names)), all(key.startswith("filter.") for key in keys)


def _status(out: bytes, relative: Callable[[bytes], bytes]) -> Status:
    fields = iter(out.split(b"\0")[:-1])
    head: dict[str, str] = {}
    entries: list[Entry] = []
    for field in fields:
        if field.startswith(b"# "):
            key, _, value = field[2:].decode("utf-8", "replace").partition(" ")
            head[key] = value
        else:
            entries.append(_entry(field, fields, relative))
    oid, branch = head.get("branch.oid", ""), head.get("branch.head", "")
    ahead, _, behind = head.get("branch.ab", "+0 -0").partition(" ")
    return Status(
        oid="" if oid == "(initial)" else oid,
        branch="" if branch == "(detached)" else branch,
        upstream=head.get("branch.upstream", "") if "branch.ab" in head else "",
        ahead=int(ahead[1:]),
        behind=int(behind[1:]),
        stashes=int(head.get("stash", "0")),
        entries=entries,
    )


def _entry(field: bytes, more: Iterator[bytes], relative: Callable[[bytes], bytes]) -> Entry:
    kind, _, rest = field.partition(b" ")
    if kind == b"?":
        return Entry(relative(rest), "?", "?")
    *words, name = rest.split(b" ", {b"1": 7, b"2": 8, b"u": 9}[kind])
    letters = words[0].decode()
    index, tree = letters[0], letters[1]
    if kind == b"u":
        return Entry(relative(name), index, tree, conflict=letters)
    old = relative(next(more)) if kind == b"2" else b""
    return Entry(relative(name), index, tree, old)
