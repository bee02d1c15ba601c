"""These git tools only look: status, diff, log. They run nothing that a repository names."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from magy_server.core.errors import ToolError
from magy_server.core.tool import FactContext, Gathered, Result, Tool, ToolContext
from magy_server.core.values import Facts
from magy_server.tools.files.pages import Page
from magy_server.tools.files.paths import resource
from magy_server.tools.git import branch_tools as git_branch
from magy_server.tools.git import commit_tool as git_commit
from magy_server.tools.git.names import (
    Entry,
    check_revision,
    command,
    describe,
    listed,
    literal,
    pathspec,
)
from magy_server.tools.git.program import explain
from magy_server.tools.git.repository import DIFF, Repositories, Repository, Status, split_allowed
from magy_server.tools.shell.output import SHOWN, clean
from magy_server.tools.shell.processes import Processes
from magy_server.tools.shipped import tool

FRESH = 10.0
"""Seconds for which an answer may be given again."""
LINES = 1_000
COMMITS = 200
_FORMAT = "commit %H%d%nAuthor: %an <%ae>%nDate:   %ai%n%n%w(0,4,4)%B"

Paths = Annotated[
    tuple[str, ...], "Only these files and directories, relative to the workspace root; no patterns"
]
Offset = Annotated[int, "The first line of the answer to return, counted from 1", Field(ge=1)]


def git_tools(processes: Processes) -> list[Tool]:
    repositories = Repositories(processes)
    return [
        _status(repositories),
        _diff(repositories),
        _log(repositories),
        git_commit.make(repositories),
        *git_branch.make(repositories),
    ]


# --- status -------------------------------------------------------------------------------------


async def _status_facts(ctx: FactContext, **_: Any) -> Gathered:
    return Facts(resources=(command("git", "status"),), title="Git status"), {}


def _status(repositories: Repositories) -> Tool:
    @tool(effect="read", key="git", kind="read", facts=_status_facts, fresh=FRESH, seldom=True)
    async def git_status(ctx: ToolContext, offset: Offset = 1) -> Result:
        """Show the state of the git work tree: the branch, and what is staged, changed, in conflict
        and untracked. It ignores changes inside submodules."""
        repository = await repositories.act(ctx)
        status = await repository.status()
        text = "\n".join(_lines(status, repository.under_way()))
        shown = _user(status)
        return _page(Page([text], offset, LINES), repository.note(), shown, text.encode())

    return git_status


def _lines(status: Status, under_way: str) -> list[str]:
    first = f"On {status.place}" if status.oid else f"No commits yet on {status.place}"
    if status.upstream:
        apart = [f"{n} {word}" for n, word in ((status.ahead, "ahead of"),
                                               (status.behind, "behind")) if n]  # fmt: skip
        first += f", {' and '.join(apart) or 'level with'} {status.upstream}"
    lines = [first]
    if under_way:
        lines.append(f"In the middle of {under_way}, which is not concluded yet.")
    lines += _group("In conflict", status.conflicts, staged=False)
    lines += _group("Staged", status.staged, staged=True)
    lines += _group("Changed, not staged", status.unstaged, staged=False)
    lines += _group("Untracked", status.untracked, staged=False)
    if not status.entries:
        lines.append("Nothing to commit, the work tree is clean.")
    if status.stashes:
        lines.append(f"Stashes: {status.stashes}")
    return lines


def _group(title: str, entries: Sequence[Entry], *, staged: bool) -> list[str]:
    if not entries:
        return []
    return [f"{title} ({len(entries)}):", *(f"  {describe(e, staged=staged)}" for e in entries)]


def _user(status: Status) -> str:
    counts = {
        "in conflict": status.conflicts, "staged": status.staged, "changed": status.unstaged,
        "untracked": status.untracked,
    }  # fmt: skip
    said = ", ".join(f"{len(found)} {word}" for word, found in counts.items() if found)
    return f"{status.place}: {said or 'clean'}"


# --- diff ---------------------------------------------------------------------------------------


async def _diff_facts(
    ctx: FactContext, staged: bool, old: str, new: str, paths: Sequence[str], stat: bool, **_: Any
) -> Gathered:
    for revision in filter(None, (old, new)):
        check_revision(revision)
    if new and not old:
        raise ToolError("new needs old: give both revisions, or only old.")
    if staged and (new or ".." in old):
        raise ToolError("staged compares the index with one revision at most; leave out new.")
    names = [pathspec(ctx.root, path) for path in paths]
    words = ["--cached"] * staged + ["--stat"] * stat + [w for w in (old, new) if w]
    argv = ["git", "diff", *words, *(["--", *names] if names else [])]
    paths = [os.path.normpath(os.path.join(ctx.root, name)) for name in names]
    reads = [resource(ctx.root, path, "read") for path in paths]
    title = f"Diff of {'staged changes' if staged else 'changes'}"
    if old:
        title = f"Diff {old} {new}".rstrip() + (" (staged)" if staged else "")
    if names:
        title += f" in {', '.join(names)}"
    return Facts(resources=(command(*argv), *reads), title=title), {}


def _diff(repositories: Repositories) -> Tool:
    @tool(effect="read", key="git", kind="read", facts=_diff_facts, fresh=FRESH, seldom=True)
    async def git_diff(
        ctx: ToolContext,
        staged: Annotated[bool, "Show what is staged instead of what is not"] = False,
        old: Annotated[
            str, "A revision to compare the work tree (staged: the index) with; also A..B or A...B"
        ] = "",
        new: Annotated[str, "A revision to compare `old` with, instead of the work tree"] = "",
        paths: Paths = (),
        stat: Annotated[bool, "Show only names and counts of lines"] = False,
        offset: Offset = 1,
    ) -> Result:
        """Show the differences between work tree, index and revisions: by default the unstaged
        changes. It leaves out untracked files and files that you may not read, and only names
        binary files."""
        repository = await repositories.act(ctx)
        what = ["--cached"] * staged + await _compared(repository, old, new)
        files = ctx.facts.resources[1:]
        named = [literal(file.relative or ".") for file in files]
        changed = await repository.changed(*what, paths=named)
        judged = frozenset(file.subject for file in files)
        good, bad = await asyncio.to_thread(
            split_allowed, repository, (c.name for c in changed), judged, ctx.may_read
        )
        note = repository.note()
        if bad:
            note = f"\n[left out, because reading them is not allowed: {listed(bad)}]{note}"
        if not good:
            return Result(f"Nothing differs.{note}", "No differences")
        specs = (named or repository.scope or ["."]) + [literal(n, without=True) for n in bad]
        words = ["--stat=120" if stat else "--patch", "--find-renames", *DIFF, *what, "--", *specs]
        count = "1 file differs" if len(good) == 1 else f"{len(good)} files differ"
        return await _shown(repository, words, offset, note, count)

    return git_diff


async def _shown(
    repository: Repository, words: Sequence[str], offset: int, note: str, shown: str
) -> Result:
    async with repository.shown_diff(*words) as spool:
        page = await asyncio.to_thread(lambda: Page(spool.pieces(), offset, LINES))
        whole = await asyncio.to_thread(spool.output.stored)
    if spool.cut:
        note = f"\n[the diff is very long; this is only its beginning: give paths]{note}"
    return _page(page, note, shown, whole)


async def _compared(repository: Repository, old: str, new: str) -> list[str]:
    """The object ids of the commits to compare; nothing but commits, so that no file is reached
    past the check of its name."""
    if not old:
        return []
    if new or ".." not in old:
        return [await repository.commit(revision) for revision in (old, new) if revision]
    dots = "..." if "..." in old else ".."
    one, _, other = old.partition(dots)
    first = await repository.commit(one or "HEAD")
    second = await repository.commit(other or "HEAD")
    if dots == "..":
        return [first, second]
    ran = await repository.git.look("merge-base", first, second)
    if ran.code != 0:
        raise ToolError(f"{one or 'HEAD'} and {other or 'HEAD'} have no common ancestor.")
    return [ran.out.decode().split()[0], second]


# --- log ----------------------------------------------------------------------------------------


async def _log_facts(
    ctx: FactContext, revision: str, count: int, paths: Sequence[str], stat: bool, **_: Any
) -> Gathered:
    if revision:
        check_revision(revision)
    names = [pathspec(ctx.root, path) for path in paths]
    words = [f"-{count}", *["--stat"] * stat, *filter(None, [revision])]
    argv = ["git", "log", *words, *(["--", *names] if names else [])]
    title = f"Log of {revision or 'HEAD'}" + (f" for {', '.join(names)}" if names else "")
    return Facts(resources=(command(*argv),), title=title), {}


def _log(repositories: Repositories) -> Tool:
    @tool(effect="read", key="git", kind="read", facts=_log_facts, fresh=FRESH, seldom=True)
    async def git_log(
        ctx: ToolContext,
        revision: Annotated[str, "The newest commit, or a range A..B; empty: HEAD"] = "",
        count: Annotated[int, "The most commits to show", Field(ge=1, le=COMMITS)] = 20,
        paths: Paths = (),
        stat: Annotated[bool, "Also show the names of changed files, with counts of lines"] = False,
        offset: Annotated[int, "Commits to skip", Field(ge=0)] = 0,
    ) -> Result:
        """Show the history, newest first: for each commit its id, author, date and message."""
        repository = await repositories.act(ctx)
        if not revision and not await repository.head():
            return Result("There are no commits yet.", "No commits")
        named = [literal(pathspec(ctx.root, path)) for path in paths]
        shape = ["--stat=100", "--relative", "--no-ext-diff", "--no-textconv"] if stat else []
        # No message can hold what is chosen only now. (A NUL would do, but %w ends at it.)
        record = f"\x1e{secrets.token_hex(8)}\x1e"
        ran = await repository.git.look(
            "log", f"--format={record}{_FORMAT}", f"--max-count={count + 1}", f"--skip={offset}",
            *shape, "--no-color", "--no-notes", "--no-show-signature", "--decorate=short",
            "--encoding=UTF-8", "--end-of-options", revision or "HEAD", "--",
            *(named or repository.scope),
        )  # fmt: skip
        if ran.code != 0 and not ran.cut:
            raise ToolError(f"git log: {explain(ran.err)}")
        records = ran.out.decode("utf-8", "replace").split(record)[1:]
        return _history(records, count, offset, repository.note())

    return git_log


def _history(records: Sequence[str], count: int, offset: int, note: str) -> Result:
    if not records:
        return Result(f"No commits{' after those skipped' if offset else ' there'}.{note}", "None")
    kept: list[str] = []
    room = SHOWN
    for record in records[:count]:
        text = "\n".join(line.rstrip() for line in clean(record).strip("\n").split("\n"))
        if len(text) > SHOWN // 2:
            text = f"{text[: SHOWN // 2]}\n    [... cut: this one has {len(text):,} characters]"
        if kept and len(text) > room:
            break
        kept.append(text)
        room -= len(text)
    on = ""
    if len(kept) < len(records):
        on = f"\n[there are more; continue with offset={offset + len(kept)}]"
    shown = "1 commit" if len(kept) == 1 else f"{len(kept)} commits"
    return Result("\n\n".join(kept) + on + note, shown)


# --- answers ------------------------------------------------------------------------------------


def _page(page: Page, note: str, shown: str, whole: bytes) -> Result:
    """Returns a page of a text, and the whole beside it when it is longer."""
    page.check("The answer")
    text = "\n".join(page.lines) + page.note + note
    return Result(text, shown, output=whole if page.note else None)
