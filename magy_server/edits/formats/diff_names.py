"""This module reads and writes file names as diffs have them."""

from __future__ import annotations

import re
from typing import Final

from magy_server.regex import regex

NULL: Final = None
"""`/dev/null`: there is no file."""
_DATED = regex(r"\t.*|\s+\d{4}-\d\d-\d\d[ T]\d\d:\d\d.*|\s+\((?:old|new|before|after)\)\s*\Z")
_STAMPED = regex(r"(?:\t|\s+)\d{4}-\d\d-\d\d[ T]\d\d:\d\d")
_QUOTED = regex(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = regex(r"\\([0-7]{1,3}|.)")
_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_PREFIXES = {("a/", "b/"), ("i/", "w/"), ("c/", "i/"), ("c/", "w/"), ("o/", "w/"), ("1/", "2/")}
"""What git puts before the old and the new name, as its settings say."""
_SPARE = (".orig", ".old", ".bak", "~")
_ODD = regex(r'[\x00-\x1f\x7f"\\]|\A\s|\s\Z')


class Unclear(Exception):
    """Names that do not say which file is meant. The message says what would."""


def header_name(line: str, *, dated: bool = True) -> str | None:
    """The name in `--- NAME`, `+++ NAME`, `from NAME` or `to NAME`, still with `a/` or `b/`; NULL
    for /dev/null. With `dated`, what follows a tab, and a date, is not part of it."""
    rest = line.partition(" ")[2]
    if quoted := _QUOTED.match(rest):
        return unquoted(quoted[1])
    name = _DATED.sub("", rest, count=1).rstrip() if dated else rest
    return NULL if name == "/dev/null" else name


def stamped(line: str) -> bool:
    """Whether a time follows the name, as diff(1) writes it."""
    return _STAMPED.search(line) is not None


def unquoted(text: str) -> str:
    """Undoes git's quoting of names: C escapes, bytes in octal."""
    out, at = bytearray(), 0
    for found in _ESCAPE.finditer(text):
        out += text[at : found.start()].encode("utf-8", "surrogatepass")
        mark = found[1]
        if mark[0] in "01234567":
            out.append(int(mark, 8) & 0xFF)
        elif mark in _ESCAPES:
            out.append(_ESCAPES[mark])
        else:
            out += mark.encode("utf-8", "surrogatepass")
        at = found.end()
    out += text[at:].encode("utf-8", "surrogatepass")
    return out.decode("utf-8", "replace")


def quoted(name: str) -> str:
    """`name` for a header; in quotes when it would else be misread."""
    if not _ODD.search(name) and not _DATED.search(name):
        return name
    marks = {code: f"\\{code:03o}" for code in (*range(32), 127)} | {34: '\\"', 92: "\\\\"}
    marks |= {code: f"\\{letter}" for letter, code in _ESCAPES.items()}
    return f'"{name.translate(marks)}"'


def diff_names(line: str) -> tuple[str, str] | None:
    """The two names in `diff --git a/X b/X`; None when only other headers can tell."""
    rest = line.removeprefix("diff --git ")
    if found := re.fullmatch(rf"({_QUOTED.pattern}|\S+) ({_QUOTED.pattern}|\S+)", rest):
        names = [header_name(f"x {name}") or "" for name in (found[1], found[3])]
    else:
        half = (len(rest) - 1) // 2  # a name with spaces in it: both halves are alike
        names = [rest[:half], rest[half + 1 :]]
    left, right = _bare(names[0], names[1])
    return (left, right) if left == right or found else None


def _bare(old: str, new: str) -> tuple[str, str]:
    if (old[:2], new[:2]) in _PREFIXES and old[2:] and new[2:]:
        return old[2:], new[2:]
    return old, new


def same_file(old: str | None, new: str | None, *, renamed: bool) -> tuple[str | None, str | None]:
    """Both names as one file's, without what git, diff(1) and people put before or after them.
    With `renamed` they may differ. Raises Unclear."""
    if old is NULL or new is NULL:
        return _alone(old, "a/"), _alone(new, "b/")
    left, right = _bare(old, new)
    if left == right or renamed:
        return left, right
    if any(left == right + spare for spare in _SPARE):
        return right, right
    for one, other, prefix in ((old, new, "b/"), (new, old, "a/")):
        if other.removeprefix(prefix) == one:
            return one, one  # only one of them has its prefix
    _, _, left_rest = left.partition("/")
    _, _, right_rest = right.partition("/")
    if left_rest and left_rest == right_rest:
        return left_rest, left_rest  # of `diff -r before after`
    raise Unclear(
        f"{old} and {new} are two files. Write the same name twice; to rename a file as well, "
        "write `diff --git`, `rename from` and `rename to` before."
    )


def _alone(name: str | None, prefix: str) -> str | None:
    return NULL if name is NULL else name.removeprefix(prefix) or name
