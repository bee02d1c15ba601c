"""What a model is told of calls that failed."""

from __future__ import annotations

import json
from pathlib import Path

from magy_server.core.events import Finished, Judged

from .home import home

LONG = "x" * 1_000_000


async def test_megabytes_that_a_model_wrote_are_not_told_back(tmp_path: Path) -> None:
    calls = {"read_file": LONG, "edit_file": LONG, LONG: "a"}
    lines = [f"call: {name} {json.dumps({'path': path})}\n" for name, path in calls.items()]
    async with home(tmp_path, "".join(lines) + "---\ntext: Done.\n") as one:
        await one.new()
        await one.prompt("s", "look")
        await one.rested("s")
        events = await one.events("s")
    said = [event.for_model for event in events if isinstance(event, Finished)]
    assert len(said) == 3
    for text in said:
        assert 10 < len(text) < 17_000
    assert sum("characters left out" in text for text in said) >= 2
    facts = [event.facts for event in events if isinstance(event, Judged)]
    assert all(len(one.title) < 1_100 and len(one.problem or "") < 17_000 for one in facts)
