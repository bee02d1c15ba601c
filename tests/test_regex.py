"""Patterns that are compiled when they are first used are those of the standard library."""

from __future__ import annotations

import importlib
import pkgutil
import re

import pytest

import magy_server
from magy_server.regex import regex

TEXT = "one 2 three\nfour"


def test_a_pattern_does_what_a_compiled_one_does() -> None:
    for given in (r"(?P<word>[a-z]+)", r"\d", r"^f.*$"):
        ours, theirs = regex(given, re.MULTILINE), re.compile(given, re.MULTILINE)
        assert ours.findall(TEXT) == theirs.findall(TEXT)
        assert [m.span() for m in ours.finditer(TEXT)] == [m.span() for m in theirs.finditer(TEXT)]
        assert ours.sub("-", TEXT, count=1) == theirs.sub("-", TEXT, count=1)
        assert ours.split(TEXT) == theirs.split(TEXT)
        assert bool(ours.match(TEXT, 4)) == bool(theirs.match(TEXT, 4))
        assert (ours.pattern, ours.flags) == (theirs.pattern, theirs.flags)
        assert ours.groupindex == theirs.groupindex
    assert regex(rb"\xff").search(b"a\xff")
    with pytest.raises(AttributeError, match="nothing"):
        regex("a").nothing  # type: ignore[attr-defined]  # noqa: B018


def test_every_pattern_of_the_server_can_be_compiled() -> None:
    found = []
    for module in pkgutil.walk_packages(magy_server.__path__, "magy_server."):
        if not module.name.endswith("__main__"):
            values = list(vars(importlib.import_module(module.name)).values())
            values += [v for value in values if isinstance(value, dict) for v in value.values()]
            found += [value for value in values if type(value).__name__ == "regex"]
    assert len(found) > 200
    for one in found:
        assert one.pattern
