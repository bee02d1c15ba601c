"""Servers that are born with everything imported: importing is most of what a short test costs.

A process for each test worker imports what a server imports, and forks for each server that a test
starts. What is born is a process of its own with its own standard streams, directory and
environment, which runs `python -m MODULE` as ever; only its imports are done. Tests about starting
up, dying and what is imported when start a fresh interpreter instead. Servers that an editor starts
are born here, too: it starts `tests/clients/stub.py`, which asks at `address()`.
"""

from __future__ import annotations

import array
import asyncio
import atexit
import contextlib
import functools
import gc
import importlib
import io
import json
import os
import runpy
import selectors
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from pydantic import BaseModel

TOP = Path(__file__).parent.parent
MODULES = (
    "magy_server.lsp.pygls_reader", "aiosqlite", "yaml", "magy_server.__main__", "magy_server.app",
    "magy_server.lsp.server", "magy_server.lsp.front_door", "magy_server.lsp.broadcasts",
    "magy_server.api.sessions.session_verbs", "magy_server.lsp.connect",
    "magy_server.lsp.live_editor", "magy_server.acp.serving", "magy_server.llm.scripted",
    "magy_server.cli.dispatch",
    "magy_server.cli.commands.run", "magy_server.cli.commands.sessions",
    "magy_server.cli.commands.agents", "magy_server.cli.commands.transcripts",
    "magy_server.doctor", "magy_server.jsonrpc.descriptors", "git", "psutil", "rapidfuzz",
    "tree_sitter_bash", "tree_sitter",
)  # fmt: skip
STARTING = ("LC_", "LANG", "PYTHON")
"""How the variables begin that an interpreter reads when it starts: they need a fresh one."""
ALSO = "NURSERY_ALSO"
"""The variable of a server's environment that names further modules, for who starts many servers
that need them: they are imported once, for all that are born from then on."""
ADAPTERS = "magy_server.llm.anthropic magy_server.llm.openai magy_server.llm.transports.connection"
"""What is imported before the first request to a model that is none of a script."""
MCP_CLIENT = "magy_server.mcp.sdk_link magy_server.mcp.stdio_streams"
"""What is imported before an MCP server is connected to."""


class Born:
    """What `asyncio.create_subprocess_exec` gives, as far as tests use it."""

    def __init__(
        self,
        pid: int,
        stdin: asyncio.StreamWriter,
        stdout: asyncio.StreamReader,
        stderr: asyncio.StreamReader,
        control: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        close_output: Callable[[], None],
    ) -> None:
        self.pid = pid
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.returncode: int | None = None
        self.close_output = close_output
        self._control = control
        self._ended = asyncio.ensure_future(self._watch())

    async def _watch(self) -> int:
        reader, writer = self._control
        line = await reader.readline()
        self.returncode = int(line) if line else -signal.SIGKILL
        writer.close()
        self.stdin.close()
        with contextlib.suppress(OSError):
            await self.stdin.wait_closed()
        return self.returncode

    async def wait(self) -> int:
        return await asyncio.shield(self._ended)

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Writing(asyncio.streams.FlowControlMixin):
    """The writer's side of a pipe, whose end can be waited for."""

    def __init__(self) -> None:
        super().__init__()
        self._gone = asyncio.get_running_loop().create_future()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if not self._gone.done():
            self._gone.set_result(None)

    def _get_close_waiter(self, stream: asyncio.StreamWriter) -> asyncio.Future[None]:
        return self._gone


async def born(command: Sequence[str], cwd: str, env: Mapping[str, str]) -> Born:
    """`command` is the interpreter, -m, a module and its arguments; `env` is all of it."""
    loop = asyncio.get_running_loop()
    ours, streams = _ask_for(command, cwd, env)
    stdout, closing = await _reader(loop, streams[1])
    stderr, _ = await _reader(loop, streams[2])
    transport, protocol = await loop.connect_write_pipe(Writing, os.fdopen(streams[0], "wb", 0))
    stdin = asyncio.StreamWriter(transport, protocol, None, loop)
    control = await asyncio.open_connection(sock=ours)
    pid = int(await control[0].readline())
    return Born(pid, stdin, stdout, stderr, control, closing.close)


