"""What a sandboxed program may take is limited, and it leaves nothing behind.

No test here makes more than a few hundred processes, so that a limit that fails harms nobody."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import time

import psutil
import pytest

from magy_server.core.settings import SandboxLimits
from magy_server.sandbox import control_groups
from magy_server.sandbox.limits import Watchman
from tests.patience import PATIENCE
from tests.sandbox.conftest import Machine

pytestmark = pytest.mark.needs("bwrap")

FORKS = """
import os, time
made = 0
for _ in range(150):
    try:
        child = os.fork()
    except OSError:
        break
    if child == 0:
        time.sleep(60)
        os._exit(0)
    made += 1
print("made", made, flush=True)
time.sleep(3)
"""


async def test_too_much_memory_ends_it(machine: Machine) -> None:
    machine.set("standard", limits={"memory_mb": 200})
    code = "x = bytearray(600 << 20); import time; time.sleep(60)"
    ran = await machine.project().start(["python3", "-c", code], bare=False, network=True)
    assert ran.code == -9
    assert ran.outcome.ended == "it took more than 200 MB of memory (sandbox.limits.memory_mb)"


async def test_memory_of_many_processes_counts_together(machine: Machine) -> None:
    machine.set("standard", limits={"memory_mb": 300})
    code = "import os,time; os.fork(); os.fork(); x = bytearray(120 << 20); time.sleep(60)"
    ran = await machine.project().start(["python3", "-c", code], bare=False, network=True)
    assert ran.code == -9
    assert "more than 300 MB" in ran.outcome.ended


async def test_too_many_processes(machine: Machine) -> None:
    """Refused by the kernel, or the sandbox ends: in any case there are never many more."""
    machine.set("standard", limits={"processes": 40})
    began = {one.pid for one in psutil.process_iter()}
    ran = await machine.project().start(["python3", "-c", FORKS], bare=False, network=True)
    made = re.search(r"made (\d+)", ran.said)
    assert ran.outcome.ended or (made and 0 < int(made[1]) <= 40), ran.said
    left = [p for p in psutil.process_iter() if p.pid not in began and "made += 1" in _line(p)]
    assert not left


def _line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


async def test_a_watchman_counts_where_the_kernel_does_not(machine: Machine) -> None:
    """Root without control groups."""
    with subprocess.Popen(["python3", "-c", FORKS], start_new_session=True) as process:
        watchman = Watchman(process.pid, SandboxLimits(processes=40))
        try:
            until = time.monotonic() + PATIENCE
            while process.poll() is None and time.monotonic() < until:
                await asyncio.sleep(0.05)
            assert process.returncode == -9
            assert "more than 40 processes" in await watchman.close()
        finally:
            os.killpg(process.pid, 9)


async def test_a_file_has_a_largest_size(machine: Machine) -> None:
    machine.set("standard", limits={"file_mb": 1})
    project = machine.project()
    ran = await project.run("head -c 3000000 /dev/zero > big; echo; wc -c < big")
    assert ran.said.split()[-1] == str(1 << 20)


async def test_processor_time_is_limited(machine: Machine) -> None:
    machine.set("standard", limits={"cpu_seconds": 1})
    ran = await machine.project().run("while :; do :; done")
    assert ran.code is not None
    assert ran.code not in (0, None)


async def test_control_groups_are_removed(machine: Machine) -> None:
    machine.set("standard")
    before = groups_there()
    await machine.project().run("true")
    assert groups_there() <= before


def groups_there() -> set[str]:
    """Those of a server that was killed stay until the next one begins."""
    parents = [parent for parent, _ in control_groups._parents() if os.access(parent, os.W_OK)]
    names = [name for parent in parents for name in os.listdir(parent)]
    return {name for name in names if name.startswith("magy-sandbox-")}


async def test_a_filter_that_still_writes_has_a_moment(machine: Machine) -> None:
    machine.set("standard")
    ran = await machine.project().run("echo last > >(sleep 0.2; cat)")
    assert ran.said == "last\n"


async def test_what_is_left_is_said(machine: Machine) -> None:
    machine.set("standard")
    ran = await machine.project().run("sleep 100 >/dev/null 2>&1 & exit 3")
    assert (ran.code, ran.said) == (
        3,
        "[Ended with the command: 1 of the processes that it started.]\n",
    )
