"""Plugins that are wrong are said with package, line and what next, and take nothing down."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from magy_server.core.errors import InvalidConfig, NotFound
from magy_server.core.state.state import State
from magy_server.plugins import switches
from magy_server.plugins.loading import Plugins
from magy_server.plugins.parts import FAILURES
from magy_server.plugins.switches import chosen
from tests.e2e.harness import person, served
from tests.loopback import ChatServer, call, text

from .conftest import Loading, Magy
from .packing import Environment, package

GOOD = """
from magy_server.plugins import Plugin, Result, tool
@tool(effect="read")
async def {name}(ctx, text: str) -> Result:
    "Says it."
    return Result(for_model=text)
plugin = Plugin(tools=[{name}])
"""


def good(name: str, tool: str = "") -> dict[str, str]:
    return package(name, GOOD.format(name=tool or f"say_{name}"))


async def test_what_is_wrong_with_one_is_said_and_the_others_are_used(loading: Loading) -> None:
    plugins: Plugins = await loading(
        good("fine"),
        package("broken", "x = 1\nraise ValueError('no such thing')\n"),
        package("misspelt", "def f(:\n"),
        package("leaving", "import sys\nsys.exit(3)\n"),
        package("absent", "", value="magy_nowhere:plugin"),
        package("nameless", ""),
        package("strange", "plugin = 5\n"),
        good("taken", "read_file"),
        good("twice", "say_fine"),
        good("foreign", "mcp__x__y"),
        package("mute", GOOD.format(name="mute").replace('    "Says it."\n', "")),
        package("odd", GOOD.format(name="odd") + "plugin = Plugin(listeners=[print])\n"),
        package("unshaped", GOOD.format(name="f").replace("text: str", "text: Nothing")),
    )
    assert set(plugins.used) == {"fine"}
    said = plugins.unusable
    assert "magy-broken 1) failed in its start: ValueError: no such thing" in said["broken"]
    assert "magy_broken.py:2. Tell its author; `magy plugins disable broken`" in said["broken"]
    assert "SyntaxError" in said["misspelt"] and "magy_misspelt.py:1" in said["misspelt"]
    assert "SystemExit: 3" in said["leaving"]
    assert "No module named 'magy_nowhere'" in said["absent"]
    assert "no attribute 'plugin'" in said["nameless"]
    assert "magy_strange:plugin is a int, not a Plugin" in said["strange"]
    assert "there is a tool of the name 'read_file' already" in said["taken"]
    assert "there is a tool of the name 'say_fine' already" in said["twice"]
    assert "'mcp__x__y', which cannot be used" in said["foreign"]
    assert "its tool mute has no docstring" in said["mute"]
    assert "print is not an async function" in said["odd"]
    assert "NameError" in said["unshaped"]
    with pytest.raises(NotFound, match=r"has a door 'front'\. Doors that they have: none"):
        plugins.door("front")


async def test_one_that_hangs_in_its_start_is_left_out(loading: Loading, tmp_path: Path) -> None:
    """Its thread waits for a file that the test makes in the end."""
    gate = tmp_path / "gate"
    code = f"import os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)\n"
    began = time.monotonic()
    plugins: Plugins = await loading(package("slow", code), seconds=0.2)
    assert time.monotonic() - began >= 0.2
    assert (
        "did not finish its start (the import of magy_slow:plugin) in 0.2 s"
        in (plugins.unusable["slow"])
    )
    gate.touch()


async def test_a_name_that_cannot_be_one_and_one_that_is_there_twice_are_said(
    loading: Loading, tmp_path: Path
) -> None:
    await loading(good("fine"))
    files = good("other")
    twin = {**files, "pyproject.toml": files["pyproject.toml"].replace("\nother =", "\nfine =")}
    wrong = {**files, "pyproject.toml": files["pyproject.toml"].replace("\nother =", "\nO-1 =")}
    wrong["pyproject.toml"] = wrong["pyproject.toml"].replace("magy-other", "magy-wrong")
    with pytest.raises(
        NotFound,
        match=r"No installed package has a plugin 'O-1'\. Plugins that are installed: fine",
    ):
        await loading(wrong)
    plugins: Plugins = await loading(twin)
    assert any("magy-other 1) is not used: magy-fine has a plugin of that name" in one
               or "magy-fine 1) is not used: magy-other has a plugin" in one
               for one in plugins.others)  # fmt: skip
    assert any("small letters, digits" in one for one in plugins.others)


async def test_switches_that_cannot_be_read_switch_nothing_on(
    loading: Loading, tmp_path: Path
) -> None:
    await loading(good("fine"))
    config = tmp_path / "config"
    (config / "plugins.json").write_text("{")
    found = chosen(str(config))
    assert not found.plugins and "is not as Magy wrote it" in found.problems[0]
    with pytest.raises(InvalidConfig):
        switches.disable("fine", str(config))


async def test_a_file_of_the_package_that_changed_is_not_used(
    loading: Loading, tmp_path: Path
) -> None:
    await loading(good("fine"))
    config = str(tmp_path / "config")
    with open(tmp_path / "packages" / "magy_fine.py", "a") as file:
        file.write("# more\n")
    assert (
        "has changed since you switched it on, and is not used" in chosen(config).unusable["fine"]
    )
    switches.enable("fine", config)
    assert "fine" in chosen(config).plugins
    (tmp_path / "packages" / "magy_fine.py").unlink()
    assert "magy_fine.py cannot be read" in chosen(config).unusable["fine"]


FAILING = """
from magy_server.plugins import Plugin, Result, tool
heard = []
@tool(effect="net")
async def fails(ctx) -> Result:
    "Fails."
    return Result(for_model={}["nothing"])
