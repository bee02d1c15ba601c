"""Command lines that change no file, by what they are: programs that only read, used as such.

Not for permission, which has rules of its own (`core.permit`): it saves the look for changed files.
Whatever does not surely only read counts as more.
"""

from __future__ import annotations

from collections.abc import Sequence

from magy_server.core.events import Facts, Resource

_READERS = frozenset(
    {"[", "basename", "cat", "cd", "cmp", "cut", "date", "diff", "dirname", "du", "echo", "false"}
    | {"find", "grep", "head", "ls", "nl", "printf", "pwd", "readlink", "realpath", "sed", "sleep"}
    | {"stat", "tail", "test", "tr", "true", "type", "wc", "which"}
)
"""What `find` and `sed` can change or run makes a command opaque."""
_GIT = frozenset(
    {"blame", "describe", "diff", "log", "ls-files", "rev-list", "rev-parse", "show", "status"}
)
_SORTS = frozenset({"-n", "-r", "-rn", "-nr", "-u", "-c"})
"""Of `sort` and `uniq`, which can write: switches with which they do not."""


def only_reads(facts: Facts) -> bool:
    """Whether nothing that this command line does changes a file; `facts` are those of `bash`."""
    return all(map(_only_reads, facts.resources)) and bool(facts.resources)


def _only_reads(resource: Resource) -> bool:
    if resource.kind != "exec":
        return resource.kind == "read"
    return not resource.opaque and _reads(resource.argv)


def _reads(argv: Sequence[str]) -> bool:
    match argv:
        case ("git", word, *_):
            return word in _GIT
        case ("sort" | "uniq", *switches):
            return _SORTS.issuperset(switches)
        case (program, *_):
            return program in _READERS
    return False
