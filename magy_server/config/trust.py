"""Until a person trusts a workspace root, its own Magy files may only narrow the settings.

Trust is remembered with a hash of those files; when one of them changes, it must be given again.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Protocol

from magy_server.core.errors import NotTrusted
from magy_server.core.settings import Settings
from magy_server.regular_files import beginning

FILES = (
    "magy.toml", ".magy", ".magent", ".mcp.json", ".claude", ".agents", "magent-skills",
)  # fmt: skip
"""What a project can tell Magy with. AGENTS.md is not among them: it is only text for the model,
and is read anyway."""
UNREAD = (
    ".magy/plan", ".magent/plan",
    ".claude/plans", ".claude/projects", ".claude/todos", ".claude/worktrees",
)  # fmt: skip
"""What the plan agent writes, and what Claude Code keeps there for itself and changes as it works.
Nothing there is ever read as a setting."""
REWRITTEN = ".claude/settings.local.json"
"""Claude Code writes each permission that it was given into it; Magy reads only the hooks there."""
MOST = 10_000
"""Files hashed at most; a root with more Magy files than that is never trusted."""
LARGEST = 8 << 20
"""Bytes of one of them, and..."""
ALL = 64 << 20
"""...of all together; the same holds."""


_NEVER = "such a project cannot be trusted"


class Trust(Protocol):
    """What a front door asks about roots."""

    def settings(self, root: str | None) -> Settings: ...

    def trusted(self, root: str) -> bool: ...

    def ignored(self, root: str) -> Sequence[str]: ...

    def problems(self, root: str | None) -> Sequence[str]:
        """What is wrong with settings and agents that were read; each names its file."""

    async def set(self, root: str, trusted: bool) -> None: ...


def files_hash(root: str) -> str:
    """SHA-256 over names and contents of the root's Magy files. Raises NotTrusted for what cannot
    be vouched for: a link, which may show something else tomorrow (but not one to what is vouched
    for itself), what is no regular file (a pipe would be waited for), or too much."""
    digest = hashlib.sha256()
    left = ALL
    paths = sorted(islice(magy_files(root), MOST + 1))
    own = set(paths)
    if len(paths) > MOST:
        raise NotTrusted(f"{root} has more than {MOST} Magy files; {_NEVER}.")
    for path in paths:
        name = os.path.relpath(path, root).encode("utf-8", "surrogateescape")
        digest.update(len(name).to_bytes(4, "big") + name)
        content, size = _content(path, root, own)
        digest.update(content)
        left -= size
        if left < 0:
            raise NotTrusted(f"{root} has more than {ALL >> 20} MB of Magy files; {_NEVER}.")
    return digest.hexdigest()


def magy_files(root: str) -> Iterator[str]:
    """The paths of the root's Magy files, in no order; of links, not what they lead to."""
    for name in FILES:
        path = os.path.join(root, name)
        try:
            mode = os.lstat(path).st_mode
        except (OSError, ValueError):
            continue
        if stat.S_ISDIR(mode):
            yield from _below(path, root)
        else:
            yield path


def magy_folders(root: str) -> Iterator[str]:
    """The folders of the root's Magy files, whether they are there or not, in no order."""
    for name in FILES:
        path = os.path.join(root, name)
        yield path
        if not os.path.islink(path):
            for place, folders, _ in _walk(path, root):
                yield from (os.path.join(place, folder) for folder in folders)


def tells_magy(root: str, path: str) -> bool:
    """Returns whether this canonical path is, or would be, one of the root's Magy files. Some file
    systems make no difference between upper and lower case."""
    name = os.path.relpath(path, root).lower()
    plans = any(name.startswith(f"{one}/") for one in UNREAD)
    return name.split("/")[0] in FILES and not plans


def _below(top: str, root: str) -> Iterator[str]:
    for directory, folders, names in _walk(top, root):
        links = [f for f in folders if os.path.islink(os.path.join(directory, f))]
        found = (os.path.join(directory, name) for name in [*names, *links])
        yield from found


def _walk(top: str, root: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """As `os.walk`, without what is unread."""
    unread = {os.path.join(root, *name.split("/")) for name in UNREAD}
    for directory, folders, names in os.walk(top):
        for found in (folders, names):
            found[:] = [name for name in found if os.path.join(directory, name) not in unread]
        yield directory, folders, names


def _content(path: str, root: str, own: Collection[str]) -> tuple[bytes, int]:
    """A hash of it, and its size in bytes. `own`: the paths of all that are hashed."""
    if os.path.islink(path):
        if _stays(path, root, own):
            return b"link:" + os.fsencode(os.readlink(path)), 0
        raise NotTrusted(
            f"{path} is a symbolic link, so its content can change unnoticed; replace it by a "
            "regular file, then trust the project."
        )
    try:
        data = beginning(path, LARGEST, linked=False)
    except OSError as error:
        return f"unreadable:{error.errno}".encode(), 0
    if data is None:
        raise NotTrusted(f"{path} is not a regular file; remove it, then trust the project.")
    if len(data) > LARGEST:
        raise NotTrusted(f"{path} is larger than {LARGEST >> 20} MB; {_NEVER}.")
    return hashlib.sha256(_counted(path, data)).digest(), len(data)


def _counted(path: str, data: bytes) -> bytes:
    """What of a file counts."""
    if not path.endswith(f"{os.sep}{REWRITTEN}"):
        return data
    try:
        return json.dumps(json.loads(data).get("hooks")).encode()
    except (ValueError, RecursionError, AttributeError):
        return data


def _stays(link: str, root: str, own: Collection[str]) -> bool:
    """Whether a link leads to what is hashed itself: a file, or a directory with some and nothing
    that is not."""
    inside = os.path.relpath(os.path.realpath(link), os.path.realpath(root))
    below = inside + os.sep
    if any(name.startswith(below) for name in UNREAD):
        return False
    there = os.path.join(root, inside)
    return there in own or any(path.startswith(there + os.sep) for path in own)
