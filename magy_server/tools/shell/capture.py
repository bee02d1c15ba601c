"""This module runs programs that answer a question on their standard output and end."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Container, Sequence
from contextlib import suppress

from magy_server.tasks import to_end
from magy_server.tools.shell import process_groups as groups

CHUNK = 1 << 16
_NEEDED = frozenset({
    "PATH", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH",
})  # fmt: skip
"""Variables without keys, and without settings of the user that would change an answer."""
ERRORS = 4096
"""Bytes of standard error that are kept."""


async def ask(
    argv: Sequence[str],
    take: Callable[[bytes], bool],
    given: bytes = b"",
    passed: Container[str] = _NEEDED,
    cwd: str = "/",
) -> tuple[int | None, bytes]:
    """Runs a program in `cwd`, with only the `passed` variables of the environment, and gives its
    output to `take` as it comes, until `take` says that it is enough. The answer is the exit code
    (negative: ended by a signal; None: it was enough) and the beginning of its standard error.
    However this ends, the program and its group are over. Raises OSError when it cannot be
    started."""
    env = {name: value for name, value in os.environ.items() if name in passed}
    with groups.given(given) as file:
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=file or asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE, cwd=cwd, env=env, start_new_session=True,
        )  # fmt: skip
    errors = asyncio.create_task(_errors(process))
    enough = False
    try:
        assert process.stdout is not None
        while not enough and (data := await process.stdout.read(CHUNK)):
            enough = take(data)
        if not enough:
            await process.wait()
    finally:
        await to_end(_over(process, errors))
    return None if enough else process.returncode, errors.result()


async def _errors(process: asyncio.subprocess.Process) -> bytes:
    assert process.stderr is not None
    kept = b""
    while data := await process.stderr.read(CHUNK):
        kept = (kept + data)[:ERRORS]
    return kept


async def _over(process: asyncio.subprocess.Process, errors: asyncio.Task[bytes]) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.stdout is not None
    while await process.stdout.read(CHUNK):
        pass  # what is still in the pipe
    await process.wait()
    await asyncio.wait([errors])
