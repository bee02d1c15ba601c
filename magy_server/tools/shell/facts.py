"""This module finds what a command line would run and touch: facts for the judge of permissions.

`core.shell.simple_commands` reads the command; here the file system is asked what its words name.
When in doubt a word counts as a path: one fact too many may cost a question, one too few a secret.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice, pairwise

from magy_server.core.errors import ToolError
from magy_server.core.shell.globs import ONLY_NAMES, holds
from magy_server.core.shell.nested_commands import program, text_at, wrapped
from magy_server.core.shell.simple_commands import Part, parse
from magy_server.core.shell.wrappers import names
from magy_server.core.text.sanitizing import LINE, TITLE, shortened, visible
from magy_server.core.text.surrogates import whole
from magy_server.core.tool import FactContext, Gathered, previewed
from magy_server.core.values import Effect, Facts, Resource
from magy_server.dataclass import dataclass
from magy_server.regex import regex
from magy_server.tools.files.paths import below, resource
from magy_server.tools.git import hostile_config as git_config
from magy_server.tools.git.aliases import Alias, Aliases
from magy_server.tools.shell.expansion import Bounds, TooMuch, expanded
from magy_server.tools.shell.read_only_commands import may_write, reads

MATCHES = 200
"""File names that one pattern may stand for; with more, the command counts as not understood."""
FILES = 500
"""Files named in the facts of one command."""
_IN_PLACE = regex(r"-[A-Za-z]*i|--in-place")
_HARMLESS = frozenset({"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"})
_SEPARATOR = regex("[=@:,]")
_SWITCHES = regex("-[A-Za-z0-9]+")
_CLUSTER = 64
"""Switches in one word whose values are looked for."""
_NAMED = "(the git repository names what is run"
"""Begins a resource that no command line can be: quoted, it would begin with a quote."""
_WRITERS = names(
    """sponge rename tee rm rmdir mv cp ln touch truncate dd install mkdir shred unlink chmod chown
    chgrp rsync patch"""
)
"""Programs whose arguments count as files that are written, besides read."""
_KEEPS = (("git", "add"), ("git", "commit"))
"""Commands that write, and leave git's configuration as it is."""
_MAKERS = names("tee touch mkdir cp mv ln")
"""Of these, each plain word names a file even where there is none yet, so that what is remembered
about the first run holds for the second."""


@dataclass(frozen=True, slots=True)
class _Cwd:
    """Where a part runs: as the shell names it, and where that is."""

    logical: str
    physical: str


async def facts(ctx: FactContext, command: str, env: Mapping[str, str]) -> Gathered:
    """`env` is the environment of the shell that will run `command`."""
    if "\0" in command or any(0xD800 <= ord(char) < 0xE000 for char in command):
        raise ToolError(
            "command contains a NUL or half a character (a surrogate), which no shell accepts."
        )
    cwd = ctx.cwd
    resources = await asyncio.to_thread(_look, ctx.root, cwd, command, env, Aliases(env))
    if not resources:
        raise ToolError("command is empty; write a command.")
    by_git = [found.subject for found in resources if found.subject.startswith(_NAMED)]
    title = " ".join([f"Run {shortened(command, LINE)}", *by_git])
    plain = visible(command).strip()
    brief = "\n" not in plain and len(plain) <= LINE and len(title) <= TITLE
    facts = Facts(resources=tuple(resources), cwd=cwd, title=title)
    return previewed(facts, "" if brief else "\n\n".join([command, *by_git]), code=True)


def _look(
    root: str, begin: str, command: str, env: Mapping[str, str],
    aliases: Aliases, through: tuple[str, ...] = (),
) -> list[Resource]:  # fmt: skip
    """The commands in their order, then what git runs by itself, then the files they name.
    `through`: the aliases of git that led to this line."""
    from magy_server.tools.shell.searched_folders import searched  # only commands need it

    cwd = _Cwd(begin, begin)
    home = env.get("HOME")
    commands: list[Resource] = []
    repositories: dict[str, None] = {}
    files: dict[Resource, None] = {}
    bounds = Bounds()
    parts = _parsed(command, home, env)
    makers = [part for part in parts if _may_make(part)]
    line: list[tuple[Part, str]] = []
    for part in parts:
        others = any(maker is not part for maker in makers)
        words, sure = _expand(part, cwd, bounds, others)
        if not sure:
            part = replace(part, opaque=True)
        for found in _files(root, cwd, part, words):
            files[found] = None
        ran_in = cwd.physical
        line.append((part, ran_in))
        if part.cwd_change is not None:
            moved = _change(cwd, part.cwd_change)
            if moved is None:
                part = replace(part, opaque=True)
            cwd = moved or cwd
        meant, part = _meant(part, parts, cwd.physical, aliases, through)
        if meant is not None:
            found_there = _look(root, meant.cwd, meant.line, env, aliases, (*through, meant.name))
            files |= dict.fromkeys(found for found in found_there if found.kind != "exec")
            commands += _written(part, (found for found in found_there if found.kind == "exec"))
            continue
        commands.append(part.resource(_place(root, ran_in)))
        if part.argv and not part.opaque and program(part.argv[0]) == "git":
            repositories[cwd.physical] = None
    files |= dict.fromkeys(searched(root, command, line))
    commands += [named for place in repositories for named in _named_by_git(root, place, env)]
    if len(files) > FILES:
        note = f"(names {len(files)} files, more than Magy examines)"
        commands.append(Resource(kind="exec", subject=note, opaque=True))
    return [*commands, *list(files)[:FILES]]


