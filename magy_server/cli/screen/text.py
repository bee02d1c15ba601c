"""Text for a terminal is spans with a style; it is made harmless here."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from magy_server.core.text.columns import shortened, width_of, wrapped
from magy_server.core.text.sanitizing import CONTROL, harmless, one_line
from magy_server.core.values import Usage
from magy_server.dataclass import dataclass
from magy_server.regex import regex

if TYPE_CHECKING:  # states would be loaded by whoever only prints a line
    from magy_server.core.state.spending import Spent

Span = tuple[str, str]
"""(text, style); the styles are the keys of `STYLES`, "" is plain, or the parameters of a sequence
themselves."""

STYLES = {
    "": "", "bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34",
    "cyan": "36", "heading": "1;34", "question": "1;33",
}  # fmt: skip
"""As parameters of the ANSI sequence that sets it."""

PROMPT = 60
"""Columns of a prompt that is only named."""

_OPEN_SEQUENCE = regex(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b\x9c]*\x1b?|[ -/]*)?\Z")
_LONGEST_SEQUENCE = 256
"""Characters of an unfinished sequence that are waited for."""


@dataclass(frozen=True, slots=True)
class Marks:
    done: str
    failed: str
    skipped: str
    asked: str
    bar: str
    dot: str
    pending: str
    current: str
    cut: str
    notice: str


UNICODE = Marks("✓", "✗", "–", "?", "│", "·", "·", "▸", "…", "!")
ASCII = Marks("+", "x", "-", "?", "|", "-", ".", ">", "...", "!")


def marks(encoding: str | None) -> Marks:
    """Returns the marks that `encoding` can write."""
    try:
        "✓✗–│·▸…".encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE


class Stream:
    """`harmless` for text that comes in pieces: a sequence may be cut anywhere."""

    def __init__(self) -> None:
        self._kept = ""

    def feed(self, text: str) -> str:
        text = self._kept + text
        cut = len(text)
        if (open_ := _OPEN_SEQUENCE.search(text)) and len(open_.group()) <= _LONGEST_SEQUENCE:
            cut = open_.start()
        if text[:cut].endswith("\r"):
            cut -= 1
        self._kept = text[cut:]
        return harmless(text[:cut])

    def close(self) -> str:
        kept, self._kept = self._kept, ""
        return harmless(kept)


def first_words(text: str, cut: str = "…") -> str:
    """Returns the first line of a prompt, shortened: a name for it."""
    return shortened(one_line(text.strip().partition("\n")[0]), PROMPT, cut)


def filled(text: str, width: int | None, first: str = "") -> str:
    """Returns the lines of `text`, wrapped, below each other behind `first`."""
    indent = " " * width_of(first)
    lines = text.strip("\n").split("\n")
    if width is not None:
        lines = [row for line in lines for row in wrapped(line, width - len(indent))]
    return first + f"\n{indent}".join(lines) + "\n"


def plain(spans: Iterable[Span]) -> str:
    return "".join(text for text, _ in spans)


def coloured(spans: Iterable[Span]) -> str:
    """Returns the text with ANSI sequences; a style never reaches over a line end."""
    out: list[str] = []
    for text, style in spans:
        code = STYLES.get(style, style)
        if not code:
            out.append(text)
            continue
        for line in text.splitlines(keepends=True):
            body = line.rstrip("\n")
            out.append(f"\x1b[{code}m{body}\x1b[0m{line[len(body) :]}" if body else line)
    return "".join(out)


def record(value: Any) -> str:
    """Returns a value as a line of JSON, in which no character controls a terminal."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return CONTROL.sub(lambda found: f"\\u{ord(found.group()):04x}", text) + "\n"


def tokens(usage: Usage) -> str:
    """Returns what was used, and says that it is not known where the provider did not say it."""
    if not usage.total:  # no request takes none: the provider had not said it, or was cut off
        return "tokens unknown"
    if not usage.unreported:
        return f"{usage.total:,} tokens"
    unknown = counted(usage.unreported, "request")
    return f"{usage.total:,} tokens and {unknown} of unknown size"


def cost_of(found: Spent) -> str:
    """Returns the cost in words, with how much of it is not known."""
    if not found.requests:
        return ""
    if found.unpriced == found.requests:
        return "cost unknown"
    if not found.cost and not found.unpriced:
        return "free"
    dollars = f"${found.cost:.4f}" if found.cost < 0.1 else f"${found.cost:,.2f}"
    if found.unpriced:
        return f"{dollars} and {counted(found.unpriced, 'request')} of unknown cost"
    return dollars


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size_of(bytes: int) -> str:
    return f"{bytes / 2**10:,.0f} KiB" if bytes < 2**20 else f"{bytes / 2**20:,.1f} MiB"
