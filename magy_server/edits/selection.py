"""A model rewrites a place in a text while a person goes on typing: this module tells where the
place is by now, and what the model's answer comes to there. All texts are plain."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate

from magy_server.dataclass import dataclass
from magy_server.edits import explain
from magy_server.edits.formats.stream import Fence
from magy_server.edits.lines import line_start, longest
from magy_server.edits.model import EditError, Failure, TextChange
from magy_server.edits.placing.omission import omission
from magy_server.edits.rebasing.diff import blocks
from magy_server.edits.text import plain, split
from magy_server.regex import regex

Span = tuple[int, int]
"""Characters [start, end)."""
PROSE = (".md", ".markdown", ".mdx", ".qmd", ".rmd")
"""Files in which a code fence is nothing strange."""
_FENCE = regex(r"(?:`{3}|~{3})")
UNCLEAR = (
    "The text has a code fence and something outside of it, so it is not clear what belongs in "
    "the file. Send only the new text of the selection, without fences or words around it."
)


def carried(base: str, live: str, place: Span) -> Span | None:
    """Where in `live` is what was at `place` in `base`. None: it was changed, or is gone. What is
    typed right before or right after it is outside."""
    start, end = place
    if base == live:
        return place
    for typed in _spans(base, live):
        if moved := _moved(typed, place):
            return moved
    return _by_lines(base, live, start, end)


def _moved(typed: TextChange, place: Span) -> Span | None:
    start, end = place
    if typed.end <= start:
        by = len(typed.text) - (typed.end - typed.start)
        return start + by, end + by
    return place if typed.start >= end else None


def _spans(base: str, live: str) -> Iterator[TextChange]:
    """The one replacement between what both texts begin and end with. Where it repeats what stands
    beside it, it can be said to be earlier or later."""
    shorter = min(len(base), len(live))
    head = longest(shorter, lambda n: base[:n] == live[:n])
    tail = longest(shorter, lambda n: base[len(base) - n :] == live[len(live) - n :])
    for first, last in ((head, min(tail, shorter - head)), (min(head, shorter - tail), tail)):
        yield TextChange(first, len(base) - last, live[first : len(live) - last])


def _by_lines(base: str, live: str, start: int, end: int) -> Span | None:
    """Where more than one thing was changed: the lines of the place are what counts."""
    old, new = split(base), split(live)
    starts, places = [0, *accumulate(map(len, old))], [0, *accumulate(map(len, new))]
    first = min(bisect_right(starts, start), len(starts)) - 1
    last = max(bisect_left(starts, end), first + 1) if first < len(old) else first
    found = blocks(old, new)
    before = [block for block in found if block[1] <= first]
    met = [block for block in found if block[0] < last and block[1] > first]
    by = before[-1][3] - before[-1][1] if before else 0
    if not met:
        moved = places[first + by] - starts[first]
        return start + moved, end + moved
    low, high = min(first, met[0][0]), max(last, met[-1][1])
    c, d = met[0][2] - (met[0][0] - low), met[-1][3] + (high - met[-1][1])
    at = starts[low]
    for typed in _spans(base[at : starts[high]], live[places[c] : places[d]]):
        if inside := _moved(typed, (start - at, end - at)):
            return inside[0] + places[c], inside[1] + places[c]
    return None


# --- the answer ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rewrite:
    """`place` of `base` is rewritten. `prose`: fences may belong into the file."""

    base: str
    place: Span
    prose: bool = False

    @property
    def old(self) -> str:
        return self.base[slice(*self.place)]

    def fitted(self, text: str) -> str:
        """What a model wrote, as it is to stand there: without a fence around it, beginning and
        ending as the selection did. Raises EditError: what is meant cannot be told."""
        text = self._unindented(self._unfenced(plain(text)))
        if not text:
            return text
        self._refuse_parts(text)
        if self._whole_lines():
            return text if text.endswith("\n") else text + "\n"
        return text.removesuffix("\n")

    def _refuse_parts(self, text: str) -> None:
        """Raises EditError: it leaves out some of what was selected."""
        if self.prose or not self.old.strip():
            return
        line = omission(self.old.split("\n"), text.split("\n"), self.base.split("\n"))
        if line is not None:
            raise EditError([Failure(0, "placeholder", explain.placeholder(line))])

    def so_far(self, text: str) -> str:
        """The whole lines of the beginning of an answer."""
        lines = split(plain(text))
        if lines and not lines[-1].endswith("\n"):
            lines.pop()
        fence = Fence.of(lines[0]) if lines and _FENCE.match(lines[0]) else None
        if fence and self._strips(fence):
            lines = lines[1:-1] if len(lines) > 1 and fence.closes(lines[-1]) else lines[1:]
        return self._unindented("".join(lines))

    def _whole_lines(self) -> bool:
        """Whether the text must end in a line end. An insertion must at the beginning of a line
        that says something."""
        start, end = self.place
        if start < end:
            return self.base[end - 1] == "\n"
        return line_start(self.base, start) == start and self.base[start : start + 1] not in "\n"

    def _unindented(self, text: str) -> str:
        """A selection that begins after the indentation of its line leaves that where it is."""
        start = self.place[0]
        lead = self.base[line_start(self.base, start) : start]
        own = lead.isspace() and not self.old[:1].isspace()
        return text.removeprefix(lead) if own else text

    def _strips(self, fence: Fence) -> bool:
        if any(map(_FENCE.match, split(self.old))):
            return False
        return not self.prose or fence.language.lower() in ("markdown", "md")

    def _unfenced(self, text: str) -> str:
        lines = split(text)
        fenced = [at for at, line in enumerate(lines) if _FENCE.match(line)]
        said = [at for at, line in enumerate(lines) if line.strip()]
        if not fenced or any(map(_FENCE.match, split(self.old))):
            return text
        fence = Fence.of(lines[fenced[0]])
        closing = [at for at in fenced[1:] if fence and fence.closes(lines[at])]
        around = fenced[0] == said[0] and closing[:1] == said[-1:]
        if fence and around and self._strips(fence):
            return "".join(lines[said[0] + 1 : said[-1]])
        if self.prose or any(map(_FENCE.match, split(self.base))):
            return text
        raise EditError([Failure(0, "parse", UNCLEAR)])


# --- while it streams ---------------------------------------------------------------------------


_BEGIN = regex(r'\s*\{\s*"(\w*)"\s*:\s*"')
LONGEST_START = 1_000
"""Characters before the text, beyond which it is not looked for any more."""
_HEX = r"[0-9a-fA-F]{4}"
_WHOLE = regex(
    rf'(?:[^"\\]+|\\[^u]|\\u(?![dD][89abAB]){_HEX}|\\u{_HEX}(?:\\u{_HEX}|(?=[^\\]|\\[^u])))*'
)
"""What of a JSON string is whole: escapes may be cut, and so may pairs of them."""


class Argument:
    """The text argument `name` of a tool call, while its JSON streams. It must come first, at
    once. Every character is decoded once."""

    def __init__(self, name: str) -> None:
        self.text = ""
        """So far."""
        self._name = name
        self._rest = ""
        self._begun = self._ended = False

    def feed(self, chunk: str) -> None:
        """More of the JSON, cut anywhere."""
        if self._ended:
            return
        self._rest += chunk
        if not self._begun:
            begin = _BEGIN.match(self._rest)
            if begin is None:
                self._ended = len(self._rest) > LONGEST_START
                return
            self._begun, self._ended = True, begin[1] != self._name
            self._rest = self._rest[begin.end() :]
        if not self._ended:
            self._decode()

    def _decode(self) -> None:
        found = _WHOLE.match(self._rest)
        assert found is not None
        self._rest = self._rest[found.end() :]
        self._ended = self._rest.startswith('"')
        try:
            text = json.loads(f'"{found.group()}"', strict=False)
        except ValueError:
            self._ended = True
        else:  # half a surrogate pair, which UTF-8 cannot hold, becomes U+FFFD
            self.text += text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
