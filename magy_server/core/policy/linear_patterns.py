"""This module holds regular expressions that people write into configuration against texts that
models write: the time that a search takes grows only with the length of the text, whatever the
pattern is.

The engine is RE2: https://github.com/google/re2/wiki/Syntax. It has no look-around and no back
references, which is why it never backtracks.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from magy_server.core.errors import InvalidConfig
from magy_server.core.text.surrogates import whole

LONGEST = 2_000
"""Characters of a pattern."""
_MEMORY = 8 << 20
"""Bytes that one compiled pattern may take; `(a{1000}){1000}` would take more."""
_MISSING: Mapping[str, str] = {
    "(?=": "look-ahead", "(?!": "look-ahead", "(?<=": "look-behind", "(?<!": "look-behind",
    "(?>": "an atomic group", "(?P=": "a back reference",
}  # fmt: skip


def checked(pattern: str, where: str) -> str:
    """Returns the pattern, which can be compiled. Raises InvalidConfig; `where` names file and
    place."""
    if len(pattern) > LONGEST:
        raise InvalidConfig(
            f"{where}: the pattern has {len(pattern)} characters, and may have {LONGEST}; make "
            "several of it."
        )
    try:
        _compiled(pattern)
    except _engine().error as error:
        raise InvalidConfig(f"{where}: the pattern {pattern!r} {_said(pattern, error)}") from None
    return pattern


def found_in(pattern: str, text: str) -> bool:
    """Returns whether the pattern matches anywhere in the text."""
    return _compiled(pattern).search(_encodable(text)) is not None


def replaced(pattern: str, by: str, text: str) -> str:
    """Returns the text with every match of the pattern replaced by the words `by`. A match of
    nothing stays."""
    parts, at, text = [], 0, _encodable(text)
    for match in _compiled(pattern).finditer(text):
        if match.end() > match.start():
            parts += [text[at : match.start()], by]
            at = match.end()
    return "".join([*parts, text[at:]]) if parts else text


def _encodable(text: str) -> str:
    """The engine reads UTF-8, which has no half surrogate pairs."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return whole(text)
    return text


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    options = _engine().Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    return _engine().compile(pattern, options=options)


def _engine() -> Any:
    """Imported when the first pattern is met: most people have none."""
    import re2  # type: ignore[import-untyped]

    return re2


def _said(pattern: str, error: Exception) -> str:
    why = error.args[0] if error.args else "cannot be read"
    why = why.decode("utf-8", "replace") if isinstance(why, bytes) else str(why)
    missing = next((name for start, name in _MISSING.items() if start in pattern), "")
    if missing:
        return f"has {missing}, which guardrails do not know, as it can take for ever."
    return f"cannot be read: {why}. It is a regular expression as RE2 has them."
