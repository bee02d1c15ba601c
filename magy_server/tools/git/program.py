"""This module runs the git program through GitPython: bounded, without surprises from the
repository or the environment, and gone when the call is over.

Only GitPython's command layer is used. Its reading of references knows neither SHA-256 nor
reftable, and its porcelain runs what a repository's configuration names (hooks, monitors, filters),
with every variable of this process. Looking at a repository must not run anything from it:
`Git.look` switches all of that off. `Git.act` is for what a person allowed: hooks run, behind a
gate that opens only when it is recorded that they will.
"""

from __future__ import annotations

import asyncio
import functools
import os
import re
import shutil
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from subprocess import Popen
from typing import IO, BinaryIO

from magy_server.core.errors import ToolError
from magy_server.core.values import Evidence
from magy_server.core.variables import passes
from magy_server.dataclass import dataclass
from magy_server.regex import regex
from magy_server.tasks import to_end
from magy_server.tools.search.endless_files import endless, why
from magy_server.tools.shell import process_groups as groups
from magy_server.tools.shell.environment import git_settings
from magy_server.tools.shell.output import KEPT, Live, Output, clean

LOOK = 60.0
"""Seconds for a command that only looks."""
ACT = 600.0
"""Seconds for one that runs hooks."""
CAPTURED = 16 << 20
"""Bytes of an answer that is read by program."""
OLDEST = (2, 31)
"""The first git that takes its configuration from `GIT_CONFIG_COUNT`."""
_UNASKED = {"GIT_PYTHON_GIT_EXECUTABLE": os.devnull, "GIT_PYTHON_REFRESH": "quiet"}
"""Else GitPython starts git when it is imported, with all variables of this process: others of this
user could read the keys there."""
_CHUNK = groups.CHUNK
_KEPT = regex(
    r"GIT_((AUTHOR|COMMITTER)_(NAME|EMAIL)|CONFIG_(GLOBAL|SYSTEM|NOSYSTEM)|EXEC_PATH|SSH.*|SSL_.*)"
)
"""The git variables that are a person's settings; the others point to another repository, or make
git behave in a way nobody here expects."""
_ALWAYS = {"core.quotePath": "false", "gc.auto": "0", "maintenance.auto": "false"}
_LOOKING = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "log.showSignature": "false",
    "submodule.recurse": "false",
}
_NEAR_ENV = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
_LOOKING_ENV = {"GIT_OPTIONAL_LOCKS": "0", **_NEAR_ENV}
_ACTING_ENV = {"GIT_EDITOR": ":", "GIT_SEQUENCE_EDITOR": ":", "GIT_MERGE_AUTOEDIT": "no"}

Sink = Callable[[bytes], bool]
"""Takes output as it comes; False: no more is wanted, and git ends when it writes on."""


@dataclass(frozen=True, slots=True)
class Ran:
    """`code` None: it took too long and was ended. `left`: processes that a hook left running and
    that were ended too."""

    code: int | None
    out: bytes
    err: str
    cut: bool = False
    left: int = 0


