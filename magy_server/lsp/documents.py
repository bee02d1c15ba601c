"""The server keeps documents as the editor shows them, unsaved changes included.

pygls's own mirror is wrong in ways that matter here: it cuts lines at form feeds, U+2028 and the
like, where LSP knows only LF, CRLF and CR, so that one such character shifts every later edit; it
puts a position past the end of a line before its last character; and it rebuilds the whole text on
every keystroke. `LiveDocument` replaces the text part and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote
from weakref import WeakKeyDictionary

from lsprotocol import types
from pygls.workspace import TextDocument, Workspace

from magy_server.api.places import canonical
from magy_server.api.positions import column, split_lines
from magy_server.api.wire.names import INLINE, PLACED
from magy_server.core.listeners import Listeners
from magy_server.core.ports import Seen
from magy_server.tools.files.live_file import same


class LiveDocument(TextDocument):
    """A document as a list of lines, so that a keystroke in a long file is as cheap as in a
    short one."""

    changes = 0
    """How many there were: an editor may forget to count its versions."""
    _parts: list[str] | None = None
    _joined: str | None = None

    def replace(self, range: types.Range, text: str) -> None:
        """One incremental change. Positions outside the text are clamped, as LSP demands."""
        lines = self._split()
        first, last = range.start, range.end
        if (first.line, first.character) > (last.line, last.character):
            first, last = last, first
        a, a_column = self._locate(lines, first)
        b, b_column = self._locate(lines, last)
        head, tail = lines[a][:a_column], lines[b][b_column:]
        if a > 0 and lines[a - 1].endswith("\r"):
            # A lone CR may become half of a CRLF.
            a -= 1
            head = lines[a] + head
        fresh = split_lines(head + text + tail)
        if b + 1 < len(lines) and fresh[-1] == "" and len(fresh) > 1:
            fresh.pop()
        lines[a : b + 1] = fresh
        self._joined = None
        self.changes += 1

    def _locate(self, lines: list[str], position: types.Position) -> tuple[int, int]:
        if position.line >= len(lines):
            return len(lines) - 1, len(lines[-1])
        encoding = encoding_name(self._position_codec.encoding)
        return position.line, column(lines[position.line], position.character, encoding)

    def _split(self) -> list[str]:
        if self._parts is None:
            self._parts = split_lines(self.source)
            self._source = ""
        return self._parts

    def _apply_incremental_change(self, change: types.TextDocumentContentChangePartial) -> None:
        self.replace(change.range, change.text)

    def _apply_full_change(self, change: Any) -> None:
        self._source = change.text
        self._parts = self._joined = None
        self.changes += 1

    @property
    def lines(self) -> Sequence[str]:
        return tuple(self._split())

    def line(self, number: int) -> str:
        """One line, from 0, with its end; "" behind the last. As cheap in a long file."""
        lines = self._split()
        return lines[number] if number < len(lines) else ""

    @property
    def source(self) -> str:
        if self._parts is None:
            return super().source
        if self._joined is None:
            self._joined = "".join(self._parts)
        return self._joined


Watcher = Callable[[LiveDocument | None], None]
"""Called when a document was opened, after every single change of it (a notification may carry
several; of more than `MOST_STEPS`, after the last one), and with None when it was closed. On the
way of every keystroke: must be quick."""
MOST_STEPS = 64
"""Changes of one notification that are shown one by one."""


class LiveWorkspace(Workspace):
    """pygls's workspace with live documents, which are also found by canonical path."""

    @classmethod
    def like(cls, other: Workspace, folders: Iterable[types.WorkspaceFolder]) -> LiveWorkspace:
        return cls(other.root_uri, other._sync_kind, list(folders), other.position_encoding)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.touched: Listeners[[str]] = Listeners()
        """Hear of the URI whenever any document was opened, changed or closed."""
        self._followers: Listeners[[Seen]] = Listeners()
        self._by_path: dict[str, dict[str, None]] = {}
        self._watchers: dict[str, list[Watcher]] = {}
        self._meant: WeakKeyDictionary[asyncio.Task[Any], str] = WeakKeyDictionary()
        self._typed: WeakKeyDictionary[asyncio.Task[Any], tuple[str, Hashable]] = (
            WeakKeyDictionary()
        )

    def asked(self, task: asyncio.Task[Any], method: str, params: Mapping[str, Any]) -> None:
        """Keeps what the document of a request that is to change it says now, for `meant`, and of
        one about what is being typed, in which state it is, for `as_asked`."""
        if method == INLINE:
            about = params.get("textDocument")
            named = about.get("uri") if type(about) is dict else None
            if type(named) is str:
                self._typed[task] = named, _state(self.open_document(named))
            return
        uri = _to_change(method, params)
        path = canonical(uri) if uri else None
        if path and (document := self.document(path)):
            self._meant[task] = document.source

    def meant(self) -> str | None:
        """To be called in the task of a request: the text that its positions are of, which may
        have moved on since it came. None: the document was not open then."""
        task = asyncio.current_task()
        return self._meant.get(task) if task else None

    def as_asked(self) -> Callable[[], bool]:
        """To be called in the task of a request: returns a function that tells whether its document
        still is as it was when that came."""
        task = asyncio.current_task()
        uri, state = (self._typed.get(task) if task else None) or ("", None)
        return lambda: state is not None and _state(self.open_document(uri)) == state

    @property
    def encoding(self) -> str:
        """utf-8, utf-16 or utf-32."""
        return encoding_name(self.position_encoding)

    def document(self, path: str) -> LiveDocument | None:
        """The open document of a canonical path; of two names for it, the one opened last."""
        for key in reversed(self._by_path.get(path, {})):
            document = self._text_documents.get(key)
            if isinstance(document, LiveDocument):
                return document
        return None

    def uri_of_path(self, path: str) -> str | None:
        """The URI that the editor knows an open document by."""
        document = self.document(path)
        return document.uri if document else None

    def state_of(self, path: str) -> Hashable | None:
        """Another one after every change of the document; None: it is not open."""
        return _state(self.document(path))

    def open_paths(self) -> Sequence[str]:
        return tuple(self._by_path)

    def folder_paths(self) -> Sequence[str]:
        """Canonical paths of the workspace folders, or of the root when there are none."""
        uris = [folder.uri for folder in self._folders.values()] or [self.root_uri or ""]
        return tuple(path for uri in uris if (path := canonical(uri)))

    def watch(self, uri: str, watcher: Watcher) -> Callable[[], None]:
        """Calls `watcher` after every change of the document. Returns a function that ends this."""
        key = uri_key(uri)
        watchers = self._watchers.setdefault(key, [])
        watchers.append(watcher)

        def stop() -> None:
            watchers.remove(watcher)
            if not watchers:
                self._watchers.pop(key, None)

        return stop

    def follow(self, see: Callable[[Seen], None]) -> Callable[[], None]:
        """Tells of every document when it is opened, changed (once for each notification) and
        saved, from now on. Returns a function that ends this."""
        return self._followers.add(see)

    def saved(self, uri: str) -> None:
        """The editor has said that it saved this document as it shows it now."""
        document, path = self.open_document(uri), canonical(uri)
        if document is not None and path is not None:
            same(path, document.source)
        self._tell(uri, saved=True)

    def files_changed(self, uris: Iterable[str]) -> None:
        """The person has made, moved or removed these in the editor."""
        paths = [path for uri in uris if (path := canonical(uri))] if self._followers else []
        for path in paths:
            self._followers(Seen(path, on_disk=True))

    def _tell(self, uri: str, *, opened: bool = False, saved: bool = False) -> None:
        document, path = self.open_document(uri), canonical(uri) if self._followers else None
        if document is not None and path is not None:
            self._followers(Seen(path, document.source, opened, saved))

    def _changed(self, uri: str) -> None:
        if watchers := self._watchers.get(uri_key(uri)):
            document = self.open_document(uri)
            for watcher in tuple(watchers):
                watcher(document)
        self.touched(uri)

    def open_document(self, uri: str) -> LiveDocument | None:
        document = self._text_documents.get(uri_key(uri))
        return document if isinstance(document, LiveDocument) else None

    def _create_text_document(
        self,
        doc_uri: str,
        source: str | None = None,
        version: int | None = None,
        language_id: str | None = None,
    ) -> TextDocument:
        return LiveDocument(
            doc_uri,
            source=source,
            version=version,
            language_id=language_id,
            sync_kind=self._sync_kind,
            position_codec=self._position_codec,
        )

    def put_text_document(
        self, text_document: types.TextDocumentItem, notebook_uri: str | None = None
    ) -> None:
        super().put_text_document(text_document, notebook_uri)
        if path := canonical(text_document.uri):
            names = self._by_path.setdefault(path, {})
            names.pop(uri_key(text_document.uri), None)
            names[uri_key(text_document.uri)] = None
        self._changed(text_document.uri)
        self._tell(text_document.uri, opened=True)

    def update_text_document(
        self,
        text_doc: types.VersionedTextDocumentIdentifier,
        change: types.TextDocumentContentChangeEvent,
    ) -> None:
        super().update_text_document(text_doc, change)
        self._changed(text_doc.uri)

    def update_all(
        self,
        name: types.VersionedTextDocumentIdentifier,
        changes: Sequence[types.TextDocumentContentChangeEvent],
    ) -> None:
        """All changes of one notification."""
        silent = len(changes) - 1 if len(changes) > MOST_STEPS else 0
        for change in changes[:silent]:
            super().update_text_document(name, change)
        for change in changes[silent:]:
            self.update_text_document(name, change)
        self._tell(name.uri)

    def remove_text_document(self, doc_uri: str) -> None:
        super().remove_text_document(doc_uri)
        # Not by path: the file behind the name may have become another one since.
        for path, names in tuple(self._by_path.items()):
            if names.pop(uri_key(doc_uri), self) is None and not names:
                del self._by_path[path]
        self._changed(doc_uri)


def _state(document: LiveDocument | None) -> Hashable | None:
    return (document, document.changes) if document else None


def _to_change(method: str, params: Mapping[str, Any]) -> str | None:
    """The URI of the document in which a request names a place to be rewritten."""
    about: Any = params
    if method == "workspace/executeCommand" and params.get("command") in PLACED:
        arguments = params.get("arguments")
        about = arguments[0] if type(arguments) is list and arguments else None
    elif method != "magy/rewrite/start":
        return None
    uri = about.get("uri") if type(about) is dict else None
    return uri if type(uri) is str else None


def uri_key(uri: str) -> str:
    """What pygls files documents under: clients do not escape alike in all messages."""
    return unquote(uri)


def encoding_name(encoding: Any) -> str:
    """utf-8, utf-16 or utf-32; LSP's default is utf-16."""
    return str(getattr(encoding, "value", encoding or "utf-16"))
