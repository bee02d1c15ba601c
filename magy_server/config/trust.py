"""Until a person trusts a workspace root, its own Magy files may only narrow the settings.

Trust is remembered with a hash of those files; when one of them changes, it must be given again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Protocol

from magy_server.config.hooks import PROJECT
from magy_server.config.regular_files import beginning
from magy_server.core.errors import NotTrusted
from magy_server.core.settings import Settings

FILES = ("magy.toml", ".magy", ".magent", *PROJECT)
"""What a project can tell Magy with. AGENTS.md is not among them: it is only text for the model,
and is read anyway."""
PLANS = (".magy/plan", ".magent/plan")
"""Where the plan agent writes; nothing there is ever read as a setting."""
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
    be vouched for: a link, which may show something else tomorrow, what is no regular file (a pipe
    would be waited for), or too much."""
    digest = hashlib.sha256()
    left = ALL
    paths = sorted(islice(magy_files(root), MOST + 1))
    if len(paths) > MOST:
        raise NotTrusted(f"{root} has more than {MOST} Magy files; {_NEVER}.")
    for path in paths:
        name = os.path.relpath(path, root).encode("utf-8", "surrogateescape")
        digest.update(len(name).to_bytes(4, "big") + name)
        content, size = _content(path)
        digest.update(content)
        left -= size
        if left < 0:
            raise NotTrusted(f"{root} has more than {ALL >> 20} MB of Magy files; {_NEVER}.")
    return digest.hexdigest()


def magy_files(root: str) -> Iterator[str]:
    """The paths of the root's Magy files, in no order; of links, not what they lead to."""
    plans = {os.path.join(root, plan) for plan in PLANS}
    for name in FILES:
        path = os.path.join(root, name)
        if os.path.isdir(path) and not os.path.islink(path):
            for directory, folders, names in os.walk(path):
                folders[:] = [f for f in folders if os.path.join(directory, f) not in plans]
                links = [f for f in folders if os.path.islink(os.path.join(directory, f))]
                yield from (os.path.join(directory, name) for name in [*names, *links])
        elif os.path.lexists(path):
            yield path


def _content(path: str) -> tuple[bytes, int]:
    """A hash of it, and its size in bytes."""
    if os.path.islink(path):
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
    return hashlib.sha256(data).digest(), len(data)
