"""The tool `switch_workspace`: where commands begin, from the next reply on and after a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loopback import call, text

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