def _place(root: str, cwd: str) -> str:
    inside = below(root, cwd)
    return whole(cwd if inside is None else "" if inside == "." else inside)


def _meant(
    part: Part, line: Sequence[Part], cwd: str, aliases: Aliases, through: tuple[str, ...]
) -> tuple[Alias | None, Part]:
    """The alias that a command of git is, and the command, which counts as not understood where
    that cannot be told."""
    if not part.argv or program(part.argv[0]) != "git":
        return None, part
    try:
        alias = aliases.of(part.argv, part.globbed, cwd)
        if alias is None:
            return None, part
        if alias.name in through:
            raise git_config.Unclear("the alias leads to itself")
        if any(other is not part and _may_configure(other) for other in line):
            raise git_config.Unclear("the alias may have changed before it is used")
        return alias, part
    except git_config.Unclear as why:
        return None, part if part.opaque else replace(part, opaque=True, why=str(why))


def _may_configure(part: Part) -> bool:
    """Whether git's configuration may be another when this command has run."""
    if part.opaque or any(redirect.mode == "write" for redirect in part.redirects):
        return True
    if isinstance(wrapped(part.argv), int) or part.argv[:2] in _KEEPS:
        return False
    return not reads(part.argv)


def _written(part: Part, found: Iterable[Resource]) -> Iterator[Resource]:
    """What an alias stands for, known by its own words too. What cannot be understood of the one
    cannot be of the other."""
    empty = True
    for one in found:
        empty = False
        opaque = one.opaque or part.opaque
        yield one.model_copy(update={"written": part.argv, "opaque": opaque})
    if empty:
        yield Resource(kind="exec", subject=part.text, argv=part.argv, opaque=True)


def _named_by_git(root: str, cwd: str, env: Mapping[str, str]) -> Iterator[Resource]:
    """What else a git command in `cwd` may run, as a command that rules and people can speak about:
    the same programs in the same place are the same command."""
    found = git_config.named(root, cwd, env)
    if not found:
        return
    text = "; ".join(f"{one.what} = {one.value}" if one.value else one.what for one in found)
    said = shortened(text, LINE)
    if said != text:
        digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
        said = f"{said} {digest[:16]}"
    inside = below(root, cwd)
    where = "here" if inside == "." else f"in {inside or cwd}"
    yield Resource(kind="exec", subject=f"{_NAMED} {where}: {said})")


def _change(cwd: _Cwd, target: str) -> _Cwd | None:
    """`cd target`: the shell takes `..` off the name it knows, the kernel goes up from where it
    is. None when these are two places, or there is no such place."""
    logical = os.path.normpath(os.path.join(cwd.logical, target))
    physical = os.path.realpath(os.path.join(cwd.physical, target))
    return _Cwd(logical, physical) if os.path.realpath(logical) == physical else None


# --- words --------------------------------------------------------------------------------------


def _parsed(command: str, home: str | None, env: Mapping[str, str]) -> list[Part]:
    parts = parse(command, home)
    if command.isascii() or not _pairs_bytes(env):
        return parts
    why = "has letters that it may read differently in another locale"
    return [replace(part, opaque=True, why=why) for part in parts]


def _pairs_bytes(env: Mapping[str, str]) -> bool:
    """Whether the shell may take a letter's last byte and the quote behind it for one character."""
    language = (env.get("LC_ALL") or env.get("LC_CTYPE") or env.get("LANG") or "").lower()
    name, dot, charset = language.partition("@")[0].partition(".")
    if not dot:
        return name[:2] in ("zh", "ja", "ko")
    return re.match(r"gb|big5|s-?jis|shift|euc|johab|uhc|cp9|ms9|pck", charset) is not None


def _may_make(part: Part) -> bool:
    """Whether it may bring about files with contents that are there already. (What is written by
    redirection was allowed to be read.)"""
    if not part.argv or part.opaque:
        return True
    return not isinstance(wrapped(part.argv), int) and not reads(part.argv)


def _shows(part: Part) -> bool:
    """Whether it shows, or takes elsewhere, what is in the files that it names."""
    name = program(part.argv[0])
    return name not in ONLY_NAMES and (reads(part.argv) or name in _WRITERS)


