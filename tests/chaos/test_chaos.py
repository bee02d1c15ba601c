"""A few of the kills of `make chaos`, the same every time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.trial import trial


@pytest.mark.needs("flock")
@pytest.mark.timeout(300)
@pytest.mark.req("G020", "G027", "A170")
@pytest.mark.parametrize("seed", [3, 4, 5])
async def test_nothing_is_lost_and_nothing_is_done_twice(tmp_path: Path, seed: int) -> None:
    outcome = await trial(seed, tmp_path / "trial")
    assert outcome.problems == []
    assert outcome.kills
