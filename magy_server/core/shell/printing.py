"""This module tells whether a command line may print the text of files in a folder, by its words.

Not all that names a folder shows what is in its files: `ls vendor`, `rm -rf node_modules`,
`. .venv/bin/activate` and `ruff check --exclude .venv` do not.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Mapping, Sequence

from magy_server.core.shell.globs import ONLY_NAMES
from magy_server.core.shell.nested_commands import program
from magy_server.core.shell.wrappers import names
from magy_server.core.values import Resource
from magy_server.regex import regex

_SILENT = names(". source cd [ test true false rm rmdir mkdir touch chmod chown")
"""They print nothing."""
_NAMES = (
    ONLY_NAMES | names("find tree type which wc cksum md5sum sha1sum sha256sum sha512sum df")
) - _SILENT
"""They print names, sizes and sums; what else is in the line may do more with those names."""
_LISTED = regex(r"--?files0-from.*|--(?:fromfile|infofile|gitfile).*")
"""By these a program that prints names finds them in a file, and prints what is in that."""
_CHECKS = regex(r"-[a-z]*c|--check")
"""By these sums are compared with those in a file."""
_GIT_NAMES = names("add check-ignore clean ls-files mv rm status")
_ENVIRONMENTS = names("venv virtualenv")
"""Modules of Python that make a folder of dependencies."""
_LEFT_OUT = regex(r"-I|-path|--?(?:[a-z]+-)*(?:exclude|ignore|skip|omit|without)(?:-[a-z]+)*")
"""Options before what is left out."""
_FINDERS = names("find gfind fd fdfind")
_FURTHER: Mapping[str, re.Pattern[str]] = {
    **dict.fromkeys(
        ("grep", "egrep", "fgrep", "zgrep"),
        regex(r"-[a-zA-Z]*[rR].*|--(?:dereference-)?recursive|-d.*|--directories=.*"),
    ),
    "rg": regex(r"-[a-zA-Z]*u.*|--no-ignore.*|--unrestricted"),
    "ag": regex(r"-[a-zA-Z]*[uU].*|--unrestricted|--skip-vcs-ignores"),
    "ack": regex(r".*"),
}
"""The searches, and their options by which they look through folders of dependencies."""
_NAMELESS = (regex(r"-[a-zA-Z]*h.*|--no-filename"), regex(r"-[a-zA-Z]*I.*|--no-filename"))
"""By these a search leaves out the names of files; the second is for `rg`."""
_KEEP = _SILENT | names("cat head tail sort uniq wc less tac tee echo printf grep true false")
_VALUED = names("-I -n -P -L -s -d -a -E")
"""Options of `xargs` whose value is the next word."""
_COMPONENT = regex(r"[^\w.@+-]+")
_OPENED = regex(r" <>? (\S+)")
"""What a command reads by redirection, in its text."""


def prints(commands: Sequence[Resource], folder: str) -> bool:
    """Returns whether one of the commands of a line may print the text of files in `folder`, a
    component of paths."""
    told = [given(one) for one in commands if not _is_silent(one)]
    named = any(_mentions(one, folder) or _enters(one, folder) for one in told)
    if not any(folder in word for one in commands for word in one.argv or (one.subject,)):
        named = True  # a loop names it, or a directory that was changed to
    return any(_prints(one, folder, named) for one in told)


def walks(argv: Sequence[str]) -> bool:
    """Returns whether a command looks through folders by itself: `find`, and a search that does not
    leave out what git ignores."""
    name = program(argv[0]) if argv else ""
    if name in _FINDERS:
        return True
    options = _FURTHER.get(name)
    if options is None or tuple(argv[1:]) == ("-r",):  # so `programs.besides` says what one does
        return False
    return any(options.fullmatch(word) for word in argv[1:])


def given(command: Resource) -> Resource:
    """Returns what `xargs` runs, if that prints names at most, else the command."""
    words = command.argv
    if _name(command) not in ("xargs", "gxargs"):
        return command
    at = 1
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _VALUED else 1
    inner = command.model_copy(update={"argv": words[at:], "opaque": False})
    return inner if only_names([inner]) else command


def keeps_names(argv: Sequence[str]) -> bool:
    """Returns whether a command leaves the names of files in front of lines that a search found."""
    name = program(argv[0]) if argv else ""
    if name in _FURTHER:
        return not any(_NAMELESS[name == "rg"].fullmatch(word) for word in argv[1:])
    return name in _KEEP


def only_names(commands: Sequence[Resource]) -> bool:
    """Returns whether all commands of a line print names at most."""
    return all(_is_silent(one) or _shows_names(one) for one in commands)


def within(text: str, folders: Collection[str]) -> str:
    """Returns the folder of which a text names a file; "" for none. Programs in it do not count:
    `.venv/bin/python`."""
    parts = text.split("/")
    for at, part in enumerate(parts[:-1]):
        folder = _COMPONENT.split(part)[-1]
        below = parts[at + 1]
        if folder in folders and below and below not in ("bin", ".bin", "Scripts"):
            return folder
    return ""


def _prints(command: Resource, folder: str, named: bool) -> bool:
    if command.opaque:
        return named
    if _shows_names(command):
        return False
    if _enters(command, folder):
        return True
    there = folder in command.place.split("/")
    return there or bool(command.globbed) or _mentions(command, folder)


def _enters(command: Resource, folder: str) -> bool:
    """Whether it finds the folder by itself, and was not told to leave it out."""
    return walks(command.argv) and not any(folder in word for word in command.argv)


def _is_silent(command: Resource) -> bool:
    """A script that is no script says in errors what is in it, but one that begins an environment
    is known."""
    if _name(command) in (".", "source"):
        return any("/activate" in word for word in command.argv[1:2])
    return _name(command) in _SILENT


def _shows_names(command: Resource) -> bool:
    if command.opaque or not command.argv:
        return False
    words = command.argv
    if _name(command) == "git":
        return any(word in _GIT_NAMES for word in words[1:2])
    checks = _name(command).endswith("sum") and any(map(_CHECKS.fullmatch, words))
    if checks or any(map(_LISTED.fullmatch, words)):
        return False
    makes = words[1:2] == ("-m",) and any(word in _ENVIRONMENTS for word in words[2:3])
    return makes or _name(command) in _NAMES


def _mentions(command: Resource, folder: str) -> bool:
    words = command.argv
    opened = _OPENED.findall(command.subject)
    if not words or any(folder in _COMPONENT.split(one) for one in opened):
        return folder in _COMPONENT.split(command.subject)
    return any(
        folder in _COMPONENT.split(word)
        for before, word in itertools.pairwise(words)
        if not _LEFT_OUT.fullmatch(before) and not _LEFT_OUT.fullmatch(word.partition("=")[0])
    )


def _name(command: Resource) -> str:
    return program(command.argv[0]) if command.argv else ""
