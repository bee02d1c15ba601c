"""What Magy ships is the same, read from its files or from what was worked out of them."""

from __future__ import annotations

import orjson

from magy_server.config import shipped
from magy_server.config.resources import resource


def test_what_was_worked_out_is_what_the_files_say() -> None:
    texts = shipped.texts()
    assert shipped.digest(texts) == orjson.loads(shipped.WORKED_OUT.read_bytes())["digest"]
    read = shipped.parsed({str(resource(name)): text for name, text in texts.items()})
    assert shipped.shipped() == read
    assert read.agents["build"].where == str(resource("agents", "build.md"))
    assert read.rules.keys and read.actions


def test_a_file_that_somebody_changed_is_read() -> None:
    texts = dict(shipped.texts())
    texts["agents/plan.md"] += "\nBe brief."
    assert shipped.of(texts).agents["plan"].prompt.endswith("Be brief.")
