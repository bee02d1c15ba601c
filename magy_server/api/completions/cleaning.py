"""This module makes of a model's reply the text to insert: without tags and fences, without what
stands around the cursor already, and no longer than what was begun. Pure; all line ends are `\\n`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from magy_server.api.completions.surroundings import Surroundings
from magy_server.core.text.sanitizing import CONTROL
from magy_server.edits.text import plain
from magy_server.regex import regex

REPEATED = 5
"""Lines before the cursor that a model may have written once more."""
TELLING = 12
"""Characters of several repeated lines: shorter ones may well stand there twice."""
_INSERT = regex(r"<insert(-\d+)?>(.*?)(?:</insert\1?>|\Z)", re.DOTALL)
_FENCED = regex(
    r"^[ \t]*+(`{3,}|~{3,})[^\n`]*\n(.*?)(?:^[ \t]*+\1[ \t]*+$|\Z)", re.DOTALL | re.MULTILINE
)
_PROSE = frozenset(
    {"markdown", "mdx", "quarto", "restructuredtext", "asciidoc", "org", "plaintext"}
)
"""Languages in which a fence may be meant."""
_CLOSER = regex(r"\s*+(?:[)\]}>][\s)\]}>;,.]*+|fi|done|esac|end\w*+)\s*+")
"""A line that only closes what was opened further up."""
_PAIRS = {")": "(", "]": "[", "}": "{"}
_CLOSING = frozenset(")]}>\"'`;, ")
_COMPLETABLE = regex(r"\s*+[)\]}>\"'`]*+\s*+[:{;,]?+\s*+")


def wanted(place: Surroundings) -> bool:
    """Whether somebody who types here may want a suggestion without asking: nothing but closing
    signs follows in the line."""
    return not place.empty and _COMPLETABLE.fullmatch(place.line_after) is not None


def cleaned(reply: str, place: Surroundings, language: str, *, complete: bool = True) -> str:
    """Returns the text to insert at the cursor; "" if there is none. Not `complete`: the model was
    cut off, so that its last line may be half a line."""
    text = CONTROL.sub("", plain(_answer(reply, language)))
    text = _indented_alike(text, place)
    text = _without_what_is_before(text, place)
    if place.within_line:
        text = next((line for line in text.split("\n") if line.strip()), "")
        text = _without_overlap(text, place.line_after.rstrip())
    else:
        text = _one_block(text, place, complete)
    return text if text.strip() else ""


# --- what of the reply is meant -------------------------------------------------------------------


def _answer(reply: str, language: str) -> str:
    tagged = _INSERT.search(reply)
    text = tagged[2] if tagged else reply
    if (tagged is None or text.strip().startswith(("```", "~~~"))) and language not in _PROSE:
        fenced = _FENCED.search(text)
        if fenced is not None:
            return fenced[2]
    return text


def _indented_alike(text: str, place: Surroundings) -> str:
    """With tabs where the document has tabs, and the other way round."""
    lines = place.before.split("\n") + place.after.split("\n")
    tabs = any(line.startswith("\t") for line in lines)
    spaces = [_indent(line) for line in lines if line.startswith("  ")]
    new = [_indent(line) for line in text.split("\n") if line.startswith("  ")]
    if tabs and not spaces and new:
        unit = min(new)
        return re.sub(r"^ {2,}", lambda m: "\t" * max(len(m[0]) // unit, 1), text, flags=re.M)
    if spaces and not tabs:
        unit = min(spaces)
        return re.sub(r"^\t+", lambda m: " " * (unit * len(m[0])), text, flags=re.M)
    return text


# --- what stands there already --------------------------------------------------------------------


def _without_what_is_before(text: str, place: Surroundings) -> str:
    lines = place.before.split("\n")
    current = lines[-1]
    bare = text.lstrip("\n")
    for more in range(min(REPEATED, len(lines) - 1), -1, -1):
        repeated = "\n".join(lines[-1 - more :])
        for known in dict.fromkeys((repeated, repeated.lstrip())):
            least = TELLING if more else 2
            if len(known.strip()) >= least and bare.startswith(known):
                return bare[len(known) :]
    if not current.strip():
        return _beyond_indentation(bare, current)
    word = _last_word(current)
    if len(word) > 1 and bare.startswith(word):
        return bare[len(word) :]
    return bare if current[-1:].isspace() else text


def _last_word(line: str) -> str:
    start = len(line)
    while start and (line[start - 1].isalnum() or line[start - 1] == "_"):
        start -= 1
    return line[start:]


def _beyond_indentation(text: str, current: str) -> str:
    """Without the blanks that are there before the cursor already."""
    blanks = text[: len(text) - len(text.lstrip(" \t"))]
    if blanks.startswith(current):
        return text[len(current) :]
    return text[len(blanks) :] if current.startswith(blanks) else text


def _without_overlap(text: str, rest: str) -> str:
    """Without its end, where that is the beginning of what follows in the line."""
    for length in range(min(len(text), len(rest)), 0, -1):
        if not text.endswith(rest[:length]):
            continue
        signs = set(rest[:length]) <= _CLOSING
        if signs and _balanced(text[:-length]):
            return text[:-length]
        if not signs and (length > 2 or length == len(rest)):
            return text[:-length]
    return text


def _balanced(text: str) -> bool:
    """Whether all brackets that it opens are closed in it."""
    opened: list[str] = []
    for sign in text:
        if sign in _PAIRS.values():
            opened.append(sign)
        elif sign in _PAIRS and opened and opened[-1] == _PAIRS[sign]:
            opened.pop()
    return not opened


# --- how far it goes ------------------------------------------------------------------------------


def _one_block(text: str, place: Surroundings, complete: bool) -> str:
    """As far as the statement or the block goes that was begun, and not what follows anyway."""
    current = place.line_before
    lines = text.rstrip().split("\n")
    if not complete and len(lines) > 1:
        del lines[-1]
    first = current + lines[0] if not current.strip() else current
    lines = lines[: _until_dedent(lines, _indent(first))]
    following = [line.rstrip() for line in place.after.split("\n")[1:] if line.strip()]
    shown = [*lines]
    if not current.strip():
        shown[:1] = [current + line for line in lines[:1]]
    lines = lines[: _until_repeated(shown, following, 0 if not current.strip() else 1)]
    return "\n".join(lines).rstrip()


def _until_dedent(lines: Sequence[str], base: int) -> int:
    """How many lines belong to the block: a line further left ends it, and so does an empty line
    before one that is not further right. What closes the block belongs to it."""
    for number, line in enumerate(lines[1:], 1):
        if not line.strip():
            next_ = next((one for one in lines[number:] if one.strip()), "")
            if _indent(next_) <= base and not _CLOSER.fullmatch(next_):
                return number
        elif _indent(line) < base:
            return number + (_CLOSER.fullmatch(line) is not None)
    return len(lines)


def _until_repeated(lines: Sequence[str], following: Sequence[str], start: int) -> int:
    """How many lines there are before those that stand after the cursor already."""
    for number in range(start, len(lines)):
        rest = [line.rstrip() for line in lines[number:] if line.strip()]
        if rest and rest == following[: len(rest)]:
            return number
    return len(lines)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))