@tool(effect="read")
async def says(ctx) -> Result:
    "Says."
    return "a text"
async def deaf(session, entries):
    heard.append(entries)
    raise OSError("deaf")
async def late(where):
    raise RuntimeError("no context today")
async def early(where):
    return f"{where.agent} is at work."
plugin = Plugin(tools=[fails, says], listeners=[deaf], contexts=[late, early])
"""


@pytest.mark.req("A157")
async def test_a_session_goes_on_when_all_of_a_plugin_fails(
    environment: Environment, magy: Magy
) -> None:
    environment.install(package("fails", FAILING))
    environment.install(package("broken", "raise ValueError('no such thing')\n"))
    for name, code in (("fails", 0), ("broken", 1)):
        assert magy("plugins", "enable", name, "--yes").returncode == code
    doctor = magy("doctor", "--json").stdout
    assert "magy_broken.py:1" in doctor and "Plugins: fails (magy-fails 1)." in doctor
    state = Path(magy.env["MAGY_STATE_DIR"])
    allowed = {"permission": {"plugin_fails": "allow"}}
    async with ChatServer() as server:
        settings = {**served(server), **allowed}
        command = (*magy.command, "lsp")
        async with person(magy.root, state, settings=settings, command=command) as one:
            await one.client.wait_for("window/showMessage", lambda m: "magy_broken" in m["message"])
            await one.new()
            server.reply(call("fails", {}, id="c1"), call("says", {}, id="c2"))
            server.reply(text("Neither worked."))
            await one.turn("Try")
            first, last = (request.body for request in server.asked)
            said = {m["tool_call_id"]: m["content"]
                    for m in last["messages"] if m["role"] == "tool"}  # fmt: skip
            assert "failed in the tool fails: KeyError: 'nothing'" in said["c1"]
            assert "magy_fails.py:7" in said["c1"]
            assert "returned str, not a Result" in said["c2"]
            assert "build is at work." in str(first["messages"][0])
            assert one.said() == "Neither worked."


async def test_a_listener_that_fails_again_and_again_is_told_no_more(loading: Loading) -> None:
    plugins: Plugins = await loading(package("fails", FAILING))
    (listening,) = plugins.used["fails"].listening()
    import magy_fails  # type: ignore[import-not-found]

    state: Any = State(stream="session/s")
    for number in range(FAILURES + 3):
        listening(state, ())
        await asyncio.wait_for(_told(magy_fails.heard, number), 60)
    await listening.close()
    assert len(magy_fails.heard) == FAILURES


async def _told(heard: list[Any], number: int) -> None:
    while len(heard) <= min(number, FAILURES - 1):
        await asyncio.sleep(0.001)
