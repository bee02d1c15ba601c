"""Keys are taken out of what is shown or stored, also where they are encoded or in pieces. Pure.

A provider may repeat the key that it was sent, in an error, in its answer; a command may print one.
Here a key is known by its value, in the forms that programs give it: as it is, with characters
escaped for an address, JSON or HTML, as base64 (wherever in a longer text it stood), as hex digits.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from magy_server.core.policy.linear_patterns import replaced

GONE = "[redacted]"
_SHORTEST, _PLAIN = 8, 20
"""Characters of a key; one in small letters alone is a word (`not-needed`) unless it is long."""
_LEAST, _MOST = 8, 24
"""So many characters of a key are recognised where the rest of it is cut off, but no fewer: the
beginning alone is that of many keys."""

_LINE = 8_000
"""Characters of a line that are held back until it ends."""
_AHEAD = 10
"""Characters that may stand for one of the key, at the most."""

Form = tuple[tuple[str, ...], ...]
"""For each character of the key what may stand for it; in small letters where these and capitals
mean the same."""


Span = tuple[int, int, bool]
"""Where something of a key begins and ends, and whether it is all of the key."""


class Secrets:
    """`keys`: the values. Those that are no keys by their looks are left alone. `patterns`: what
    they match goes, too, where all of it stands in one text; see `policy/linear_patterns.py`."""

    def __init__(self, keys: Iterable[str] = (), patterns: Iterable[str] = ()) -> None:
        self._patterns = tuple(dict.fromkeys(patterns))
        self._forms: list[tuple[Form, bool]] = []  # and whether capitals matter
        heads = []
        for key in sorted({key for key in map(str.strip, keys) if _is_key(key)}):
            for form, exact, least in _forms(key):
                self._forms.append((form, exact))
                head = "".join(f"(?:{'|'.join(map(re.escape, one))})" for one in form[:least])
                heads.append(head if exact else f"(?i:{head})")
        ways = {way[0] for form, _ in self._forms for way in form[0]}
        self._firsts = ways | {way.upper() for way in ways}
        # The class of first characters is looked for fast; only there the heads are tried.
        first = f"[{''.join(map(re.escape, sorted(self._firsts)))}]"
        head = f"{first}(?<=(?={'|'.join(heads)}){first})"
        self._heads = re.compile(head) if heads else None
        self._longest = max((sum(max(map(len, c)) for c in f) for f, _ in self._forms), default=0)

    def __bool__(self) -> bool:
        return self._heads is not None or bool(self._patterns)

    def clean(self, text: str) -> str:
        """Returns the text without the keys, and without the beginnings of keys that were cut
        off."""
        text = _without(text, self._found(text))
        for pattern in self._patterns:
            text = replaced(pattern, GONE, text)
        return text

    def clean_bytes(self, data: bytes) -> bytes:
        """Does the same for bytes: keys are ASCII. Patterns are for UTF-8; of other bytes they see
        one character for each."""
        if not self:
            return data
        try:
            return self.clean(data.decode()).encode()
        except UnicodeDecodeError:
            return self.clean(data.decode("latin-1")).encode("latin-1")

    def within(self, value: Any) -> Any:
        """Does the same for every text in a JSON value."""
        match value:
            case _ if not self:
                return value
            case str():
                return self.clean(value)
            case Mapping():
                return {self.within(key): self.within(inner) for key, inner in value.items()}
            case list() | tuple():
                return type(value)(map(self.within, value))
        return value

    def shown(self, text: str) -> tuple[str, str]:
        """Returns what of `text` can be shown, and what may be the beginning of a key that goes on
        behind its end."""
        found = list(self._found(text))
        start = max((end for _, end, complete in found if complete), default=0)
        cut = self._open(text, max(start, len(text) - self._longest))
        if self._patterns:
            # What a pattern matches may go on; it is waited for to the end of its line.
            line = text.rfind("\n", 0, cut) + 1
            cut = line if cut - line <= _LINE else cut
        if self._patterns or any(begin < cut < end for begin, end, _ in found):
            return self.clean(text[:cut]), text[cut:]
        kept = [one for one in found if one[1] <= cut]
        return _without(text[:cut], kept), text[cut:]

    def _open(self, text: str, start: int) -> int:
        """Returns the first place from `start` on that may be the beginning of a key."""
        for at in range(start, len(text)):
            if text[at] in self._firsts and any(
                _reach(form, exact, text, at)[2] for form, exact in self._forms
            ):
                return at
        return len(text)

    def _found(self, text: str) -> Iterator[Span]:
        at = 0
        while self._heads is not None and (head := self._heads.search(text, at)):
            start, at, complete = head.start(), head.end(), False
            for form, exact in self._forms:
                end, left, _ = _reach(form, exact, text, start)
                if end >= at:
                    at, complete = end, complete or not left
            yield start, at, complete


class Sieve:
    """Lets a text through that comes in pieces; holds back what may be the beginning of a key."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._held = ""

    def __call__(self, text: str, *, final: bool = False) -> str:
        """Takes more text, and returns what can be shown now."""
        if not self._secrets:
            return text
        text, self._held = self._held + text, ""
        if final:
            return self._secrets.clean(text)
        now, self._held = self._secrets.shown(text)
        return now

    def bytes(self, data: bytes, *, final: bool = False) -> bytes:
        """Does the same for bytes: keys are ASCII."""
        if not self._secrets:
            return data
        return self(data.decode("latin-1"), final=final).encode("latin-1")


