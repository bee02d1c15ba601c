"""The two pattern languages of permission rules: for files, and for commands and other words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache


def matches_file(pattern: str, path: str, relative: str | None, *, exact: bool) -> bool:
    """`path` is canonical and absolute, `relative` the same below the workspace root, None outside.

    `*` and `?` stay within one path component, `**` crosses; all else is literal. Without a
    slash the pattern is for the last component, with a leading slash for the absolute path, else
    for the path below the workspace root. Not `exact`: letter case and Unicode form do not matter.
    """
    subject: str | None = path
    if "/" not in pattern:
        subject = path.rstrip("/").rpartition("/")[2]
    elif not pattern.startswith("/"):
        subject, pattern = relative, pattern.removeprefix("./")
    if subject is None:
        return False
    if not exact:
        pattern, subject = _folded(pattern), _folded(subject)
    return _file_regex(pattern).fullmatch(subject) is not None


@lru_cache(maxsize=4096)
def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


@lru_cache(maxsize=1024)
def _file_regex(pattern: str) -> re.Pattern[str]:
    below = pattern.endswith("/**")
    out = []
    for piece in re.findall(r"(?<![^/])\*\*+/|\*\*+|\*|\?|[^*?]+", pattern.removesuffix("/**")):
        if piece.startswith("**"):
            out.append("(?:.*/)?" if piece.endswith("/") else ".*")
        else:
            out.append({"*": "[^/]*", "?": "[^/]"}.get(piece) or re.escape(piece))
    return re.compile("".join(out) + ("(?:/.*)?" if below else ""), re.DOTALL)


def matches_command(pattern: str, text: str) -> bool:
    r"""`*` matches anything, blanks too; `\*` and `\\` are a star and a backslash, all else is
    literal. A pattern that ends in ` *` matches also without any arguments."""
    pieces = _pieces(pattern)
    if pieces[-1] == "" and len(pieces) > 1 and pieces[-2].endswith(" "):
        bare = [*pieces[:-2], pieces[-2].removesuffix(" ")]
        return _glob(pieces, text) or _glob(bare, text)
    return _glob(pieces, text)


def _glob(pieces: Sequence[str], text: str) -> bool:
    """Whether `text` is the pieces in order with anything between them. No backtracking: text and
    pattern may be long, and a model chooses the text."""
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
def _pieces(pattern: str) -> tuple[str, ...]:
    pieces = [""]
    for token in re.findall(r"\\[*\\]|.", pattern, re.DOTALL):
        if token == "*":
            pieces.append("")
        else:
            pieces[-1] += token[-1]
    return tuple(pieces)


def literal(text: str) -> str:
    """The command pattern that matches exactly `text`."""
    return re.sub(r"[\\*]", r"\\\g<0>", text)
