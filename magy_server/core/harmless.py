"""Text from anywhere, made harmless for whoever shows it. Pure."""

from __future__ import annotations

import re

_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # OSC, DCS and the like: titles, clipboard
    r"|\x1b[ -/]*[0-OQ-WYZ\\`-~]"  # two or three characters
)
_CONTROL = re.compile(
    r"\r\n?|[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069"
    r"\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
"""Controls, and what changes the direction of text: a diff must not look other than it is."""


def harmless(text: str) -> str:
    """Without terminal sequences; other controls are shown as `<U+0007>`. Line ends are `\\n`."""
    return _CONTROL.sub(_shown, _SEQUENCE.sub("", text))


def _shown(match: re.Match[str]) -> str:
    found = match.group()
    return "\n" if found[0] == "\r" else f"<U+{ord(found):04X}>"


def one_line(text: str) -> str:
    """Harmless, and on one line."""
    return " ".join(harmless(text).split())
