"""This module tells what of the file system a sandboxed program may write, read, and not see.

Nothing here trusts the workspace: what a program may have written there yesterday (a `.git` that
leads elsewhere, a link in the place of a directory) makes nothing else writable or seen today. So
no link is followed where a program could have put one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Literal

from magy_server.dataclass import dataclass
from magy_server.sandbox import World

Kind = Literal["hidden", "write", "read", "empty"]
"""hidden: an empty directory in its place; empty: an empty file. In this order at one path."""
_ORDER: Sequence[Kind] = ("hidden", "write", "read", "empty")

PROTECTED = (
    ".vscode", ".idea", ".bashrc", ".bash_profile", ".bash_login", ".profile", ".zshrc", ".zshenv",
    ".zprofile", ".zlogin", ".zlogout", ".bash_logout", ".gitconfig", ".dir-locals.el",
    ".dir-locals-2.el", ".exrc", ".nvimrc", ".nvim.lua",
)  # fmt: skip
"""What editors and shells run, besides Magy's own files: never written, where it is in a root."""
SECRET = (
    # keys, and what lets into accounts
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".oci", ".docker/config.json", ".config/gcloud",
    ".config/gh", ".config/glab-cli", ".config/hub", ".config/doctl", ".config/rclone",
    ".config/op", ".config/sops", ".config/git/credentials", ".git-credentials", ".netrc",
    ".pgpass", ".my.cnf", ".pypirc", ".cargo/credentials", ".cargo/credentials.toml",
    ".gem/credentials", ".terraform.d/credentials.tfrc.json", ".vault-token", ".password-store",
    ".local/share/keyrings", ".local/share/kwalletd", ".config/Bitwarden", ".config/KeePass",
    # people
    ".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".config/vivaldi",
    ".config/BraveSoftware", ".config/microsoft-edge", ".config/opera", "snap/firefox/common",
    ".var/app", ".bash_history", ".zsh_history", ".python_history", ".psql_history",
    ".node_repl_history", ".local/share/fish",
    # programs outside that would run what they are told
    ".Xauthority", ".ICEauthority", ".docker/run", ".docker/desktop", ".colima", ".orbstack",
    ".screen", ".emacs.d/server", ".config/emacs/server", ".local/share/jupyter/runtime",
)  # fmt: skip
"""Below the home directory: hidden."""
SEEN = (".ssh/known_hosts", ".ssh/config")
"""Of these, what is needed to reach a server by a key that an agent holds."""
_RUN = (
    "systemd/resolve", "resolvconf", "NetworkManager/resolv.conf",
    "NetworkManager/no-stub-resolv.conf", "current-system", "booted-system", "wrappers",
    "opengl-driver", "opengl-driver-32",
)  # fmt: skip
"""Of /run, where sockets of services are, only this is left: names of servers, and programs."""
_GIT_FILES = ("config", "config.worktree", "hooks", "commondir")
_HOOKS = re.compile(rb"^\s*hookspath\s*=\s*\"?([^\"\n#;]+)", re.IGNORECASE | re.MULTILINE)
_LARGEST = 1 << 20
MOST = 64
"""Submodules and work trees of one repository; where there are more, their git directories are
read-only altogether."""
_LOOKED = 1_000
"""Directories that are looked at for them."""


@dataclass(frozen=True, slots=True)
class Mount:
    """`source`: what is there instead of the path itself."""

    kind: Kind
    path: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Wish:
    """What the settings ask for, as absolute paths. `agent`: the socket of an ssh agent."""

    root: str
    writable: Sequence[str] = ()
    hidden: Sequence[str] = ()
    shown: Sequence[str] = ()
    agent: str = ""
    confined: bool = False
    """It writes in the root alone: not in `writable`, nor in a repository around it."""


def absolute(path: str, home: str) -> str:
    """`~/x` and `/x` as an absolute path; "" for anything else."""
    if path == "~" or path.startswith("~/"):
        path = home + path[1:]
    return os.path.normpath(path) if os.path.isabs(path) else ""


