"""Commands are started behind a gate, read as they go, and ended with all that they started.

The order is what makes a crash safe: the process group exists, its id is committed, and only then
the gate opens and the command runs. If the server dies before, the gate's pipe closes and the
command never runs.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from typing import IO

from magy_server.core.errors import MagyError, ToolError
from magy_server.core.sandbox import NO_SANDBOX, Launch, Outcome, Prepared, Sandbox
from magy_server.core.text.secrets import Secrets, Sieve
from magy_server.core.tool import ToolContext
from magy_server.core.values import Confinement
from magy_server.tasks import Tasks, to_end
from magy_server.tools.shell import process_groups as groups
from magy_server.tools.shell.environment import environment
from magy_server.tools.shell.output import Live, Output

_BASH = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash")
MOST = 16
"""Background commands of one session at the same time."""
logger = logging.getLogger(__name__)


def shell() -> list[str]:
    """The shell's argv up to the command line: bash without start-up files, because it is bash that
    the judge of permissions reads. Raises ToolError when there is none."""
    bash = next((one for one in _BASH if os.access(one, os.X_OK)), None)
    if bash is None:
        import shutil  # most have it there

        bash = shutil.which("bash")
    if bash is not None:
        return [bash, "--norc", "--noprofile", "-c", "--"]
    raise ToolError("bash is not installed on this machine, so no command can run. Tell the user.")


class Command:
    """One command line in its own process group. Use: `open`, `release`, then `wait` once."""

    def __init__(
        self,
        command: str,
        marked: str,
        process: asyncio.subprocess.Process,
        pipe: IO[bytes],
        sieve: Sieve,
        prepared: Prepared,
    ) -> None:
        self.command = command
        self.group = process.pid
        self.output = Output()
        self.code: int | None = None
        self.left = 0
        """Processes that the command had left running and that were ended after it."""
        self.sandboxed = Outcome()
        """What its sandbox did, once it is over."""
        self.since = time.monotonic()
        self.duration = 0.0
        self._marked = marked
        self._process = process
        self._pipe = pipe
        self._sieve = sieve
        self._prepared = prepared
        prepared.started(self.group)

    @classmethod
    async def open(
        cls, command: str, marked: str, sieve: Sieve, prepared: Prepared, cwd: str
    ) -> Command:
        """Starts the gate before what is prepared, the shell with `command`; what that says goes
        through `sieve`. Raises ToolError when that cannot be done."""
        read_end, write_end = os.pipe()
        pipe = os.fdopen(read_end, "rb", buffering=0)
        try:
            process = await asyncio.create_subprocess_exec(
                *groups.GATE, *prepared.argv,
                stdin=asyncio.subprocess.PIPE, stdout=write_end, stderr=write_end,
                cwd=cwd, env=prepared.env, pass_fds=prepared.fds, start_new_session=True,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            pipe.close()
            raise ToolError(_why_not(error, cwd)) from None
        except BaseException:
            pipe.close()
            raise
        finally:
            os.close(write_end)
        return cls(command, marked, process, pipe, sieve, prepared)

    def release(self) -> None:
        """Opens the gate: the command runs from now on."""
        stdin = self._process.stdin
        assert stdin is not None
        self.since = time.monotonic()
        stdin.write(b"\n")
        stdin.close()

    async def wait(self, seconds: float | None, emit: Callable[[str], None]) -> bool:
        """Waits until the command and what it left are over; returns True when it took longer than
        `seconds` and was ended. A cancellation ends it in the same way and is raised again. Output
        goes to `emit` as it comes."""
        pump = asyncio.create_task(self._pump(Live(emit)))
        try:
            async with asyncio.timeout(seconds):
                await self._process.wait()
        except TimeoutError:
            return True
        finally:
            await to_end(self._wind_up(pump))
        return False

    async def end(self) -> None:
        """SIGTERM, then SIGKILL, to all that belongs to the command; `wait` returns then."""
        await groups.end_group(self.group, self._marked, ours=True)

    async def abandon(self) -> None:
        """The gate stays shut: nothing ran, nothing will."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()
        await self._prepared.close()
        self._pipe.close()
        self.output.close()

    async def _wind_up(self, pump: asyncio.Task[None]) -> None:
        """After the command's end, or to bring it about."""
        if self._process.returncode is None:
            await self.end()
        else:
            self.left = await groups.end_left(self.group, self._marked)
        try:
            async with asyncio.timeout(5):
                self.code = await self._process.wait()
        except TimeoutError:  # in the kernel, where no signal reaches it
            logger.warning("process group %d does not end", self.group)
        try:
            await groups.drained(pump)
        finally:
            self._pipe.close()
            self.sandboxed = await self._prepared.close()
            self.duration = time.monotonic() - self.since

    async def _pump(self, live: Live) -> None:
        """Pipe -> output, until nobody holds the pipe's other end."""
        reader, transport = await groups.reading(self._pipe)
        try:
            while True:
                try:
                    async with asyncio.timeout(0.2 if self.output.waiting else None):
                        data = await reader.read(groups.CHUNK)
                except TimeoutError:
                    live(self.output.partial())
                    continue
                live(self._keep(data, final=not data))
                if not data:
                    return
        except asyncio.CancelledError:
            live(self._keep(b"", final=True))
            raise
        finally:
            transport.close()

    def _keep(self, data: bytes, *, final: bool) -> str:
        return self.output.feed(self._sieve.bytes(data, final=final), final=final)


