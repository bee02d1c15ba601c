"""What a command line would run and touch, as facts for the judge of permissions.

The command is read by `core.shell`; here the file system is asked what its words name. When in
doubt a word counts as a path: one fact too many may cost a question, one too few a secret.
"""

from __future__ import annotations

import asyncio
import glob
import hashlib
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise

from magy_server.core.errors import ToolError
from magy_server.core.events import Effect, Facts, Hash, Resource
from magy_server.core.shell import Part, parse
from magy_server.core.shell_programs import program, shows_changes
from magy_server.core.tool import FactContext
from magy_server.tools import git_config
from magy_server.tools.paths import below, canonical, resource

MATCHES = 200
"""File names that one pattern may stand for; with more, the command counts as not understood."""
SECONDS = 1.0
"""Time for expanding the patterns of one command."""
FILES = 500
"""Files named in the facts of one command."""
_BRACKET = re.compile(r"\[[!^]?\]?[^\]]*\]")
_IN_PLACE = re.compile(r"-[A-Za-z]*i|--in-place")
_HARMLESS = frozenset({"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"})
_SEPARATOR = re.compile("[=@:,]")
_NAMED = "(the git repository names what is run"
"""Begins a resource that no command line can be: quoted, it would begin with a quote."""
_WRITERS = frozenset(
    {"tee", "rm", "rmdir", "mv", "cp", "ln", "touch", "truncate", "dd", "install", "mkdir"}
    | {"shred", "unlink", "chmod", "chown", "chgrp", "rsync", "patch"}
)
"""Programs whose arguments count as files that are written, besides read."""
_MAKERS = frozenset({"tee", "touch", "mkdir", "cp", "mv", "ln"})
"""Of these, each plain word names a file even where there is none yet, so that what is remembered
about the first run holds for the second."""


@dataclass(frozen=True, slots=True)
class _Cwd:
    """Where a part runs: as the shell names it, and where that is."""

    logical: str
    physical: str


async def facts(
    ctx: FactContext, command: str, env: Mapping[str, str]
) -> tuple[Facts, Mapping[Hash, bytes]]:
    """`env` is the environment of the shell that will run `command`."""
    first = command.strip().split("\n")[0]
    title = f"Run {''.join(c if c.isprintable() else ' ' for c in first[:200])}"
    known = Facts(cwd=ctx.cwd, kind="execute", title=title)
    if "\0" in command or any(0xD800 <= ord(char) < 0xE000 for char in command):
        problem = "command has a NUL or a half character (surrogate) in it, which no shell takes."
        return known.model_copy(update={"problem": problem}), {}
    resources = await asyncio.to_thread(_look, ctx.root, ctx.cwd, command, env)
    if not resources:
        return known.model_copy(update={"problem": "command is empty; say what to run."}), {}
    names = [found.subject for found in resources if found.subject.startswith(_NAMED)]
    told = {"resources": tuple(resources), "title": " ".join([title, *names])}
    return known.model_copy(update=told), {}


def _look(root: str, begin: str, command: str, env: Mapping[str, str]) -> list[Resource]:
    """The commands in their order, then what git runs by itself, then the files they name."""
    cwd = _Cwd(begin, begin)
    home = env.get("HOME")
    commands: list[Resource] = []
    repositories: dict[str, None] = {}
    files: dict[Resource, None] = {}
    until = time.monotonic() + SECONDS
    for part in parse(command, home):
        expanded = _expand(part, cwd, until)
        if expanded is None:
            expanded, part = part.argv, replace(part, opaque=True)
        for found in _files(root, cwd, part, expanded):
            files[found] = None
        if part.cwd_change is not None:
            moved = _change(cwd, part.cwd_change)
            if moved is None:
                part = replace(part, opaque=True)
            cwd = moved or cwd
        commands.append(
            Resource(kind="exec", subject=part.text, argv=part.argv, opaque=part.opaque)
        )
        if part.argv and not part.opaque and program(part.argv[0]) == "git":
            repositories[cwd.physical] = None
            if shows_changes(part.argv):
                commands.append(Resource(kind="exec", subject="git diff", argv=("git", "diff")))
    commands += [named for place in repositories for named in _named_by_git(root, place, env)]
    if len(files) > FILES:
        note = f"(names {len(files)} files, more than are looked at)"
        commands.append(Resource(kind="exec", subject=note, opaque=True))
    return [*commands, *list(files)[:FILES]]


