"""This module tells whether a program that Magy does not know is given a command that a rule denies
or asks about, as `runner -n 5 git push` may. No list of the programs that run others is ever whole;
this is for those that are missing. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from magy_server.core.shell.deny_patterns import is_about
from magy_server.core.shell.globs import ANY_WORDS, ONLY_NAMES
from magy_server.core.shell.nested_commands import is_wrapper, program
from magy_server.core.shell.simple_commands import parse
from magy_server.core.shell.wrappers import names

_LOOK = (
    ONLY_NAMES
    | ANY_WORDS
    | names(
        """cd chmod chown chgrp cp date dd df diff egrep fgrep file find free git grep groups
        gunzip gzip hostname id join jq kill ln md5 mkdir mkfifo mv paste ps comm column fold od
        hexdump xxd rg rm rmdir sed seq sleep sort strings tee touch tree truncate uniq unlink
        unzip uptime wc bzip2 xz zstd"""
    )
)
"""The arguments of these programs are never commands, or Magy knows which of them are."""
_BUILDERS = names(
    """brew apt apt-get dnf yum pacman apk port npm pnpm yarn pip uv poetry conda cargo go gradle
    gradlew mvn make cmake ninja bazel composer gem bundle mix dotnet swift rsync wget curl zip
    docker podman docker-compose kubectl helm terraform tofu aws gcloud az gh glab systemctl
    service python node ruby perl php java eslint prettier ruff black mypy pytest tox tsc jest
    vitest gcc g++ clang rustc rustfmt gofmt"""
)
"""Their subcommands have the names of other programs (`docker rm`); their options may name some."""
_ENTER = names("docker podman docker-compose nerdctl kubectl oc")
_WITHIN = names("exec run")
"""Of the builders, these run a command elsewhere with these subcommands, perhaps on the same
files."""
_WORDS = 64
"""The most words of a command that Magy looks at: a program learns near its beginning what to
run."""
_LINE = 2_000
"""The most characters of a word that may be a command line."""


def may_run(pattern: str, argv: Sequence[str]) -> bool:
    """Returns whether the command `argv` may run one that `pattern` is about."""
    name = pattern.partition(" ")[0]
    if "*" in name or not argv or program(argv[0]) in _LOOK or is_wrapper(program(argv[0])):
        return False
    known = program(name)
    return any(
        program(inner[0]) == known and is_about(pattern, inner) for inner in _given(tuple(argv))
    )


@lru_cache(maxsize=16)
def _given(argv: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    return tuple(_commands(argv))


def _commands(argv: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    name = program(argv[0])
    builds = name in _BUILDERS and not (name in _ENTER and _WITHIN.intersection(argv))
    for at, word in enumerate(argv[1 : _WORDS + 1], 1):
        _, equals, value = word.partition("=")
        if word and (not builds or argv[at - 1].startswith("-")):
            yield argv[at:]
        if equals and value:
            yield (value, *argv[at + 1 :])
        for line in {word, value if equals else word}:
            if any(blank in line for blank in " \t\n;|&") and len(line) <= _LINE:
                yield from (part.argv for part in parse(line) if part.argv)
