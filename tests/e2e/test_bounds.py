"""How much of what tools find reaches a model, where nobody has set it otherwise."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.loopback import call, text

from .test_prompts import at_work, said


@pytest.mark.req("E136")
async def test_a_search_shows_500_files_and_says_how_many_there_are(
    root: Path, state: Path
) -> None:
    many = root / "many"
    many.mkdir()
    for n in range(501):
        (many / f"{n}.txt").touch()
    async with at_work(root, state) as (one, model):
        for id in ("p1", "p2"):
            model.reply(call("glob", {"pattern": "many/*.txt"}))
            model.reply(text("Found."))
            await one.turn("Look", id)
            shown = said(model.asked[-1].body)
            assert len(re.findall(r"^many/\d+\.txt$", shown, re.MULTILINE)) == 500
            assert ("[500 of 501 files, the newest;" in shown) == (id == "p1")
            (many / "0.txt").unlink(missing_ok=True)


@pytest.mark.req("E136")
async def test_long_output_is_read_in_pages_of_8000_characters(root: Path, state: Path) -> None:
    async with at_work(root, state) as (one, model):
        model.reply(call("bash", {"command": "seq 20000"}))
        model.reply(text("It is long."))
        await one.turn("Count")
        (id,) = set(re.findall(r'bash_output\(call_id="([\d.]+)"', said(model.asked[-1].body)))
        model.reply(call("bash_output", {"call_id": id}))
        model.reply(text("Read."))
        await one.turn("Read it", "p2")
        page = said(model.asked[-1].body)
        total = len("".join(f"{n}\n" for n in range(1, 20_001)))
        assert f"characters 0-8000 of {total}; continue with offset=8000]" in page
        assert page.startswith("".join(f"{n}\n" for n in range(1, 2_000))[:8_000])
