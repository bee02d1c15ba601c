"""The disk of a running server takes no more: the person hears it in a sentence, and when there is
room again the session goes on."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.disks import filled, limited, small_disk

from .harness import RpcError, person

LET = {"permission": {"edit": "allow", "bash": "allow"}}
WAITS = "until [ -e go ]; do sleep 0.02; done"
SCRIPT = f"""\
prompt: run
call: bash {{"command": "echo begun; {WAITS}"}}
---
text: It ran.

prompt: first
call: bash {{"command": "true"}}
---
text: That was it.

prompt: change
call: write_file {{"path": "new.txt", "content": "{"x" * 5000}"}}
---
call: bash {{"command": "echo ran > ran.txt"}}
---
text: Done.

prompt:
text: Hello.
"""


async def test_a_session_that_cannot_be_written_says_so_and_goes_on_later(
    root: Path, tmp_path: Path
) -> None:
    with small_disk(tmp_path / "disk") as mounted:
        async with person(root, tmp_path / "disk" / "state", SCRIPT, settings=LET) as one:
            await one.new()
            await one.ask("run")
            await one.update("tool_call_update", lambda u: "begun" in str(u))
            pid = one.client.process.pid
            with filled(tmp_path / "disk") if mounted else limited(pid):
                (root / "go").touch()
                told = await one.client.wait_for("window/showMessage")
                assert "has stopped: The database" in told["message"]
                assert "the disk" in told["message"] and "space" in told["message"]
                with pytest.raises(RpcError, match="nothing was half-written") as refused:
                    await one.ask("again", "p2")
                assert refused.value.reason == "store_unavailable"
            assert (await one.turn("again", "p2"))["stopReason"] == "end_turn"
            assert (await one.turn("hello", "p3"))["stopReason"] == "end_turn"
            assert len(one.said().splitlines()) == 2
            assert "Traceback" not in await one.client.ended()


@pytest.mark.needs("git")
async def test_a_project_on_a_full_disk(tmp_path: Path) -> None:
    """Temporary files lie there, too."""
    with small_disk(tmp_path / "disk") as mounted:
        root = tmp_path / "disk" / "project"
        root.mkdir()
        names = [f"{n:0200}" for n in range(40)]  # of which git's index is more than a page long
        for name in names:
            (root / name).touch()
        for words in (["init", "-q"], ["add", "-A"]):
            subprocess.run(["git", "-C", str(root), *words], check=True)
        env = {"TMPDIR": str(tmp_path / "disk")}
        async with person(root, tmp_path / "state", SCRIPT, env=env, settings=LET) as one:
            await one.new()
            await one.turn("first", "p0")
            with filled(tmp_path / "disk") if mounted else limited(one.client.process.pid):
                assert (await one.turn("change"))["stopReason"] == "end_turn"
            assert {path.name for path in root.iterdir()} == {*names, ".git"}
            first, written, ran = ("free some space" in said.lower() for said in one.outputs())
            assert (first, written, ran) == (False, True, True)
            assert "Traceback" not in await one.client.ended()
