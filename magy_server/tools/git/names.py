"""This module checks the names that models give, writes them as git takes them, and shows git's
names to people."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from magy_server.core.errors import ToolError
from magy_server.core.values import Resource
from magy_server.dataclass import dataclass
from magy_server.tools.files.paths import below, canonical

AT_ONCE = 100
"""Names in one command line."""
NAMES = 50
"""Names that are listed in a sentence."""
_CONFLICTS = {
    "DD": "both deleted", "AU": "added by us", "UD": "deleted by them", "UA": "added by them",
    "DU": "deleted by us", "AA": "both added", "UU": "both modified",
}  # fmt: skip
_CHANGES = {
    "M": "modified", "T": "type changed", "A": "new file", "D": "deleted", "R": "renamed",
    "C": "copied",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of `git status`. `index` and `tree` are git's letters (`.`: same); both are `?` for a
    file that git does not know. `conflict` is empty but for unmerged files."""

    name: bytes
    index: str
    tree: str
    old: bytes = b""
    conflict: str = ""


def chunks(names: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Gives the names in groups that fit into one command line."""
    for at in range(0, len(names), AT_ONCE):
        yield names[at : at + AT_ONCE]


def command(*argv: str) -> Resource:
    """Returns what a call amounts to, for the rules about commands."""
    from magy_server.core.shell.simple_commands import quote

    return Resource(kind="exec", subject=" ".join(map(quote, argv)), argv=argv)


def check_revision(revision: str) -> None:
    """Raises ToolError for what is no revision, or would be taken for an option."""
    if not revision or revision.startswith("-") or not revision.isprintable():
        raise ToolError(
            f"{revision!a} is not a revision: give a branch, a tag, a commit id, HEAD~2 and the "
            "like."
        )


def pathspec(root: str, path: str) -> str:
    """A path as the model names it -> below the root, links followed but for its last part (git
    keeps links as such). Raises ToolError for one outside the workspace."""
    canonical(root, path)  # refuses what cannot be meant
    whole = os.path.normpath(os.path.join(root, path))
    folder = os.path.realpath(os.path.dirname(whole))
    name = "." if whole == root else below(root, os.path.join(folder, os.path.basename(whole)))
    if name is None:
        raise ToolError(f"outside the workspace: {path}. The git tools stay below {root}.")
    return name


def literal(name: str | bytes, *, without: bool = False) -> str:
    """Returns a pathspec for exactly this file or directory below the root, or for all but it."""
    text = os.fsdecode(name)
    return f":({'exclude,' if without else ''}literal){text}"


def shown(name: bytes) -> str:
    """Returns a name on one line: in quotes, with escapes, if it is not plain."""
    text = name.decode("utf-8", "backslashreplace")
    if text.isprintable() and not text.startswith((" ", '"')) and not text.endswith(" "):
        return text
    inner = "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode()
        for c in text.replace('"', '\\"')
    )
    return f'"{inner}"'


def listed(names: Sequence[bytes], most: int = NAMES) -> str:
    text = ", ".join(map(shown, names[:most]))
    return f"{text} and {len(names) - most} more" if len(names) > most else text


def describe(entry: Entry, *, staged: bool) -> str:
    if entry.conflict:
        return f"{_CONFLICTS.get(entry.conflict, 'conflict')}: {shown(entry.name)}"
    if entry.index == "?":
        return shown(entry.name)
    letter = entry.index if staged else entry.tree
    name = shown(entry.name)
    if entry.old and letter in "RC":
        name = f"{shown(entry.old)} -> {name}"
    return f"{_CHANGES.get(letter, 'changed')}: {name}"
