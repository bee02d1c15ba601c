# ruff: noqa: E501
"""The tool `bash` in a sandbox: it is judged, started, read and ended as without one."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from magy_server.core import permit
from magy_server.core.errors import ToolError
from magy_server.core.hooks import Hook
from magy_server.core.permit import Rule, Ruleset
from magy_server.core.tool import Result
from magy_server.hooks import running
from magy_server.tools.kit import make_tools
from magy_server.tools.shell import process_groups as groups
from magy_server.tools.shell.processes import Processes
from tests.guard import SESSION
from tests.patience import PATIENCE
from tests.sandbox.conftest import TOP, Machine, Project
from tests.tools.conftest import Context, Workspace

pytestmark = pytest.mark.needs("bwrap")
ALLOW = Ruleset(source="agent", keys={"bash": (Rule(pattern="*", action="allow", bare=True),)})
ASK = Ruleset(source="agent", keys={"bash": (Rule(pattern="*", action="ask", bare=True),)})


class Shell:
    def __init__(self, project: Project) -> None:
        self.machine = project.machine
        self.workspace = Workspace(project.root)
        base = {"PATH": os.environ["PATH"], "HOME": str(self.machine.home)}
        self.processes = Processes(base=base, sandbox=self.machine.box)
        self.tools = {tool.name: tool for tool in make_tools(self.processes)}

    @property
    def last(self) -> Context:
        return self.workspace.last

    async def bash(self, command: str, call: str = "1.0", **more: object) -> Result:
        return await self.workspace.run(self.tools["bash"], call, command=command, **more)

    async def decided(
        self, command: str, source: Ruleset = ASK, **how: bool
    ) -> tuple[str, str, bool]:
        facts = await self.workspace.judge(self.tools["bash"], command=command)
        decision = permit.decide(facts, "bash", "exec", [source], **how)
        return decision.action, decision.rule, decision.firm


@pytest.fixture
async def shell(machine: Machine) -> AsyncIterator[Shell]:
    machine.set("standard")
    found = Shell(machine.project())
    yield found
    await found.processes.close()
    assert not psutil.Process().children(recursive=True)


async def until(condition: object) -> None:
    assert callable(condition)
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        await asyncio.sleep(0.02)


def marked(call: str = "1.0") -> list[psutil.Process]:
    return groups._alive(None, groups.mark(SESSION, call))


async def test_it_runs_in_the_sandbox(shell: Shell) -> None:
    result = await shell.bash("pwd; touch $HOME/x; touch here; exit 3")
    root = shell.workspace.root
    said = re.sub(r"^\[exit code 3, \d+ s\]", "[exit code 3]", result.for_model)
    assert said.startswith(f"[exit code 3]\n{root}\ntouch: ")
    assert (root / "here").exists()
    assert not (shell.machine.home / "x").exists()
    (evidence,) = shell.last.evidence
    assert evidence.group is not None


async def test_what_it_says_streams(shell: Shell) -> None:
    running = asyncio.create_task(
        shell.bash("echo one; while [ ! -e go ]; do sleep 0.05; done; echo two")
    )
    await until(lambda: "one\n" in "".join(shell.last.emitted))
    (shell.workspace.root / "go").touch()
    assert (await running).for_model.endswith("one\ntwo")


async def test_a_command_that_takes_too_long_may_tidy_up(shell: Shell) -> None:
    result = await shell.bash(
        "trap 'sleep 0.2; touch tidy; exit 0' TERM; sleep 60 & wait", timeout=1
    )
    assert "timed out after 1 s" in result.for_model
    assert (shell.workspace.root / "tidy").exists()
    assert not marked()


async def test_one_that_hears_nothing_is_killed(shell: Shell) -> None:
    result = await shell.bash("trap '' TERM; setsid sleep 300 & sleep 300", timeout=1)
    assert "timed out" in result.for_model
    assert not marked()


async def test_in_the_background(shell: Shell) -> None:
    await shell.bash("echo up; touch there; sleep 300", call="2.0", background=True)
    context = shell.last
    await until((shell.workspace.root / "there").exists)
    stopped = await shell.processes.stop(SESSION, "2.0")
    assert stopped is not None
    assert context.ended["2.0"][1].startswith(b"up\n")
    assert not marked("2.0")


@pytest.mark.req("A103")
async def test_a_server_that_dies_takes_the_sandbox_with_it(shell: Shell, machine: Machine) -> None:
    """Not even a daemon is left for the next server to find."""
    script = machine.place / "server.py"
    script.write_text(
        textwrap.dedent(f"""
        import asyncio, os, sys
        sys.path.insert(0, {str(TOP)!r})
        from magy_server.core.settings import SandboxSettings
        from magy_server.sandbox import World
        from magy_server.sandbox.os_sandbox import OsSandbox
        from magy_server.tools.shell.processes import Processes
        from magy_server.tools.temporary import temporary
        async def main():
            settings = SandboxSettings(level="standard")
            box = OsSandbox(lambda root: settings, World(home="/nowhere"), temporary)
            processes = Processes(sandbox=box)
            root = {str(shell.workspace.root)!r}
            command = await processes.open("setsid sleep 300 & touch up; sleep 300", root, {SESSION!r}, "3.0")
            command.release()
            print(command.group, flush=True)
            await asyncio.sleep(300)
        asyncio.run(main())
    """)
    )
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE) as server:
        await until((shell.workspace.root / "up").exists)
        assert marked("3.0")
        server.send_signal(signal.SIGKILL)
    await until(lambda: not marked("3.0"))


async def test_a_gate_that_stays_shut_runs_nothing(shell: Shell) -> None:
    command = await shell.processes.open("touch ran", str(shell.workspace.root), SESSION, "4.0")
    await command.abandon()
    assert not (shell.workspace.root / "ran").exists()
    assert not Path(f"/proc/{command.group}").exists()


async def test_whose_walls_a_command_met_is_said(shell: Shell) -> None:
    """A model that sees only "Read-only file system" tries to mend the disk."""
    result = await shell.bash("touch /usr/made")
    assert "Read-only file system" in result.for_model
    assert result.for_model.endswith(
        "[The command ran in the standard sandbox, which writes only in the workspace and in its "
        "temporary directory (sandbox.writable).]"
    )
    assert "sandbox" not in (await shell.bash("false")).for_model


async def test_why_the_sandbox_ended_it_is_said(shell: Shell) -> None:
    shell.machine.set("standard", limits={"memory_mb": 150})
    result = await shell.bash("python3 -c 'x = bytearray(500 << 20); import time; time.sleep(60)'")
    assert result.for_model.startswith("[ended by the sandbox: it took more than 150 MB of memory")
    assert not result.ok


# --- decisions ----------------------------------------------------------------------------------


async def test_the_question_says_where_it_runs(shell: Shell) -> None:
    assert await shell.decided("make") == (
        "ask",
        "agent: bash -> ask; it runs in the standard sandbox",
        False,
    )
    shell.machine.set("off")
    assert await shell.decided("make") == ("ask", "agent: bash -> ask", False)


@pytest.mark.req("A104")
async def test_in_the_strict_sandbox_each_command_asks(shell: Shell) -> None:
    shell.machine.set("strict", hosts=["example.org"])
    asked, rule, firm = await shell.decided("make", ALLOW)
    assert (asked, firm) == ("ask", True)
    assert rule == (
        "the strict sandbox asks about each command (agent: bash -> allow); "
        "it runs in the strict sandbox, with the network of the listed hosts"
    )
    assert (await shell.decided("make", ASK, bypass=True))[0] == "ask"
    deny = Ruleset(source="agent", keys={"bash": (Rule(pattern="*", action="deny"),)})
    assert (await shell.decided("make", deny))[0] == "deny"


async def test_hosts_that_were_refused_are_told(shell: Shell) -> None:
    shell.machine.set("strict", hosts=["example.org"])
    result = await shell.bash("curl -s http://example.com/; curl -s https://other.example/; true")
    assert "refused to reach example.com:80, other.example:443." in result.for_model


@pytest.mark.req("A105")
async def test_in_the_isolated_sandbox_there_is_no_shell(shell: Shell) -> None:
    shell.machine.set("isolated")
    with pytest.raises(ToolError, match="no shell here"):
        await shell.bash("true")


async def test_a_command_runs_in_the_sandbox_it_was_judged_for(shell: Shell) -> None:
    """Though the person has loosened the settings since."""
    context = await shell.workspace.prepare(shell.tools["bash"], command="touch $HOME/x")
    shell.machine.set("off")
    await shell.tools["bash"].run(context, command="touch $HOME/x")
    assert not (shell.machine.home / "x").exists()


async def test_a_hook_runs_in_the_sandbox(machine: Machine) -> None:
    machine.set("standard")
    root = machine.project().root
    guard = Hook("PreToolUse", "*", "cat; touch $HOME/x; touch here", 20.0, "guard", "here")
    env = {"PATH": os.environ["PATH"], "HOME": str(machine.home)}
    outcome = await running.run(guard, b"told", str(root), env, str(root), machine.box)
    assert (outcome.code, outcome.output) == (0, "told")
    assert "Read-only file system" in outcome.errors
    assert (root / "here").exists() and not (machine.home / "x").exists()


async def test_where_there_can_be_no_sandbox_a_strict_hook_does_not_run(machine: Machine) -> None:
    machine.set("strict")
    root = machine.project().root
    guard = Hook("PreToolUse", "*", "touch here", 20.0, "guard", "here")
    os.rename(root, f"{root}.moved")
    os.symlink(f"{root}.moved", root)
    outcome = await running.run(guard, b"", str(root), {}, str(root), machine.box)
    assert outcome.code is None and outcome.errors.startswith("It was not started: ")
