"""Programs that Magy speaks with over pipes are started here, each with all that it starts in a
process group of its own, and ended with it."""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress

from magy_server.core.errors import ToolError
from magy_server.core.piped_programs import Program
from magy_server.core.sandbox import Launch, Prepared
from magy_server.tasks import to_end
from magy_server.tools.shell import process_groups as groups
from magy_server.tools.shell.processes import Processes

LEAVES = 1.0
"""Seconds that a program gets to end by itself, once its input is closed."""


class PipedPrograms:
    """Implements `core.piped_programs.Programs`."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes

    async def start(
        self,
        name: str,
        argv: Sequence[str],
        directory: str,
        variables: Mapping[str, str],
        root: str,
    ) -> Program:
        import shutil

        call = f"{os.getpid()}.{name}"
        env = {**self._processes.environment(directory, "mcp", call), **variables}
        marked = env[groups.VARIABLE] = groups.mark("mcp", call)
        program = argv[0] if "/" in argv[0] else shutil.which(argv[0], path=env.get("PATH"))
        if program is None:
            raise ToolError(
                f"the program {argv[0]!r} is not in the PATH that commands get; install it, or "
                "give its whole path."
            )
        if not os.path.isdir(directory):
            raise ToolError(f"the directory {directory} does not exist.")
        launch = Launch([program, *argv[1:]], directory, env, root)
        prepared = await self._processes.sandbox.prepare(launch)
        try:
            process = await asyncio.create_subprocess_exec(
                *prepared.argv, stdin=PIPE, stdout=PIPE, stderr=PIPE, pass_fds=prepared.fds,
                cwd=directory, env=prepared.env, start_new_session=True, limit=groups.CHUNK,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            await prepared.close()
            raise ToolError(f"{argv[0]} cannot be started: {error}.") from None
        except BaseException:
            await prepared.close()
            raise
        prepared.started(process.pid)
        return _Piped(process, marked, prepared)


class _Piped:
    def __init__(self, process: Process, marked: str, prepared: Prepared) -> None:
        self._process = process
        self._marked = marked
        self._prepared = prepared

    async def read(self) -> bytes:
        assert self._process.stdout is not None
        return await self._process.stdout.read(groups.CHUNK)

    async def complaints(self) -> bytes:
        assert self._process.stderr is not None
        return await self._process.stderr.read(groups.CHUNK)

    async def write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(data)
        await self._process.stdin.drain()

    async def end(self) -> int | None:
        return await to_end(self._end_all())

    async def _end_all(self) -> int | None:
        try:
            return await self._end()
        finally:
            await self._prepared.close()

    async def _end(self) -> int | None:
        process = self._process
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(LEAVES):
                await process.wait()
        except TimeoutError:
            pass
        if process.returncode is None:
            await groups.end_group(process.pid, self._marked, ours=True)
        else:
            await groups.end_left(process.pid, self._marked)
        try:
            async with asyncio.timeout(5):
                while await self.read() or await self.complaints():
                    pass  # what is left in the pipes, which asyncio would keep open
                with suppress(OSError):  # it has not read all
                    await process.stdin.wait_closed()
                return await process.wait()
        except TimeoutError:  # in the kernel, where no signal reaches it
            return None
