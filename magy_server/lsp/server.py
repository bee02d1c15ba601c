"""The server answers the standard half of LSP, on pygls: lifecycle, document sync, capabilities.
`run` puts it together with the connection and the front door.

`lsp.greeting` has usually answered `initialize` before this module is imported. The front door is
started at the `initialized` notification, or at the first message of ours if that comes sooner.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
import logging
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

import orjson
from cattrs import transform_error
from cattrs.errors import BaseValidationError
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, default_converter, lsp_method

from magy_server.core.errors import EditorError, InvalidRequest, MagyError
from magy_server.dataclass import dataclass
from magy_server.jsonrpc import stdio
from magy_server.jsonrpc.greeting import NOTHING_YET, Greeting
from magy_server.jsonrpc.outbox import Failure, Outbox, settle
from magy_server.jsonrpc.peer import ClientError, Handler, Id, NotAnswered
from magy_server.jsonrpc.serving import LEAVING, served
from magy_server.lsp.documents import LiveWorkspace
from magy_server.lsp.tolerance import prune
from magy_server.lsp.transport import Connection

if TYPE_CHECKING:
    from magy_server.lsp.live_editor import LiveEditor

log = logging.getLogger(__name__)

SHOWING = 10.0
"""Seconds that a client may take to show a document."""
Kind = Literal["Info", "Warning", "Error"]
"""Of a message, as LSP names them."""
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
        """Imports and starts what is slow. A MagyError is what all methods will then say."""

    async def stop(self, why: str) -> None:
        """The connection is over. `why` is half a sentence, such as "the editor went away". Tasks
        that were spawned on the connection and still run are cancelled right after."""


_converter = cache(default_converter)
"""It learns each kind of message when the first of that kind comes."""


class _Protocol(LanguageServerProtocol):
    """pygls's protocol with our writer, our documents and no body in the log."""

    outbox: Outbox
    experimental: Mapping[str, Any]
    greeted: bool
    """`initialize` is answered already."""
    options: Any = None
    """`initializationOptions`, as sent."""
    client_name = ""
    """What the editor calls itself in `initialize`."""

    def _send_data(self, data: Any) -> None:
        self.outbox.send(orjson.dumps(data, default=self._serialize_message))

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(
        self, params: types.InitializeParams
    ) -> Generator[Any, Any, types.InitializeResult]:
        result = yield from super().lsp_initialize(params)
        folders = params.workspace_folders or ()
        self._workspace = LiveWorkspace.like(self.workspace, folders)
        result.capabilities.experimental = {"magy": dict(self.experimental)}
        self.client_name = params.client_info.name if params.client_info else ""
        can = Can(params.capabilities)
        if can.inline and not can.register_inline:
            result.capabilities.inline_completion_provider = True
        return result

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        cast(LiveWorkspace, self.workspace).update_all(params.text_document, params.content_changes)

    @property
    def initialized(self) -> bool:
        return self._workspace is not None

    def knows(self, method: str) -> bool:
        return method in self.fm.builtin_features or method in self.fm.features

    def busy_with(self, id: Id) -> bool:
        return id in self._request_futures

    def receive(self, message: dict[str, Any]) -> str | None:
        # Only the outermost object is a message: pygls would take any object for one that has a
        # key `jsonrpc`, as the tool results of MCP servers do.
        message.setdefault("jsonrpc", self.VERSION)
        params = message.get("params")
        if message.get("method") == types.INITIALIZE and type(params) is dict:
            self.options = params.get("initializationOptions")
        try:
            structured = self.structure_message(message)
        except JsonRpcException as error:
            if message.get("method") == types.INITIALIZE and self._tolerate(message):
                return self.receive(message)
            return _first_cause(error)
        if self.greeted and message.get("method") == types.INITIALIZE:
            self._handle_notification(types.INITIALIZE, structured.params)
        else:
            self.handle_message(structured)
        return None

    def _tolerate(self, message: dict[str, Any]) -> bool:
        """Whether `initialize` was changed so that it may be understood at a second try."""
        params = message.setdefault("params", {})
        if type(params) is not dict:
            return False
        before = copy.deepcopy(params)
        capabilities = params.setdefault("capabilities", {})
        if type(capabilities) is dict:
            prune(capabilities, lambda part: part, self._converter)
        return bool(params != before)


class _Pygls(LanguageServer):
    protocol: _Protocol

    def report_server_error(self, error: Exception, source: Any) -> None:
        # pygls shows every such error to the person in a window.
        log.error("The standard server failed", exc_info=error)


class Can:
    """Which optional parts of LSP a client supports, of those that Magy uses. `resolve`: it asks
    what a code action does when that is chosen; `texts`: it takes documents from the server;
    `show_document`: it opens documents when it is asked to; `inline`: it shows inline completions,
    and with `register_inline` may be told later that there are any."""

    def __init__(self, client: types.ClientCapabilities) -> None:
        window, workspace, document = client.window, client.workspace, client.text_document
        shown = window.show_document if window else None
        self.show_document = bool(shown and shown.support)
        lens = workspace.code_lens if workspace else None
        self.refresh_lenses = bool(lens and lens.refresh_support)
        texts = workspace.text_document_content if workspace else None
        self.texts = bool(texts and texts.dynamic_registration)
        action = document.code_action if document else None
        tags = action.tag_support if action else None
        resolve = action.resolve_support if action else None
        can_resolve = bool(resolve and "command" in resolve.properties)
        self.resolve = bool(action and action.data_support and can_resolve)
        inline = document.inline_completion if document else None
        self.inline = inline is not None
        self.register_inline = bool(inline and inline.dynamic_registration)
        self.tags = bool(tags and types.CodeActionTag.LlmGenerated in tags.value_set)


