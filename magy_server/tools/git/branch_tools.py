"""git_branch lists, makes, renames and deletes branches; git_checkout switches to one.

Switching never throws work away: git refuses when changed files would be overwritten, and so does
this when the editor holds unsaved changes of a file that would change.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from magy_server.core.errors import ToolError
from magy_server.core.ports import Editor
from magy_server.core.tool import FactContext, Gathered, Result, Tool, ToolContext
from magy_server.core.values import Evidence, Facts
from magy_server.edits.text import plain
from magy_server.tools.files import disk
from magy_server.tools.files.encodings import decode
from magy_server.tools.files.paths import Place, below
from magy_server.tools.git.names import check_revision, command, listed
from magy_server.tools.git.repository import Repositories, Repository, failure, wait_for_lock
from magy_server.tools.shell.output import clean
from magy_server.tools.shipped import tool

BRANCHES = 100
_LIST = (
    "%(HEAD) %(refname:short)%00%(objectname:short)%00%(upstream:short)%00"
    "%(upstream:track,nobracket)%00%(worktreepath)%00%(contents:subject)"
)
_NOT_A_BRANCH = "give detach=true to look at it, or create=true with it as start_point."
Action = Literal["list", "create", "rename", "delete"]


def make(repositories: Repositories) -> list[Tool]:
    return [_branch(repositories), _checkout(repositories)]


# --- branches -----------------------------------------------------------------------------------


def _argv(action: Action, name: str, start_point: str, new_name: str, all: bool) -> list[str]:
    """Raises ToolError when the arguments do not go together."""
    given = {"name": name, "start_point": start_point, "new_name": new_name}
    needs = {"list": (), "create": ("name",), "rename": ("name", "new_name"), "delete": ("name",)}
    takes = (*needs[action], *(("start_point",) if action == "create" else ()))
    for key, value in given.items():
        if key in needs[action] and not value:
            raise ToolError(f"{action} needs {key}.")
        if value and key not in takes:
            raise ToolError(f"{action} takes no {key}.")
        if value:
            check_revision(value)
    words: Mapping[Action, list[str]] = {
        "list": ["-a"] * all,
        "create": [name, *filter(None, [start_point])],
        "rename": ["-m", name, new_name],
        "delete": ["-d", name],
    }
    return ["git", "branch", *words[action]]


def _branch(repositories: Repositories) -> Tool:
    async def facts(ctx: FactContext, **arguments: Any) -> Gathered:
        argv = _argv(**arguments)
        name, start = arguments["name"], arguments["start_point"]
        titles = {
            "list": "List branches",
            "create": f"Create branch {name}" + (f" at {start}" if start else ""),
            "rename": f"Rename branch {name} to {arguments['new_name']}",
            "delete": f"Delete branch {name}",
        }
        return Facts(resources=(command(*argv),), title=titles[arguments["action"]]), {}

    async def recover(
        ctx: ToolContext, evidence: Evidence, arguments: Mapping[str, Any]
    ) -> Result | None:
        wish = git_branch.arguments(arguments)
        return await _recover_branch(await repositories.look(ctx), wish)

    @tool(effect="exec", key="bash", kind="execute", facts=facts, recover=recover, seldom=True)
    async def git_branch(
        ctx: ToolContext,
        action: Annotated[Action, "What to do"] = "list",
        name: Annotated[str, "The branch to create, rename or delete"] = "",
        start_point: Annotated[str, "create: the branch's first commit; empty: HEAD"] = "",
        new_name: Annotated[str, "rename: the new name"] = "",
        all: Annotated[bool, "list: include branches of remotes"] = False,
    ) -> Result:
        """List branches, the latest first, or create, rename or delete one. Creating does not
        switch: use git_checkout. It deletes only merged branches."""
        repository = await repositories.act(ctx)
        if action == "list":
            return await _list(repository, all)
        return await _change(ctx, repository, action, name, start_point, new_name)

    return git_branch


async def _list(repository: Repository, all: bool) -> Result:
    places = ["refs/heads", *(["refs/remotes"] if all else [])]
    out = await repository.git.get(
        "for-each-ref", f"--count={BRANCHES + 1}", "--sort=-committerdate", f"--format={_LIST}",
        *places,
    )  # fmt: skip
    found = clean(out.decode("utf-8", "replace").replace("\0", "\t")).splitlines()
    head = await repository.status(untracked=False)
    lines = [_line(text) for text in found[:BRANCHES]]
    if not head.branch or not head.oid:
        lines.insert(0, f"({head.place}{'' if head.oid else ', without commits yet'})")
    if len(found) > BRANCHES:
        lines.append(f"[the {BRANCHES} latest; for all use bash `git branch`]")
    count = min(len(found), BRANCHES)
    return Result("\n".join(lines), "1 branch" if count == 1 else f"{count} branches")


def _line(text: str) -> str:
    name, oid, upstream, track, tree, subject = text.split("\t", 5)
    about = ", ".join(filter(None, (upstream, track)))
    elsewhere = f" (checked out in {tree})" if tree and not name.startswith("* ") else ""
    return f"{name} {oid}{f' [{about}]' if about else ''}{elsewhere} {subject}"


async def exists(repository: Repository, name: str) -> bool:
    """Returns whether there is a local branch of this name."""
    ran = await repository.git.look("show-ref", "--verify", "--quiet", f"refs/heads/{name}")
    return ran.code == 0


async def check_new(repository: Repository, name: str) -> None:
    """Raises ToolError unless a branch of this name can be made."""
    ran = await repository.git.look("check-ref-format", "--branch", name)
    if ran.code != 0 or ran.out.decode("utf-8", "replace").strip() != name:
        raise ToolError(f"{name!a} cannot be a branch name: {clean(ran.err).strip()[:200]}")
    if await exists(repository, name):
        raise ToolError(f"A branch {name} already exists; git_branch lists them.")


async def _change(
    ctx: ToolContext, repository: Repository, action: Action, name: str, start: str, new: str
) -> Result:
    if action == "create":
        await check_new(repository, name)
        if not start and not await repository.head():
            raise ToolError("There are no commits yet; use git_checkout with create=true.")
        if start:
            await repository.commit(start)
        done = f"Created branch {name}."
    else:
        if not await exists(repository, name):
            raise ToolError(f"There is no branch {name!a} here; git_branch lists them.")
        if action == "rename":
            await check_new(repository, new)
        done = f"Renamed branch {name} to {new}." if action == "rename" else ""
    argv = _argv(action, name, start, new, False)
    ran = await repository.git.act(*argv[1:], started=ctx.started, emit=ctx.emit)
    if ran.code != 0:
        raise ToolError(f"Nothing was done: {failure(' '.join(argv[:3]), ran, repository)}")
    said = clean(ran.out.decode("utf-8", "replace") + ran.err).strip()
    return Result("\n".join(filter(None, (done, said))), done or f"Deleted branch {name}")


async def _recover_branch(repository: Repository, wish: Mapping[str, Any]) -> Result | None:
    """These change one reference: it is there or not. Nothing was there before the call that
    would make it look done."""
    action, name, new = wish["action"], wish["name"], wish["new_name"]
    there = await exists(repository, name)
    done = {
        "create": there,
        "delete": not there,
        "rename": not there and bool(new) and await exists(repository, new),
    }[action]
    if done:
        return Result(f"Done: {action} branch {name} (seen after an interruption).")
    if action == "rename" and not there:
        raise ToolError(
            f"Magy was killed while it renamed {name}, and neither name exists now; `git reflog` "
            "shows its last commit."
        )
    return None


# --- checkout -----------------------------------------------------------------------------------


def _switch(branch: str, create: bool, start_point: str, detach: bool) -> list[str]:
    check_revision(branch)
    if start_point:
        check_revision(start_point)
    if start_point and not create:
        raise ToolError("start_point goes with create=true.")
    if create and detach:
        raise ToolError("create and detach exclude each other.")
    form = "-b" if create else "--detach" if detach else ""
    return ["git", "checkout", *filter(None, (form, branch, start_point))]


def _checkout(repositories: Repositories) -> Tool:
    async def facts(
        ctx: FactContext, branch: str, create: bool, start_point: str, detach: bool
    ) -> Gathered:
        argv = _switch(branch, create, start_point, detach)
        repository = await repositories.look(ctx)
        title = f"Create branch {branch} and switch to it" if create else f"Switch to {branch}"
        if repository.prefix:
            title += f", also outside the workspace in all of {repository.top}"
        return Facts(resources=(command(*argv),), title=title), {}

    async def recover(
        ctx: ToolContext, evidence: Evidence, arguments: Mapping[str, Any]
    ) -> Result | None:
        wish = git_checkout.arguments(arguments)
        return await _recover_checkout(await repositories.look(ctx), **wish)

    @tool(effect="exec", key="bash", kind="execute", facts=facts, recover=recover, seldom=True)
    async def git_checkout(
        ctx: ToolContext,
        branch: Annotated[str, "The branch to switch to; with create, the new branch"],
        create: Annotated[bool, "Create the branch, and switch to it"] = False,
        start_point: Annotated[str, "create: its first commit; empty: HEAD"] = "",
        detach: Annotated[
            bool, "Check out a tag or commit without a branch (detached HEAD)"
        ] = False,
    ) -> Result:
        """Switch to another git branch. Nothing is lost: Magy refuses it if it would overwrite
        uncommitted changes. It does not restore files: that throws work away, so the person is
        asked for bash `git restore FILE`."""
        repository = await repositories.act(ctx)
        return await _checked_out(ctx, repository, branch, create, start_point, detach)

    return git_checkout


async def _checked_out(
    ctx: ToolContext, repository: Repository, branch: str, create: bool, start: str, detach: bool
) -> Result:
    if doing := repository.under_way():
        raise ToolError(f"In the middle of {doing}: conclude or abort it first.")
    status = await repository.status(untracked=False)
    target = await _target(repository, branch, create, start, detach)
    if not create and (branch == status.branch or (detach and not status.branch
                                                   and target == status.oid)):  # fmt: skip
        return Result(f"Already on {status.place}; nothing was done.")
    names: list[bytes] = []
    if target and target != status.oid:
        base = await repository.head_or_nothing()
        names = [change.name for change in await repository.changed(base, target)]
    opened = _open(ctx.editor, repository, names)
    await asyncio.to_thread(_check_unsaved, ctx.editor, repository, opened)
    await wait_for_lock(repository)
    argv = _switch(branch, create, start, detach)
    words = ["checkout", "--no-recurse-submodules", *argv[2:], "--"]
    ran = await repository.git.act(*words, started=ctx.started, emit=ctx.emit)
    now = await repository.status(untracked=False)
    if (now.branch, now.oid) == (status.branch, status.oid):
        raise ToolError(f"Nothing was switched: {failure('git checkout', ran, repository)}")
    parts = [f"Now on {now.place}" + (f" at {now.oid[:10]}." if now.branch and now.oid else ".")]
    if names:
        parts.append(f"Files that changed ({len(names)}): {listed(names)}")
    if opened:
        parts.append(f"Of these, read again those that are open in the editor: {listed(opened)}")
    said = clean(ran.out.decode("utf-8", "replace") + ran.err).strip()
    return Result("\n".join(filter(None, [*parts, said])), parts[0])


async def _target(
    repository: Repository, branch: str, create: bool, start: str, detach: bool
) -> str:
    """Returns the commit that HEAD will name; "" when there is none yet. Raises ToolError."""
    if create:
        await check_new(repository, branch)
        return await repository.commit(start) if start else await repository.head()
    if detach or await exists(repository, branch):
        return await repository.commit(branch if detach else f"refs/heads/{branch}")
    if (await repository.git.look("check-ref-format", f"refs/heads/{branch}")).code != 0:
        await repository.commit(branch)
        raise ToolError(f"{branch} is a commit, not a branch: {_NOT_A_BRANCH}")
    out = await repository.git.get(
        "for-each-ref", "--format=%(refname)%00%(objectname)", f"refs/remotes/*/{branch}"
    )
    remotes = [line.split("\0") for line in out.decode("utf-8", "replace").splitlines()]
    if len(remotes) == 1:  # git makes a branch that follows it
        return remotes[0][1]
    if remotes:
        names = ", ".join(name.removeprefix("refs/remotes/") for name, _ in remotes)
        raise ToolError(f"There are several: {names}. Use create=true with one as start_point.")
    await repository.commit(branch)
    raise ToolError(f"{branch} is a commit or tag, not a branch: {_NOT_A_BRANCH}")


def _open(editor: Editor, repository: Repository, names: Sequence[bytes]) -> list[bytes]:
    inside = (below(repository.root, path) for path in editor.open_paths())
    shown = {os.fsencode(name) for name in inside if name}
    return [name for name in names if name in shown]


def _check_unsaved(editor: Editor, repository: Repository, names: Sequence[bytes]) -> None:
    for name in names:
        path = repository.full(name)
        buffer = editor.buffer(path)
        if buffer is None:
            continue
        label = name.decode("utf-8", "replace")
        try:
            data = disk.read(Place(repository.root, path, label))
            saved = decode(data, label)[0] if data is not None else ""
        except ToolError:
            saved = ""
        if plain(saved) != plain(buffer.text):
            raise ToolError(
                f"Nothing was switched: the text of {label} in the editor differs from the disk, "
                "and the other branch changes that file. The person must first save and "
                "commit the unsaved text, or discard it (or reload the file)."
            )


async def _recover_checkout(
    repository: Repository, branch: str, create: bool, start_point: str, detach: bool
) -> Result | None:
    """HEAD is moved last; who finds it there knows that all of it was done."""
    status = await repository.status(untracked=False)
    if detach:
        done = not status.branch and status.oid == await repository.commit(branch)
    else:
        done = status.branch == branch
    if done:
        return Result(f"Switched to {branch} (seen after an interruption).")
    lock = repository.locked()
    left = f" {lock} still exists; if no git runs, the person may remove it." if lock else ""
    raise ToolError(
        f"Magy was killed while it switched to {branch}. HEAD is still on {status.place}, but "
        f"some files may already be those of {branch}: look with git_status before you "
        f"continue.{left}"
    )
