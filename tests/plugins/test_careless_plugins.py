"""What a careless plugin does stops neither a start of Magy nor a session: each time it is one
sentence, and the rest goes on."""

from __future__ import annotations

import os
import py_compile
import sys
from pathlib import Path

import pytest

from magy_server.core.errors import InvalidConfig
from magy_server.plugins import switches
from magy_server.plugins.installed import installed
from magy_server.plugins.loading import Plugins, load
from magy_server.plugins.switches import chosen
from tests.e2e.harness import Person, person, served
from tests.loopback import ChatServer, call, text

from .conftest import Loading, unpack
from .packing import package

HEAD = """
import asyncio, sys
from typing import Annotated
from pydantic import BeforeValidator
from magy_server.plugins import Plugin, Result, ToolError, tool
async def heard(session, entries): pass
async def context(where): return ""
@tool(effect="read")
async def say_{name}(ctx) -> Result:
    "Says it."
    return Result(for_model="said")
"""


def made(name: str, code: str) -> dict[str, str]:
    return package(name, HEAD.format(name=name) + code)


HALF = r"""
say_half.run.__doc__ = "Says \ud800 half."
plugin = Plugin(tools=[tool(effect="read")(say_half.run)])
"""


async def test_parts_of_a_wrong_kind_are_said_and_the_others_are_used(loading: Loading) -> None:
    tool = "@tool(effect='read'{more})\n{how} f(ctx) -> Result:\n    {about}\n    pass\n"
    given = "plugin = Plugin(tools=[f])\n"
    plugins: Plugins = await loading(
        made("fine", "plugin = Plugin(tools=[say_fine])\n"),
        made("alone", "plugin = Plugin(contexts=context)\n"),
        made("deaf", "plugin = Plugin(listeners=heard)\n"),
        made("bare", "plugin = Plugin(tools=say_bare)\n"),
        made("doors", "plugin = Plugin(doors=[heard])\n"),
        made("door", "plugin = Plugin(doors={5: heard})\n"),
        made("sync", tool.format(more="", how="def", about="'Says.'") + given),
        made("facts", tool.format(more=", facts=len", how="async def", about="'Says.'") + given),
        made("kind", tool.format(more=", kind=5", how="async def", about="'Says.'") + given),
        made("long", tool.format(more="", how="async def", about=repr("x" * 60_000)) + given),
        made("half", HALF),
        made("hides", "class Odd(Exception):\n    def __str__(self): raise OSError\nraise Odd\n"),
    )
    assert set(plugins.used) == {"fine", "half"}
    assert "�" in plugins.used["half"].tools[0].description
    said = plugins.unusable
    assert "its contexts are <function context" in said["alone"]
    assert "not a list: write contexts=[...]. Tell its author" in said["alone"]
    assert "write listeners=[...]" in said["deaf"] and "write tools=[...]" in said["bare"]
    assert "its doors are [<function" in said["doors"] and "has the name 5" in said["door"]
    assert "not used: f is not an async function" in said["sync"]
    assert "len is not an async function" in said["facts"]
    assert "has a kind that is no text" in said["kind"]
    assert "more than 50,000 characters" in said["long"]
    assert "Odd: (what it says cannot be shown)" in said["hides"]


METADATA = "Metadata-Version: 2.1\nName: zz\nVersion: 1\n"


@pytest.mark.parametrize(
    ("metadata", "points"),
    [
        (METADATA, b"broken\n"),
        (METADATA, b"x = !!!\n"),
        (METADATA, b"x = a:b \xff\xfe\n"),
        ("Metadata-Version: 2.1\nVersion: 1\n", b"x = a:b\n"),
    ],
)
async def test_a_package_that_is_installed_wrongly_is_said_and_the_others_are_used(
    loading: Loading, tmp_path: Path, metadata: str, points: bytes
) -> None:
    await loading(made("fine", "plugin = Plugin(tools=[say_fine])\n"))
    info = tmp_path / "packages" / "zz-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(metadata)
    (info / "entry_points.txt").write_bytes(b"[magy.plugins]\n" + points)
    there, (problem,) = installed()
    assert "fine" in there
    assert f"{info} is installed in a way that cannot be read" in problem
    found = chosen(str(tmp_path / "config"))
    assert set(found.plugins) == {"fine"} and found.problems == (problem,)


async def test_what_is_no_part_of_a_list_of_files_is_hashed_and_not_run(
    loading: Loading, tmp_path: Path
) -> None:
    """A compiled file with the time and the size of its source, and files that RECORD does not
    name."""
    files = package("pins", "")
    del files["magy_pins.py"]
    files["magy_pins/__init__.py"] = HEAD.format(name="pins") + "plugin = Plugin(tools=[say_pins])"
    files["magy_pins/late.py"] = "ran = 'source'"
    config, folder = str(tmp_path / "config"), tmp_path / "packages" / "magy_pins"
    await loading(made("fine", "plugin = Plugin()\n"))  # so that the place is on the path
    unpack(files, tmp_path / "packages")
    switches.enable("pins", config)
    source = folder / "late.py"
    times = source.stat()
    source.write_text("ran = 'cached'")
    os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))
    py_compile.compile(str(source))
    source.write_text("ran = 'source'")
    os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert "pins" in (await load(chosen(config), ())).used
    import magy_pins.late  # type: ignore[import-not-found]

    assert magy_pins.late.ran == "source"

    (folder / "json").mkdir()
    (folder / "json" / "__init__.py").write_text("")
    assert "has changed since you switched it on" in chosen(config).unusable["pins"]
    (folder / "json" / "__init__.py").unlink()
    assert "pins" in chosen(config).plugins
    (folder / "more").symlink_to(tmp_path)
    assert "is a link to a directory" in chosen(config).unusable["pins"]
    (folder / "more").unlink()
    earlier = tmp_path / "packages" / "magy_fine"  # Python prefers it to magy_fine.py
    earlier.mkdir()
    (earlier / "__init__.py").write_text("")
    with pytest.raises(InvalidConfig, match="which is no file of magy-fine"):
        switches.enable("fine", config)