def _why_not(error: OSError | ValueError, cwd: str) -> str:
    if isinstance(error, OSError) and error.errno == errno.E2BIG:
        return "The command is too long to be started; write it to a script file and run that."
    if isinstance(error, OSError) and error.errno in (errno.ENOENT, errno.ENOTDIR):
        return f"The command was not started: the directory {cwd} no longer exists."
    return f"The command was not started: {error}. Nothing ran; try again, or tell the user."


def ending(code: int | None) -> str:
    """Returns an exit code in words."""
    if code is None:
        return "not ended"
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"ended by signal {-code}"


class Processes:
    """The commands of this server. `hidden` names variables that hold Magy's keys, `more` those
    that commands get besides the usual ones."""

    def __init__(
        self,
        hidden: Iterable[str] = (),
        base: Mapping[str, str] | None = None,
        more: Iterable[str] = (),
        sandbox: Sandbox = NO_SANDBOX,
    ) -> None:
        self.sandbox = sandbox
        self._hidden = frozenset(hidden)
        self._more = frozenset(more)
        self._base = os.environ if base is None else base
        self._secrets = Secrets(self._base.get(name, "") for name in self._hidden)
        self._tasks = Tasks()
        self._running: dict[tuple[str, str], tuple[Command, asyncio.Task[None]]] = {}
        self._ended: dict[tuple[str, str], Command] = {}
        self._closing = False

    async def open(
        self,
        command: str,
        cwd: str,
        session: str,
        call: str,
        root: str = "",
        confined: Confinement | None = None,
    ) -> Command:
        """A command behind its gate, in the sandbox that it was judged for, or a stricter one.
        Raises ToolError."""
        if self._closing:
            raise ToolError("The server is shutting down; the command was not started.")
        marked = groups.mark(session, call)
        env = self.environment(cwd, session, call)
        at_least = confined.level if confined else "off"
        network = not (confined and confined.answers)
        launch = Launch([*shell(), command], cwd, env, root or cwd, at_least, network=network)
        prepared = await self.sandbox.prepare(launch)
        try:
            return await Command.open(command, marked, Sieve(self._secrets), prepared, cwd)
        except BaseException:
            await prepared.close()
            raise

    def environment(self, cwd: str, session: str, call: str) -> dict[str, str]:
        """What the processes of a call get: no keys, and the mark they are known by."""
        marked = groups.mark(session, call)
        return environment(self._base, cwd, marked, self._hidden, self._more)

    def busy(self) -> bool:
        """Whether commands run in the background."""
        return bool(self._running)

    def keep(self, ctx: ToolContext, command: Command) -> None:
        """Goes on with a released command in the background until it ends, is stopped, or `close`;
        reports its end to `ctx.exited`."""
        key = (ctx.session, ctx.call)
        self._running[key] = (command, self._tasks.begin(self._watch(ctx, command)))

    def check_room(self, session: str) -> None:
        calls = self.calls(session)
        if len(calls) >= MOST:
            raise ToolError(
                f"{MOST} background commands are already running ({', '.join(calls)}); stop one "
                "with bash_stop first."
            )

    def calls(self, session: str) -> list[str]:
        """The calls of a session that have a command in the background."""
        return [call for of, call in self._running if of == session]

    def get(self, session: str, call: str) -> Command | None:
        """A command that runs in the background."""
        found = self._running.get((session, call))
        return found[0] if found else None

    def ended(self, session: str, call: str) -> Command | None:
        """One of the `MOST` background commands that ended last; its output can still be read."""
        return self._ended.get((session, call))

    async def stop(self, session: str, call: str) -> Command | None:
        """Ends a background command, waits until its end is reported, and returns it; None if there
        is none."""
        found = self._running.get((session, call))
        if found is None:
            return None
        command, task = found
        await command.end()
        await asyncio.wait([task])
        return command

    async def close(self) -> None:
        """Ends all background commands; nothing is started any more."""
        self._closing = True
        async with asyncio.TaskGroup() as group:
            for session, call in list(self._running):
                group.create_task(self.stop(session, call))
        while self._ended:
            self._forget()

    def _forget(self) -> None:
        self._ended.pop(next(iter(self._ended))).output.close()

    async def _watch(self, ctx: ToolContext, command: Command) -> None:
        key = (ctx.session, ctx.call)
        try:
            await command.wait(None, lambda text: None)
            await ctx.exited(ctx.call, command.code, command.output.stored())
        except MagyError as error:
            logger.error("the end of call %s could not be recorded: %s", ctx.call, error.message)
        finally:
            del self._running[key]
            self._ended[key] = command
            while len(self._ended) > MOST:
                self._forget()
