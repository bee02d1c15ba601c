"""A subcommand of git may be an alias; this module tells what it stands for.

An alias may be told by any file of git's configuration, by what that includes, by `-c` and by the
environment; so git itself is asked, in the directory and with the options of the command.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence

from magy_server.core.shell.git_arguments import USUAL, split, subcommand
from magy_server.core.shell.simple_commands import quote
from magy_server.dataclass import dataclass
from magy_server.tools.git.hostile_config import Unclear, ask, settings

MOST = 32
"""Aliases in one line, those in their lines counted too."""
_HARMFUL = ("-p", "--paginate", "--exec-path")
"""Options that are not handed on when git is asked."""


@dataclass(frozen=True, slots=True)
class Alias:
    """`line` is the command line that runs instead, in the directory `cwd`."""

    name: str
    line: str
    cwd: str


class Aliases:
    """What was found out for one line is not asked again for it: a line may have many commands."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._told: dict[tuple[str, tuple[str, ...]], Mapping[str, str]] = {}
        self._commands: frozenset[str] | None = None
        self._failed = False
        self._left = MOST

    def of(self, argv: Sequence[str], globbed: Collection[int], cwd: str) -> Alias | None:
        """None: it is a command of git's own, or a program; or no command is named. Raises Unclear
        when that cannot be told. Blocks."""
        at = subcommand(argv)
        if at is None or argv[at] in USUAL:
            return None
        if any(index <= at for index in globbed):
            raise Unclear("its subcommand is a pattern")
        if self._failed:
            raise Unclear("git did not answer earlier")
        try:
            return self._alias(argv, at, globbed, cwd)
        except (Unclear, OSError, ValueError) as error:
            self._failed = True
            raise Unclear(str(error)) from None

    def _alias(
        self, argv: Sequence[str], at: int, globbed: Collection[int], cwd: str
    ) -> Alias | None:
        name = argv[at]
        handed = tuple(word for word in argv[1:at] if not word.startswith(_HARMFUL))
        told = self._settings(cwd, handed)
        value = told.get(f"alias.{name.lower()}", told.get(f"alias.{name}.command"))
        if value is None:
            if name in self._known(cwd):
                return None
            raise Unclear("git has no such command, and may run another one")
        self._left -= 1
        if self._left < 0:
            raise Unclear(f"more than {MOST} aliases are used")
        rest = " ".join(
            word if index in globbed else quote(word)
            for index, word in enumerate(argv[at + 1 :], at + 1)
        )
        if value.startswith("!"):
            out = ask(self._env, cwd, *handed, "rev-parse", "--show-toplevel")
            top = os.fsdecode(out).rstrip("\n") if out else cwd
            return Alias(name, f"{value[1:]} {rest}".strip(), top)
        words = split(value)
        if not words or not words[0]:
            raise Unclear("the alias cannot be read")
        begin = " ".join(map(quote, [*argv[:at], *words]))
        return Alias(name, f"{begin} {rest}".strip(), cwd)

    def _settings(self, cwd: str, options: tuple[str, ...]) -> Mapping[str, str]:
        if (cwd, options) not in self._told:
            told = {key: value for _, key, value in settings(self._env, cwd, *options)}
            self._told[cwd, options] = told
        return self._told[cwd, options]

    def _known(self, cwd: str) -> frozenset[str]:
        if self._commands is None:
            out = ask(self._env, cwd, "--list-cmds=builtins,main,others")
            self._commands = frozenset(os.fsdecode(out or b"").split())
        return self._commands