class Git:
    """git in the directory `root`, for one call of a tool. `env` is the environment of processes
    that tools start (`tools/shell/environment.py`); `marked` is in it as their mark."""

    def __init__(self, root: str, env: Mapping[str, str], marked: str) -> None:
        self.root = root
        self._env = _environment(env)
        self._marked = marked
        self._program = ""
        self.disarmed: dict[str, str] = {}
        """Further configuration for looking."""

    async def ready(self) -> None:
        """Finds git; await this first. Raises ToolError when there is no git, or a very old one."""
        self._program = await asyncio.to_thread(_program, self._env.get("PATH"))

    async def look(
        self,
        *words: str,
        sink: Sink | None = None,
        env: Mapping[str, str] | None = None,
        given: bytes = b"",
    ) -> Ran:
        """Runs a command that changes nothing; the answer is `Ran.out`, or goes to `sink`. `given`
        is its input. Raises ToolError when it takes too long."""
        await self._check()
        config = {**_ALWAYS, **_LOOKING, **self.disarmed}
        with groups.given(given) as file:
            process = self._start(
                ["--no-pager", "-C", self.root, *words],
                {**self._env, **_LOOKING_ENV, **git_settings(config.items()), **(env or {})},
                file,
            )
        captured = Captured(CAPTURED)
        errors = Captured(_CHUNK)
        late, _ = await self._attend(process, sink or captured.feed, errors.feed, LOOK)
        if late:
            raise ToolError(
                f"git {words[0]} took longer than {LOOK:.0f} s and was stopped; narrow it down, "
                "or run it with bash in the background."
            )
        said = clean(errors.data.decode("utf-8", "replace"))
        return Ran(process.returncode, captured.data, said, captured.cut)

    async def get(
        self, *words: str, env: Mapping[str, str] | None = None, given: bytes = b""
    ) -> bytes:
        """Returns the whole answer of a command that looks. Raises ToolError when it fails."""
        return answer(words[0], await self.look(*words, env=env, given=given))

    async def act(
        self,
        *words: str,
        started: Callable[[Evidence], Awaitable[None]] | None = None,
        emit: Callable[[str], None] = lambda text: None,
        unasked: bool = False,
        far: bool = False,
    ) -> Ran:
        """Runs a command with effects, after `started` has recorded its process group. `Ran.err`
        holds what hooks said, and goes to `emit` as it comes. `unasked`: no person was asked about
        this command, so that nothing runs that the repository names, as in `look`; unless it is
        `far`, nothing is fetched either, which runs what remotes name."""
        await self._check()
        process, gate = self._gated(words, unasked, far)
        output, live = Output(), Live(emit)
        captured = Captured(CAPTURED)

        def keep(data: bytes) -> bool:
            captured.feed(data)
            return True  # whatever it says, it must come to its end

        def hear(data: bytes) -> bool:
            live(output.feed(data))
            return True

        try:
            if started is not None:
                await started(Evidence(group=process.pid))
            gate.write(b"\n")
        except BaseException:
            gate.close()  # the gate stays shut: nothing ran, nothing will
            await to_end(self._attend(process, keep, hear, groups.LEFT))
            output.close()
            raise
        gate.close()
        try:
            late, left = await self._attend(process, keep, hear, ACT)
            output.feed(b"", final=True)
            said = _ends(output)
        finally:
            output.close()
        return Ran(None if late else process.returncode, captured.data, said, left=left)

    def _gated(
        self, words: Sequence[str], unasked: bool, far: bool
    ) -> tuple[Popen[bytes], IO[bytes]]:
        """git, and the gate in front of it: a line opens that."""
        config = {**_ALWAYS, **_LOOKING, **self.disarmed} if unasked else _ALWAYS
        near = _NEAR_ENV if unasked and not far else {}
        read_end, write_end = os.pipe()
        gate = os.fdopen(write_end, "wb", buffering=0)
        try:
            process = self._start(
                ["--no-pager", "-C", self.root, *words],
                {**self._env, **_ACTING_ENV, **near, **git_settings(config.items())},
                read_end,
            )
        except BaseException:
            gate.close()
            raise
        finally:
            os.close(read_end)
        return process, gate

    async def _check(self) -> None:
        if (path := await asyncio.to_thread(endless, self.root)) is not None:
            raise ToolError(why(path))

    def _start(
        self, words: Sequence[str], env: Mapping[str, str], stdin: int | BinaryIO | None = None
    ) -> Popen[bytes]:
        """`stdin`: a file, or the descriptor of the gate's pipe."""
        import git

        # GitPython adds `env` to the environment of this process and cannot take from that.
        dropped = sorted((set(os.environ) | {"LC_ALL", "LANGUAGE"}) - set(env))
        command = ["env", *(word for name in dropped for word in ("-u", name))]
        command += [self._program, *words]
        if isinstance(stdin, int):
            command = [*groups.GATE, *command]
        try:
            handle = git.Git("/").execute(
                command, istream=stdin, as_process=True, shell=False, start_new_session=True,
                env={**dict.fromkeys(dropped, ""), **env},  # until `env` drops them, anyone sees
            )  # fmt: skip
        except (git.GitCommandNotFound, OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise ToolError(f"git was not started: {why}. Nothing was done.") from None
        process = handle.proc
        handle.proc = None  # or GitPython would end it in its own way, and its pipes
        assert process is not None
        return process

    async def _attend(
        self, process: Popen[bytes], out: Sink, err: Sink, seconds: float
    ) -> tuple[bool, int]:
        """Until the process and what it left are over: whether it took longer than `seconds` and
        was ended, and how many processes it had left. A cancellation ends it in the same way."""
        assert process.stdout and process.stderr
        pumps = [
            asyncio.create_task(_pump(process.stdout, out)),
            asyncio.create_task(_pump(process.stderr, err)),
        ]
        late, left = False, 0
        try:
            async with asyncio.timeout(seconds):
                await _over(process)
        except TimeoutError:
            late = True
        finally:
            left = await to_end(self._wind_up(process, pumps))
        return late, left

    async def _wind_up(self, process: Popen[bytes], pumps: Sequence[asyncio.Task[None]]) -> int:
        left = 0
        if process.poll() is None:
            await groups.end_group(process.pid, self._marked, ours=True)
        else:
            left = await groups.end_left(process.pid, self._marked)
        try:
            async with asyncio.timeout(5):
                await _over(process)
        except TimeoutError:
            pass  # in the kernel, where no signal reaches it
        try:
            await groups.drained(*pumps)
        finally:
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
        return left


class Captured:
    """The first `limit` bytes of an output."""

    def __init__(self, limit: int) -> None:
        self.cut = False
        self._data = bytearray()
        self._limit = limit

    def feed(self, data: bytes) -> bool:
        self._data += data[: self._limit - len(self._data)]
        self.cut = self.cut or len(self._data) == self._limit
        return not self.cut

    @property
    def data(self) -> bytes:
        return bytes(self._data)


class Spool:
    """A long text, on disk; to be closed."""

    def __init__(self) -> None:
        self.output = Output()
        self.cut = False
        self._bytes = 0

    def feed(self, data: bytes) -> bool:
        self._bytes += len(data)
        self.cut = self._bytes > KEPT // 2  # cleaned text may be longer than the bytes
        if not self.cut:
            self.output.feed(data)
        return not self.cut

    def pieces(self) -> Iterator[str]:
        at = 0
        while piece := self.output.page(at, _CHUNK):
            yield piece
            at += len(piece)


def answer(word: str, ran: Ran) -> bytes:
    """Returns the whole answer of `git WORD`. Raises ToolError when it failed."""
    if ran.code != 0 or ran.cut:
        why = "its answer is too long; narrow it down" if ran.cut else explain(ran.err)
        raise ToolError(f"git {word}: {why}")
    return ran.out


def explain(err: str) -> str:
    """Returns what git's words mean here, and what to do."""
    said = re.sub(r"^(fatal|error): ", "", err.strip())[:8_000]
    if ".lock': File exists" in said or ("Unable to create" in said and ".lock" in said):
        return (
            f"{said.splitlines()[0]} Another git is using this repository, or was killed while it "
            "did. Try again in a moment; if no git is running, the person may remove that "
            "file."
        )
    if "dubious ownership" in said:
        return (
            "the repository belongs to another user, so git does not trust it. The person can "
            "allow it: git config --global --add safe.directory DIRECTORY"
        )
    if "lazy fetching disabled" in said or ("transport '" in said and "not allowed" in said):
        return (
            "part of the history is not on this machine (a partial clone), and this tool does not "
            "fetch it; use bash for this."
        )
    return said or "it failed without a message"


async def _pump(pipe: IO[bytes], sink: Sink) -> None:
    reader, transport = await groups.reading(pipe)
    try:
        while data := await reader.read(_CHUNK):
            if not sink(data):
                return
    finally:
        transport.close()


async def _over(process: Popen[bytes]) -> None:
    pause = 0.001
    while process.poll() is None:
        await asyncio.sleep(pause)
        pause = min(1.2 * pause, 0.05)


def _ends(output: Output, most: int = 8_000) -> str:
    """All of it, or its beginning and end."""
    whole = output.page(0, most) if output.readable == output.chars else ""
    if output.chars <= most:
        return whole
    tail = output.page(output.readable - most // 2, most // 2)
    return f"{whole[: most // 2]}\n[... {output.chars - most:,} characters ...]\n{tail}"


@functools.lru_cache(maxsize=4)
def _program(path: str | None) -> str:
    program = shutil.which("git", path=path)
    if program is None or not os.path.isabs(program):
        # from a relative entry of PATH: whatever lies where the server was started
        raise ToolError("git is not installed on this machine, so the git tools do not work.")
    os.environ.update(_UNASKED)
    try:
        import git
    except ImportError as error:
        raise ToolError(f"The git tools do not work: {error}") from None
    unseen = {name: "" for name in os.environ if not passes(name)}
    said = str(git.Git("/").execute([program, "version"], env=unseen))
    version = tuple(map(int, re.findall(r"\d+", said)[:2]))
    if version < OLDEST:
        least = ".".join(map(str, OLDEST))
        raise ToolError(f"{said} is too old for the git tools; they need {least}. Use bash.")
    return program


def _environment(env: Mapping[str, str]) -> dict[str, str]:
    """Without what points elsewhere; git's own words in English, for hooks the person's letters."""
    kept = {k: v for k, v in env.items() if not k.startswith("GIT_") or _KEPT.fullmatch(k)}
    letters = kept.pop("LC_ALL", None) or kept.get("LC_CTYPE") or kept.get("LANG") or "C"
    kept.pop("LANGUAGE", None)
    fixed = {"LC_CTYPE": letters, "LC_MESSAGES": "C", "GIT_PAGER": "cat"}
    return {**kept, **fixed, "GIT_TERMINAL_PROMPT": "0"}
