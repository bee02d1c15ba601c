"""This module tells whether a command is harmless whatever file names bash puts for its patterns.

Whoever makes a file chooses such a word. So a pattern may stand only where no word at all does
harm. What it matches now does not settle that: the same line may make the file first."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from magy_server.core.shell import nested_commands
from magy_server.core.shell.wrappers import is_watched, names
from magy_server.dataclass import dataclass
from magy_server.regex import regex

ONLY_NAMES = names(
    "basename dirname du echo false ls printf pwd readlink realpath stat test true ["
)
"""These programs show names of files, and nothing that is in the files."""
ANY_WORDS = names(
    """basename cat cmp cut dirname echo false head ls nl readlink realpath rev stat tac tail tr
    true type uname which whoami : md5sum sha1sum sha256sum sha512sum cksum sum b2sum exit return"""
)
"""The options of these programs change only how they show what is named."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a file name may stand: behind `first` words that mean something else (a subcommand, a
    script), and not behind an option unless that is one of `alone`, which take no value. Options
    may stand anywhere, or, not `mixed`, only before the first of those words."""

    first: int = 0
    alone: str = r"(?!)"
    mixed: bool = True
    looked_at: bool = False
    """Whether a pattern may begin with a wildcard, since `holds` is asked about what it matches."""


_STRICT = _Place(1)
_PLACES: Mapping[str, _Place] = {
    program: place
    for programs_, place in {
        "wc": _Place(0, r"-[clmwL]+|--(?:bytes|chars|lines|words|max-line-length)", looked_at=True),
        "du": _Place(
            0, r"-[0abchkmsx]+|--(?:all|apparent-size|bytes|total|summarize)", looked_at=True
        ),
        "grep egrep fgrep ggrep": _Place(
            1, r"-[nivclLowxEFGPHhsqabI]+|-\d+|--colou?r(?:=.*)?", looked_at=True
        ),
        "rg": _Place(1, r"-[nilwcoNFSsvUPhHIuax]+|--[a-z-]+=.*"),
        "sed gsed ssed": _Place(1, r"-[nErsuz]+|--(?:quiet|silent|regexp-extended)"),
        "sort gsort": _Place(0, r"-[bdfghiMnRrVcCmsuz]+|-[kt].+"),
        "jq gojq": _Place(1, r"-[rcnsSeCMajR]+"),
        "tree": _Place(0, r"-[adfipsughDFQNqrtcUvxCnSJXA]+|--(?:dirsfirst|noreport|prune|du|si)"),
        "file": _Place(0, r"-[bihkLNnrv0EI]+|--(?:brief|mime|mime-type|mime-encoding)"),
        "printf": _Place(1, mixed=False),
        "git": _Place(
            1,
            r"-[psvuAfnqiw]|-\d+|--(?:oneline|stat|name-only|name-status|cached|staged|all|follow"
            r"|short|porcelain|no-[a-z-]+|stage|others|patch|force|quiet|verbose)|--[a-z-]+=.*",
        ),
        "python pypy node nodejs ruby perl php": _Place(1, r"-[muBIsSO]|-OO", mixed=False),
        "npm pnpm yarn bun cargo pip uv go docker podman kubectl terraform gh dotnet mix gradle"
        " gradlew mvn": _STRICT,
    }.items()
    for program in programs_.split()
}
_SHIFTS = names("make uniq guniq")
"""Here a file name is a variable (`SHELL=x`), or by its place one that is written."""
_TWO_WORDS = names("stash remote submodule worktree bisect notes config reflog bundle lfs subtree")
"""The subcommands of git that have subcommands."""
_HARMFUL: Mapping[str, frozenset[str]] = {
    "find": names("-exec -execdir -ok -okdir -delete -fls -fprint -fprint0 -fprintf -files0-from"),
    "test": names("-v -R"),
    "[": names("-v -R"),
}
"""In these programs only whole words do harm, and no part of one."""
_TOKEN = regex(r"(\[[!^]?\]?[^\]]*\]|\?)|(\*+)|(?s:.)")


def unsettled(argv: Sequence[str], globbed: Sequence[int]) -> str:
    """Returns why one of the words `globbed` may become more than a name of a file; "" when it
    cannot."""
    if not globbed:
        return ""
    name, exact = nested_commands.program(argv[0]), argv[0].rpartition("/")[2].lower()
    if name in ANY_WORDS:
        return ""
    if name in _HARMFUL:
        found = [word for i in globbed for word in _HARMFUL[name] if may_be(argv[i], word)]
        return f"has a pattern that may become `{min(found)}`" if found else ""
    place = _PLACES.get(name) or _PLACES.get(exact)
    if place is None:
        watched = nested_commands.is_wrapper(name) or is_watched(name, exact) or name in _SHIFTS
        return "has a pattern that may become an option or a command" if watched else ""
    if name == "git" and argv[1:2] and argv[1] in _TWO_WORDS:
        place = _Place(2, place.alone)
    return _misplaced(argv, globbed, place)


def _misplaced(argv: Sequence[str], globbed: Collection[int], place: _Place) -> str:
    operands, plain, valued = 0, False, False
    globbed = frozenset(globbed)
    for index, word in enumerate(argv[1:], 1):
        plain = plain or (not place.mixed and operands >= place.first)
        if index in globbed:
            if not plain and (word[0] == "-" or (word[0] in "*?[" and not place.looked_at)):
                return "has a pattern that may become an option; write `./*`, or `--` before it"
            if valued:
                return "has a pattern that may become the value of an option"
            if operands < place.first:
                return "has a pattern that may become a script or a subcommand"
            operands += 1
        elif plain or word == "-" or not word.startswith("-"):
            operands += not valued
            valued = False
        elif word == "--":
            plain, valued = True, False
        else:
            valued = not re.fullmatch(place.alone, word)
    return ""


def holds(argv: Sequence[str], globbed: Sequence[int], found: Sequence[str]) -> bool:
    """Whether a pattern at the beginning of a word does no harm here, now that the files `found`
    are what it matches; those that are directories end in a slash."""
    if not any(argv[i][0] in "*?[" for i in globbed):
        return True
    match nested_commands.program(argv[0]):
        case "wc" | "du":  # beside a named file they refuse to take names out of another
            return bool(found)
        case "grep" | "egrep" | "fgrep" | "ggrep":  # told to descend, it descends into these
            return not any(name.endswith("/") for name in found)
    return True


def may_be(pattern: str, word: str) -> bool:
    """Whether bash may replace `pattern` by `word`, in whatever language it runs: to one, `?` is a
    byte, to another, several. A bracket counts as any character. Takes linear time: each bit of
    `at` is a place in the word that the pattern may have come to."""
    name = word.encode("utf-8", "surrogateescape")
    every = (1 << (len(name) + 1)) - 1
    wide = sum(1 << i for i, byte in enumerate(name) if byte >= 0x80)
    places: dict[int, int] = {}
    for i, byte in enumerate(name):
        places[byte] = places.get(byte, 0) | 1 << i
    at = 1
    for token in _TOKEN.finditer(pattern):
        if token[2]:
            at = every & ~((at & -at) - 1) if at else 0
        elif token[1]:
            several = at & wide
            at = (at << 1 | several << 2 | several << 3 | several << 4) & every
        else:
            for byte in token[0].encode("utf-8", "surrogateescape"):
                at = (at & places.get(byte, 0)) << 1
    return bool(at >> len(name) & 1)
