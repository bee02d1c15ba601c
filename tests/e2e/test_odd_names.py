"""Names of files that are no UTF-8, wherever Magy looks into directories."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .harness import RpcError, person

ODD = os.fsdecode(b"\xff")
SCRIPT = """\
call: list_dir {}
---
call: glob {"pattern": "**/*.md"}
---
call: bash {"command": "cat *.md"}
---
text: That was all.
"""


@pytest.mark.parametrize("knows_magy", [True, False])
async def test_they_end_nothing(root: Path, state: Path, knows_magy: bool) -> None:
    agents, skills = root / ".magy" / "agent", root / ".magy" / "skills" / ODD
    folders = [state / "transcripts", state / "agent", state / "bus", agents, skills, root]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{ODD}.md").write_text("---\ndescription: odd\n---\nHello.\n")
    (state / "bus" / f"{ODD}.sock").touch()
    async with person(root, state, SCRIPT, knows_magy=knows_magy) as one:
        await one.new()
        assert (await one.turn("Look."))["stopReason"] == "end_turn"
        await one.client.request("magy/agent/list", {})
        assert one.outputs()[1:] == ["3 files", "[exit code 0]\n---\ndescription: odd\n---\nHello."]
        assert "failed inside Magy" not in str(one.client.notifications("window/showMessage"))
        log = await one.client.ended()
        assert "Traceback" not in log and "UTF-8" not in log
    assert all((folder / f"{ODD}.md").exists() for folder in folders)


async def test_a_project_of_such_a_name_is_refused_in_words(tmp_path: Path, state: Path) -> None:
    root = tmp_path / "link"
    (tmp_path / ODD).mkdir()
    root.symlink_to(tmp_path / ODD)
    async with person(root, state, SCRIPT) as one:
        told = await one.client.wait_for("window/showMessage")
        assert "is not UTF-8 text" in told["message"] and "Rename" in told["message"]
        with pytest.raises(RpcError, match="is not UTF-8 text"):
            await one.request("session/list")
    command = [sys.executable, "-m", "magy_server", "sessions", "list"]
    env = {**os.environ, "MAGY_STATE_DIR": str(state), "PYTHONPATH": str(Path(__file__).parents[2])}
    listed = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True)
    assert listed.returncode != 0 and listed.stderr.count("\n") == 1
    assert "is not UTF-8 text" in listed.stderr
