"""A pattern that denies or asks matches a command however the command puts its options. Pure.

An allow holds for what is written, a deny for what is meant. So for deny and ask it is enough that
a pattern's words are among those of the command: in their order, with anything between them
(`kubectl -n prod delete pod x` for `kubectl delete *`), options wherever they stand. Too wide a
match costs a question, too narrow a one what the person forbade.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import pairwise

from magy_server.core.patterns import matches_command, pieces
from magy_server.core.shell.git_arguments import subcommand
from magy_server.core.shell.nested_commands import program
from magy_server.core.shell.simple_commands import quote
from magy_server.dataclass import dataclass
from magy_server.regex import regex

_WORD = regex(r"(?:'[^']*'|\\.|[^\s'\\]|['\\])+", re.DOTALL)
_CLUSTER = regex(r"-[A-Za-z]{1,3}")
"""Short switches that stand together. A longer one may be a word of its own (`find -delete`)."""
_LETTERS = regex(r"-[A-Za-z]+")
_ASSIGNS = regex(r"[A-Za-z_][\w.-]*=")
_GNU = regex(r"g(?=(?:awk|chgrp|chmod|chown|cp|dd|find|install|ln|make|mv|rm|rmdir|sed|shred"
                  r"|split|tar|tee|touch|truncate|xargs)\Z)")  # fmt: skip
"""GNU's programs have these names where the system has its own."""
_INSIDE = {"uv": "pip", "yarn": "npm"}
"""These programs contain another one behind its name: `uv pip uninstall`."""
_NPM = ("access", "deprecate", "dist-tag", "install", "link", "login", "logout", "owner", "publish",
        "rebuild", "team", "token", "uninstall", "unpublish", "update", "version")  # fmt: skip
_NPM_ALIASES = {"i": "install", "add": "install", "rm": "uninstall", "r": "uninstall",
                "un": "uninstall", "remove": "uninstall", "unlink": "uninstall", "up": "update",
                "upgrade": "update", "adduser": "login"}  # fmt: skip
"""npm takes the beginning of one of these commands for the whole."""
_LONG, _MANY = 256, 64
"""Characters of a globbed word, and such words of a command; with more each counts as `*`."""


@dataclass(frozen=True, slots=True)
class _Pattern:
    """`ordered` are its words without options; `free` the options, and what stands behind one (that
    may be its value); `open`: whatever may follow."""

    name: str
    ordered: tuple[str, ...]
    free: tuple[str, ...]
    open: bool


@dataclass(frozen=True, slots=True)
class _Word:
    """`forms`: the word, and what is in it: `--name=value`, `-nvalue`."""

    text: str
    forms: tuple[str, ...]
    globbed: bool

    @property
    def option(self) -> bool:
        return self.text[:1] in ("-", "+") and len(self.text) > 1


@dataclass(frozen=True, slots=True)
class _Spelled:
    """`fixed`: where in the command (its program is 0) the subcommand stands, if that is known:
    then the first word of a pattern is that one, and not a word that happens to be the same.
    `globbed`: the program's name is a pattern of the shell."""

    names: tuple[str, ...]
    globbed: bool
    words: tuple[_Word, ...]
    fixed: int | None


def is_about(pattern: str, argv: Sequence[str], globbed: Collection[int] = ()) -> bool:
    """Returns whether the command is one that a pattern is about. `globbed` are the indexes of
    words that the shell replaces by names of files; each counts as any words that it could
    become."""
    wanted = _read(pattern)
    return any(
        any(_names(wanted.name, name, spelled.globbed) for name in spelled.names)
        and all(_has(one, spelled.words) for one in wanted.free)
        and _in_order(wanted, spelled.words, spelled.fixed)
        for spelled in _spellings(tuple(argv), frozenset(globbed))
    )


@lru_cache(maxsize=64)
def _spellings(argv: tuple[str, ...], globbed: frozenset[int]) -> tuple[_Spelled, ...]:
    """Returns the names of a program: also without directory and version, by the subcommand that
    its name ends in (`git-push`, `docker-compose`), and as a module of Python."""
    if not argv:
        return ()
    first, rest = argv[0], list(enumerate(argv))[1:]
    base = first.rpartition("/")[2]
    plain = _GNU.sub("", base.lower())
    names = tuple(dict.fromkeys((first, base, base.lower(), program(first), plain)))
    many = len(globbed) > _MANY
    words = tuple(_word(text, at in globbed, many) for at, text in rest)
    fixed = subcommand(argv) if program(first) == "git" else None
    if fixed is not None and any(at <= fixed for at in globbed):
        fixed = None
    found = [_Spelled(names, 0 in globbed, words, fixed)]
    head, dash, tail = base.lower().partition("-")
    if head and dash and tail:
        fixed = 1 if head == "git" else None
        found.append(_Spelled((head,), 0 in globbed, (_word(tail, False), *words), fixed))
    if program(first) == "npm":
        whole = tuple(_word(_whole(text), False) for text in argv[1:])
        found.append(_Spelled(names, False, whole, None))
    inside = _INSIDE.get(program(first))
    if inside is not None and inside in argv[1:]:
        found.append(_Spelled((inside,), False, words[argv.index(inside, 1) :], None))
    if program(first) in ("python", "pypy", "py"):
        module = _module(argv)
        if module is not None:
            found.append(_Spelled((module[0],), False, words[module[1] - 1 :], None))
    return tuple(found)