def ran(
    command: Sequence[str],
    cwd: str,
    env: Mapping[str, str],
    *,
    input: str | None = None,
    timeout: float,
) -> subprocess.CompletedProcess[str]:
    """What `subprocess.run` gives, for what `born` takes. Without `input` there is nothing to read.
    Raises TimeoutExpired, and then the process is killed."""
    control, (stdin, *outputs) = _ask_for(command, cwd, env)
    read = {end: bytearray() for end in outputs}
    writing = threading.Thread(target=_write, args=(stdin, (input or "").encode()), daemon=True)
    writing.start()
    until = time.monotonic() + timeout
    with control, control.makefile() as told, selectors.DefaultSelector() as selector:
        pid = int(told.readline())
        for end in outputs:
            selector.register(end, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select(max(0.0, until - time.monotonic())):
                if piece := os.read(key.fd, 64 * 1024):
                    read[key.fd] += piece
                else:
                    selector.unregister(key.fd)
                    os.close(key.fd)
            if time.monotonic() > until:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(command, timeout, *map(bytes, read.values()))
        code = int(told.readline())
    out, err = (io.TextIOWrapper(io.BytesIO(piece)).read() for piece in read.values())
    return subprocess.CompletedProcess(command, code, out, err)


def _write(end: int, data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), os.fdopen(end, "wb") as stream:
        stream.write(data)


def _ask_for(
    command: Sequence[str], cwd: str, env: Mapping[str, str]
) -> tuple[socket.socket, list[int]]:
    """What tells the process's id and then its exit code, a line each; our ends of its streams."""
    pipes = [os.pipe() for _ in range(3)]
    ours, theirs = socket.socketpair()
    ends = [pipes[0][0], pipes[1][1], pipes[2][1], theirs.fileno()]
    try:
        _send(_nursery()[0], {"words": command[2:], "cwd": cwd, "env": dict(env)}, ends)
    finally:
        for end in ends[:3]:
            os.close(end)
        theirs.close()
    return ours, [pipes[0][1], pipes[1][0], pipes[2][0]]


async def _reader(
    loop: asyncio.AbstractEventLoop, end: int
) -> tuple[asyncio.StreamReader, asyncio.ReadTransport]:
    reader = asyncio.StreamReader(64 * 1024)
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(end, "rb", 0)
    )
    return reader, transport


def address() -> str:
    """Where a process that is none of ours asks for a server; only this user reaches it."""
    return _nursery()[1]


def write_program(place: Path) -> None:
    """Makes a `magy` there, for an editor to start, that asks the nursery for a server."""
    stub = shlex.join([sys.executable, "-I", "-S", str(TOP / "tests" / "clients" / "stub.py")])
    place.parent.mkdir(parents=True)
    place.write_text(
        f'#!/bin/sh\nNURSERY={shlex.quote(address())} exec {stub} -m magy_server "$@"\n', "utf-8"
    )
    place.chmod(0o755)


@functools.cache
def _nursery() -> tuple[socket.socket, str]:
    ours, theirs = socket.socketpair()
    # The address of a socket must be short.
    path = f"{tempfile.mkdtemp(prefix='magy-', dir='/tmp')}/nursery"
    with theirs, socket.socket(socket.AF_UNIX) as door:
        door.bind(path)
        door.listen()
        ends = [theirs.fileno(), door.fileno()]
        command = [sys.executable, "-m", "tests.nursery", *map(str, ends)]
        subprocess.run(command, cwd=TOP, pass_fds=ends, stdin=subprocess.DEVNULL, check=True)
    atexit.register(ours.close)  # at its end of input the nursery goes
    return ours, path


def _send(to: socket.socket, message: object, ends: Sequence[int]) -> None:
    body = json.dumps(message).encode("utf-8", "surrogateescape")
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", ends))]
    to.sendmsg([len(body).to_bytes(8, "big")], rights)
    to.sendall(body)


# --- in the nursery -------------------------------------------------------------------------------


def serve(requests: socket.socket, door: socket.socket) -> None:
    for module in MODULES:
        importlib.import_module(module)
    del sys.modules[
        "magy_server.__main__"
    ]  # it is run anew each time, and only what it needs is there
    _learn()
    gc.collect()
    gc.freeze()
    waking, woken = socket.socketpair()
    waking.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(waking.fileno())
    selector = selectors.DefaultSelector()
    selector.register(requests, selectors.EVENT_READ)
    selector.register(woken, selectors.EVENT_READ)
    selector.register(door, selectors.EVENT_READ)
    alive: dict[int, socket.socket] = {}
    while True:
        for key, _ in selector.select():
            if key.fileobj is woken:
                woken.recv(4096)
                _bury(alive, selector)
            elif key.fileobj is door:
                _let_in(door.accept()[0], alive, selector)
            elif key.fileobj is not requests:
                if key.data in alive:  # whoever stood for the server is gone
                    selector.unregister(key.fileobj)
                    os.kill(key.data, signal.SIGKILL)
            elif (asked := _received(requests)) is None:
                return
            else:
                message, ends = asked
                _give_birth(message, ends, alive)


