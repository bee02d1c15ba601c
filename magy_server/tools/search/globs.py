"""File patterns as in ripgrep and .gitignore: `*`, `?`, `[...]`, `{a,b}`, and `**` for directories.

Patterns come from models and from the ignore files of strangers, so matching takes linear time:
what stands before a further `*` is found at its first place and never looked for again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

ALTERNATIVES = 100
"""Patterns that the braces of one pattern may stand for."""
LONGEST = 1_000
"""The most characters of a pattern."""
_CLASS = re.compile(r"\[([!^]?)(\][^\]]*|[^\]]+)\]", re.DOTALL)
_LITERAL = re.compile(r"[\w.*?-]+", re.ASCII)


class BadGlob(ValueError):
    pass


@dataclass(frozen=True, slots=True)
class Filter:
    """Which files are meant, by their path below the directory that is searched. Without a slash
    the pattern is for the name, at any depth; a leading `!` means all but these."""

    pattern: str
    _regex: re.Pattern[str] = field(init=False, repr=False, compare=False)
    _excludes: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raises BadGlob."""
        excludes = self.pattern.startswith("!")
        glob = self.pattern[1:] if excludes else self.pattern
        object.__setattr__(self, "_regex", re.compile(_path_regex(glob)))
        object.__setattr__(self, "_excludes", excludes)

    def __call__(self, path: str) -> bool:
        return (self._regex.fullmatch(path) is not None) is not self._excludes

    @property
    def names(self) -> list[str]:
        """Patterns for names alone, in the letters that all programs read alike; no file that
        matches has another name. Empty: nothing is known about the names."""
        if self._excludes:
            return []
        names = [glob.rpartition("/")[2] for glob in _normal(self.pattern)]
        simple = all(_LITERAL.fullmatch(name) and "**" not in name for name in names)
        return sorted(set(names)) if simple else []


def literal_start(glob: str) -> str:
    """The directories at the start of a pattern that are plain names, "" when there are none."""
    plain = []
    for part in glob.removeprefix("/").split("/")[:-1]:
        if not part or any(char in part for char in "*?[]{}\\!") or part in (".", ".."):
            break
        plain.append(part)
    return "/".join(plain)


def _path_regex(glob: str) -> str:
    if not glob.strip("/"):
        raise BadGlob("the pattern is empty")
    if len(glob) > LONGEST:
        raise BadGlob(f"the pattern has more than {LONGEST:,} characters")
    return "|".join(f"(?:{regex(one)})" for one in _normal(glob))


def _normal(glob: str) -> list[str]:
    """Without braces, and for whole paths."""
    found = []
    for one in expanded(glob):
        if "/" not in one:
            one = f"**/{one}"
        one = one.removeprefix(".").removeprefix("/") if one.startswith(("/", "./")) else one
        found.append(f"{one}**" if one.endswith("/") else one)
    return found


def expanded(glob: str) -> list[str]:
    """Returns the patterns without braces that one with braces stands for, in order. Raises
    BadGlob."""
    done, todo = [], [glob]
    while todo:
        one = todo.pop(0)
        if (found := _first_braces(one)) is None:
            done.append(one)
        else:
            start, end, parts = found
            todo[:0] = [one[:start] + part + one[end:] for part in parts]
        if len(done) + len(todo) > ALTERNATIVES:
            raise BadGlob(f"the braces stand for more than {ALTERNATIVES} patterns")
    return done


def _first_braces(glob: str) -> tuple[int, int, list[str]] | None:
    """Start, end and alternatives of the first `{...}`; braces inside it stay."""
    start, depth, cuts = -1, 0, []
    for at, char in _plain_characters(glob):
        if char == "{":
            if depth == 0:
                start, cuts = at, [at]
            depth += 1
        elif char == "," and depth == 1:
            cuts.append(at)
        elif char == "}":
            depth -= 1
            if depth < 0:
                raise BadGlob("a } has no {; write \\} for the character itself")
            if depth == 0:
                cuts.append(at)
                parts = [glob[a + 1 : b] for a, b in pairwise(cuts)]
                return start, at + 1, parts
    if depth:
        raise BadGlob("a { is not closed; write \\{ for the character itself")
    return None


def _plain_characters(glob: str) -> Iterator[tuple[int, str]]:
    """Those that are neither escaped nor in a class."""
    at, closing = 0, glob.rfind("]")
    while at < len(glob):
        if glob[at] == "\\":
            at += 2
        elif glob[at] == "[" and at < closing and (found := _CLASS.match(glob, at)):
            at = found.end()
        else:
            yield at, glob[at]
            at += 1


def regex(glob: str) -> str:
    """Returns the expression for whole paths of a pattern without braces. Raises BadGlob."""
    segments: list[list[str]] = [[]]
    for part in _parts(glob):
        if part == "**":
            segments.append([])
        else:
            segments[-1].append(_part_regex(part))
    first, *rest = ["/".join(segment) for segment in segments]
    if not rest:
        return first
    if first:
        first += "/"
    *middle, last = rest
    for segment in middle:
        if segment:  # at its first place: a `**` follows, which can take in all the rest
            first += f"(?>(?:[^/]+/)*?{segment}/)"
    return first + (f"(?:[^/]+/)*{last}" if last else ".+")


def _parts(glob: str) -> list[str]:
    """At the slashes; one in a class or behind a backslash is no other."""
    parts, start = [], 0
    for at, char in _plain_characters(glob):
        if char == "/":
            parts.append(glob[start:at])
            start = at + 1
    return [*parts, glob[start:]]


def _part_regex(part: str) -> str:
    """Returns the expression for one name of a path."""
    chunks, at = [""], 0
    while at < len(part):
        char = part[at]
        if char == "*":
            if chunks[-1] or len(chunks) == 1:
                chunks.append("")
        elif char == "?":
            chunks[-1] += "[^/]"
        elif char == "[":
            found = _CLASS.match(part, at)
            if found is None:
                raise BadGlob("a [ is not closed; write \\[ for the character itself")
            chunks[-1] += _class(found)
            at = found.end() - 1
        elif char == "\\":
            at += 1
            if at == len(part):
                raise BadGlob("a \\ at the end escapes nothing; write \\\\ for it")
            chunks[-1] += re.escape(part[at])
        else:
            chunks[-1] += re.escape(char)
        at += 1
    first, *rest = chunks
    if not rest:
        return first
    *middle, last = rest
    return first + "".join(f"(?>[^/]*?{chunk})" for chunk in middle) + f"[^/]*{last}"


def _class(found: re.Match[str]) -> str:
    negated, members = found[1], found[2]
    out, at = "", 0
    while at < len(members):
        low = high = members[at]
        if members[at + 1 : at + 2] == "-" and at + 2 < len(members):
            high = members[at + 2]
            at += 2
        if high < low:
            raise BadGlob(f"the range {low}-{high} runs backwards")
        out += f"{re.escape(low)}-{re.escape(high)}"
        at += 1
    return f"(?!/)[{'^' if negated else ''}{out}]"
