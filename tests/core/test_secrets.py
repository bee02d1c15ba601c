"""A key is found whatever it was written in, and however it comes in pieces; nothing else is."""

from __future__ import annotations

import base64
import html
import json
import urllib.parse

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magy_server.core.text.secrets import GONE, Secrets, Sieve
from tests.thorough import examples

KEY = "sk-ant-api03-AbC_dE-" + "x9/+Q" * 8
RAW = KEY.encode()
WRITTEN = {
    "as it is": KEY,
    "in capitals": KEY.upper(),
    "for an address": urllib.parse.quote(KEY, safe=""),
    "for an address, all of it": "".join(f"%{byte:02X}" for byte in RAW),
    "twice": urllib.parse.quote(urllib.parse.quote(KEY, safe=""), safe=""),
    "in JSON": json.dumps(KEY).replace("/", "\\/"),
    "in escapes": "".join(f"\\u{byte:04x}" for byte in RAW),
    "in HTML": html.escape(KEY).replace("-", "&#45;").replace("_", "&#x5f;"),
    "base64": base64.b64encode(RAW).decode(),
    "base64, behind a name": base64.b64encode(b"user:" + RAW).decode(),
    "base64, behind two bytes": base64.b64encode(b"ab" + RAW + b"\n").decode(),
    "base64 for addresses": base64.urlsafe_b64encode(b"a" + RAW).decode().rstrip("="),
    "base64 for addresses, in one": urllib.parse.quote(base64.b64encode(RAW)),
    "base64 in lines": base64.encodebytes(b"Authorization: Bearer " + RAW).decode(),
    "base64 in lines, in JSON": json.dumps(base64.encodebytes(b"x" * 30 + RAW).decode()),
    "hex": RAW.hex(),
    "HEX": RAW.hex().upper(),
    "only its first half": KEY[:30],
}


def reads(text: str) -> bool:
    """Whether somebody who knows the key would find a good part of it."""
    digits = base64.b64encode(b"ab" + RAW).decode()[8:20], base64.b64encode(RAW).decode()[8:20]
    parts = [KEY[20:32], KEY[20:32].upper(), RAW[20:30].hex(), *digits]
    return any(part in text or part.upper() in text for part in parts)


@pytest.mark.parametrize("how", WRITTEN)
def test_a_key_is_taken_out(how: str) -> None:
    secrets = Secrets([KEY])
    cleaned = secrets.clean(f"before {WRITTEN[how]} after")
    assert cleaned.startswith("before ") and cleaned.endswith(" after") and GONE in cleaned
    assert not reads(cleaned) and len(cleaned) < len(WRITTEN[how]) + 14


@pytest.mark.parametrize("how", WRITTEN)
def test_wherever_it_is_cut_the_same_comes_through(how: str) -> None:
    secrets, text = Secrets([KEY]), f"before {WRITTEN[how]} after"
    whole = secrets.clean(text)
    for cut in range(len(text) + 1):
        sieve = Sieve(secrets)
        assert sieve(text[:cut]) + sieve(text[cut:]) + sieve("", final=True) == whole
    for size in (1, 2, 3, 7):
        sieve = Sieve(secrets)
        pieces = [sieve(text[at : at + size]) for at in range(0, len(text), size)]
        assert "".join(pieces) + sieve("", final=True) == whole
        assert not any(map(reads, pieces))


@settings(max_examples=examples(200))
@given(st.text("sk-ant\\u%0é&#12X/+= \n", max_size=80), st.lists(st.integers(0, 80)))
def test_what_holds_no_key_is_not_changed(text: str, cuts: list[int]) -> None:
    sieve, at, got = Sieve(Secrets([KEY, "k-12345678"])), 0, ""
    for cut in sorted(cuts):
        got += sieve(text[at:cut])
        at = max(at, cut)
    assert got + sieve(text[at:], final=True) == text


def test_nothing_is_held_back_for_long() -> None:
    sieve = Sieve(Secrets([KEY]))
    assert sieve("all of this, at once, s") == "all of this, at once, "
    assert sieve("o it is.") == "so it is."


def test_words_are_no_keys() -> None:
    for word in ("", "ollama", "not-needed", "placeholder", "EMPTY", "no-key-required", "sk-none"):
        assert not Secrets([word])
    secrets = Secrets([KEY])
    told = "A key begins with sk-ant-api03- and is then random."
    assert secrets.clean(told) == told
    assert Secrets().clean(KEY) == KEY and Sieve(Secrets())(KEY) == KEY


def test_everything_inside_a_value_is_looked_through() -> None:
    given = {"a": [KEY, 1, None, {"b": f"x{KEY}"}], KEY: (True, "y")}
    told = {"a": [GONE, 1, None, {"b": f"x{GONE}"}], GONE: (True, "y")}
    assert Secrets([KEY]).within(given) == told
    assert Secrets([KEY]).clean_bytes(b"\xff" + RAW + b"\x00") == b"\xff" + GONE.encode() + b"\x00"


def test_two_keys_that_begin_alike_both_go_whole() -> None:
    one, other = "sk-proj-" + "a1" * 30, "sk-proj-" + "a1" * 30 + "b2" * 20
    cleaned = Secrets([one, other]).clean(f"{other} {one}")
    assert cleaned == f"{GONE} {GONE}"


@given(st.integers(1, 9), st.integers(0, 30))
def test_what_a_pattern_matches_never_passes_a_sieve(size: int, before: int) -> None:
    secrets = Secrets([KEY], ["INT-[0-9a-f]{10}"])
    text = f"{'x' * before} INT-0123456789 y\nINT-{KEY} INT-abcdefabcd"
    sieve = Sieve(secrets)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    shown = "".join(sieve(piece) for piece in pieces) + sieve("", final=True)
    assert shown == secrets.clean(text) == f"{'x' * before} {GONE} y\nINT-{GONE} {GONE}"


def test_bytes_that_are_no_text_stay_as_they_are() -> None:
    secrets = Secrets([], ["INT-[0-9]+", "ü+"])
    assert secrets.clean_bytes(b"\xff INT-1 \x00") == b"\xff " + GONE.encode() + b" \x00"
    assert secrets.clean_bytes("a üü".encode()) == f"a {GONE}".encode()
    assert secrets.within({"a": ["INT-1"]}) == {"a": [GONE]}


def test_a_line_that_never_ends_is_not_held_back_for_ever() -> None:
    sieve = Sieve(Secrets([], ["INT-[0-9]+"]))
    assert len("".join(sieve("x" * 1000) for _ in range(20))) > 8_000
