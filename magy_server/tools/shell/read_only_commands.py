"""This module tells whether a whole command line surely changes no file: its programs only read,
and are used as such.

It saves the look for changed files, and the facts by which a command is judged say so: a program
that is added here changes what is asked. Whatever does not surely only read counts as more.
"""

from __future__ import annotations

from collections.abc import Sequence

from magy_server.core.shell.nested_commands import besides
from magy_server.core.shell.wrappers import names
from magy_server.core.values import Facts, Resource

_READERS = names(
    """[ basename cat cd cmp cut date diff dirname du echo egrep false fgrep find grep head jq ls nl
    printf pwd readlink realpath sed sleep stat tail test tr true type uname wc which whoami"""
)
"""What `find` and `sed` can change or run makes a command opaque."""
_GIT = names("blame describe diff log ls-files rev-list rev-parse show status")
_MAY_WRITE = names("sort uniq tree file")
"""Only with options or operands that count as more than looking."""


def only_reads(facts: Facts) -> bool:
    """Whether nothing that this command line does changes a file; `facts` are those of `bash`."""
    return all(map(_only_reads, facts.resources)) and bool(facts.resources)


def _only_reads(resource: Resource) -> bool:
    if resource.kind != "exec":
        return resource.kind == "read"
    return not resource.opaque and reads(resource.argv)


def reads(argv: Sequence[str]) -> bool:
    """The same of one command that is understood."""
    match argv:
        case ("git", word, *_):
            return word in _GIT
        case (program, *_) if program in _MAY_WRITE:
            return not may_write(argv)
        case (program, *_):
            return program in _READERS
    return False


def may_write(argv: Sequence[str]) -> bool:
    """Whether a program that looks was told to write, as `sort -o`."""
    return argv[0] in _MAY_WRITE and bool(besides(argv))
