"""A few of the cases of `make interleavings`; and that the judge sees what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.thorough import rotating

from .case import run_all
from .text import Sheet, State


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [1, 1000])
async def test_no_key_is_lost_and_no_hunk_is_nobodys(tmp_path: Path, seed: int) -> None:
    cases = list(rotating(range(seed, seed + 10)))
    outcomes = await run_all(tmp_path, cases)
    assert [(one.seed, one.did, one.problems) for one in outcomes if one.problems] == []
    assert sum(one.keys for one in outcomes) > 10 * len(cases), [one.keys for one in outcomes]


def sheet() -> Sheet:
    found = Sheet.new()
    found.states[1] = State(found.states[1].base, ("<1> applied",))
    found.keys.add("⟦1⟧")
    return found


def hunk(line: int, old: str, new: str) -> dict[str, object]:
    ends = {"start": {"line": line, "character": 0}, "end": {"line": line + 1, "character": 0}}
    return {"range": ends, "oldText": old, "newText": new}


def test_what_must_stand_stands() -> None:
    text = sheet().text.replace("w3.1", "⟦1⟧w3.1")
    at = text.split("\n").index("<1> applied")
    file = {"hunks": [hunk(at, "<1> as it was 1\n", "<1> applied\n")]}
    assert sheet().problems(text, file) == []


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("⟦1⟧", "", "key ⟦1⟧ is lost"),
        ("w9.0", "⟦1⟧w9.0", "key ⟦1⟧ is there twice"),
        ("<1> applied", "<1> as it was 1", "the text has"),
        ("w9.0", "w9.0 ", "the text has"),
        ("w9.0", "⟦2⟧w9.0", "key ⟦2⟧, which was deleted, is back"),
    ],
)
def test_what_must_not_stand_is_seen(old: str, new: str, problem: str) -> None:
    case = sheet()
    case.gone.add("⟦2⟧")
    text = case.text.replace("w3.1", "⟦1⟧w3.1").replace(old, new)
    assert any(one.startswith(problem) for one in case.problems(text, None))


@pytest.mark.parametrize(
    ("line", "old", "new"),
    [("w3.1", "03: w3.0 w3.2\n", "03: w3.0 ⟦1⟧w3.1 w3.2\n"), ("<2>", "x\n", "<2> as it was 2\n")],
)
def test_a_hunk_that_nobody_made_is_seen(line: str, old: str, new: str) -> None:
    text = sheet().text.replace("w3.1", "⟦1⟧w3.1")
    at = next(n for n, one in enumerate(text.split("\n")) if line in one)
    problems = sheet().problems(text, {"hunks": [hunk(at, old, new)]})
    assert any(one.startswith("nobody made the hunk") for one in problems)
