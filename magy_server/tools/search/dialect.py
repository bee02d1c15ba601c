"""The regular expressions of `grep`: ripgrep's syntax, as far as Python's `re` can say the same.

A pattern is read once and written twice, for ripgrep and for `re`. Sets of characters, letter case
and word boundaries are spelled out, so both find the same lines. What only one of them has is
refused with a word on what to write instead. A match never reaches over a line end, and the `\\r`
of a `\\r\\n` belongs to the line end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache

from magy_server.tools.search import charsets
from magy_server.tools.search.charsets import Set, perl

LONGEST = 2_000
"""The most characters of a pattern."""
LARGEST = 3_000
"""Characters that a match may be counted to: `(a{20}){20}` counts to 400, `\\w{20}` as well."""
DEEPEST = 50
"""The most groups within groups."""
_ASCII = 0x7F
_CONTROLS = {"t": 0x09, "v": 0x0B, "f": 0x0C, "a": 0x07}
_SINGLE_LINE = "each line is searched by itself, without its line end; search for one line"
_UNKNOWN = {
    "A": "write ^ for the start of a line",
    "z": "write $ for the end of a line",
    "Z": "write $ for the end of a line",
    "<": "write \\b for a word boundary",
    ">": "write \\b for a word boundary",
    "K": "search for the whole text; the lines are shown whole",
    "p": "name the characters, as in [A-Z], or write \\w, \\d or \\s",
    "P": "name the characters, as in [^A-Z], or write \\W, \\D or \\S",
    "n": _SINGLE_LINE,
    "r": _SINGLE_LINE,
    "R": _SINGLE_LINE,
}


class BadPattern(ValueError):
    """`at` is the position in the pattern, counted from 0."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.message = message
        self.at = at


@dataclass(frozen=True, slots=True)
class Regex:
    """One expression in both dialects. `python` wants re.MULTILINE and a text whose damaged bytes
    came in with `surrogateescape`; `ascii` is the same for a text that is all ASCII, and faster."""

    rust: str
    python: str
    ascii: str


@dataclass(frozen=True, slots=True)
class _Piece:
    rust: str
    python: str
    size: int = 1
    ends: bool = False
    """Has a `$`, which takes in the `\\r` of a line end in one of the dialects."""
    looks: bool = False
    """Has another assertion; after a `$` it would look at different places."""
    bare: bool = False
    """Is an assertion, which cannot be repeated."""


def translate(pattern: str, *, ignore_case: bool = False, fixed: bool = False) -> Regex:
    """Translates a pattern. Raises BadPattern. With `fixed`, the pattern is a plain text."""
    if not pattern:
        raise BadPattern("the pattern is empty", 0)
    if len(pattern) > LONGEST:
        raise BadPattern(f"the pattern has more than {LONGEST:,} characters", LONGEST)
    for at, char in enumerate(pattern):
        if char in "\r\n":
            raise BadPattern(f"a pattern cannot match a line end: {_SINGLE_LINE}", at)
        if 0xD800 <= ord(char) < 0xE000 or char == "\0":
            raise BadPattern("this is not a character", at)
    full, plain = (
        _Parser(pattern, ignore_case, top).whole(fixed) for top in (charsets.LAST, _ASCII)
    )
    return Regex(full.rust, full.python, plain.python)


@cache
def _dot(top: int) -> _Piece:
    return _Piece("[^\\n\\r]", charsets.python(charsets.complement(()), top))


@cache
def _boundary(negated: bool, top: int) -> _Piece:
    rust = "\\B" if negated else "\\b"
    if top == _ASCII:
        return _Piece(rust, f"(?a:{rust})", looks=True, bare=True)
    word = charsets.python(charsets.word(), top)
    one, other = ("(?=", "(?!") if negated else ("(?!", "(?=")
    python = f"(?:(?<={word}){one}{word})|(?<!{word}){other}{word}))"
    return _Piece(rust, python, looks=True, bare=True)


_START = _Piece("^", "^", looks=True, bare=True)
_END = _Piece("(?:\\r?$)", r"(?=\r?(?:\n|\Z))", ends=True, bare=True)


