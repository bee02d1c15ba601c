"""The tool `switch_workspace`: where commands begin, from the next reply on and after a restart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.loopback import call, text

from .harness import person
from .test_api_tools import at_work, made
from .test_seldom_tools import results


@pytest.mark.req("A102")
async def test_commands_begin_in_another_directory_of_the_workspace(
    root: Path, state: Path
) -> None:
    (root / "packages/shop").mkdir(parents=True)
    (root / "away").symlink_to(state.parent)
    async with at_work(root, state) as (one, server):
        server.reply(made("switch_workspace", 1, path="packages/shop"))
        server.reply(call("bash", {"command": "pwd"}, id="c2"))
        server.reply(call("list_dir", {"path": "."}, id="c3"))
        for number, path in enumerate(("..", "away", "nowhere", "app.py"), start=4):
            server.reply(made("switch_workspace", number, path=path))
        server.reply(text("Over."))
        await one.turn("Go")
        said = results(server)
        assert said["c1"] == "Commands begin in packages/shop from now on."
        assert f"{root}/packages/shop" in said["c2"]
        assert "app.py" in said["c3"], "paths of files stay relative to the root"
        assert "outside the workspace" in said["c4"] and "outside the workspace" in said["c5"]
        assert "nowhere" in said["c6"] and "is a file, not a directory" in said["c7"]
    async with at_work(root, state) as (one, server):
        server.reply(call("bash", {"command": "pwd"}, id="c11"))
        server.reply(made("switch_workspace", 12, path="."))
        server.reply(call("bash", {"command": "pwd"}, id="c13"))
        server.reply(text("Back."))
        await one.turn("Again", "p2")
        said = results(server)
        assert f"{root}/packages/shop" in said["c11"]
        assert said["c13"].strip().endswith(str(root))


async def test_no_command_begins_elsewhere_when_the_directory_is_gone(
    root: Path, state: Path
) -> None:
    sub = root / "sub"
    sub.mkdir()
    (root / "other").mkdir()
    async with at_work(root, state, permission={"bash": "ask"}) as (one, server):
        server.reply(made("switch_workspace", 1, path="sub"))
        server.reply(call("bash", {"command": "touch made"}, id="c2"))
        server.reply(text("Over."))
        await one.ask("Go", "p1")
        question = await one.question()
        sub.rmdir()
        sub.symlink_to(root / "other")
        await one.respond(question["interactionId"])
        await one.end()
        assert "was not started" in results(server)["c2"]
        for number, change in enumerate((lambda: None, sub.unlink), start=3):
            change()
            server.reply(call("bash", {"command": "touch made"}, id=f"c{number}"))
            server.reply(text("Over."))
            await one.turn("Again", f"p{number}")
            said = results(server)[f"c{number}"]
            assert "The directory sub, where commands begin, is gone" in said
        assert not list(root.rglob("made"))
        server.reply(made("switch_workspace", 5, path="."))
        server.reply(call("bash", {"command": "touch made"}, id="c6"))
        server.reply(text("Over."))
        await one.ask("Back", "p5")
        await one.answer()
        await one.end()
        assert (root / "made").exists()


async def test_undo_takes_it_back_and_redo_brings_it_again(root: Path, state: Path) -> None:
    (root / "sub").mkdir()
    async with at_work(root, state) as (one, server):
        server.reply(made("switch_workspace", 1, path="sub"))
        server.reply(text("Over."))
        await one.turn("Go", "p1")
        await one.request("checkpoint/restore", requestKey="r1", turnId="p1")
        await one.request("checkpoint/restore", requestKey="r2", undoes="r1")
        server.reply(call("bash", {"command": "pwd"}, id="c2"))
        server.reply(text("Over."))
        await one.turn("Where?", "p2")
        assert results(server)["c2"].strip().endswith(str(root / "sub"))
        await one.request("checkpoint/restore", requestKey="r3", turnId="p1")
        server.reply(call("bash", {"command": "pwd"}, id="c3"))
        server.reply(text("Over."))
        await one.turn("Where now?", "p3")
        assert results(server)["c3"].strip().endswith(str(root))


async def test_an_agent_that_is_spawned_begins_where_its_parent_works(
    root: Path, state: Path
) -> None:
    (root / "sub").mkdir()
    move = {"name": "switch_workspace", "arguments": {"path": "sub"}}
    script = (
        f"prompt: delegate\ncall: call_tool {json.dumps(move)}\n"
        '---\ncall: spawn_agent {"agent": "general", "prompt": "look around"}\n'
        "---\ncall: wait_agent {}\n---\ntext: {{last}}\n"
        'prompt: look around\ncall: bash {"command": "pwd"}\n---\ntext: {{last}}\n'
    )
    async with person(root, state, script) as one:
        await one.new()
        await one.request("session/set_config_option", configId="bypass", value="on")
        await one.turn("delegate")
        assert one.said().strip().endswith(str(root / "sub"))
