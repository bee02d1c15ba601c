"""Half surrogate pairs become U+FFFD; halves that belong together, a character."""

from __future__ import annotations

import pytest

from magy_server.core.text.surrogates import Joining, all_whole, loads, whole


def test_whole() -> None:
    assert whole("a\ud83d") == "a\ufffd"
    assert whole("\ude00\ud83d b") == "\ufffd\ufffd b"
    assert whole("\ud83d\ude00") == "\U0001f600"
    assert all_whole({"\ud800": ["\udfff", 1]}) == {"\ufffd": ["\ufffd", 1]}


def test_json() -> None:
    assert loads(b'{"a": "\\ud83d"}') == {"a": "\ufffd"}
    assert loads('{"a": "\\uD83D\\uDE00"}') == {"a": "\U0001f600"}
    assert loads('["\ud83d"]') == ["\ufffd"]
    assert loads(b'["\xed\xa0\xbd"]') == ["\ufffd"]
    assert loads(b'["\\ud83d"]', halves=True) == ["\ud83d"]
    for wrong in (b'["\\ud83d", NaN]', b'["\\ud83d"', b'["\xff"]', "[1,]"):
        with pytest.raises(ValueError):
            loads(wrong)


def test_pieces_that_are_cut_within_a_character() -> None:
    pieces = Joining()
    assert [pieces.feed("a", p) for p in ("x\ud83d", "\ude00", "\ud83d", "y")] == [
        "x", "\U0001f600", "", "\ufffdy",
    ]  # fmt: skip
    assert pieces.feed("a", "\ud83d") == ""
    assert pieces.feed("b", "z") == "z"
    assert pieces.feed("a", "", last=True) == "\ufffd"