def mounts(world: World, wish: Wish, temporary: str) -> list[Mount]:
    """In the order in which they cover each other. Below `temporary` are two directories, `tmp` and
    `var-tmp`, that the program gets for temporary ones."""
    found = [*_temporary(temporary), *_hidden(world, wish), *_written(world, wish)]
    roots = [wish.root, *_more(world, wish)]
    found += [Mount("read", path) for path in _there(world.read_only) if _in_any(path, roots)]
    for root in roots:
        names = (*world.protected, *PROTECTED)
        found += [Mount("read", path) for path in _plain(os.path.join(root, n) for n in names)]
    found += [_closed(path) for path in _there(world.private)]
    return _sorted([*found, *_held(found, roots)])


def isolated(world: World, wish: Wish, temporary: str) -> list[Mount]:
    """Nothing is written but the temporary directory."""
    private = [_closed(path) for path in _there(world.private)]
    root = [] if wish.root == "/" else [Mount("read", wish.root)]
    return _sorted([*_temporary(temporary), *_hidden(world, wish), *root, *private])


def _held(found: Sequence[Mount], roots: Sequence[str]) -> Iterator[Mount]:
    """The directories that lead to what is protected or hidden in a root, each mounted on itself:
    they cannot be moved away, and others put in their place."""
    closed = [mount.path for mount in found if mount.kind == "hidden"]
    for mount in found:
        root = next((root for root in roots if _in_any(mount.path, [root])), "")
        at = os.path.dirname(mount.path)
        while root and mount.path != root and at != root:
            if not _in_any(at, closed):
                yield Mount("write", at)
            at = os.path.dirname(at)


def _sorted(found: Iterable[Mount]) -> list[Mount]:
    """What is deeper comes later, and so covers."""
    once = {(mount.path, mount.kind): mount for mount in found}.values()
    return sorted(once, key=lambda m: (m.path.rstrip("/").count("/"), _ORDER.index(m.kind), m.path))


def _temporary(temporary: str) -> Iterator[Mount]:
    yield Mount("write", "/tmp", os.path.join(temporary, "tmp"))
    if os.path.isdir("/var/tmp"):
        yield Mount("write", os.path.realpath("/var/tmp"), os.path.join(temporary, "var-tmp"))


def _hidden(world: World, wish: Wish) -> Iterator[Mount]:
    if os.path.isdir("/run"):
        yield Mount("hidden", "/run")
        yield from (Mount("read", path) for path in _there(f"/run/{name}" for name in _RUN))
    secret = [os.path.join(world.home, name) for name in SECRET]
    asked = [*wish.shown, wish.agent, *(os.path.join(world.home, name) for name in SEEN)]
    roots = [wish.root, *wish.writable]
    seen = _there(path for path in asked if not _in_any(path, roots))
    shown = [path for path in seen if not _in_any(path, _there(world.private))]
    for path in _there([*secret, *wish.hidden]):
        if path not in shown:
            yield _closed(path)
    yield from (Mount("read", path) for path in shown)


def _closed(path: str) -> Mount:
    return Mount("hidden" if os.path.isdir(path) else "empty", path)


def _there(paths: Iterable[str]) -> list[str]:
    """The canonical paths of those that exist."""
    there = (path for path in paths if path and os.path.exists(path))
    return list(dict.fromkeys(map(os.path.realpath, there)))


def _plain(paths: Iterable[str]) -> list[str]:
    """Those that exist, and are what they are called: no link leads to them."""
    there = dict.fromkeys(path for path in paths if os.path.exists(path))
    return [path for path in there if os.path.realpath(path) == path]


def _in_any(path: str, roots: Iterable[str]) -> bool:
    return any(path == root or path.startswith(root.rstrip("/") + "/") for root in roots)


# --- what is written ----------------------------------------------------------------------------


def _more(world: World, wish: Wish) -> list[str]:
    """What is written besides the root. What lies in another such directory is so anyway, and could
    have been replaced there."""
    found: list[str] = []
    known = [wish.root]
    for path in () if wish.confined else sorted(wish.writable):
        for real in _there([path]):
            if not _in_any(path, known) and not _in_any(real, _there(world.private)):
                known += [path, real]
                found.append(real)
    return found


