"""The fault matrix holds with every transport, and its page says what happens."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.thorough import one_of

from . import matrix
from .matrix import CASES, PAGE, WIRES, Outcome
from .talking import WAYS

Found = Mapping[tuple[int, str], Outcome]


LAWS = {
    "307": ("not_found", 1),
    "401": ("auth", 1),
    "403": ("auth", 1),
    "404": ("not_found", 1),
    "408": ("timeout", 5),
    "429: too many": ("rate_limit", 5),
    "429 that says when to": ("rate_limit", 5),
    "429 that says to come back in two minutes": ("rate_limit", 1),
    "The account": ("refused", 1),
    "500": ("server", 5),
    "503": ("overloaded", 5),
    "529": ("overloaded", 5),
    "Nothing listens": ("connection", 5),
    "No answer": ("timeout", 5),
    "The reply stops": ("timeout", 5),
    "The connection is cut": ("connection", 5),
    "Malformed": ("malformed", 5),
    "A web page": ("malformed", 1),
    "200, and nothing": ("malformed", 5),
    "A reply without content": ("", 1),
    "The model refuses": ("refusal", 1),
    "The conversation is too long": ("too_long", 1),
    "The provider breaks off": ("overloaded", 5),
    "`https://`": ("connection", 1),
    "A certificate": ("connection", 1),
}
"""What must be so on every wire, whatever a page says: (fault, tries), by how the case begins."""


def keeps_the_laws(found: Found) -> None:
    """The three wires agree; each time the engine asks, one request goes out; a wish to wait is
    honoured; the words name the other side and what to do."""
    for number, case in enumerate(CASES):
        for wire in WIRES:
            outcome = found[number, wire]
            where = f"{case.what}, {wire}: {outcome}"
            (expected,) = (law for begin, law in LAWS.items() if case.what.startswith(begin))
            assert (outcome.fault, outcome.tries) == expected, where
            assert outcome.requests in (None, outcome.tries), where
            if outcome.fault not in ("", "refusal"):
                assert "MODEL at URL: " in outcome.words, where
                assert "What to do: " in outcome.words, where
            if case.retry_after == matrix.ASKED:
                assert outcome.waits == "as asked", where


def is_told_by_the_page(found: Found) -> None:
    page = PAGE.read_text(encoding="utf-8")
    now = matrix.render(found)
    stale = set(matrix.comparable(page).splitlines()) ^ set(matrix.comparable(now).splitlines())
    assert not stale, f"{PAGE.name} is stale; run `python -m tests.llm.matrix --write`"


@pytest.mark.long
@pytest.mark.parametrize("way", [WAYS[0], *one_of(WAYS[1:])])
def test_the_matrix_keeps_the_laws_and_the_page_tells_it(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One test for both: most of its time is waiting for what does not come."""
    for name in ("MAGY_STATE_DIR", "MAGY_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    found = asyncio.run(matrix.run(tmp_path, way))
    keeps_the_laws(found)
    is_told_by_the_page(found)
