"""The server is what stands behind an editor's connection: what the client can do, its documents,
what the person is shown. `run` puts it together with the connection and the front door.

`lsp.greeting` has usually answered `initialize` before this module is imported. The front door is
started at the `initialized` notification, or at the first message of ours if that comes sooner; the
rest of LSP (`lsp.pygls_reader`) is imported when a message comes that needs it.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from magy_server.core.errors import EditorError, InvalidConfig, InvalidRequest, MagyError
from magy_server.dataclass import dataclass
from magy_server.jsonrpc import stdio
from magy_server.jsonrpc.greeting import NOTHING_YET, Greeting
from magy_server.jsonrpc.outbox import Failure, Outbox, settle
from magy_server.jsonrpc.peer import ClientError, Handler, NotAnswered
from magy_server.jsonrpc.serving import LEAVING, served
from magy_server.lsp.client_capabilities import Can, Client
from magy_server.lsp.documents import LiveWorkspace
from magy_server.lsp.transport import Connection

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

    from magy_server.lsp.live_editor import LiveEditor
    from magy_server.lsp.pygls_reader import PyglsReader

log = logging.getLogger(__name__)

SHOWING = 10.0
"""Seconds that a client may take to show a document."""
Kind = Literal["Error", "Warning", "Info"]
KINDS = get_args(Kind)
"""Of a message, as LSP names and numbers them, from 1."""
Command = Callable[[list[Any]], Awaitable[Any]]
"""async (arguments) -> result, for workspace/executeCommand."""


@dataclass(frozen=True, slots=True)
class Answering:
    """What a front door answers, by name: methods, and commands, which are among those that it
    announced."""

    methods: Mapping[str, Handler]
    commands: Mapping[str, Command]


class FrontDoor(Protocol):
    """What stands behind the connection. Everything but `start` must be quick: it is needed before
    `initialize` is answered."""

    version: str
    experimental: Mapping[str, Any]
    """`capabilities.experimental.magy` of the server."""
    commands: Sequence[str]
    """Names for workspace/executeCommand, announced in the capabilities."""
    standard: Sequence[str]
    """Standard requests that are among the methods of `start`. One that comes sooner waits; when
    the start fails it is answered with null, as the person has been told why."""

    def configure(self, server: LanguageServer) -> None:
        """May register further standard features with pygls."""

    async def start(self, server: Server) -> Answering:
        """Imports and starts what is slow. A MagyError is what all methods will then say; after an
        InvalidConfig it is tried anew when one is asked for, as the person may have mended that."""

    async def stop(self, why: str) -> None:
        """The connection is over. `why` is half a sentence, such as "the editor went away". Tasks
        that were spawned on the connection and still run are cancelled right after."""


class Server:
    """One running language server, as the front door sees it."""

    def __init__(self, connection: Connection, front: FrontDoor, *, greeted: bool = False) -> None:
        """`greeted`: the first message is an `initialize` that is answered already."""
        self.connection = connection
        self._front = front
        self._greeted = greeted
        self._client: Client | None = None
        self._workspace: LiveWorkspace | None = None
        self._standard: PyglsReader | None = None
        self._tokens: dict[str, Callable[[], None]] = {}
        self._numbers = itertools.count(1)
        self._started: asyncio.Task[Answering | Failure] | None = None
        connection.methods["workspace/executeCommand"] = self._execute
        connection.methods["window/workDoneProgress/cancel"] = self._cancel_progress
        for name in front.standard:
            connection.methods[name] = partial(self._too_early, name)
        connection.open(self)

    # --- the client -----------------------------------------------------------------------------

    @property
    def initialized(self) -> bool:
        return self._client is not None

    def greeted(self, params: dict[str, Any]) -> bool:
        if self._greeted:
            self.introduce(params)
        return self._greeted

    def introduce(self, params: Mapping[str, Any]) -> LiveWorkspace:
        """Takes what the client says of itself in `initialize`. Returns where its documents are."""
        client = self._client = Client(params)
        self._workspace = LiveWorkspace(client.folders, client.root, client.encoding)
        return self._workspace

    async def standard(self) -> PyglsReader:
        make = await asyncio.to_thread(_standard)
        self._standard = make(self, self._front, self.connection.outbox)
        return self._standard

    @property
    def client(self) -> Client:
        assert self._client is not None
        return self._client

    @property
    def can(self) -> Can:
        return self.client.can

    @property
    def workspace(self) -> LiveWorkspace:
        assert self._workspace is not None
        return self._workspace

    def asked(self, task: asyncio.Task[None], method: str, params: dict[str, Any]) -> None:
        self.workspace.asked(task, method, params)

    def editor(self, offers: Sequence[str] = ()) -> LiveEditor:
        """The port to the live buffers; `offers` are the `magy/editor/*` methods announced."""
        from magy_server.lsp.live_editor import LiveEditor

        return LiveEditor(
            self.connection,
            self.workspace,
            self.show,
            offers,
            versioned=self.can.versioned,
            configurable=self.can.configurable,
        )

    # --- the person -----------------------------------------------------------------------------

    def show(self, message: str, kind: Kind = "Info") -> None:
        params = {"type": KINDS.index(kind) + 1, "message": message}
        self.connection.notify("window/showMessage", params)

    async def show_document(
        self, uri: str, selection: Mapping[str, Any] | None, focus: bool
    ) -> bool:
        """Whether the client can, and says that it shows it."""
        if not self.can.show_document:
            return False
        params = {"uri": uri, "takeFocus": focus} | ({"selection": selection} if selection else {})
        try:
            answer = await self.connection.request("window/showDocument", params, SHOWING)
        except EditorError:
            return False
        return type(answer) is dict and answer.get("success") is True

    async def choose(self, message: str, actions: Sequence[str]) -> str | None:
        """The action the person picked; None when the question was dismissed or cannot be shown.
        Waits for as long as that takes: cancel it when the question is settled otherwise."""
        params = {
            "type": KINDS.index("Info") + 1,
            "message": message,
            "actions": [{"title": action} for action in actions],
        }
        try:
            answer = await self.connection.request("window/showMessageRequest", params)
        except (ClientError, NotAnswered):
            return None
        title = answer.get("title") if type(answer) is dict else None
        return title if title in actions else None

    async def progress(
        self, title: str, cancel: Callable[[], None] | None = None
    ) -> Progress | None:
        """Shows a work-done progress; None when the client has none. With `cancel` it has a button
        that calls it."""
        if not self.can.progress:
            return None
        token = f"magy-progress-{next(self._numbers)}"
        if cancel is not None:
            self._tokens[token] = cancel
        try:
            await self.connection.request(
                "window/workDoneProgress/create", {"token": token}, timeout=10
            )
        except (ClientError, NotAnswered):
            self._tokens.pop(token, None)
            return None
        begin = {"kind": "begin", "title": title, "cancellable": cancel is not None}
        progress = Progress(token, self)
        progress.say(begin)
        return progress

    # --- life ------------------------------------------------------------------------------------

    def ready(self) -> None:
        self._begin()

    async def pending(self) -> Answering:
        """Waits for the front door; raises what its start raised."""
        if self._misconfigured:
            self._started = None
        return await self._first()

    @property
    def _misconfigured(self) -> bool:
        if self._started is None or not self._started.done() or self._started.cancelled():
            return False
        started = self._started.result()
        return isinstance(started, Failure) and isinstance(started.error, InvalidConfig)

    async def _first(self) -> Answering:
        """The same, but nothing is tried again."""
        started = await asyncio.shield(self._begin())
        if isinstance(started, Failure):
            if isinstance(started.error, MagyError):
                raise started.error
            raise MagyError(
                f"Magy could not start ({type(started.error).__name__}: {started.error}). "
                "See its log, then restart the server.",
                reason="not_started",
            )
        return started

    def _begin(self) -> asyncio.Task[Answering | Failure]:
        if self._started is None:
            self._started = self.connection.spawn(self._start())
        return self._started

    async def _start(self) -> Answering | Failure:
        answering = await settle(self._front.start(self))
        if not isinstance(answering, Failure):
            self.connection.complete(answering.methods)
        elif not isinstance(answering.error, MagyError):  # of such the front door told the person
            self.connection.failed(answering.error)
        return answering

    async def _too_early(self, method: str, params: dict[str, Any]) -> Any:
        try:
            await self._first()
        except MagyError:
            return None
        return await self.connection.methods[method](params)

    async def stop(self, why: str) -> None:
        if self._started is not None and not self._started.done():
            self._started.cancel()
            await asyncio.wait([self._started])
        await self._front.stop(why)
        if self._standard is not None:
            self._standard.close()

    async def _execute(self, params: dict[str, Any]) -> Any:
        name, arguments = params.get("command"), params.get("arguments")
        if type(name) is not str or type(arguments or []) is not list:
            raise InvalidRequest("workspace/executeCommand needs a command and a list of arguments")
        commands = (await self.pending()).commands
        command = commands.get(name)
        if command is None:
            known = ", ".join(sorted(commands)) or "none"
            raise InvalidRequest(f"There is no command {name}. Known are: {known}.")
        return await command(arguments or [])

    async def _cancel_progress(self, params: dict[str, Any]) -> None:
        cancel = self._tokens.pop(str(params.get("token")), None)
        if cancel is not None:
            cancel()

    def forget(self, token: str) -> None:
        self._tokens.pop(token, None)


class Progress:
    """A progress that has begun. After `end`, everything is ignored."""

    def __init__(self, token: str, server: Server) -> None:
        self._token: str | None = token
        self._server = server

    def report(self, message: str) -> None:
        self.say({"kind": "report", "message": message})

    def end(self, message: str = "") -> None:
        self.say({"kind": "end"} | ({"message": message} if message else {}))
        if self._token is not None:
            self._server.forget(self._token)
            self._token = None

    def say(self, value: Mapping[str, Any]) -> None:
        if self._token is not None:
            params = {"token": self._token, "value": value}
            self._server.connection.notify("$/progress", params)


def run(
    front: FrontDoor,
    stdin: int,
    stdout: int,
    greeting: Greeting = NOTHING_YET,
    leaving: float = LEAVING,
) -> int:
    """Serves the descriptors until the client is gone; the process's exit code. `leaving`: seconds
    in which it then ends."""
    stdio.log_to_stderr()
    # It logs every fault twice and with all frames; `report_server_error` says each once.
    logging.getLogger("pygls").setLevel(logging.CRITICAL)
    return asyncio.run(serve(front, stdin, stdout, greeting, leaving))


async def serve(
    front: FrontDoor, stdin: int, stdout: int, greeting: Greeting, leaving: float
) -> int:
    """The same in a running loop; closes the descriptors. 0 when the client said `shutdown`
    first."""

    def begin(outbox: Outbox) -> tuple[Connection, Callable[[str], Awaitable[None]]]:
        connection = Connection(outbox)
        return connection, Server(connection, front, greeted=greeting.answered).stop

    return await served(stdin, stdout, begin, already=greeting.read, leaving=leaving)


def _standard() -> type[PyglsReader]:
    """To be called in a thread."""
    from magy_server.lsp.pygls_reader import PyglsReader, converter

    converter()
    return PyglsReader
