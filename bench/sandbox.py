"""What a sandbox costs a command: `true` in the standard one beside `true` by itself."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from bench.measure import Failed, Row, Run, in_turn, stopwatch
from magy_server.core.sandbox import Launch, Sandbox
from magy_server.core.settings import SandboxSettings
from magy_server.sandbox import World
from magy_server.sandbox.os_sandbox import OsSandbox
from magy_server.tools.temporary import temporary


def started(run: Run) -> Row:
    """From the command line to the end of the process; the sandbox is put together each time."""
    root, settings = run.fresh("root"), SandboxSettings(level="standard")
    os.makedirs(root / ".git/hooks")
    world = World(home=os.path.expanduser("~"), private=[str(run.fresh("state"))])
    box = OsSandbox(lambda root: settings, world, temporary)
    with asyncio.Runner() as loop:
        if missing := loop.run(box.missing()):
            raise Failed(f"There is no sandbox: {missing}.")
        ours, floor = in_turn(
            run.choose(10, 40),
            lambda: stopwatch(lambda: loop.run(_sandboxed(box, root))),
            lambda: stopwatch(lambda: loop.run(_bare(["true"]))),
        )
        loop.run(box.close())
    return Row("`true` in the standard sandbox", "seconds", ours, floor, 30)


async def _sandboxed(box: Sandbox, root: Path) -> None:
    place = str(root)
    found = await box.prepare(Launch(["true"], place, dict(os.environ), place))
    process = await asyncio.create_subprocess_exec(*found.argv, env=found.env, pass_fds=found.fds)
    found.started(process.pid)
    code = await process.wait()
    await found.close()
    if code != 0:
        raise Failed(f"`true` in the sandbox ended with {code}.")


async def _bare(argv: Sequence[str]) -> None:
    process = await asyncio.create_subprocess_exec(*argv)
    await process.wait()


ROWS = (started,)
