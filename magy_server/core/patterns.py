"""Permission rules have two pattern languages: one for files, one for commands and other words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache


def matches_file(pattern: str, path: str, relative: str | None, *, exact: bool) -> bool:
    """`path` is canonical and absolute, `relative` the same below the workspace root, None outside.

    `*` and `?` stay within one path component, `**` crosses; all else is literal. A slash at the
    end stands for `/**`: as no path ends so, it would be a rule that forbids nothing. Without a
    slash the pattern is for the last component, with a leading slash for the absolute path, else
    for the path below the workspace root. Not `exact`: letter case and Unicode form do not matter.
    """
    subject: str | None = path
    if pattern.endswith("/") and pattern != "/":
        pattern += "**"
    if "/" not in pattern:
        subject = path.rstrip("/").rpartition("/")[2]
    elif not pattern.startswith("/"):
        subject, pattern = relative, pattern.removeprefix("./")
    if subject is None:
        return False
    if not exact:
        pattern, subject = _folded(pattern), _folded(subject)
    beginning, end, whole = _ends(pattern)
    if whole or not (subject.startswith(beginning) and subject.endswith(end)):
        return subject == beginning and whole
    return _file_regex(pattern).fullmatch(subject) is not None


@lru_cache(maxsize=4096)
def _ends(pattern: str) -> tuple[str, str, bool]:
    """Returns how each path begins and ends that a file pattern matches, and whether that is all of
    the pattern. Most patterns of most rules are settled by it, without a regular expression."""
    stars = [at for at, letter in enumerate(pattern) if letter in "*?"]
    if not stars:
        return pattern, pattern, True
    below = pattern.endswith("/**")  # the folder itself, too
    beginning = pattern[: min(stars[0], len(pattern) - 3) if below else stars[0]]
    return beginning, "" if below else pattern[stars[-1] + 1 :].removeprefix("/"), False


@lru_cache(maxsize=4096)
def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


@lru_cache(maxsize=1024)
def _file_regex(pattern: str) -> re.Pattern[str]:
    """Linear in what it is held against, but for the last star: what another star follows is taken
    at its first place and no other is tried, as that star can take in all the rest."""
    below = pattern.endswith("/**")
    crossing: list[str] = [""]
    groups: list[list[str]] = [[""]]
    for piece in re.findall(r"(?<![^/])\*\*+/|\*\*+|\*|\?|[^*?]+", pattern.removesuffix("/**")):
        if piece.startswith("**"):
            crossing.append("(?:.*?/)??" if piece.endswith("/") else ".*?")
            groups.append([""])
        elif piece == "*":
            groups[-1].append("")
        else:
            groups[-1][-1] += "[^/]" if piece == "?" else re.escape(piece)
    *middle, (lead, last) = zip(crossing, groups, strict=True)
    out = "".join(f"(?>{start}{_first_places(group)})" for start, group in middle)
    out += lead + _first_places(last[:-1]) + ("[^/]*" if len(last) > 1 else "") + last[-1]
    return re.compile(out + ("(?:/.*)?" if below else ""), re.DOTALL)


def _first_places(chunks: Sequence[str]) -> str:
    """Chunks of one component with a star between them."""
    return "".join(f"(?>[^/]*?{each})" if number else each for number, each in enumerate(chunks))


def matches_command(pattern: str, text: str) -> bool:
    r"""`*` matches anything, blanks too; `\*` and `\\` are a star and a backslash, all else is
    literal. A pattern that ends in ` *` matches also without any arguments."""
    beginning, shapes = _shapes(pattern)
    return text.startswith(beginning) and any(_glob(shape, text) for shape in shapes)


@lru_cache(maxsize=8192)
def _shapes(pattern: str) -> tuple[str, tuple[tuple[str, ...], ...]]:
    """Returns what each text begins with that matches, and the pieces: with arguments, and perhaps
    without any. Of many rules most are settled by the beginning."""
    found = pieces(pattern)
    if found[-1] == "" and len(found) > 1 and found[-2].endswith(" "):
        bare = (*found[:-2], found[-2].removesuffix(" "))
        return bare[0], (found, bare)
    return found[0], (found,)


def _glob(pieces: Sequence[str], text: str) -> bool:
    """Returns whether `text` is the pieces in order with anything between them. It never
    backtracks: text and pattern may be long, and a model chooses the text."""
    first, *rest = pieces
    if not rest:
        return text == first
    last = rest.pop()
    if not text.startswith(first) or not text.endswith(last) or len(text) < len(first) + len(last):
        return False
    at, end = len(first), len(text) - len(last)
    for piece in rest:
        at = text.find(piece, at, end)
        if at < 0:
            return False
        at += len(piece)
    return True


@lru_cache(maxsize=1024)
def pieces(pattern: str) -> tuple[str, ...]:
    """Returns what stands literally before, between and behind the stars."""
    found = [""]
    for token in re.findall(r"\\[*\\]|.", pattern, re.DOTALL):
        if token == "*":
            found.append("")
        else:
            found[-1] += token[-1]
    return tuple(found)


def literal(text: str) -> str:
    """Returns the command pattern that matches exactly `text`."""
    return re.sub(r"[\\*]", r"\\\g<0>", text)
