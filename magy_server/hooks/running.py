"""This module runs the command of one hook, bounded in time and in what it may say. What is left of
its process group is ended with it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import IO, Any

from magy_server.core.errors import ToolError
from magy_server.core.hooks import Hook
from magy_server.core.sandbox import NO_SANDBOX, Launch, Prepared, Sandbox
from magy_server.dataclass import dataclass
from magy_server.tasks import to_end

MOST = 64 * 1024
"""Bytes that are read of each of its two outputs; the rest is thrown away."""
SHELL = "/bin/bash"
LOOK = 0.01
"""Seconds between two looks whether it has ended."""
LATE = 0.5
"""Seconds that its outputs stay open for what a process of another group may still write."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """`code` None: it did not come to an end in time, or could not be started; `errors` says so."""

    code: int | None
    output: str = ""
    errors: str = ""
    cut: bool = False
    """It wrote more than was read."""


async def run(
    hook: Hook,
    input: bytes,
    cwd: str,
    environment: Mapping[str, str],
    root: str = "",
    sandbox: Sandbox = NO_SANDBOX,
) -> Outcome:
    """In the sandbox that is wanted for the workspace `root`."""
    try:
        prepared = await sandbox.prepare(
            Launch([SHELL, "-c", hook.command], cwd, environment, root or cwd)
        )
    except ToolError as error:
        return Outcome(None, errors=error.message)
    try:
        return await _run(hook, input, cwd, prepared)
    finally:
        await to_end(prepared.close())


async def _run(hook: Hook, input: bytes, cwd: str, prepared: Prepared) -> Outcome:
    try:
        process = _started(prepared, cwd)
    except (OSError, ValueError) as error:
        return Outcome(None, errors=f"it cannot be started: {error}")
    prepared.started(process.pid)
    assert process.stdin and process.stdout and process.stderr
    output, errors = bytearray(), bytearray()
    pipes = [
        _begun(_read(process.stdout, output)),
        _begun(_read(process.stderr, errors)),
        _begun(_write(process.stdin, input)),
    ]
    try:
        async with asyncio.timeout(hook.timeout):
            await _over(process)
    except TimeoutError:
        return Outcome(None, errors=f"it took longer than {hook.timeout:g} s")
    finally:
        await to_end(_end(process, pipes))
    return Outcome(process.returncode, _text(output), _text(errors), len(output) == MOST)


def _started(prepared: Prepared, cwd: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        prepared.argv, cwd=cwd, env=prepared.env, pass_fds=prepared.fds, start_new_session=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


async def _over(process: subprocess.Popen[bytes]) -> None:
    """Waits for the process alone: asyncio's own processes also wait for their pipes, which what it
    left running may hold."""
    while process.poll() is None:  # noqa: ASYNC110
        await asyncio.sleep(LOOK)


def _begun(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    return asyncio.get_running_loop().create_task(work)


async def _read(pipe: IO[bytes], kept: bytearray) -> None:
    stream = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), pipe
    )
    try:
        while chunk := await stream.read(MOST):
            kept += chunk[: MOST - len(kept)]
    finally:
        transport.close()


async def _write(pipe: IO[bytes], input: bytes) -> None:
    """It need not read."""
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.streams.FlowControlMixin(loop), pipe
    )
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    with suppress(OSError):
        writer.write(input)
        await writer.drain()
    writer.close()


async def _end(process: subprocess.Popen[bytes], pipes: list[asyncio.Task[None]]) -> None:
    """The group's id is its own until the process has been waited for, or while one of it lives."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await _over(process)
    await asyncio.wait(pipes, timeout=LATE)
    for pipe in pipes:
        pipe.cancel()
    await asyncio.gather(*pipes, return_exceptions=True)


def _text(data: bytearray) -> str:
    return data.decode("utf-8", "replace")
