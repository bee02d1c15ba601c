"""This module makes text from anywhere harmless for whoever shows it. Pure."""

from __future__ import annotations

import re

from magy_server.regex import regex

_SEQUENCE = regex(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # OSC, DCS and the like: titles, clipboard
    r"|\x1b[ -/]*[0-OQ-WYZ\\`-~]"  # two or three characters
)
CONTROL = regex(
    r"\r\n?|[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069"
    r"\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
"""Controls, and what changes the direction of text: a diff must not look other than it is."""


def harmless(text: str) -> str:
    """Returns the text without terminal sequences; other controls become `<U+0007>`. Line ends are
    `\\n`."""
    return CONTROL.sub(_shown, _SEQUENCE.sub("", text))


INVISIBLE = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0\ufffc"
    "\U00016fe4\U0001d159"
)
"""Letters and signs that nobody sees; `str.isprintable` finds all others."""
LINE_END = " ⏎ "
"""This stands for the end of a line where Magy shows a text on one line."""
TITLE = 1_000
"""The most characters of a title, of whatever tool."""
LINE = 300
"""Characters that are shown of a command, of a rule, of what an answer covers."""
_UNUSUAL = regex(r"[^\n\t\x20-\x7e]")
_BLANK = regex(r"\n(?:[ \t]*\n){4,}")
_WIDE = regex(r"[ \t]{40,}")
"""White space that is counted: four empty lines in a row, and as much as half a line."""
_VARIANT = regex(r"[\ufe00-\ufe0f\U000e0100-\U000e01ef]")


def visible(text: str) -> str:
    """What a person is asked about, with nothing taken out: each character that does not show for
    what it is (controls, what changes the direction of text, what is invisible) is `<U+202E>`.
    Line ends and tabs stay."""
    return _UNUSUAL.sub(_escaped, text)


def unpadded(text: str) -> str:
    """`text`, as `visible`, where much white space is only counted (`⟨300 spaces⟩`, `⟨39 empty
    lines⟩`): what stands behind it is not led out of sight."""
    return _WIDE.sub(_spaces, _BLANK.sub(_empty_lines, visible(text)))


def _spaces(match: re.Match[str]) -> str:
    return f" ⟨{len(match.group())} spaces⟩ "


def _empty_lines(match: re.Match[str]) -> str:
    count = match.group().count("\n") - 1
    return f"\n⟨{count} empty lines⟩\n"


def shortened(text: str, most: int) -> str:
    """`text`, as `unpadded`, on one line: all of it if that is no more than `most` characters, else
    both its ends, and between them how much is left out."""
    text = unpadded(text.strip()).strip()
    if len(text) <= most:
        return _line(text)
    tail = most * 2 // 5
    head, hidden, end = text[: most - tail], text[most - tail : -tail], text[-tail:]
    lines = f", {ends + 1:,} lines" if (ends := hidden.count("\n")) else ""
    left_out = f"(+{len(hidden):,} characters{lines})"
    return f"{_line(head)} … {left_out} … {_line(end)}"


def _line(text: str) -> str:
    return text.replace("\t", " ").replace("\n", LINE_END)


def _escaped(match: re.Match[str]) -> str:
    char = match.group()
    shows = char.isprintable() and char not in INVISIBLE and not _VARIANT.match(char)
    return char if shows else f"<U+{ord(char):04X}>"


def _shown(match: re.Match[str]) -> str:
    found = match.group()
    return "\n" if found[0] == "\r" else f"<U+{ord(found):04X}>"


def one_line(text: str) -> str:
    """Returns the text harmless, and on one line."""
    return " ".join(harmless(text).split())


def printable(name: str) -> str:
    """A file name on one line: what no terminal should get is written as in Python."""
    if name.isprintable():
        return name
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in name
    )
