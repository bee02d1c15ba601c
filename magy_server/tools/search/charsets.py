"""Sets of characters as sorted ranges of code points, for one regular expression in two dialects.

Line ends are in no set: a search goes line by line. Surrogates are in none either, because that is
how the bytes of a damaged file come into Python's text.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache

Ranges = tuple[tuple[int, int], ...]
"""Inclusive, ascending, apart from each other."""
LAST = 0x10FFFF
NOTHING = "(?:(?!))"
"""This matches nothing, in `re`."""
_LETTERS = 0x323B0
"""Above here are no letters, marks or digits but the variation selectors."""
_SELECTORS = (0xE0100, 0xE01EF)
_NEVER = ((0x0A, 0x0A), (0x0D, 0x0D), (0xD800, 0xDFFF))
_WORD = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nl", "Mn", "Mc", "Me", "Nd", "Pc"})
_WORD_TOO = (
    (0x200C, 0x200D), (0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189),
)  # fmt: skip
"""Joiners, and circled letters, which are symbols by category and alphabetic by property."""

SPACE: Ranges = (
    (0x09, 0x09), (0x0B, 0x0C), (0x20, 0x20), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680),
    (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000),
)  # fmt: skip
"""Unicode's White_Space, the line ends left out."""
ASCII_CLASSES: dict[str, Ranges] = {
    "alnum": ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)),
    "alpha": ((0x41, 0x5A), (0x61, 0x7A)),
    "ascii": ((0x00, 0x09), (0x0B, 0x0C), (0x0E, 0x7F)),
    "blank": ((0x09, 0x09), (0x20, 0x20)),
    "cntrl": ((0x00, 0x09), (0x0B, 0x0C), (0x0E, 0x1F), (0x7F, 0x7F)),
    "digit": ((0x30, 0x39),),
    "graph": ((0x21, 0x7E),),
    "lower": ((0x61, 0x7A),),
    "print": ((0x20, 0x7E),),
    "punct": ((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)),
    "space": ((0x09, 0x09), (0x0B, 0x0C), (0x20, 0x20)),
    "upper": ((0x41, 0x5A),),
    "word": ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)),
    "xdigit": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
}
"""The classes of POSIX, such as `[[:alpha:]]`."""


@cache
def word() -> Ranges:
    """What `\\w` is by Unicode Technical Standard 18, Annex C: Python's own differs."""
    return union(_of_categories(_WORD), _WORD_TOO, [_SELECTORS])


@cache
def digit() -> Ranges:
    """Returns the decimal digits of all scripts."""
    return _of_categories(frozenset({"Nd"}))


def _of_categories(wanted: frozenset[str]) -> Ranges:
    category = unicodedata.category
    return union((code, code) for code in range(_LETTERS) if category(chr(code)) in wanted)


def union(*parts: Iterable[tuple[int, int]]) -> Ranges:
    """Returns the union, without line ends and surrogates."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(pair for part in parts for pair in part):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return tuple(_without(found))


def complement(ranges: Ranges) -> Ranges:
    """Returns all characters but these, as far as a line can have them."""
    rest, at = [], 0
    for low, high in ranges:
        rest.append((at, low - 1))
        at = high + 1
    rest.append((at, LAST))
    return union(pair for pair in rest if pair[0] <= pair[1])


def _without(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    for low, high in ranges:
        for first, last in _NEVER:
            if low <= last and first <= high:
                if low < first:
                    yield low, first - 1
                low = last + 1
        if low <= high:
            yield low, high


def folded(ranges: Ranges) -> Ranges:
    """Returns the set with everything that differs from its members by case only."""
    if all(high < 0x80 for _, high in ranges):
        codes = [code for low, high in ranges for code in range(low, high + 1)]
        return union(*(variants(code) for code in codes)) if codes else ranges
    more = [
        other
        for code, others in _variants().items()
        if any(low <= code <= high for low, high in ranges)
        for other in others
    ]
    return union(ranges, more)


def variants(code: int) -> Ranges:
    """A character and what differs from it by case only: one character for one, as in Unicode's
    simple case folding, where `ß` is not `ss` and a dotless `ı` no `i`."""
    if code >= 0x80:
        return _variants().get(code) or ((code, code),)
    char = chr(code)
    codes = {code, ord(char.lower()), ord(char.upper())}
    codes |= {"k": {0x212A}, "s": {0x17F}}.get(char.lower(), set())  # the Kelvin sign, the long s
    return tuple((each, each) for each in sorted(codes))


@cache
def _variants() -> dict[int, Ranges]:
    classes: dict[str, set[int]] = {}
    for code in range(0x1E944):
        if code not in range(0xD800, 0xE000):
            char = chr(code)
            if (fold := _fold(char)) != char:
                classes.setdefault(fold, {ord(fold)}).add(code)
    return {
        code: tuple((each, each) for each in sorted(codes))
        for codes in classes.values()
        for code in codes
    }


def _fold(char: str) -> str:
    fold = char.casefold()
    if len(fold) > 1:
        fold = char.lower()
    return fold if len(fold) == 1 else char


@dataclass(frozen=True, slots=True)
class Set:
    """A set of characters; `rust` is how ripgrep is told of it, within brackets."""

    ranges: Ranges
    rust: str

    @classmethod
    def of(cls, ranges: Ranges) -> Set:
        return cls(ranges, _written(ranges, rust_char))


@cache
def perl(letter: str) -> Set:
    """Returns `\\w`, `\\D` and the like, by their letter."""
    ranges = {"w": word, "d": digit}[letter.lower()]() if letter not in "sS" else SPACE
    if letter == "s":
        return Set.of(ranges)  # without the line ends, which ripgrep has in its own
    return Set(complement(ranges) if letter.isupper() else ranges, f"\\{letter}")


def python(ranges: Ranges, top: int = LAST) -> str:
    """As a class of Python's `re`, of the characters up to `top`."""
    kept = tuple((low, min(high, top)) for low, high in ranges if low <= top)
    if len(kept) == 1 and kept[0][0] == kept[0][1]:
        return python_char(kept[0][0])
    return f"[{_written(kept, python_char)}]" if kept else NOTHING


def rust(ranges: Ranges) -> str:
    """As what stands in a class of ripgrep's dialect, without the brackets."""
    return _written(ranges, rust_char)


def python_char(code: int) -> str:
    char = chr(code)
    return char if char.isascii() and char.isalnum() else f"\\U{code:08x}"


def rust_char(code: int) -> str:
    char = chr(code)
    return char if char.isascii() and char.isalnum() else f"\\x{{{code:x}}}"


def _written(ranges: Ranges, write: Callable[[int], str]) -> str:
    return "".join(
        write(low) if low == high else f"{write(low)}-{write(high)}" for low, high in ranges
    )
