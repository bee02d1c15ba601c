"""pygls reads here what Magy does not read itself, as the standard server behind a connection: what
the editor says of notebooks, what `lsp.document_messages` has left of documents and folders, and an
`initialize` that `lsp.greeting` has left.

It is imported when the first such message comes: pygls and the types of LSP take most of a second.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Generator, Mapping, Sequence
from functools import cache
from typing import Any, Protocol

import orjson
from cattrs import transform_error
from cattrs.errors import BaseValidationError
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, default_converter, lsp_method
from pygls.workspace import Workspace

from magy_server.jsonrpc.outbox import Outbox
from magy_server.jsonrpc.peer import Id
from magy_server.lsp.documents import Change, LiveWorkspace
from magy_server.lsp.tolerance import prune

log = logging.getLogger(__name__)

converter = cache(default_converter)
"""It learns each kind of message when the first of that kind comes."""


class Announcing(Protocol):
    """What is announced in the answer to `initialize`: see `lsp.server.FrontDoor`."""

    version: str
    experimental: Mapping[str, Any]
    commands: Sequence[str]

    def configure(self, server: LanguageServer) -> None: ...


class Home(Protocol):
    """What keeps the documents."""

    @property
    def initialized(self) -> bool: ...

    @property
    def workspace(self) -> LiveWorkspace: ...

    def introduce(self, params: Mapping[str, Any]) -> LiveWorkspace:
        """Takes the parameters of `initialize`. Returns where the documents are to be kept."""


class _Mirror(Workspace):
    """pygls's workspace, whose texts and folders are kept by ours."""

    def __init__(self, live: LiveWorkspace) -> None:
        self._live = live
        super().__init__(None)

    def add_folder(self, folder: types.WorkspaceFolder) -> None:
        self._live.add_folder(folder.uri)

    def remove_folder(self, folder_uri: str) -> None:
        self._live.remove_folder(folder_uri)

    def put_text_document(
        self, text_document: types.TextDocumentItem, notebook_uri: str | None = None
    ) -> None:
        one = text_document
        self._live.opened(one.uri, one.text, one.version, one.language_id)

    def remove_text_document(self, doc_uri: str) -> None:
        self._live.closed(doc_uri)

    def update_text_document(
        self,
        text_doc: types.VersionedTextDocumentIdentifier,
        change: types.TextDocumentContentChangeEvent,
    ) -> None:
        self.update_all(text_doc, [change])

    def update_all(
        self,
        name: types.VersionedTextDocumentIdentifier,
        changes: Sequence[types.TextDocumentContentChangeEvent],
    ) -> None:
        """All changes of one notification."""
        self._live.changed(name.uri, name.version, [_change(one) for one in changes])


def _change(change: types.TextDocumentContentChangeEvent) -> Change:
    if isinstance(change, types.TextDocumentContentChangeWholeDocument):
        return change.text
    start, end = change.range.start, change.range.end
    return (start.line, start.character), (end.line, end.character), change.text


class _Protocol(LanguageServerProtocol):
    """pygls's protocol with our writer, our documents and no body in the log."""

    outbox: Outbox
    experimental: Mapping[str, Any]
    home: Home
    params: Mapping[str, Any]
    """Of `initialize`, as sent, without what could not be read."""

    def _send_data(self, data: Any) -> None:
        self.outbox.send(orjson.dumps(data, default=self._serialize_message))

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(
        self, params: types.InitializeParams
    ) -> Generator[Any, Any, types.InitializeResult]:
        result = yield from super().lsp_initialize(params)
        self.keep(self.home.introduce(self.params))
        result.capabilities.experimental = {"magy": dict(self.experimental)}
        document = params.capabilities.text_document
        inline = document.inline_completion if document else None
        if inline and not inline.dynamic_registration:
            result.capabilities.inline_completion_provider = True
        return result

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        self._mirror.update_all(params.text_document, params.content_changes)

    def keep(self, live: LiveWorkspace) -> None:
        """All documents are kept there from now on."""
        self._workspace = self._mirror = _Mirror(live)

    def busy_with(self, id: Id) -> bool:
        return id in self._request_futures

    def receive(self, message: dict[str, Any]) -> str | None:
        # Only the outermost object is a message: pygls would take any object for one that has a
        # key `jsonrpc`, as the tool results of MCP servers do.
        message.setdefault("jsonrpc", self.VERSION)
        try:
            structured = self.structure_message(message)
        except JsonRpcException as error:
            if message.get("method") == types.INITIALIZE and self._tolerate(message):
                return self.receive(message)
            return _first_cause(error)
        if message.get("method") == types.INITIALIZE:
            self.params = message["params"]
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


class PyglsReader:
    """`transport.Standard`, behind a server whose client may have been answered already."""

    def __init__(self, home: Home, front: Announcing, outbox: Outbox) -> None:
        self._home = home
        self._pygls = _Pygls(
            "magy", front.version, protocol_cls=_Protocol, converter_factory=converter
        )
        protocol = self._pygls.protocol
        protocol.outbox = outbox
        protocol.experimental = front.experimental
        protocol.home = home
        if home.initialized:
            protocol.keep(home.workspace)
        self.busy_with = protocol.busy_with
        self.receive = protocol.receive
        self._register(front.commands)
        front.configure(self._pygls)

    def close(self) -> None:
        self._pygls.shutdown()  # type: ignore[no-untyped-call]

    @property
    def handles(self) -> frozenset[str]:
        """All methods that it answers or listens to."""
        features = self._pygls.protocol.fm
        return frozenset(features.builtin_features) | frozenset(features.features)

    def _register(self, commands: Sequence[str]) -> None:
        self._pygls.feature(types.TEXT_DOCUMENT_DID_OPEN)(_synced)
        self._pygls.feature(types.TEXT_DOCUMENT_DID_CLOSE)(_synced)
        self._pygls.feature(types.TEXT_DOCUMENT_DID_SAVE)(
            lambda params: self._home.workspace.saved(params.text_document.uri)
        )
        self._register_files()
        for name in commands:
            self._pygls.command(name)(announced)

    def _register_files(self) -> None:
        """What the person makes, moves and removes in the editor."""
        pattern = types.FileOperationPattern(glob="**/*")
        filters = [types.FileOperationFilter(pattern=pattern, scheme="file")]
        options = types.FileOperationRegistrationOptions(filters=filters)

        @self._pygls.feature(types.WORKSPACE_DID_CREATE_FILES, options)
        @self._pygls.feature(types.WORKSPACE_DID_DELETE_FILES, options)
        def _made_or_removed(params: types.CreateFilesParams | types.DeleteFilesParams) -> None:
            self._home.workspace.files_changed(file.uri for file in params.files)

        @self._pygls.feature(types.WORKSPACE_DID_RENAME_FILES, options)
        def _renamed(params: types.RenameFilesParams) -> None:
            self._home.workspace.files_changed(
                uri for file in params.files for uri in (file.old_uri, file.new_uri)
            )


def _synced(params: Any) -> None:
    """Registered with pygls only so that it announces `openClose`: the workspace keeps itself."""


async def announced(*arguments: Any) -> None:
    """Registered with pygls only so that it announces it: we answer."""


def _first_cause(error: JsonRpcException) -> str:
    """Which field was wrong, of pygls's nested errors."""
    cause = error.__cause__
    return transform_error(cause)[0] if isinstance(cause, BaseValidationError) else str(error)