def _without(text: str, found: Iterable[Span]) -> str:
    parts, at = [], 0
    for start, end, _ in found:
        parts += [text[at:start], GONE]
        at = end
    return text if not at else "".join([*parts, text[at:]])


def _is_key(text: str) -> bool:
    if not text.isascii() or len(text) < _SHORTEST:
        return False
    mixed = text.lower() != text != text.upper()
    return mixed or len(text) >= _PLAIN or any(char.isdigit() for char in text)


def _forms(key: str) -> Iterator[tuple[Form, bool, int]]:
    """And how many of its first characters are enough."""
    least = min(len(key), max(_LEAST, min(_MOST, len(key) // 3)))
    yield tuple(map(_written, key)), False, least
    yield tuple((digit,) for digit in key.encode().hex()), False, 2 * least
    for before in range(3):
        # The digits that nothing but the key decides; what stands before shifts them.
        bits = 8 * before
        digits = base64.b64encode(bytes(before) + key.encode()).decode()
        first, last = -(-bits // 6), (bits + 8 * len(key)) // 6
        yield tuple(map(_digit, digits[first:last])), True, 8 * least // 6


def _written(char: str) -> tuple[str, ...]:
    code = ord(char)
    return (
        char.lower(), f"%{code:02x}", f"%25{code:02x}", f"%2525{code:02x}", f"\\u{code:04x}",
        f"\\x{code:02x}", f"\\{char.lower()}", f"&#{code};", f"&#x{code:x};", f"&#0{code};",
    )  # fmt: skip


def _digit(char: str) -> tuple[str, ...]:
    """Also of base64 for addresses, and where a line is broken before it."""
    like = {"+": ("+", "-", "%2B", "%2b"), "/": ("/", "_", "%2F", "%2f", "\\/")}.get(char, (char,))
    return (*like, *(f"{end}{one}" for end in ("\n", "\r\n", "\\n", "\\r\\n") for one in like))


def _reach(form: Form, exact: bool, text: str, at: int) -> tuple[int, int, bool]:
    """How far the form goes at a place: the end, how many characters of the key are missing there,
    and whether the text ends before more can be said."""
    for done, ways in enumerate(form):
        ahead = text[at : at + _AHEAD]
        ahead = ahead if exact else ahead.lower()
        found = next((way for way in ways if ahead.startswith(way)), None)
        if found is None:
            return at, len(form) - done, any(way.startswith(ahead) for way in ways)
        at += len(found)
    return at, 0, False