class _Parser:
    """`top`: the last character that a text to be searched with `re` can have."""

    def __init__(self, text: str, ignore_case: bool, top: int) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self._ignore_case = ignore_case
        self._top = top

    def whole(self, fixed: bool) -> _Piece:
        if fixed:
            return _joined([self._literal(ord(char)) for char in self._text])
        piece = self._alternatives()
        if self._at < len(self._text):
            raise BadPattern("this ) closes no group; write \\) for the character itself", self._at)
        return piece

    # --- reading ---

    def _peek(self, text: str) -> bool:
        return self._text.startswith(text, self._at)

    def _take(self, text: str) -> bool:
        found = self._peek(text)
        self._at += len(text) if found else 0
        return found

    def _match(self, pattern: str) -> re.Match[str] | None:
        found = re.compile(pattern).match(self._text, self._at)
        self._at = found.end() if found else self._at
        return found

    # --- grammar ---

    def _alternatives(self) -> _Piece:
        parts = [self._sequence()]
        while self._take("|"):
            parts.append(self._sequence())
        if len(parts) == 1:
            return parts[0]
        return _Piece(
            "|".join(part.rust for part in parts),
            "|".join(part.python for part in parts),
            sum(part.size for part in parts),
            any(part.ends for part in parts),
            any(part.looks for part in parts),
        )

    def _sequence(self) -> _Piece:
        pieces: list[_Piece] = []
        ends, size = False, 0
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            began = self._at
            pieces.append(piece := self._repeated())
            if ends and piece.looks:
                raise BadPattern("nothing can follow the end of the line", began)
            ends, size = ends or piece.ends, size + piece.size
            if size > LARGEST:
                raise BadPattern("the pattern counts too far; use smaller numbers in {}", began)
        return _joined(pieces)

    def _repeated(self) -> _Piece:
        piece = self._atom()
        began = self._at
        counted = self._count()
        if counted is None:
            return piece
        if piece.bare or (piece.ends and piece.looks):
            raise BadPattern("this repeats something that has no characters", began)
        text, times = counted
        lazy = "?" if self._take("?") else ""
        again = self._at
        if self._peek("+") or self._count() is not None:
            raise BadPattern(
                "this repeats a repetition; put a group ( ) around the first, or write \\ before "
                "the character if it is meant itself",
                again,
            )
        return replace(
            piece,
            rust=piece.rust + text + lazy,
            python=piece.python + text + lazy,
            size=piece.size * times,
        )

    def _count(self) -> tuple[str, int] | None:
        """A repetition operator, and how far it counts. A `{` that begins none is a character."""
        if found := self._match(r"[*+?]"):
            return found[0], 1
        began = self._at
        found = self._match(r"\{\s*(\d{1,6})\s*(?:(,)\s*(\d{0,6})\s*)?\}|\{\s*,\s*(\d{1,6})\s*\}")
        if found is None:
            return None
        low = int(found[1] or 0)
        last = found[4] or (found[3] if found[2] else found[1])
        high = int(last) if last else None
        if high is not None and high < low:
            raise BadPattern(f"{found[0]} counts backwards", began)
        if max(low, high or 0) > LARGEST:
            raise BadPattern(f"{found[0]} counts too far; {LARGEST:,} is the most", began)
        return f"{{{low},{'' if high is None else high}}}", max(low, high or 0, 1)

    def _atom(self) -> _Piece:
        began = self._at
        if self._count() is not None:
            raise BadPattern(
                "there is nothing to repeat before this; write \\ before it for the character",
                began,
            )
        char = self._text[self._at]
        self._at += 1
        if char == "(":
            return self._group(began)
        if char == "[":
            return self._brackets(began)
        if char == "\\":
            return self._escape(began)
        if char == ".":
            return _dot(self._top)
        if char in "^$":
            return _START if char == "^" else _END
        return self._literal(ord(char))

    def _group(self, began: int) -> _Piece:
        outside = self._ignore_case
        flags = self._take("?") and not self._match(r"P?<[A-Za-z_]\w*>|:")
        if flags and self._flags(began):
            return _Piece("", "", 0, bare=True)
        self._depth += 1
        if self._depth > DEEPEST:
            raise BadPattern(f"more than {DEEPEST} groups are within each other", began)
        inside = self._alternatives()
        self._depth -= 1
        if not self._take(")"):
            raise BadPattern("this group is not closed; write \\( for the character itself", began)
        self._ignore_case = outside
        return replace(inside, rust=f"(?:{inside.rust})", python=f"(?:{inside.python})", bare=False)

    def _flags(self, began: int) -> bool:
        """`i` counts; `s` and `m` change nothing when each line is searched by itself. True when
        the flags are for the rest of the group around them."""
        if self._match(r"<?[=!]"):
            raise BadPattern(
                "look-around is not supported; search for the text itself, without what is "
                "before or after it",
                began,
            )
        found = self._match(r"([ism]*)(?:-([ism]+))?([:)])")
        if found is None:
            raise BadPattern(
                "this kind of group is not supported; there are ( ), (?: ) and (?i)", began
            )
        if "i" in found[1]:
            self._ignore_case = True
        if "i" in (found[2] or ""):
            self._ignore_case = False
        return found[3] == ")"

    def _escape(self, began: int) -> _Piece:
        if self._at == len(self._text):
            raise BadPattern("a \\ at the end escapes nothing; write \\\\ for it", began)
        char = self._text[self._at]
        if char in "bB":
            self._at += 1
            if self._peek("{"):
                raise BadPattern("only \\b itself is supported, without a {kind}", began)
            return _boundary(char == "B", self._top)
        if char in "wdsWDS":
            self._at += 1
            return self._class([perl(char)], False, began)
        return self._literal(self._character(began))

    def _character(self, began: int) -> int:
        """Reads the rest of an escape that stands for one character."""
        if found := self._match(
            r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|[xuU]\{([0-9A-Fa-f]{1,8})\}"
        ):
            code = int(found[1] or found[2] or found[3] or found[4], 16)
            if code > 0x10FFFF or 0xD800 <= code < 0xE000 or code in (0x00, 0x0A, 0x0D):
                raise BadPattern(f"\\{found[0]} is not a character of a line", began)
            return code
        char = self._text[self._at]
        self._at += 1
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char.isdigit():
            raise BadPattern("back references are not supported; search for the text itself", began)
        if char.isalnum() or char in "<>" or not char.isascii() or not char.isprintable():
            hint = _UNKNOWN.get(char, "for the character itself, leave the \\ out")
            raise BadPattern(f"\\{char} is not supported: {hint}", began)
        return ord(char)

    def _literal(self, code: int) -> _Piece:
        found = charsets.variants(code) if self._ignore_case else ((code, code),)
        rust = f"[{charsets.rust(found)}]" if len(found) > 1 else charsets.rust_char(code)
        return _Piece(rust, charsets.python(found, self._top))

    # --- [...] ---

    def _class(self, items: list[Set], negated: bool, began: int) -> _Piece:
        ranges = charsets.union(*(item.ranges for item in items))
        if negated:
            ranges = charsets.complement(ranges)
        if not ranges:
            raise BadPattern("no character is in this class", began)
        inner = "".join(item.rust for item in items)
        if negated:
            inner = f"^{inner}\\n\\r"
        elif any(item.rust in ("\\W", "\\D") for item in items):
            inner += "&&[^\\n\\r]"
        size = 1 + sum(len(item.ranges) for item in items) // 100
        return _Piece(f"[{inner}]", charsets.python(ranges, self._top), size)

    def _brackets(self, began: int) -> _Piece:
        negated = self._take("^")
        items: list[Set] = []
        first = True
        while first or not self._take("]"):
            if self._at >= len(self._text):
                raise BadPattern("this [ is not closed; write \\[ for the character itself", began)
            self._no_operator()
            items.append(self._item(first))
            first = False
        return self._class(items, negated, began)

    def _no_operator(self) -> None:
        for operator in ("&&", "--", "~~"):
            if self._peek(operator) and not self._peek("--]"):
                raise BadPattern(
                    f"{operator} in a class is not supported; write \\ before each of the two if "
                    "the characters are meant",
                    self._at,
                )

    def _item(self, first: bool) -> Set:
        began = self._at
        if found := self._match(r"\[:(\^?)(\w+):\]"):
            ranges = charsets.ASCII_CLASSES.get(found[2])
            if ranges is None:
                known = ", ".join(charsets.ASCII_CLASSES)
                raise BadPattern(f"[:{found[2]}:] is unknown; there are {known}", began)
            ranges = charsets.folded(ranges) if self._ignore_case else ranges
            return Set.of(charsets.complement(ranges) if found[1] else ranges)
        if found := self._match(r"\\([wdsWDS])"):
            if self._match(r"-(?!\])"):
                raise BadPattern(f"no range can begin with {found[0]}; write \\- for a -", began)
            return perl(found[1])
        low = self._member(first)
        high = low
        if self._peek("-") and not self._peek("-]"):
            self._at += 1
            if self._at >= len(self._text):
                return Set.of(())
            high = self._member(False)
        if high < low:
            raise BadPattern(
                f"the range {self._text[began : self._at]} runs backwards; write \\- for a -", began
            )
        ranges = charsets.union([(low, high)])
        return Set.of(charsets.folded(ranges) if self._ignore_case else ranges)

    def _member(self, first: bool) -> int:
        began = self._at
        char = self._text[began]
        if char == "[":
            raise BadPattern("a class in a class is not supported; write \\[ for a [", began)
        if char == "\\":
            self._at += 1
            if self._at >= len(self._text):
                raise BadPattern("a \\ at the end escapes nothing; write \\\\ for it", began)
            if self._text[self._at] in "wdsWDSbB":
                raise BadPattern("this cannot stand at this place in a class", began)
            return self._character(began)
        self._at += 1
        return ord(char)


def _joined(pieces: list[_Piece]) -> _Piece:
    return _Piece(
        "".join(piece.rust for piece in pieces),
        "".join(piece.python for piece in pieces),
        sum(piece.size for piece in pieces),
        any(piece.ends for piece in pieces),
        any(piece.looks for piece in pieces),
    )
