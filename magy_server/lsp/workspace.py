"""The editor's live buffers as a port (`core.ports.Editor`): edits through `workspace/applyEdit`,
believed only when the editor's own `didChange` shows the text that was asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

from magy_server.core.errors import EditorError, EditRefused, EditUnverified, InvalidRequest
from magy_server.core.ports import Buffer, TextChange
from magy_server.lsp.documents import LiveDocument, LiveWorkspace, Positions
from magy_server.lsp.transport import ClientError, Connection, NotAnswered


class LiveEditor:
    """One connection's editor. `offers` are the `magy/editor/*` methods that the client announced,
    `answer` and `verify` how many seconds it may take to answer an edit, and then to show it."""

    def __init__(
        self,
        connection: Connection,
        workspace: LiveWorkspace,
        *,
        versioned: bool,
        offers: Collection[str] = (),
        answer: float = 60.0,
        verify: float = 5.0,
    ) -> None:
        self._connection = connection
        self._workspace = workspace
        self._versioned = versioned
        self._offers = frozenset(offers)
        self._answer = answer
        self._verify = verify
        self._locks: dict[str, asyncio.Lock] = {}

    def buffer(self, path: str) -> Buffer | None:
        document = self._workspace.document(path)
        return None if document is None else _buffer(path, document)

    def open_paths(self) -> Sequence[str]:
        return self._workspace.open_paths()

    async def apply(self, buffer: Buffer, changes: Sequence[TextChange], label: str) -> Buffer:
        ordered = _checked(buffer, changes)
        lock = self._locks.setdefault(buffer.uri, asyncio.Lock())
        try:
            async with lock:
                document = self._current(buffer)
                expected = _applied(buffer.text, ordered)
                if expected == buffer.text:
                    return buffer
                edit = self._edit(document, buffer, ordered)
                return await self._apply(buffer, expected, {"label": label, "edit": edit})
        finally:
            if not lock.locked() and self._workspace.open_document(buffer.uri) is None:
                self._locks.pop(buffer.uri, None)

    async def save(self, path: str) -> bool:
        document = self._workspace.document(path)
        if document is None or "magy/editor/save" not in self._offers:
            return False
        with suppress(ClientError, NotAnswered):
            answer = await self._connection.request(
                "magy/editor/save", {"uri": document.uri}, self._answer
            )
            return type(answer) is dict and answer.get("saved") is True
        return False

    def _current(self, buffer: Buffer) -> LiveDocument:
        """The document, still as it is in `buffer`. Raises EditRefused."""
        document = self._workspace.open_document(buffer.uri)
        if document is None:
            raise EditRefused(f"{buffer.path} is no longer open in the editor.", reason="closed")
        if document.version != buffer.version or document.source != buffer.text:
            raise EditRefused(
                f"{buffer.path} was changed in the editor (version {buffer.version} is now "
                f"{document.version}). Read it again and make the edit on the new text.",
                reason="stale",
            )
        return document

    def _edit(
        self, document: LiveDocument, buffer: Buffer, changes: Sequence[TextChange]
    ) -> dict[str, Any]:
        """A WorkspaceEdit. Without `documentChanges` there is no version to guard it."""
        at = Positions(buffer.text, self._workspace.encoding)
        edits = [{"range": at.range(c.start, c.end), "newText": c.text} for c in changes]
        if not self._versioned:
            return {"changes": {document.uri: edits}}
        name = {"uri": document.uri, "version": buffer.version}
        return {"documentChanges": [{"textDocument": name, "edits": edits}]}

    async def _apply(self, buffer: Buffer, expected: str, params: dict[str, Any]) -> Buffer:
        # The didChange may come before the answer, and the person may type right after it, so the
        # text is compared at every change from here on and not only at the end.
        watch = _Watch(buffer, expected)
        stop = self._workspace.watch(buffer.uri, watch)
        try:
            error = await self._ask(buffer, params)
            if watch.seen.done() and watch.seen.exception() is None:
                return watch.seen.result()
            if error is not None:
                raise error
            async with asyncio.timeout(self._verify):
                return await watch.seen
        except TimeoutError:
            shown = "another text" if watch.changes else "no change"
            raise EditUnverified(
                f"The editor said it applied the edit to {buffer.path}, but within "
                f"{self._verify:g} seconds it showed {shown}. Someone may have typed there, or a "
                "hook may have reformatted it. Read the file again before editing it."
            ) from None
        finally:
            stop()
            watch.close()

    async def _ask(self, buffer: Buffer, params: dict[str, Any]) -> EditorError | None:
        """What to raise, unless the edit shows all the same. None: it said that it applied it."""
        try:
            answer = await self._connection.request("workspace/applyEdit", params, self._answer)
        except ClientError as error:
            return self._refused(buffer, error.message)
        except NotAnswered as error:
            return EditUnverified(
                f"{error.message} Whether {buffer.path} was edited is not known; read it again."
            )
        fields = answer if type(answer) is dict else {}
        if fields.get("applied") is True:
            return None
        return self._refused(buffer, str(fields.get("failureReason") or "it gave no reason."))

    def _refused(self, buffer: Buffer, why: str) -> EditRefused:
        document = self._workspace.open_document(buffer.uri)
        text = f"The editor refused the edit to {buffer.path}: {why}"
        if document is not None and document.version != buffer.version:
            text += " The file has changed since: read it again and make the edit on the new text."
            return EditRefused(text, reason="stale")
        return EditRefused(text)


class _Watch:
    """Waits for the expected text. `seen` is the buffer that showed it."""

    def __init__(self, buffer: Buffer, expected: str) -> None:
        self.changes = 0
        self.seen: asyncio.Future[Buffer] = asyncio.get_running_loop().create_future()
        self._path = buffer.path
        self._expected = _line_ends(expected)

    def __call__(self, document: LiveDocument | None) -> None:
        if self.seen.done():
            return
        self.changes += 1
        if document is None:
            self.seen.set_exception(
                EditUnverified(
                    f"{self._path} was closed in the editor while an edit was on its way. Whether "
                    "it was applied is not known; read the file again."
                )
            )
        # Editors convert line ends to the buffer's own: not a difference that anyone asked for.
        elif _line_ends(document.source) == self._expected:
            self.seen.set_result(_buffer(self._path, document))

    def close(self) -> None:
        if self.seen.done() and not self.seen.cancelled():
            self.seen.exception()
        self.seen.cancel()


def _buffer(path: str, document: LiveDocument) -> Buffer:
    return Buffer(path, document.uri, document.version or 0, document.source)


def _line_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _checked(buffer: Buffer, changes: Sequence[TextChange]) -> list[TextChange]:
    """In order, neighbours joined, and widened where one would cut a CRLF in two, which no LSP
    position can say."""
    text, end = buffer.text, 0
    ordered: list[TextChange] = []
    for change in sorted(changes, key=lambda c: (c.start, c.end)):
        if not end <= change.start <= change.end <= len(text):
            raise InvalidRequest(
                f"The changes to {buffer.path} overlap or lie outside of its {len(text)} "
                f"characters: {change.start} to {change.end} comes after {end}."
            )
        if ordered and change.start == end:
            last = ordered.pop()
            change = TextChange(last.start, change.end, last.text + change.text)
        end = change.end
        ordered.append(change)
    return [_widened(text, change) for change in ordered]


def _widened(text: str, change: TextChange) -> TextChange:
    start, end, new = change.start, change.end, change.text
    if text[start - 1 : start + 1] == "\r\n" and start:
        start, new = start - 1, "\r" + new
    if text[end - 1 : end + 1] == "\r\n" and end:
        end, new = end + 1, new + "\n"
    return TextChange(start, end, new)


def _applied(text: str, changes: Sequence[TextChange]) -> str:
    parts: list[str] = []
    at = 0
    for change in changes:
        parts += text[at : change.start], change.text
        at = change.end
    return "".join([*parts, text[at:]])
