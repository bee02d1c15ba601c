"""The doctor's own manners: a check that fails or hangs is a finding, and the others go on."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path

import pytest

from magy_server.doctor import Around, Check, Finding, examine
from magy_server.doctor.installation import satisfies
from magy_server.doctor.report import for_people

GOOD = Finding("good", "ok", "It is well.")


async def good(around: Around) -> list[Finding]:
    return [GOOD]


async def broken(around: Around) -> list[Finding]:
    raise ZeroDivisionError("by nought")


async def hanging(around: Around) -> list[Finding]:
    await asyncio.Event().wait()
    return []


async def test_a_check_that_fails_or_hangs_is_a_finding(tmp_path: Path) -> None:
    heard: list[list[str]] = []
    checks = [
        Check("hangs", hanging, 0.05), Check("good", good), Check("fails", broken),
    ]  # fmt: skip
    around = Around(str(tmp_path), {})
    hangs, well, fails = await examine(around, checks, lambda topics: heard.append([*topics]))
    assert (hangs.topic, hangs.status) == ("hangs", "warning")
    assert "within 0.05 s" in hangs.what and hangs.mend
    assert well == GOOD
    assert fails.what == "This check failed: ZeroDivisionError: by nought" and fails.mend
    assert heard[0] == ["hangs", "good", "fails"] and heard[-1] == ["hangs"]


@pytest.mark.parametrize(
    ("version", "bounds", "fits"),
    [
        ("2.11.0", ">=2.11,<3", True),
        ("2.10.9", ">=2.11,<3", False),
        ("3.0.0", ">=2.11,<3", False),
        ("2025.0.0", ">=2025.0.0", True),
        ("6", ">=6.0", True),
        ("1.2.3rc1", ">=1.2.3", True),
        ("1.4.9", "~=1.4.2", True),
        ("1.5.0", "~=1.4.2", False),
        ("1.0", "!=1.0", False),
        ("1.0", "==1.0.0", True),
        ("whatever", "", True),
    ],
)
def test_versions_are_compared_by_their_numbers(version: str, bounds: str, fits: bool) -> None:
    assert satisfies(version, bounds) is fits


def test_nothing_that_is_shown_steers_the_terminal() -> None:
    odd = "a\x1b[31mb\n\tc\u202ed\x07"
    told = for_people([Finding("models", "problem", odd, odd)], io.StringIO())
    assert told.count("ab c<U+202E>d<U+0007>\n") == 2
    assert told.replace("\n", "").isprintable()


def test_a_name_is_never_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    said = f"the provider answered HTTP 401 (invalid x-api-key) and {'long-path/' * 5}"
    told = for_people([Finding("models", "problem", said, said)], io.StringIO())
    assert told.count("x-api-key") == told.count("long-path/" * 5) == 2
