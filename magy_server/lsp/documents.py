"""The server keeps documents as the editor shows them, unsaved changes included.

pygls's own mirror is wrong in ways that matter here: it cuts lines at form feeds, U+2028 and the
like, where LSP knows only LF, CRLF and CR, so that one such character shifts every later edit; it
puts a position past the end of a line before its last character; and it rebuilds the whole text on
every keystroke. So the texts are kept here, whoever reads the messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote
from weakref import WeakKeyDictionary

from magy_server.api.places import canonical
from magy_server.api.positions import column, split_lines
from magy_server.api.wire.names import INLINE, PLACED
from magy_server.core.listeners import Listeners
from magy_server.core.ports import Seen
from magy_server.lsp.client_capabilities import USUAL
from magy_server.tools.files.live_file import same

Place = tuple[int, int]
"""A line, and a character of it in the encoding of the connection, both counted from 0."""
Change = tuple[Place, Place, str] | str
"""What stands from one place to another is replaced by a text; or the whole is."""


class LiveDocument:
    """A document as a list of lines, so that a keystroke in a long file is as cheap as in a
    short one."""

    def __init__(
        self, uri: str, source: str, version: int, encoding: str, language_id: str = ""
    ) -> None:
        self.uri = uri
        self.version = version
        self.language_id = language_id
        self.changes = 0
        """How many there were: an editor may forget to count its versions."""
        self._encoding = encoding
        self._parts: list[str] | None = None
        self._joined: str | None = source

    def change(self, change: Change) -> None:
        """One of a notification. Positions outside the text are clamped, as LSP demands."""
        self.changes += 1
        if type(change) is str:
            self._joined, self._parts = change, None
        else:
            self._replace(*change)

    def _replace(self, first: Place, last: Place, text: str) -> None:
        lines = self._split()
        if first > last:
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

    def _locate(self, lines: list[str], place: Place) -> Place:
        line, character = place
        if line >= len(lines):
            return len(lines) - 1, len(lines[-1])
        return line, column(lines[line], character, self._encoding)

    def _split(self) -> list[str]:
        if self._parts is None:
            self._parts = split_lines(self.source)
        return self._parts

    @property
    def lines(self) -> Sequence[str]:
        return tuple(self._split())

    def line(self, number: int) -> str:
        """One line, from 0, with its end; "" behind the last. As cheap in a long file."""
        lines = self._split()
        return lines[number] if number < len(lines) else ""

    @property
    def source(self) -> str:
        if self._joined is None:
            self._joined = "".join(self._parts or ())
        return self._joined


Watcher = Callable[[LiveDocument | None], None]
"""Called when a document was opened, after every single change of it (a notification may carry
several; of more than `MOST_STEPS`, after the last one), and with None when it was closed. On the
way of every keystroke: must be quick."""
MOST_STEPS = 64
"""Changes of one notification that are shown one by one."""


class LiveWorkspace:
    """The open documents of a connection, which are also found by canonical path, and its folders.

    `folders` and `root` are URIs, "" for no root; positions are in `encoding`: utf-8, utf-16 or
    utf-32."""

    def __init__(self, folders: Iterable[str] = (), root: str = "", encoding: str = USUAL) -> None:
        self.encoding = encoding
        self._root = root
        self.touched: Listeners[[str]] = Listeners()
        """Hear of the URI whenever any document was opened, changed or closed."""
        self._folders = {uri_key(uri): uri for uri in folders}
        self._documents: dict[str, LiveDocument] = {}
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

    def document(self, path: str) -> LiveDocument | None:
        """The open document of a canonical path; of two names for it, the one opened last."""
        for key in reversed(self._by_path.get(path, {})):
            if document := self._documents.get(key):
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
        uris = self._folders.values() or [self._root]
        return tuple(path for uri in uris if (path := canonical(uri)))

    def add_folder(self, uri: str) -> None:
        self._folders[uri_key(uri)] = uri

    def remove_folder(self, uri: str) -> None:
        self._folders.pop(uri_key(uri), None)

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
        return self._documents.get(uri_key(uri))

    def opened(self, uri: str, text: str, version: int, language_id: str = "") -> None:
        key = uri_key(uri)
        self._documents[key] = LiveDocument(uri, text, version, self.encoding, language_id)
        if path := canonical(uri):
            names = self._by_path.setdefault(path, {})
            names.pop(key, None)
            names[key] = None
        self._changed(uri)
        self._tell(uri, opened=True)

    def changed(self, uri: str, version: int, changes: Sequence[Change]) -> None:
        """All changes of one notification. Raises KeyError for a document that is not open."""
        document = self._documents[uri_key(uri)]
        silent = len(changes) - 1 if len(changes) > MOST_STEPS else 0
        for number, change in enumerate(changes):
            document.change(change)
            document.version = version
            if number >= silent:
                self._changed(uri)
        self._tell(uri)

    def closed(self, uri: str) -> None:
        key = uri_key(uri)
        self._documents.pop(key, None)
        # Not by path: the file behind the name may have become another one since.
        for path, names in tuple(self._by_path.items()):
            if names.pop(key, self) is None and not names:
                del self._by_path[path]
        self._changed(uri)


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
    """What documents are filed under: clients do not escape alike in all messages."""
    return unquote(uri)
