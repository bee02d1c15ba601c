"""A plugin that is installed for development is imported anew at the next prompt after an edit."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from magy_server.plugins import switches
from magy_server.plugins.reloading import load_live
from magy_server.plugins.switches import chosen
from tests.e2e.harness import SESSION, person, served
from tests.loopback import ChatServer, call, text
from tests.patience import PATIENCE

from .conftest import Magy, unpack
from .packing import Environment, documented
from .test_bad_plugins import good

MORE = """

@tool(effect="read")
async def count_lines(ctx: ToolContext, text: str) -> Result:
    "Count lines."
    return Result(for_model=str(text.count(chr(10)) + 1))


plugin = Plugin(
    tools=[count_words, count_lines], listeners=[note_turns], contexts=[house_style], doors={},
)
"""


def newly_written(code: str) -> str:
    for old, new in (
        ("len(text.split())", "100 + len(text.split())"),
        ("at most 20 words", "at most 30 words"),
        ("{entry.event.stop}", "{entry.event.stop} newer"),
    ):
        code = code.replace(old, new)
    return code + MORE


@pytest.mark.req("A159")
async def test_a_plugin_that_is_edited_meanwhile_is_the_new_one_at_the_next_prompt(
    environment: Environment, magy: Magy, tmp_path: Path
) -> None:
    sources = tmp_path / "sources"
    environment.link(documented(), sources)
    assert magy("plugins", "enable", "words", "--yes").returncode == 0
    file = sources / "magy_words" / "__init__.py"
    code = file.read_text()
    newer = newly_written(code)
    settings = {"permission": {"plugin_words": "allow"}}
    state = Path(magy.env["MAGY_STATE_DIR"])
    async with (
        ChatServer() as server,
        person(
            magy.root, state, settings={**served(server), **settings},
            command=(*magy.command, "lsp"), env={"HOME": str(tmp_path)},
        ) as one,
    ):  # fmt: skip

        async def counted(id: str, tool: str = "count_words") -> tuple[str, str, set[str]]:
            """What the tool answers, the sections of the prompt, and the tools in it."""
            before = len(server.asked)
            server.reply(call(tool, {"text": "one two"}, id=id))
            server.reply(text("So many."))
            await one.turn("Count", id)
            first, last = (request.body for request in [*server.asked][before:])
            tools = {tool["function"]["name"] for tool in first["tools"]}
            return last["messages"][-1]["content"], str(first["messages"]), tools

        async def problems() -> list[str]:
            found = (await one.client.request("magy/mcp/list"))["problems"]
            return [said for said in found if "magy-words" in said]

        await one.new()
        answer, prompt, tools = await counted("p1")
        assert answer == "2" and "at most 20 words" in prompt and "count_lines" not in tools
        file.write_text(newer)
        answer, prompt, tools = await counted("p2")
        assert answer == "102" and "at most 30 words" in prompt and "count_lines" in tools
        file.write_text(newer.replace("100 +", "500 +") + "def broken(:\n")
        assert (await counted("p3"))[0] == "102", "it stays as it was"
        (problem,) = await problems()
        assert "SyntaxError" in problem and f"{file}:" in problem and "as it was" in problem
        file.write_text(code)
        answer, _, tools = await counted("p4")
        assert answer == "2" and "count_lines" not in tools
        assert not await problems()
    told = f"{SESSION} end_turn\n"
    newly = f"{SESSION} end_turn newer\n"
    assert (tmp_path / "turns.log").read_text() == told + newly + newly + told


async def test_of_what_is_not_installed_for_development_nothing_is_imported_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, config = tmp_path / "packages", str(tmp_path / "config")
    monkeypatch.syspath_prepend(str(place))
    unpack(good("kept"), place)
    switches.enable("kept", config)
    live = await load_live(chosen(config), (), PATIENCE)
    first = live.tools[0]
    (place / "magy_kept.py").write_text("raise ValueError\n")
    await live.fresh()
    assert live.tools[0] is first and not live.problems


async def test_an_edit_of_the_same_size_in_the_same_second_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Python keeps of compiled sources would have hidden it."""
    place, config = tmp_path / "packages", str(tmp_path / "config")
    monkeypatch.syspath_prepend(str(place))
    unpack(good("quick"), place)
    origin = place / "magy_quick-1.dist-info" / "direct_url.json"
    origin.write_text('{"url": "file:///x", "dir_info": {"editable": true}}')
    switches.enable("quick", config)
    live = await load_live(chosen(config), (), PATIENCE)
    assert live.tools[0].description == "Says it."
    file = place / "magy_quick.py"
    for word in ("Said", "Sang", "Sung"):
        file.write_text(file.read_text().replace(live.tools[0].description[:4], word))
        await live.fresh()
        assert live.tools[0].description.startswith(word), live.problems
    before = sys.modules["magy_quick"]
    file.write_text("plugin = 5\n")
    await live.fresh()
    assert "is a int, not a Plugin" in live.problems[0]
    assert sys.modules["magy_quick"] is importlib.import_module("magy_quick") is before
    file.unlink()
    await live.fresh()
    assert "No module named" in live.problems[0] and live.tools
    await live.close()