def _expand(part: Part, cwd: _Cwd, bounds: Bounds, others: bool) -> tuple[Sequence[str], bool]:
    """The words with their patterns replaced by what they match, and whether that is known well
    enough: not with too many names, too much time, a name that would be taken for an option, or
    `others` in the line that may make files, which are matched when the command runs."""
    if not part.globbed:
        return part.argv, True
    words: list[str] = []
    names: list[str] = []
    try:
        globbed = frozenset(part.globbed)
        for index, word in enumerate(part.argv):
            found = expanded(word, cwd.physical, MATCHES, bounds) if index in globbed else []
            names += found
            words += found or [word]
    except TooMuch:
        return part.argv, False
    told = [f"{n}/" if os.path.isdir(os.path.join(cwd.physical, n)) else n for n in names]
    text = text_at(part.argv)
    if text is not None and os.path.lexists(os.path.join(cwd.physical, part.argv[text])):
        told.append(f"{part.argv[text]}/")  # an option among the names makes a file of it
    safe = holds(part.argv, part.globbed, told) and not any(n.startswith("-") for n in names)
    return words, safe and not (others and _shows(part))


def _files(root: str, cwd: _Cwd, part: Part, argv: Sequence[str]) -> Iterator[Resource]:
    """The program's own name is left out: the rules for commands are about that."""
    for redirect in part.redirects:
        for path in _named(cwd, redirect.target or ""):
            yield resource(root, path, redirect.mode)
    effects: tuple[Effect, ...] = ("read", "write") if _writes(argv) else ("read",)
    makes = bool(argv) and (
        os.path.basename(argv[0]) in _MAKERS or _of_history(argv) or may_write(argv)
    )
    text = None if part.opaque else text_at(part.argv)
    for at, word in enumerate(argv[1:], 1):
        if at == text:
            continue
        plain = makes and not word.startswith("-")
        named = [c for c in _candidates(word) if _is_path(c, cwd) or (plain and c == word)]
        named += [c for c in (*_glued(word), *_unlikely(word)) if _begins(c, cwd)]
        for path in (p for c in named for p in _named(cwd, c)):
            if "write" in effects or _reachable(root, path):
                yield from (resource(root, path, effect) for effect in effects)


def _of_history(argv: Sequence[str]) -> bool:
    """`git blame REVISION FILE` shows a file that may be gone by now."""
    return program(argv[0]) == "git" and "blame" in argv[1:]


def _writes(argv: Sequence[str]) -> bool:
    name = os.path.basename(argv[0]) if argv else ""
    if name == "sed":
        return any(_IN_PLACE.match(word) for word in argv[1:])
    return name in _WRITERS or (bool(argv) and may_write(argv))


def _reachable(root: str, path: str) -> bool:
    """False for what only looks like a path: `/api/v1` where there is no `/api`."""
    first = os.path.join("/", *path.split("/", 2)[1:2])
    return path not in _HARMLESS and (below(root, path) is not None or os.path.lexists(first))


def _named(cwd: _Cwd, word: str) -> Iterator[str]:
    """Any name that the kernel takes, whatever is in it: a tab, a line end, bytes that are no
    UTF-8. A `~` that is still here was quoted: it is a name, too."""
    if word:
        with suppress(OSError, ValueError):
            yield os.path.realpath(os.path.join(cwd.physical, word))


def _candidates(word: str) -> Iterator[str]:
    """What in a word may be a path: `--opt=PATH`, `-fPATH`, `@PATH`, `HEAD:PATH`, `PATH:PATH`."""
    if "://" in word:
        yield from word.split("file://")[1:]
    else:
        yield from _pieces(word)


def _unlikely(word: str) -> Iterator[str]:
    """What in an address is a path, should there be a directory `https:`."""
    if "://" in word:
        yield from (piece for piece in _pieces(word) if not piece.startswith("//"))


def _pieces(word: str) -> Iterator[str]:
    yield word
    if word.startswith("-") and not word.startswith("--"):
        yield word[2:]
    cuts = [found.start() for found in islice(_SEPARATOR.finditer(word), 50)]
    for cut, end in pairwise([*cuts, len(word)]):
        yield word[cut + 1 :]
        yield word[cut + 1 : end]
    if cuts:
        yield word[: cuts[0]]


def _glued(word: str) -> Iterator[str]:
    """What may be the value of the last of several switches: `-uo.env`, `-ft.git/hooks`."""
    switches = _SWITCHES.match(word)
    for at in range(3, min(switches.end(), _CLUSTER) + 1 if switches else 0):
        yield word[at:]


def _begins(word: str, cwd: _Cwd) -> bool:
    """Whether there is where the path begins: what is cut out of a word is mostly none."""
    start = word[: word.find("/", 1)] if "/" in word[1:] else word
    return bool(start) and os.path.lexists(os.path.join(cwd.physical, start[:256]))


def _is_path(word: str, cwd: _Cwd) -> bool:
    if not word or len(word) > 4096 or "\0" in word:
        return False
    folder, slash, _ = word.partition("/")
    if slash and "=" not in folder and not word.startswith("-"):
        return True
    return os.path.lexists(os.path.join(cwd.physical, word))
