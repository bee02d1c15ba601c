"""The branch of a worktree is pushed, and a pull request opened for it where that can be done."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from urllib.parse import quote, urlsplit

from magy_server.core.errors import ToolError
from magy_server.core.values import Worktree
from magy_server.dataclass import dataclass
from magy_server.regex import regex
from magy_server.tools.git.program import explain
from magy_server.tools.worktrees.writing import Stays, Writing

_SHORT = regex(r"(?:[^@/]+@)?([^:/]+):(.+)")
"""host:path, as ssh has it."""
_RUNS = (
    r"^(core\.(sshcommand|gitproxy|askpass)|credential\.(.*\.)?helper|remote\..*\.(receivepack|vcs)"
    r"|protocol\..*)$"
)
"""Settings whose values a push runs."""
_PLAIN = ("--no-signed", "--no-follow-tags", "--recurse-submodules=no")
"""This branch and no more, without the program that would sign it."""
_HOOKS = r"^core\.(hookspath|alternaterefscommand)$"


@dataclass(frozen=True, slots=True)
class Forge:
    """Opens pull requests for repositories at `host`: (OWNER/NAME, head, base, title, body) -> the
    address of the new one. Raises ToolError."""

    host: str
    open: Callable[[str, str, str, str, str], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Request:
    """What a pull request says, and who opens it."""

    title: str
    body: str
    forge: Forge


async def open_request(git: Writing, tree: Worktree, request: Request) -> str:
    """Returns what was done, and what is left to a person. Again, it finds what was done. Raises
    Stays: it could not be pushed."""
    remote = await _remote(git, tree.base)
    urls = (await git.get("remote", "get-url", "--push", "--all", "--", remote)).splitlines()
    for url in urls:
        await _check(git, url)
    refs = f"refs/heads/{tree.branch}:refs/heads/{tree.branch}"
    ran = await git.run("push", *_PLAIN, "--", remote, refs, far=True)
    if ran.code != 0:
        raise Stays(f"it could not be pushed to {remote}: {explain(ran.err)}")
    url = urls[0]
    host, path = parts(url)
    pushed = f"Branch {tree.branch} is pushed to {remote}."
    if host != request.forge.host:
        where = f"https://{host}/{path}" if host else url
        return f"{pushed} Open a pull request for {tree.base} yourself, at {where}."
    try:
        opened = await request.forge.open(path, tree.branch, tree.base, request.title, request.body)
    except ToolError as error:
        compare = (
            f"https://{host}/{path}/compare/{quote(tree.base)}...{quote(tree.branch)}?expand=1"
        )
        return f"{pushed} No pull request was opened: {error.message} By hand: {compare}"
    return f"{pushed} Pull request for {tree.base}: {opened}"


async def _remote(git: Writing, base: str) -> str:
    """Where the base branch comes from. Raises Stays."""
    ran = await git.look("config", f"branch.{base}.remote")
    there = (await git.get("remote")).splitlines()
    said = ran.out.decode("utf-8", "replace").strip()
    for name in (said, "origin", *there):
        if name in there:
            return name
    raise Stays("the repository has no remote to push to")


async def _check(git: Writing, url: str) -> None:
    """Raises Stays where the repository itself names a program that a push would run."""
    own = await git.own(_RUNS)
    if "::" in url or own:
        what = own[0] if own else f"the remote {url}"
        raise Stays(
            f"{what} in the repository's configuration names a program that a push runs, and Magy "
            "runs none of a repository unasked; push it yourself"
        )
    place = os.path.join(git.repository.root, url.removeprefix("file://"))
    if parts(url)[0] == "" and await _runs_hooks(git, place):
        raise Stays(f"the remote {url} is on this machine, and its hooks would run; push yourself")


async def _runs_hooks(git: Writing, place: str) -> bool:
    """Whether a push into the repository `place` would run programs that it names."""
    inner = os.path.join(place, ".git")
    own = inner if os.path.isdir(inner) else place
    config = os.path.join(own, "config")
    named = await git.look("config", "--includes", "-f", config, "--get-regexp", _HOOKS)
    return named.code == 0 or await asyncio.to_thread(_has_hooks, os.path.join(own, "hooks"))


def _has_hooks(folder: str) -> bool:
    """Blocks."""
    try:
        found = list(os.scandir(folder))
    except OSError:
        return False
    return any(not one.name.endswith(".sample") and os.access(one, os.X_OK) for one in found)


def parts(url: str) -> tuple[str, str]:
    """Returns host and path (OWNER/NAME) of a remote's address; ("", "") for a local one."""
    if "://" in url:
        split = urlsplit(url)
        host, path = split.hostname or "", split.path
    elif found := _SHORT.fullmatch(url):
        host, path = found[1], found[2]
    else:
        return "", ""
    return host, path.strip("/").removesuffix(".git")
