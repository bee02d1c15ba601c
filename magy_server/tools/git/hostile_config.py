"""A git repository can harm whoever only looks at it: its own configuration names programs, and it
may stand for another repository. This module finds both.

A clone brings no configuration along; an unpacked archive with a `.git` in it does. Then a plain
`git diff` or `git status` runs filters, drivers and hooks that a stranger chose. The git tools
switch these off (`program.py`). A command line cannot: the person's filters are meant to run in
it. So what would run there is a fact for the judge. Here git itself is asked, in ways that run
nothing.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping

from magy_server.dataclass import dataclass
from magy_server.regex import regex
from magy_server.tools.files import disk
from magy_server.tools.files.paths import below
from magy_server.tools.search.endless_files import endless

SECONDS = 5.0
"""For one question to git."""
MODULES = 50
"""Repositories inside one that are looked into."""
SMALL = 1 << 16
"""Bytes."""
_RUNS = regex(
    r"filter\.(?:.*\.)?(?:clean|smudge|process)|diff\.external|diff\..*\.(?:command|textconv)"
    r"|merge\..*\.driver|trailer\..*\.(?:command|cmd)|core\.alternaterefscommand|gpg\.(?:.*\.)?program|gpg\.ssh\.defaultkeycommand"
    r"|(?:man|browser)\..*\.(?:cmd|path)",
    re.DOTALL,
)
"""Keys whose values are run by commands that look. Pagers and editors are not: there is no
terminal; nor is core.fsmonitor: the environment switches it off, in submodules too."""
_FETCHES = regex(
    r"core\.(?:sshcommand|gitproxy|askpass)|remote\..*\.(?:uploadpack|vcs)|protocol\..*"
    r"|credential\.(?:.*\.)?helper",
    re.DOTALL,
)
"""...and those of what is missing in a partial clone, which looking fetches."""
_SIGNED = regex(
    r"log\.showsignature=(?!false|no|off|0).*|(?:format\.pretty|pretty\..*?)=.*%G.*", re.S
)
"""`key=value` by which a log has gpg look at signatures, and maybe ask a key server."""
_PARTIAL = regex(r"extensions\.partialclone|remote\..*\.promisor", re.DOTALL)
_INCLUDES = regex(r"include(?:if\..*)?\.path", re.DOTALL)
"""Keys that name a further file of configuration."""


@dataclass(frozen=True, slots=True)
class Named:
    """`what` is a configuration key, a hook or a directory; `value` what is run or read, or ""."""

    what: str
    value: str


def named(root: str, cwd: str, env: Mapping[str, str]) -> list[Named]:
    """What a git command in the directory `cwd` may run, or show, because the repository there
    says so; [] for none, and where there is no repository. Configuration that lies in the workspace
    `root` counts, whatever it says now: who may edit there may change it before the command runs.
    `env` is the environment that the command will have. Blocks."""
    return _Look(root, env).at(cwd) if _program(env) else []


class Unclear(Exception):
    """Git did not answer, or not in a way that Magy can read."""


def ask(env: Mapping[str, str], cwd: str, *words: str) -> bytes | None:
    """What git shows to `words` in `cwd`; None: it says no. Raises Unclear. Blocks."""
    program = _program(env)
    if program is None:
        raise Unclear("git is not installed")
    if (path := endless(cwd)) is not None:
        raise Unclear(f"{path} never ends")
    try:
        run = subprocess.run(
            [program, "-C", cwd, *words], env=dict(env), stdin=subprocess.DEVNULL,
            capture_output=True, timeout=SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Unclear("git does not answer in time") from None
    return run.stdout if run.returncode == 0 else None


def settings(env: Mapping[str, str], cwd: str, *options: str) -> Iterator[tuple[str, str, str]]:
    """(scope, key, value) of what git is told in `cwd`, when it is given `options` before its
    subcommand. A later one takes the place of an earlier one. Raises Unclear."""
    out = ask(env, cwd, *options, "config", "--list", "--show-scope", "-z")
    if out is None:
        raise Unclear("its configuration cannot be read")
    fields = [os.fsdecode(field) for field in out.split(b"\0")[:-1]]
    for scope, line in zip(fields[::2], fields[1::2], strict=True):
        key, _, value = line.partition("\n")
        yield scope, key, value


def _program(env: Mapping[str, str]) -> str | None:
    import shutil

    found = shutil.which("git", path=env.get("PATH"))
    return found if found and os.path.isabs(found) else None


class _Look:
    def __init__(self, root: str, env: Mapping[str, str]) -> None:
        self._root = root
        self._env = env
        self._modules = MODULES

    def at(self, cwd: str) -> list[Named]:
        try:
            return [*self._configured(cwd), *self._around(cwd)]
        except (Unclear, OSError) as error:
            return [Named(f"the repository at {cwd}", str(error))]

    def _configured(self, cwd: str) -> Iterator[Named]:
        told = settings(self._env, cwd)
        own = [(key, value) for scope, key, value in told if scope in ("local", "worktree")]
        partial = any(_PARTIAL.fullmatch(key) for key, _ in own)
        for key, value in own:
            if (
                _RUNS.fullmatch(key)
                or _SIGNED.fullmatch(f"{key}={value}")
                or (partial and (_FETCHES.fullmatch(key) or "::" in key + value))
                or (_INCLUDES.fullmatch(key) and self._editable(cwd, value))
            ):
                yield Named(key, value)

    def _editable(self, cwd: str, included: str) -> bool:
        """Whether a file that the repository's configuration includes lies in the workspace, and
        not in a `.git`, which rules keep."""
        name = included
        if name.startswith("~/"):
            name = self._env.get("HOME", "") + name[1:]
        for base in self._paths(cwd, "--absolute-git-dir", "--git-common-dir"):
            inside = below(self._root, os.path.realpath(os.path.join(base, name)))
            if inside is not None and ".git" not in inside.split("/"):
                return True
        return False

    def _around(self, cwd: str) -> Iterator[Named]:
        places = self._paths(
            cwd, "--absolute-git-dir", "--git-common-dir", "--git-path", "hooks/post-index-change"
        )
        if not places:
            return
        directory, common, hook = places
        if os.access(hook, os.X_OK):
            yield Named("hook", hook)
        for top in self._paths(cwd, "--show-toplevel"):
            if below(os.path.realpath(top), os.path.realpath(cwd)) is None:
                yield Named("core.worktree", top)
                return
            if elsewhere := foreign(top, directory, common):
                yield Named("repository", elsewhere)
            yield from self._inside(top)

    def _paths(self, cwd: str, *what: str) -> list[str]:
        """[] when there is no such thing here."""
        out = ask(self._env, cwd, "rev-parse", *what)
        if out is None:
            return []
        paths = [os.path.join(cwd, line) for line in os.fsdecode(out).splitlines()]
        if len(paths) != len(what) - ("--git-path" in what):
            raise Unclear("its path has a line break in it")
        return paths

    def _inside(self, top: str) -> Iterator[Named]:
        """The same of the repositories that are entries of this one's index: git looks there too,
        by their own configuration."""
        out = ask(self._env, top, "ls-files", "--stage", "-z")
        if out is None:
            raise Unclear("its index cannot be read")
        for record in re.findall(rb"(?:\A|\0)160000 [^\t\0]*\t([^\0]*)", out):
            path = os.path.join(top, os.fsdecode(record))
            if not os.path.lexists(os.path.join(path, ".git")):
                continue
            self._modules -= 1
            if self._modules < 0:
                raise Unclear(f"more than {MODULES} repositories are in it")
            yield from self.at(path)


def foreign(top: str, directory: str, common: str) -> str:
    """The git directory of a work tree `top` when that is another's: one outside of it that does
    not lead back to it, as those of linked work trees and submodules do. "" when it is its own.
    `common` is where its objects are."""
    top, directory, common = map(os.path.realpath, (top, directory, common))
    if below(top, directory) is not None and below(top, common) is not None:
        return ""
    if common in (directory, _main(directory)) and _leads_back(top, directory):
        return ""
    return directory if below(top, directory) is None else common


def _main(directory: str) -> str:
    """Returns the main git directory of a linked work tree's git directory,
    `MAIN/worktrees/NAME`."""
    folder = os.path.dirname(directory)
    return os.path.dirname(folder) if os.path.basename(folder) == "worktrees" else directory


def _leads_back(top: str, directory: str) -> bool:
    linked = _text(os.path.join(directory, "gitdir")).partition("\n")[0].strip()
    if linked:
        return os.path.realpath(os.path.join(directory, linked)) == os.path.join(top, ".git")
    config = os.path.join(directory, "config")
    found = re.findall(r'^\s*worktree\s*=\s*"?([^"\n]+?)"?\s*$', _text(config), re.I | re.M)
    return any(os.path.realpath(os.path.join(directory, one)) == top for one in found)


def _text(path: str) -> str:
    return os.fsdecode(beginning(path))


def beginning(path: str) -> bytes:
    """Returns the content of a small file; b"" for what is not a file, or cannot be read."""
    try:
        return disk.beginning(path, SMALL)
    except (OSError, ValueError):
        return b""