def _whole(text: str) -> str:
    """Returns the command of npm that `text` is short for, if it is short for just one."""
    long = [one for one in _NPM if len(text) > 2 and one.startswith(text)]
    return _NPM_ALIASES.get(text) or (long[0] if len(long) == 1 else text)


def _module(argv: Sequence[str]) -> tuple[str, int] | None:
    """Returns the name after `python -m`, and where its arguments begin."""
    for at, word in enumerate(argv[1:], 1):
        if word == "-m" and at + 1 < len(argv):
            return argv[at + 1].partition(".")[0], at + 2
        if word.startswith("-m"):
            return word[2:].partition(".")[0], at + 1
        if not word.startswith("-"):
            break
    return None


@lru_cache(maxsize=1024)
def _read(pattern: str) -> _Pattern:
    words = [found[0] for found in _WORD.finditer(pattern)] or [""]
    ordered: list[str] = []
    free: list[str] = []
    for before, word in pairwise(words):
        if word == "*":
            continue
        is_free = _is_option(word) or (_is_option(before) and before is not words[0])
        (free if is_free else ordered).append(word)
    ends_free = _is_option(words[-1]) and len(words) > 1
    wide = ends_free or (words[-1].endswith("*") and not words[-1].endswith("\\*"))
    return _Pattern(words[0], tuple(ordered), tuple(free), wide)


def _is_option(word: str) -> bool:
    return word.startswith("-") and len(word) > 1


def _word(text: str, globbed: bool, many: bool = False) -> _Word:
    if globbed:
        text = "*" if many or len(text) > _LONG else re.sub(r"\*+", "*", text)
    forms = [text] if globbed else [text, quote(text)]
    if text.startswith("-"):
        name, equals, value = text.partition("=")
        if equals:
            forms += [name, value]
        if text[1:2] not in ("", "-") and len(text) > 2:
            forms += [text[:2], text[2:]]
    return _Word(text, tuple(dict.fromkeys(forms)), globbed)


def _names(pattern: str, name: str, globbed: bool) -> bool:
    """Returns whether the pattern names the program, also by its last component: who denies
    `/usr/bin/rm` means `rm`."""
    names = {pattern, pattern.rpartition("/")[2] or pattern}
    return any(_fits(one, name, globbed) for one in names)


def _fits(pattern: str, text: str, globbed: bool) -> bool:
    return _overlap(pattern, text) if globbed else matches_command(pattern, text)


def _matches(pattern: str, word: _Word) -> bool:
    return any(_fits(pattern, form, word.globbed) for form in word.forms)


def _in_order(wanted: _Pattern, words: Sequence[_Word], fixed: int | None) -> bool:
    if not wanted.ordered:
        return wanted.open or _ends(words, 0)
    at, end = 0, len(words)
    *leading, last = wanted.ordered
    if fixed is not None:
        at, end = fixed - 1, fixed
    for pattern in leading:
        while at < end and not _matches(pattern, words[at]):
            at += 1
        if at >= end:
            return False
        # a pattern of the shell may become several words
        at, end = at + (not words[at].globbed), len(words)
    return any(
        _matches(last, words[there]) and (wanted.open or _ends(words, there + 1))
        for there in range(at, end)
    )


def _ends(words: Sequence[_Word], at: int) -> bool:
    """Returns whether only options, values of options and assignments follow."""
    after = at > 0 and words[at - 1].option and "=" not in words[at - 1].text
    for word in words[at:]:
        if not (word.option or after or _ASSIGNS.match(word.text)):
            return False
        after = word.option and "=" not in word.text
    return True


def _has(pattern: str, words: Sequence[_Word]) -> bool:
    if any(_matches(pattern, word) for word in words):
        return True
    if pattern.startswith("--"):
        # programs take the beginning of a long option for the whole
        begun = (word.text.partition("=")[0] for word in words)
        return any(len(one) > 3 and pattern.startswith(one) for one in begun if one[:2] == "--")
    if _CLUSTER.fullmatch(pattern):
        letters = {c for word in words if _LETTERS.fullmatch(word.text) for c in word.text[1:]}
        return letters.issuperset(pattern[1:])
    return False


@lru_cache(maxsize=4096)
def _overlap(pattern: str, glob: str) -> bool:
    """Returns whether a name that the shell may put for `glob` matches `pattern`. A bracket
    expression counts as any character."""
    left = list("\0".join(pieces(pattern)))
    right = re.findall(r"\[[!^]?\]?[^\]]*\]|.", glob, re.DOTALL)
    ahead = _closed({0}, left)
    for token in right:
        if token == "*":
            lowest = min(ahead, default=len(left) + 1)
            ahead = set(range(lowest, len(left) + 1))
            continue
        any_one = token == "?" or len(token) > 1
        ahead = {at if left[at] == "\0" else at + 1 for at in ahead if at < len(left)
                 and (left[at] in ("\0", token) or any_one)}  # fmt: skip
        ahead = _closed(ahead, left)
    return len(left) in ahead


def _closed(states: set[int], left: Sequence[str]) -> set[int]:
    """With those that a star of the pattern lets be reached without a character."""
    out = set(states)
    for at in states:
        while at < len(left) and left[at] == "\0":
            at += 1
            out.add(at)
    return out