CARELESS = r"""
def refuses(value): raise KeyError("no check")
async def nothing(ctx): return None
async def leaves(ctx): sys.exit(5)
def made(name, does, **more):
    async def one(ctx) -> Result:
        does()
        return Result(**result)
    result = more.pop("result", {"for_model": "done"})
    one.__name__, one.__doc__ = name, "Does it."
    return tool(effect="read", **more)(one)
def exits(): sys.exit(3)
def cancels(): raise asyncio.CancelledError
def shouts(): raise ToolError("E" * 3_000_000)
def none(): pass
@tool(effect="read")
async def checked(ctx, x: Annotated[str, BeforeValidator(refuses)]) -> Result:
    "Checks."
@tool(effect="read")
async def waits(ctx) -> Result:
    "Has its own limits, which are nobody else's."
    for _ in range(2):
        try:
            async with asyncio.timeout(0):
                await asyncio.sleep(3600)
        except TimeoutError:
            pass
    return Result(for_model="waited twice")
@tool(effect="net")
async def deafens(ctx) -> Result:
    "Never stops."
    ctx.emit("runs \ud800")
    while True:
        try:
            await asyncio.sleep(3600)
        except:
            pass
async def half(where): return "half \ud800 a text"
async def number(where): return 5
async def quits(where): sys.exit(7)
async def listener(session, entries): sys.exit(4)
plugin = Plugin(
    tools=[
        made("exits", exits), made("cancels", cancels), made("shouts", shouts),
        made("halves", none, result={"for_model": "a\ud800b", "for_user": "U" * 3_000_000}),
        made("numbers", none, result={"for_model": 5}),
        made("blobs", none, result={"for_model": "", "blobs": {"x": b"y"}}),
        made("factless", none, facts=nothing), made("leaves", none, facts=leaves),
        checked, waits, deafens,
    ],
    listeners=[listener], contexts=[half, number, quits],
)
"""
SAID = {
    "exits": "failed in the tool exits: SystemExit: 3, ",
    "cancels": "failed in the tool cancels: CancelledError: ",
    "shouts": "EEE\n[2,990,000 more characters]",
    "halves": "a�b",
    "numbers": "the for_model of its Result is int, not str",
    "blobs": "a blob is not bytes that 'x' is the hash of",
    "factless": "its facts function did not return Facts and a dict of blobs",
    "leaves": "failed in the tool leaves: SystemExit: 5",
    "waits": "waited twice",
    "checked": "failed in the tool checked: KeyError: 'no check'",
}


async def test_a_session_outlives_all_that_a_plugin_does(loading: Loading, tmp_path: Path) -> None:
    await loading(made("rash", CARELESS))
    root, state = tmp_path / "project", tmp_path / "config"
    root.mkdir()
    async with ChatServer() as server:
        settings = {**served(server), "permission": {"plugin_rash": "allow"}}
        env = {"PYTHONPATH": str(tmp_path / "packages")}
        command = (sys.executable, "-B", "-m", "magy_server", "lsp")  # anew, with that path
        async with person(
            root.resolve(), state, settings=settings, command=command, env=env
        ) as one:
            await one.new()
            for name in SAID:
                server.reply(call(name, {"x": "y"} if name == "checked" else {}, id=name))
            server.reply(text("One worked."))
            await one.turn("Try")
            assert one.said() == "One worked."
            bodies = [request.body for request in server.asked]
            assert "half � a text" in str(bodies[0]["messages"][0])
            answers = {m["tool_call_id"]: m["content"] for m in bodies[-1]["messages"]
                       if m["role"] == "tool"}  # fmt: skip
            for name, said in SAID.items():
                assert said in answers[name] and len(answers[name]) < 11_000
            assert all(len(shown) < 31_000 for shown in one.outputs())
            await _stopped(one, server)


async def _stopped(one: Person, server: ChatServer) -> None:
    """A tool that takes no notice of being stopped is left; the next prompt is answered."""
    server.reply(call("deafens", {}, id="deaf"))
    await one.ask("Again", "p2")
    await one.update("tool_call_content_chunk", lambda update: "runs" in str(update))
    assert (await one.request("session/cancel"))["cancelled"]
    ended = await one.end()
    assert ended["stopReason"] == "cancelled", ended
    server.reply(text("Still here."))
    await one.turn("And now?", "p3")
    assert one.said().endswith("Still here.")
