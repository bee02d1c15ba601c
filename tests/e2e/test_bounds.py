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


@pytest.mark.req("E136")
async def test_a_command_may_have_600_seconds_and_no_more(root: Path, state: Path) -> None:
    async with at_work(root, state) as (one, model):
        for limit, id in ((600, "p1"), (601, "p2")):
            model.reply(call("bash", {"command": "echo it ran", "timeout": limit}))
            model.reply(text("I see."))
            await one.turn("Run it", id)
        allowed, refused = said(model.asked[1].body), said(model.asked[3].body)
        assert "it ran" in allowed
        assert "it ran" not in refused
        assert re.search("timeout.* less than or equal to 600", refused)


@pytest.mark.req("E136")
async def test_64_mib_are_kept_of_each_output(root: Path, state: Path) -> None:
    """Of two long outputs of one session each has its own."""
    async with at_work(root, state) as (one, model):
        await one.request("session/set_config_option", configId="bypass", value="on")
        floods = [f"yes | head -c {70 << 20}; touch {name}" for name in "ab"]
        model.reply(*(call("bash", {"command": c, "background": True}) for c in floods))
        model.reply(call("bash", {"command": "until ls a b; do sleep 0.1; done", "timeout": 600}))
        model.reply(text("There they are."))
        await one.turn("Flood")
        ids = re.findall(r'bash_output\(call_id="([\d.]+)"', said(model.asked[1].body))
        model.reply(*(call("bash_output", {"call_id": id, "offset": -1}) for id in ids))
        model.reply(text("Read."))
        await one.turn("Read the ends", "p2")
        read = said(model.asked[-1].body)
        assert read.count("there was more output than Magy keeps") == len(ids) == 2
        kept = [int(total) for total in re.findall(r"; characters \d+-\d+ of (\d+)\]", read)]
        assert [round(total / 2**20) for total in kept] == [64, 64]