class Server:
    """One running language server, as the front door sees it."""

    def __init__(self, connection: Connection, front: FrontDoor, *, greeted: bool = False) -> None:
        self.connection = connection
        self._front = front
        self._tokens: dict[str, Callable[[], None]] = {}
        self._numbers = itertools.count(1)
        self._started: asyncio.Task[Answering | Failure] | None = None
        self.pygls = _Pygls(
            "magy", front.version, protocol_cls=_Protocol, converter_factory=_converter
        )
        self.pygls.protocol.outbox = connection.outbox
        self.pygls.protocol.experimental = front.experimental
        self.pygls.protocol.greeted = greeted
        self._register()
        front.configure(self.pygls)
        connection.methods["workspace/executeCommand"] = self._execute
        connection.methods["window/workDoneProgress/cancel"] = self._cancel_progress
        for name in front.standard:
            connection.methods[name] = partial(self._too_early, name)
        connection.open(
            self.pygls.protocol, self._answering, lambda *request: self.workspace.asked(*request)
        )

    @property
    def workspace(self) -> LiveWorkspace:
        return cast(LiveWorkspace, self.pygls.workspace)

    @property
    def client(self) -> types.ClientCapabilities:
        return self.pygls.client_capabilities

    @property
    def can(self) -> Can:
        return Can(self.client)

    def editor(self, offers: Sequence[str] = ()) -> LiveEditor:
        """The port to the live buffers; `offers` are the `magy/editor/*` methods announced."""
        from magy_server.lsp.live_editor import LiveEditor

        can = self.client.workspace
        edits = can.workspace_edit if can else None
        return LiveEditor(
            self.connection,
            self.workspace,
            self.show,
            offers,
            versioned=bool(edits and edits.document_changes),
            configurable=bool(can and can.configuration),
        )

    # --- the person -----------------------------------------------------------------------------

    def show(self, message: str, kind: Kind = "Info") -> None:
        params = {"type": types.MessageType[kind].value, "message": message}
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
            "type": types.MessageType.Info.value,
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
        window = self.client.window
        if not (window and window.work_done_progress):
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

    # --- life -----------------------------------------------------------------------------------

    def _register(self) -> None:
        self.pygls.feature(types.TEXT_DOCUMENT_DID_OPEN)(_synced)
        self.pygls.feature(types.TEXT_DOCUMENT_DID_CLOSE)(_synced)
        self.pygls.feature(types.TEXT_DOCUMENT_DID_SAVE)(
            lambda params: self.workspace.saved(params.text_document.uri)
        )
        self._register_files()
        self.pygls.feature(types.INITIALIZED)(lambda params: self._begin())
        for name in self._front.commands:
            self.pygls.command(name)(announced)

    def _register_files(self) -> None:
        """What the person makes, moves and removes in the editor."""
        pattern = types.FileOperationPattern(glob="**/*")
        filters = [types.FileOperationFilter(pattern=pattern, scheme="file")]
        options = types.FileOperationRegistrationOptions(filters=filters)

        @self.pygls.feature(types.WORKSPACE_DID_CREATE_FILES, options)
        @self.pygls.feature(types.WORKSPACE_DID_DELETE_FILES, options)
        def _made_or_removed(params: types.CreateFilesParams | types.DeleteFilesParams) -> None:
            self.workspace.files_changed(file.uri for file in params.files)

        @self.pygls.feature(types.WORKSPACE_DID_RENAME_FILES, options)
        def _renamed(params: types.RenameFilesParams) -> None:
            self.workspace.files_changed(
                uri for file in params.files for uri in (file.old_uri, file.new_uri)
            )

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
            await self._answering()
        except MagyError:
            return None
        return await self.connection.methods[method](params)

    async def _answering(self) -> Answering:
        """Waits for the front door; raises what its start raised."""
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

    async def stop(self, why: str) -> None:
        if self._started is not None and not self._started.done():
            self._started.cancel()
            await asyncio.wait([self._started])
        await self._front.stop(why)
        self.pygls.shutdown()  # type: ignore[no-untyped-call]

    async def _execute(self, params: dict[str, Any]) -> Any:
        name, arguments = params.get("command"), params.get("arguments")
        if type(name) is not str or type(arguments or []) is not list:
            raise InvalidRequest("workspace/executeCommand needs a command and a list of arguments")
        commands = (await self._answering()).commands
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


def _synced(params: Any) -> None:
    """Registered with pygls only so that it announces `openClose`: the workspace keeps itself."""


async def announced(*arguments: Any) -> None:
    """Registered with pygls only so that it announces it: we answer."""


def _first_cause(error: JsonRpcException) -> str:
    """Which field was wrong, of pygls's nested errors."""
    cause = error.__cause__
    return transform_error(cause)[0] if isinstance(cause, BaseValidationError) else str(error)
