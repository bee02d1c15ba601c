"""What a turn costs, in counts that no noise touches: modules that are imported, bytes that are
sent, events that are folded.

Each bound is what was counted when it was last renewed, and a little more. Who makes something
cheaper lowers it: the failing or the printed count (`pytest -s`) says what it is now. To raise one
needs a reason, in the commit's message.
"""

from __future__ import annotations

import asyncio
import gc
import os
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from bench.idle import Work, agents
from bench.measure import Run
from bench.modules import counted
from bench.recording_model import serving
from bench.turns import stage

MODULES = 645
"""Imported by `magy run` from its start to its end, the standard library's included."""
FIRST = 11_776
"""Bytes of the first request, in a project without instructions."""
ROUND = 1_720
"""Bytes by which a request grows for a call that reads 50 lines of about 23 bytes, and its
result."""
FOLDS = 2
"""How often an event of a turn is folded."""
CALLS = 25
"""Of the kernel, to read or write, that the server makes a round: what syncs, waits or looks at
files is not among them."""

AT_REST = 7_500
"""Bytes that Python has taken for an agent which has had a turn and rests in memory."""

SETTINGS = """
titles = false
[model]
default = "here/bench"
[[provider]]
name = "here"
kind = "openai-chat"
base_url = "{url}/v1"
"""
ROUNDS = 5
IMPORTED = re.compile(r"^import time: +\d", re.MULTILINE)


def test_a_run_imports_little_and_sends_little(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    notes = project / "notes.txt"
    notes.write_text("".join(f"line {n} of some notes\n" for n in range(1, 1001)))
    places = {"MAGY_STATE_DIR": str(tmp_path), "MAGY_CONFIG_DIR": str(tmp_path)}
    with serving(str(notes), ROUNDS) as requests:
        (tmp_path / "magy.toml").write_text(SETTINGS.format(url=requests.url))
        command = [sys.executable, "-X", "importtime", "-m", "magy_server", "run", "--quiet"]
        run = subprocess.run(
            [*command, "--root", str(project), "--cwd", str(project), "Read."],
            env={**os.environ, **places}, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert run.returncode == 0, run.stderr[-2000:]
    sizes = requests.sizes
    assert len(sizes) == ROUNDS + 1
    modules, grown = len(IMPORTED.findall(run.stderr)), (sizes[-1] - sizes[0]) / ROUNDS
    print(f"modules {modules}, first request {sizes[0]}, a round {grown:.0f}")
    assert modules <= MODULES
    assert sizes[0] <= FIRST
    assert grown <= ROUND


def test_an_event_is_folded_no_oftener_than_it_was(tmp_path: Path) -> None:
    found = counted(Run("quick", tmp_path), "edit")
    print(f"{found['folds']} folds of {found['events']} events")
    assert found["events"] > 5
    assert found["folds"] <= FOLDS * found["events"]


def test_a_round_reads_and_writes_no_oftener_than_it_did(tmp_path: Path) -> None:
    with stage(Run("quick", tmp_path)) as (magy, _):
        io = Path(f"/proc/{magy.peer.process.pid}/io")

        def calls(rounds: int) -> int:
            before = _calls(io)
            magy.turn(f"bench-loop-{rounds}")
            return _calls(io) - before

        calls(5)  # warm
        few, many = calls(5), calls(25)
    print(f"{(many - few) / 20:.1f} calls of the kernel a round")
    assert (many - few) / 20 <= CALLS


def _calls(io: Path) -> int:
    """How often a process has read or written so far."""
    return sum(int(line.split()[1]) for line in io.read_text().splitlines() if "sysc" in line)


@pytest.mark.req("A026")
def test_an_agent_at_rest_takes_little_memory(tmp_path: Path) -> None:
    async def counted(work: Work) -> dict[str, float]:
        gc.collect()
        tracemalloc.start()
        try:
            await work()
            gc.collect()
            return {"bytes": tracemalloc.get_traced_memory()[0] / AGENTS}
        finally:
            tracemalloc.stop()

    asyncio.run(agents(1, str(tmp_path / "first"), counted))  # what all of them share
    taken = asyncio.run(agents(AGENTS, str(tmp_path / "others"), counted))["bytes"]
    print(f"bytes of an agent at rest: {taken:.0f}")
    assert taken <= AT_REST


AGENTS = 100