def _learn() -> None:
    """What never changes while a process lives, it learns once: the words of the command line, the
    shapes of the tools, the agents, actions and rules that Magy ships, and the messages with which
    a connection begins."""
    from pydantic import BaseModel

    from magy_server.cli.parser import build
    from magy_server.config.agents import common_rules, find_agents
    from magy_server.core.codec import EVENT
    from magy_server.core.patterns import matches_file
    from magy_server.tools.kit import make_tools
    from magy_server.tools.shell.processes import Processes

    build()
    for tool in make_tools(Processes(())):
        tool.shape.model  # noqa: B018
    agents = find_agents(None, trusted=False, custom=False)
    for rules in (common_rules(), *(agent.rules for agent in agents.values())):
        for rule in chain(*rules.keys.values()):
            for exact in (True, False):
                matches_file(rule.pattern, "/file", "file", exact=exact)
    _complete(BaseModel)
    _make_what_waits()
    EVENT.rebuild()
    # The converter of messages forgets what it knew whenever it learns a kind of class: it knows
    # all of them after the second time.
    for _ in range(2):
        asyncio.run(_initialize())


def _complete(model: type[BaseModel]) -> None:
    for made in model.__subclasses__():
        made.model_rebuild()
        _complete(made)


def _make_what_waits() -> None:
    """Magy writes the `__init__` of a dataclass, and compiles a pattern, when it is first used."""
    from magy_server.regex import regex

    def is_first(kind: type) -> bool:
        return getattr(vars(kind).get("__init__"), "__module__", "") == "magy_server.dataclass"

    for one in gc.get_objects():
        if isinstance(one, regex):
            one.match  # noqa: B018
        elif isinstance(one, type) and is_first(one):
            with contextlib.suppress(TypeError, AttributeError):
                one.__init__(None)


async def _initialize() -> None:
    """What is answered goes nowhere."""
    from magy_server.app import compose, scratch
    from magy_server.doctor.issue import examination
    from magy_server.jsonrpc.outbox import Outbox
    from magy_server.lsp.front_door import EditorFrontDoor
    from magy_server.lsp.server import Server
    from magy_server.lsp.transport import Connection

    connection = Connection(Outbox())
    Server(connection, EditorFrontDoor(lambda: compose, scratch, lambda: examination))
    folder = {"uri": "file:///", "name": "all"}
    capabilities = {
        "general": {"positionEncodings": ["utf-16"]},
        "workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}},
        "window": {"workDoneProgress": True},
        "textDocument": {"synchronization": {"didSave": True}},
    }
    asked = {"processId": None, "rootUri": None, "workspaceFolders": [folder]}
    for method, params in (
        ("initialize", {**asked, "capabilities": capabilities}),
        ("shutdown", None),
    ):
        message = {"jsonrpc": "2.0", "id": method, "method": method, "params": params}
        body = json.dumps(message).encode()
        connection.feed(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))


def _received(requests: socket.socket) -> tuple[dict[str, object], list[int]] | None:
    header, ends, _, _ = socket.recv_fds(requests, 8, 4)
    if not header:
        return None
    body, left = b"", int.from_bytes(header, "big")
    while len(body) < left:
        if not (piece := requests.recv(left - len(body))):
            return None
        body += piece
    return json.loads(body), ends


def _give_birth(
    message: dict[str, object], ends: list[int], alive: dict[int, socket.socket]
) -> int:
    environment = message["env"]
    assert isinstance(environment, dict)
    for module in environment.get(ALSO, "").split():
        importlib.import_module(module)
    pid = os.fork()
    if pid == 0:
        _live(message, ends)
    for end in ends[:3]:
        os.close(end)
    control = alive[pid] = socket.socket(fileno=ends[3])
    _tell(control, pid)
    return pid


def _let_in(
    stub: socket.socket, alive: dict[int, socket.socket], selector: selectors.BaseSelector
) -> None:
    with stub:
        if (asked := _received(stub)) is None:
            return
        message, ends = asked
        pid = _give_birth(message, [*ends, stub.detach()], alive)
    selector.register(alive[pid], selectors.EVENT_READ, pid)


def _bury(alive: dict[int, socket.socket], selector: selectors.BaseSelector) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        with alive.pop(pid) as control:
            if control in selector.get_map():
                selector.unregister(control)
            _tell(control, os.waitstatus_to_exitcode(status))


def _tell(control: socket.socket, number: int) -> None:
    with contextlib.suppress(OSError):  # the test may have ended
        control.sendall(b"%d\n" % number)


def _live(message: dict[str, object], ends: list[int]) -> NoReturn:
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for target, end in enumerate(ends[:3]):
            os.dup2(end, target)
        os.closerange(3, 1024)
        cwd, env, words = message["cwd"], message["env"], message["words"]
        assert isinstance(cwd, str) and isinstance(env, dict) and isinstance(words, list)
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(env)
        sys.argv = words
        sys.path[0] = cwd
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    if os.fork():
        os._exit(0)  # no child of a test's process: some look at all that it has
    requests, door = (socket.socket(fileno=int(end)) for end in sys.argv[1:])
    try:
        serve(requests, door)
    finally:
        shutil.rmtree(Path(door.getsockname()).parent)
