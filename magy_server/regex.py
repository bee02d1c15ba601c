"""`regex` is `re.compile`, but compiles when the pattern is first used.

Magy has some 250 patterns. A short command uses few of them, and to compile all was a tenth of what
it costs. Type checkers see the standard function.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from re import compile as regex
else:
    _METHODS = ("match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer")

    class regex:
        """Has what a compiled pattern has."""

        __slots__ = ("_given", *_METHODS)

        def __init__(self, pattern, flags=0):
            self._given = pattern, flags

        def __getattr__(self, name):
            """Only what is not there yet comes here."""
            compiled = re.compile(*self._given)
            for method in _METHODS:
                setattr(self, method, getattr(compiled, method))
            return getattr(compiled, name)


__all__ = ["regex"]
