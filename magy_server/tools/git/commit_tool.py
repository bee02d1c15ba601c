"""git_commit commits what is staged, or exactly the files named, after a person has seen the diff
of it.

What was shown is what is committed: the call works its commit out again right before it runs, and
stops when anything about it is different by then.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import textwrap
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from magy_server.core.errors import ToolError
from magy_server.core.text.sanitizing import LINE, shortened, visible
from magy_server.core.tool import FactContext, Gathered, Result, Tool, ToolContext, previewed
from magy_server.core.values import Evidence, Facts, Resource, digest
from magy_server.dataclass import dataclass
from magy_server.edits.rebasing.diff import unified
from magy_server.tasks import to_end
from magy_server.tools.files.encodings import text_of
from magy_server.tools.files.paths import resource
from magy_server.tools.git.names import command, listed, literal, pathspec, shown
from magy_server.tools.git.program import Ran, explain
from magy_server.tools.git.repository import (
    DIFF,
    Changed,
    Repositories,
    Repository,
    Status,
    failure,
    wait_for_lock,
)
from magy_server.tools.shell.output import clean
from magy_server.tools.shipped import tool

PREVIEW = 200_000
"""Characters of the diff that a person is shown."""
MESSAGE = 60_000
"""Bytes of a message."""
FILES = 500
"""Files of a commit that are held against the rules for reading; with more it is asked about."""
NEW = 200_000
"""Bytes of a new file that the preview shows."""


@dataclass(frozen=True, slots=True)
class Wish:
    """The arguments of a call."""

    message: str
    paths: tuple[str, ...]
    all: bool
    amend: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """`argv` is the command a person would type; `untracked` files are made known to git first."""

    argv: tuple[str, ...]
    words: tuple[str, ...]
    """The same for git, with names that mean nothing but themselves."""
    title: str
    preview: str
    changed: Sequence[Changed]
    untracked: Sequence[bytes]
    oid: str
    """HEAD before it."""


def make(repositories: Repositories) -> Tool:
    async def facts(
        ctx: FactContext, message: str, paths: tuple[str, ...], all: bool, amend: bool
    ) -> Gathered:
        plan = await _plan(await repositories.look(ctx), Wish(message, paths, all, amend))
        facts = Facts(resources=tuple(_resources(ctx.root, plan)), title=plan.title)
        return previewed(facts, plan.preview)

    async def recover(
        ctx: ToolContext, evidence: Evidence, arguments: Mapping[str, Any]
    ) -> Result | None:
        wish = Wish(**git_commit.arguments(arguments))
        return await _recover(ctx, await repositories.look(ctx), wish)

    @tool(effect="exec", key="bash", kind="execute", facts=facts, recover=recover, seldom=True)
    async def git_commit(
        ctx: ToolContext,
        message: Annotated[str, "The commit message: a short line, and if needed a body after it"],
        paths: Annotated[
            tuple[str, ...],
            "Commit exactly these files and directories, including new files, as they are in the "
            "work tree; other staged changes stay staged. Empty: commit what is staged",
        ] = (),
        all: Annotated[bool, "Commit all changes of tracked files (-a)"] = False,
        amend: Annotated[
            bool, "Replace the last commit; use it only when the person asked for it"
        ] = False,
    ) -> Result:
        """Make a git commit. Hooks run, and may refuse it. Files that are open in the editor are
        committed as they are on disk."""
        repository = await repositories.act(ctx)
        plan = await _plan(repository, Wish(message, paths, all, amend))
        if digest(plan.preview.encode("utf-8", "replace")) != ctx.facts.preview:
            raise ToolError(
                "The changes to commit are no longer those that were shown for this call: "
                "something changed in the meantime. Look at them and call again."
            )
        return await _commit(ctx, repository, plan)

    return git_commit


def _resources(root: str, plan: Plan) -> list[Resource]:
    """Returns the command, and the files whose text goes into the commit."""
    found = [command(*plan.argv)]
    names = [c.name.decode("utf-8", "replace") for c in plan.changed if c.letter != "D"]
    if len(names) > FILES:
        note = f"(commits {len(names)} files, more than Magy examines)"
        found.append(Resource(kind="exec", subject=note, opaque=True))
    return found + [resource(root, os.path.join(root, name), "read") for name in names[:FILES]]


# --- what would be committed --------------------------------------------------------------------


async def _plan(repository: Repository, wish: Wish) -> Plan:
    """Raises ToolError for everything for which git would refuse, and for what nobody can want."""
    _check(wish)
    status = await repository.status(untracked=False, everywhere=True)
    doing = repository.under_way()
    _check_state(status, wish, doing)
    await _check_identity(repository)
    names = [pathspec(repository.root, path) for path in wish.paths]
    changed, untracked, diff = await _contents(repository, status, wish, names)
    if not changed and not wish.amend and not doing:
        raise ToolError(_nothing(status, wish))
    argv = ["commit", *["--amend"] * wish.amend]
    argv += ["-a"] * (wish.all and not repository.prefix)
    argv += ["-m", wish.message]
    if wish.all and repository.prefix:
        names = ["."]
    after = ["--"] if names else []
    what = "1 file" if len(changed) == 1 else f"{len(changed)} files"
    on = f"{status.place}, in the middle of {doing}" if doing else status.place
    verb = f"Amend {await _last(repository)} with {what}" if wish.amend else f"Commit {what}"
    head = f"On {status.place} after {status.oid or 'nothing'}\n"
    message = visible(wish.message).strip()
    said = textwrap.indent(message, "    ") if "\n" in message or len(message) > LINE else ""
    return Plan(
        argv=("git", *argv, *after, *names),
        words=(*argv, *after, *map(literal, names)),
        title=f"{verb} on {on}: {shortened(message, LINE)}",
        preview="\n".join(filter(None, [head, said and f"{said}\n", diff])),
        changed=changed,
        untracked=untracked,
        oid=status.oid,
    )


async def _last(repository: Repository) -> str:
    """Returns the last commit in words; that others may have it already is what a person must
    know."""
    out = await repository.git.get(
        "for-each-ref", "--contains=HEAD", "--count=1", "--format=%(refname:short)", "refs/remotes"
    )
    where = clean(out.decode("utf-8", "replace")).strip()
    return f"the last commit (already in {where})" if where else "the last commit"


def _check(wish: Wish) -> None:
    if not wish.message.strip():
        raise ToolError("message is empty; describe the commit in a line.")
    if "\0" in wish.message or any(0xD800 <= ord(char) < 0xE000 for char in wish.message):
        raise ToolError("message contains a NUL or half a character (a surrogate).")
    if len(wish.message.encode()) > MESSAGE:
        raise ToolError(f"message is longer than {MESSAGE:,} bytes; be brief.")
    if wish.paths and wish.all:
        raise ToolError("paths and all exclude each other: give only one of them.")


def _check_state(status: Status, wish: Wish, doing: str) -> None:
    if status.conflicts:
        names = listed([entry.name for entry in status.conflicts])
        raise ToolError(f"Files are in conflict: {names}. Resolve them and `git add` them first.")
    if doing == "a merge" and (wish.paths or wish.amend):
        raise ToolError(
            "A merge is not concluded: commit it as a whole (without paths and amend), or abort "
            "it (git merge --abort), first."
        )
    if wish.amend and not status.oid:
        raise ToolError("There is no commit yet that could be amended.")
    outside = [e.name for e in status.staged if e.name.startswith(b"../")]
    if outside and not wish.paths and not wish.all:
        raise ToolError(
            "Files outside the workspace are staged, and would be committed, too: "
            f"{listed(outside)}. Give paths, or ask the person to unstage them."
        )


async def _check_identity(repository: Repository) -> None:
    for who in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
        if (await repository.git.look("var", who)).code != 0:
            raise ToolError(
                "git has no name and e-mail address for the commit. Ask the person to set them: "
                'git config --global user.name "NAME" and git config --global user.email "ADDRESS"'
            )


def _nothing(status: Status, wish: Wish) -> str:
    if wish.paths or wish.all:
        return "There is nothing to commit: no tracked file is changed."
    inside = [e.name for e in status.unstaged if not e.name.startswith(b"../")]
    if not inside:
        return "There is nothing to commit: no tracked file is changed; new ones need paths."
    return f"Nothing is staged. Give paths, or all=true; changed are: {listed(inside)}."


async def _contents(
    repository: Repository, status: Status, wish: Wish, names: Sequence[str]
) -> tuple[list[Changed], list[bytes], str]:
    """Returns the files with their changes, of these the untracked ones, and the diff."""
    base = status.oid or await repository.head_or_nothing()
    specs = [literal(name) for name in names]
    if not names:
        what = [base] if wish.all else ["--cached", base]
        changed = await repository.changed(*what)
        return changed, [], await _diff(repository, what, [])
    out = await repository.git.get("ls-files", "--others", "--exclude-standard", "-z", "--", *specs)
    untracked = out.split(b"\0")[:-1]
    intended = [c.name for c in await repository.changed("--diff-filter=A", paths=specs)]
    new = sorted({*untracked, *intended})
    changed = [c for c in await repository.changed(base, paths=specs) if c.name not in set(new)]
    changed += [Changed(name, "A") for name in new]
    for path in names:
        folder = b"" if path == "." else os.fsencode(f"{path}/")
        if not any((one.name + b"/").startswith(folder) for one in changed):
            raise ToolError(
                f"There is nothing to commit in {path}: it is unchanged, ignored, or does not "
                "exist."
            )
    without = [literal(name, without=True) for name in new]
    diff = await _diff(repository, [base], specs + without)
    for name in new:
        if name.endswith(b"/"):
            raise ToolError(f"{shown(name)} is a git repository of its own; commit in it instead.")
        brief = len(diff) > PREVIEW
        diff += await asyncio.to_thread(_new_file, repository, name, brief)
    return changed, untracked, diff


async def _diff(repository: Repository, what: Sequence[str], specs: Sequence[str]) -> str:
    words = ("--patch", *DIFF, *what, "--", *(specs or repository.scope))
    async with repository.shown_diff(*words) as spool:
        text = spool.output.page(0, PREVIEW)
        if len(text) == PREVIEW:
            whole = digest(await asyncio.to_thread(spool.output.stored))
            text += f"\n[... the diff goes on; its SHA-256 is {whole} ...]\n"
        return text


def _new_file(repository: Repository, name: bytes, brief: bool) -> str:
    """Its text as a diff; or, when it is to be `brief`, long or not text, what it is."""
    label = shown(name)
    path = os.path.join(repository.root, os.fsdecode(name))
    try:
        if os.path.islink(path):
            return f"New symbolic link {label} to {shortened(os.readlink(path), LINE)}\n"
        # git names no fifo, but one may have come since
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            whole = b"" if brief or size > NEW else file.read()
            file.seek(0)
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return f"New file {label}: {error.strerror}\n"
    what = f"New file {label}, {size:,} bytes, SHA-256 {sha256}"
    text = text_of(whole)
    return (unified(None, text, label) if text else "") or f"{what}\n"


# --- doing it -----------------------------------------------------------------------------------


async def _commit(ctx: ToolContext, repository: Repository, plan: Plan) -> Result:
    git = repository.git
    known = [literal(name) for name in plan.untracked]
    await wait_for_lock(repository)
    done = begun = False

    async def started(evidence: Evidence) -> None:
        nonlocal begun
        await ctx.started(evidence)
        begun = True

    try:
        if known:
            ran = await git.act("add", "--intent-to-add", "--", *known, started=started)
            if ran.code != 0:
                raise ToolError(f"Nothing was committed. git add: {explain(ran.err)}")
        first = None if known else ctx.started
        ran = await git.act(*plan.words, started=first, emit=ctx.emit)
        head = await repository.head()
        done = ran.code == 0 or head != plan.oid
    finally:
        if known and begun and not done:
            await to_end(git.act("rm", "--cached", "--quiet", "--force", "--", *known))
    if not done:
        raise ToolError(f"Nothing was committed: {failure('git commit', ran, repository)}")
    return _told(ran, head, plan, repository)


def _told(ran: Ran, head: str, plan: Plan, repository: Repository) -> Result:
    parts = [f"Committed {head[:10]}.", clean(ran.out.decode("utf-8", "replace")).strip()]
    if ran.code != 0:
        parts.append("The commit was made, but git reported an error: a hook failed after it.")
    if ran.err.strip():
        parts.append(f"[output of git and its hooks]\n{ran.err.strip()}")
    if ran.left:
        parts.append(f"[hooks left {ran.left} processes running; Magy stopped them]")
    if doing := repository.under_way():
        parts.append(f"Still in the middle of {doing}.")
    return Result("\n".join(filter(None, parts)), f"{head[:10]} {plan.title}")


async def _recover(ctx: ToolContext, repository: Repository, wish: Wish) -> Result | None:
    """Returns whether HEAD is a new commit with our message. Raises ToolError when that is not
    clear."""
    if lock := repository.locked():
        raise ToolError(
            f"Magy was killed while it committed, and {lock} still exists. Check with git_log "
            "whether the commit was made; if no git is running, the person may remove that "
            "file."
        )
    assert ctx.facts.preview is not None
    before = (await ctx.blob(ctx.facts.preview)).decode().partition("\n")[0].rpartition(" ")[2]
    head = await repository.head()
    if head == before or (not head and before == "nothing"):
        return None
    ran = await repository.git.look(
        "log", "-1", "--no-show-signature", "--encoding=UTF-8", "--format=%B", head
    )
    same = ran.out.decode("utf-8", "replace").split() == wish.message.split()
    if not same:
        raise ToolError(
            f"Magy was killed while it committed. HEAD is now {head[:10]}, which is not the "
            "commit that you asked for; look with git_log before you repeat it."
        )
    return Result(f"Committed {head[:10]} (seen after an interruption).", f"{head[:10]}")