def _named_by_git(root: str, cwd: str, env: Mapping[str, str]) -> Iterator[Resource]:
    """What else a git command in `cwd` may run, as a command that rules and people can speak about:
    the same programs in the same place are the same command."""
    found = git_config.named(cwd, env)
    if not found:
        return
    text = "; ".join(f"{one.what} = {one.value}" if one.value else one.what for one in found)
    said = "".join(char if char.isprintable() else " " for char in text)
    if len(said) > 300 or said != text:
        digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
        said = f"{said[:300]} ... {digest[:16]}"
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


def _expand(part: Part, cwd: _Cwd, until: float) -> Sequence[str] | None:
    """The words with their patterns replaced by what they match; None when that is not known
    well enough: too many names, too much time, or a name that would be taken for an option."""
    words: list[str] = []
    for index, word in enumerate(part.argv):
        if index not in part.globbed:
            words.append(word)
            continue
        found = _matches(word, cwd.physical, until)
        if found is None or any(name.startswith("-") for name in found):
            return None
        words += found or [word]
    return words


def _matches(pattern: str, cwd: str, until: float) -> list[str] | None:
    """At least what bash would find: a bracket expression counts as any character."""
    if any(special in pattern for special in ("[:", "[.", "[=")):
        return None
    loose = _BRACKET.sub("?", pattern)
    found: list[str] = []
    for name in glob.iglob(loose, root_dir=cwd):
        found.append(name)
        if len(found) > MATCHES or time.monotonic() > until:
            return None
    return found if time.monotonic() <= until else None


def _files(root: str, cwd: _Cwd, part: Part, argv: Sequence[str]) -> Iterator[Resource]:
    """The program's own name is left out: the rules for commands are about that."""
    for redirect in part.redirects:
        for path in _named(cwd, redirect.target or ""):
            yield resource(root, path, redirect.mode)
    effects: tuple[Effect, ...] = ("read", "write") if _writes(argv) else ("read",)
    makes = bool(argv) and (os.path.basename(argv[0]) in _MAKERS or _of_history(argv))
    for word in argv[1:]:
        plain = makes and not word.startswith("-")
        named = [c for c in _candidates(word) if _is_path(c, cwd) or (plain and c == word)]
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
    return name in _WRITERS


def _reachable(root: str, path: str) -> bool:
    """False for what only looks like a path: `/api/v1` where there is no `/api`."""
    if below(root, path) is not None:
        return path not in _HARMLESS
    first = os.path.join("/", *path.split("/", 2)[1:2])
    return os.path.lexists(first) and path not in _HARMLESS


def _named(cwd: _Cwd, word: str) -> Iterator[str]:
    try:
        # a `~` that is still here was quoted: it is a name
        yield canonical(cwd.physical, f"./{word}" if word.startswith("~") else word)
    except ToolError:
        return  # no name that the kernel would take either


def _candidates(word: str) -> Iterator[str]:
    """What in a word may be a path: `--opt=PATH`, `-fPATH`, `@PATH`, `HEAD:PATH`, `PATH:PATH`."""
    if "://" in word:
        yield from word.split("file://")[1:]
        return
    yield word
    if word.startswith("-") and not word.startswith("--"):
        yield word[2:]
    cuts = [found.start() for found in islice(_SEPARATOR.finditer(word), 50)]
    for cut, end in pairwise([*cuts, len(word)]):
        yield word[cut + 1 :]
        yield word[cut + 1 : end]
    if cuts:
        yield word[: cuts[0]]


def _is_path(word: str, cwd: _Cwd) -> bool:
    if not word or len(word) > 4096 or "\0" in word:
        return False
    folder, slash, _ = word.partition("/")
    if slash and "=" not in folder and not word.startswith("-"):
        return True
    return os.path.lexists(os.path.join(cwd.physical, word))