def _written(world: World, wish: Wish) -> Iterator[Mount]:
    yield from (Mount("write", path) for path in (wish.root, *_more(world, wish)))
    for directory in git_directories(wish.root):
        if wish.confined and not _in_any(directory, [wish.root]):
            continue
        # A directory of its own: it cannot be moved away, and another one put in its place.
        yield Mount("write", directory)
        yield from _kept_of_git(directory, wish.root)
    link = os.path.join(wish.root, ".git")
    if os.path.isfile(link) and not os.path.islink(link):
        yield Mount("read", link)


def absent(root: str) -> list[str]:
    """What no mount can keep a program from making, since it is not there, and must be removed if
    it does: files in a repository that make git follow another configuration."""
    found = [
        os.path.join(one, name)
        for directory in git_directories(root)
        for one in (directory, *_inner(directory))
        for name in ("commondir", "config.worktree")
    ]
    return [path for path in found if not os.path.lexists(path)]


def _kept_of_git(directory: str, root: str) -> Iterator[Mount]:
    inside = [directory, *_inner(directory)]
    if len(inside) > MOST:
        yield from (Mount("read", path) for path in _plain(_folders(directory)))
        inside = [directory]
    for one in inside:
        hooks = os.path.join(one, "hooks")
        if not os.path.lexists(hooks) and os.path.isfile(os.path.join(one, "config")):
            with suppress(OSError):
                os.mkdir(hooks)  # so that nobody else makes it
    for path in _plain(os.path.join(one, name) for one in inside for name in _GIT_FILES):
        yield Mount("read", path)
    for path in _hooks_path(directory, root):
        yield Mount("read", path)


def _folders(directory: str) -> list[str]:
    return [os.path.join(directory, name) for name in ("modules", "worktrees")]


def _inner(directory: str) -> list[str]:
    """The git directories of submodules, of theirs, and of other work trees: `MOST` of them, and
    one more where there are more. The name of a submodule may have slashes in it."""
    found: list[str] = []
    waiting = _folders(directory)
    for looked in range(_LOOKED + 1):
        if not waiting or len(found) > MOST:
            return found[: MOST + 1]
        if looked == _LOOKED:
            return [directory] * (MOST + 1)
        at = waiting.pop()
        if os.path.islink(at):
            continue
        if os.path.lexists(os.path.join(at, "HEAD")):
            found.append(at)
            waiting += _folders(at)
            continue
        with suppress(OSError), os.scandir(at) as entries:
            waiting += [one.path for one in entries if one.is_dir(follow_symlinks=False)]
    return found


def _hooks_path(directory: str, root: str) -> list[str]:
    """`core.hooksPath`, where that lies in the workspace (`.husky`)."""
    named = _HOOKS.findall(_beginning(os.path.join(directory, "config")))
    paths = [os.path.normpath(os.path.join(root, os.fsdecode(n.strip()))) for n in named]
    return [path for path in _plain(paths) if _in_any(path, [root]) and path != root]


def git_directories(root: str) -> list[str]:
    """The canonical paths of what git writes to for this work tree: of the repository that holds
    `root`, and, for one of several work trees, of that one. [] where there is none, or where what
    says so could have been put there by who only writes in the root."""
    at = root
    while not os.path.lexists(os.path.join(at, ".git")):
        at, below = os.path.dirname(at), at
        if at == below:
            return []
    git = os.path.join(at, ".git")
    if os.path.islink(git):
        return []
    if os.path.isdir(git):
        whole = all(os.path.exists(os.path.join(git, name)) for name in ("HEAD", "objects", "refs"))
        return [git] if whole and not os.path.lexists(os.path.join(git, "commondir")) else []
    told = _beginning(git)
    if not told.startswith(b"gitdir:"):
        return []
    own = os.path.realpath(os.path.join(at, os.fsdecode(told[7:].strip())))
    common = os.path.dirname(os.path.dirname(own))
    back = _beginning(os.path.join(own, "gitdir")).strip()
    if os.path.basename(os.path.dirname(own)) != "worktrees" or os.fsdecode(back) != git:
        return []
    if not _in_any(own, [root]) and os.path.isfile(os.path.join(common, "config")):
        return [common]
    return []


def _beginning(path: str) -> bytes:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            return file.read(_LARGEST)
    except OSError:
        return b""
