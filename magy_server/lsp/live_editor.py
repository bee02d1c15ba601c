"""`LiveEditor` is the port to the editor's live buffers (`core.ports.Editor`): it edits them by
`workspace/applyEdit`, and believes only the `didChange` that shows the text it asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any
from weakref import WeakValueDictionary

from magy_server.api.positions import Positions
from magy_server.api.wire.live_edits import ANSWER, PATIENCE, SAVE, VERIFY
from magy_server.core.errors import EditorError, EditRefused, EditUnverified, InvalidRequest
from magy_server.core.ports import Buffer, Seen
from magy_server.edits.model import TextChange
from magy_server.edits.rebasing.diff import apply
from magy_server.jsonrpc.peer import ClientError, NotAnswered
from magy_server.lsp.documents import LiveDocument, LiveWorkspace
from magy_server.lsp.knowledge import Knower
from magy_server.lsp.transport import Connection
from magy_server.lsp.verify_edit import Verdict

CAUGHT_UP = 2.0
"""Seconds for an answer that only shows that all before it has come."""
SOON = 1.0
"""Seconds for the answer to an edit of which it is seen already what came of it."""
MENDINGS = 8
"""Edits that are sent to undo what an editor made of one at the wrong place."""


class LiveEditor(Knower):
    """One connection's editor. `offers` are the `magy/editor/*` methods that the client announced;
    `versioned`: its edits carry versions; `configurable`: it answers `workspace/configuration`."""

    tells = True
    _patience, _answer, _verify = PATIENCE, ANSWER, VERIFY

    def __init__(
        self,
        connection: Connection,
        workspace: LiveWorkspace,
        show: Callable[[str], None],
        offers: Collection[str],
        *,
        versioned: bool,
        configurable: bool,
    ) -> None:
        super().__init__(connection, workspace, offers)
        self._versioned = versioned
        self._configurable = configurable
        self._show = show
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._unseen = asyncio.Event()
        self._late: dict[str, asyncio.Task[bool]] = {}

    async def look(self, path: str) -> None:
        """What it shows is known."""

    def buffer(self, path: str) -> Buffer | None:
        document = self._workspace.document(path)
        return None if document is None else _buffer(path, document)

    def open_paths(self) -> Sequence[str]:
        return self._workspace.open_paths()

    async def apply(self, buffer: Buffer, changes: Sequence[TextChange], label: str) -> Buffer:
        """Applies the edit. The buffer that it returns also has what the person typed meanwhile."""
        ordered = _checked(buffer, changes)
        async with self._locks.setdefault(buffer.uri, asyncio.Lock()):
            self._current(buffer)
            if apply(buffer.text, ordered) == buffer.text:
                return buffer
            if late := self._late.pop(buffer.path, None):
                late.cancel()  # whose text it then is could not be told
            return await self._apply(buffer, ordered, label)

    def follow(self, see: Callable[[Seen], None]) -> Callable[[], None]:
        return self._workspace.follow(see)

    async def late(self, path: str) -> bool:
        late = self._late.get(path)
        if late is None:
            return False
        await asyncio.wait({late})
        return not late.cancelled() and late.result()

    async def unseen(self) -> None:
        """Waits until the editor has said that it made an edit, and has not shown it yet."""
        await self._unseen.wait()

    async def save(self, buffer: Buffer) -> Buffer | None:
        if "magy/editor/save" not in self._offers:
            return None
        params = {"uri": buffer.uri, "version": buffer.version}
        shown: list[Buffer] = []

        def heard(answer: object) -> None:
            """The person may type on in the very next message."""
            now = self.buffer(buffer.path)
            if type(answer) is dict and answer.get("saved") is True and now:
                shown.append(now)
                self._workspace.saved(buffer.uri)  # not every editor says `didSave`

        with suppress(ClientError, NotAnswered, EditRefused):
            self._current(buffer)
            await self._connection.request("magy/editor/save", params, SAVE, heard)
        return shown[0] if shown else None

    async def caught_up(self) -> bool:
        """Asks for no settings: what a client wrote before its answer comes before it."""
        if not self._configurable:
            return False
        try:
            await self._connection.request("workspace/configuration", {"items": []}, CAUGHT_UP)
        except ClientError:
            return True  # that is an answer, too
        except NotAnswered:
            return False
        return True

    def _current(self, buffer: Buffer) -> None:
        """The document is still as it is in `buffer`. Raises EditRefused."""
        document = self._workspace.open_document(buffer.uri)
        if document is None:
            raise EditRefused(f"{buffer.path} is no longer open in the editor.", reason="closed")
        if document.version != buffer.version or document.source != buffer.text:
            raise EditRefused(
                f"{buffer.path} was changed in the editor (version {buffer.version} is now "
                f"{document.version}). Read it again and make the edit on the new text.",
                reason="stale",
            )

    def _edit(self, buffer: Buffer, changes: Sequence[TextChange]) -> dict[str, Any]:
        """A WorkspaceEdit. Without `documentChanges` there is no version to guard it."""
        at = Positions(buffer.text, self._workspace.encoding)
        edits = [{"range": at.range(c.start, c.end), "newText": c.text} for c in changes]
        if not self._versioned:
            return {"changes": {buffer.uri: edits}}
        name = {"uri": buffer.uri, "version": buffer.version}
        return {"documentChanges": [{"textDocument": name, "edits": edits}]}

    async def _apply(self, buffer: Buffer, changes: Sequence[TextChange], label: str) -> Buffer:
        verdict = Verdict(buffer.text, changes, self._workspace.encoding)
        with self._watched(buffer, verdict) as watch:
            shown = await self._attempt(buffer, changes, label, watch)
            if verdict.landed:
                return shown
            shown = await self._mended(buffer, watch, label)
        if verdict.merged:
            return shown
        raise EditRefused(
            f"{buffer.path} was changed in the editor in the same lines while the edit was on its "
            "way; the typed text stays. Read it again and make the edit on the new text.",
            reason="stale",
        )

    async def _mended(self, buffer: Buffer, watch: _Watch, label: str) -> Buffer:
        """The editor has carried an edit out at the wrong place (it was made for an older version,
        as its number says, or would say if the client took any): puts that right, whatever else is
        typed meanwhile. Raises EditUnverified."""
        with ExitStack() as watched:
            for _ in range(MENDINGS):
                document = self._workspace.open_document(buffer.uri)
                verdict = watch.verdict
                if document is None or verdict.lost:
                    break
                now = _buffer(buffer.path, document)
                owed = _checked(now, verdict.owed or ())
                if not owed:
                    return now
                mending = Verdict(now.text, owed, self._workspace.encoding, mending=True)
                # The older one goes on as well: the editor may refuse, and then it is still owed.
                newer = watched.enter_context(self._watched(buffer, mending))
                with suppress(EditRefused):
                    shown = await self._attempt(now, owed, label, newer)
                    if mending.landed:
                        return shown
                    if not mending.merged:
                        break
                    watch = newer
        raise EditUnverified(
            f"The editor made the edit to {buffer.path} at the wrong place, because the person "
            "typed in the meantime, and Magy could not correct it. Read the file again; lines near "
            "the edit may be damaged."
        )

    @contextmanager
    def _watched(self, buffer: Buffer, verdict: Verdict) -> Iterator[_Watch]:
        watch = _Watch(buffer.path, verdict)
        watch.stop = self._workspace.watch(buffer.uri, watch)
        try:
            yield watch
        except asyncio.CancelledError:
            self._give_up(buffer.path, watch)
            raise
        finally:
            if watch.late is None:
                watch.close()

    def _give_up(self, path: str, watch: _Watch) -> None:
        """The editor may make the edit all the same: a person may have said yes already."""
        waiting = watch.answer is not None and not watch.seen.done()
        if waiting and not self._connection.ended.done():
            late = watch.late = self._connection.spawn(self._given_up(watch))
            self._late[path] = late
            late.add_done_callback(lambda _: watch.close())

    async def _given_up(self, watch: _Watch) -> bool:
        """Whether it was made."""
        assert watch.answer is not None
        await asyncio.wait(
            {watch.answer, watch.seen}, timeout=self._answer, return_when=asyncio.FIRST_COMPLETED
        )
        with suppress(ClientError, NotAnswered):
            if watch.answer.done() and _applied(watch.answer.result()):
                await asyncio.wait({watch.seen}, timeout=self._verify)
        return watch.seen.done() and watch.seen.exception() is None

    async def _attempt(
        self, buffer: Buffer, changes: Sequence[TextChange], label: str, watch: _Watch
    ) -> Buffer:
        """The buffer that showed the edit, at whatever place."""
        # The didChange may come before the answer, and the person may type right after it, so the
        # text is looked at after every change from here on and not only at the end.
        params = {"label": label, "edit": self._edit(buffer, changes)}
        error = await self._ask(buffer, params, watch)
        if watch.seen.done() and watch.seen.exception() is None:
            return watch.seen.result()
        if error is not None:
            raise error
        self._unseen.set()
        self._unseen.clear()  # those who wait now are woken all the same
        await asyncio.wait({watch.seen}, timeout=self._verify)
        if watch.seen.done():
            return watch.seen.result()
        shown = "another text" if watch.verdict.texts else "no change"
        raise EditUnverified(
            f"The editor said it applied the edit to {buffer.path}, but within "
            f"{self._verify:g} seconds it showed {shown}. Someone may have typed there, or a "
            "hook may have reformatted it. Read the file again before editing it."
        )

    async def _ask(
        self, buffer: Buffer, params: dict[str, Any], watch: _Watch
    ) -> EditorError | None:
        """What to raise, unless the edit shows all the same. None: it said that it applied it."""
        text = f"Magy waits: the editor has not answered yet to an edit of {buffer.path}."
        late = asyncio.get_running_loop().call_later(self._patience, self._show, text)
        try:
            answer = await self._answered(params, watch)
        except ClientError as error:
            return self._refused(buffer, error.message)
        except NotAnswered as error:
            return EditUnverified(
                f"{error.message} It is unknown whether {buffer.path} was edited; read it again."
            )
        finally:
            late.cancel()
        if _applied(answer):
            return None
        fields = answer if type(answer) is dict else {}
        return self._refused(buffer, str(fields.get("failureReason") or "it gave no reason."))

    async def _answered(self, params: dict[str, Any], watch: _Watch) -> Any:
        """Not waited for when the document is closed, or shows the edit: an answer can get lost.
        Raises ClientError, NotAnswered."""
        method = "workspace/applyEdit"
        id, answer = self._connection.ask(method, params)
        watch.answer = answer
        try:
            await asyncio.wait(
                {answer, watch.seen}, timeout=self._answer, return_when=asyncio.FIRST_COMPLETED
            )
            await asyncio.wait({answer}, timeout=SOON if watch.seen.done() else 0)
            if answer.done():
                return answer.result()
        finally:
            if not answer.done():
                self._connection.withdraw(id)
        raise NotAnswered(
            f"The editor did not answer {method} within {self._answer:g} seconds.", reason="timeout"
        )

    def _refused(self, buffer: Buffer, why: str) -> EditRefused:
        document = self._workspace.open_document(buffer.uri)
        text = f"The editor refused the edit to {buffer.path}: {why}"
        if document is not None and document.version != buffer.version:
            text += " The file has changed since: read it again and make the edit on the new text."
            return EditRefused(text, reason="stale")
        return EditRefused(text)


class _Watch:
    """Waits for the edit. `seen` is the buffer that showed it."""

    def __init__(self, path: str, verdict: Verdict) -> None:
        self.verdict = verdict
        self.seen: asyncio.Future[Buffer] = asyncio.get_running_loop().create_future()
        self.answer: asyncio.Future[Any] | None = None
        self.late: asyncio.Task[bool] | None = None
        """Goes on watching."""
        self.stop: Callable[[], None] = lambda: None
        self._path = path

    def __call__(self, document: LiveDocument | None) -> None:
        decided = document is not None and self.verdict.show(document.source)
        if self.seen.done():
            return
        if document is None:
            self.seen.set_exception(
                EditUnverified(
                    f"{self._path} was closed in the editor while an edit was on its way. It is "
                    "unknown whether it was applied; read the file again."
                )
            )
        elif decided:
            self.seen.set_result(_buffer(self._path, document))

    def close(self) -> None:
        self.stop()
        if self.answer is not None:
            self.answer.cancel()
        if self.seen.done() and not self.seen.cancelled():
            self.seen.exception()
        self.seen.cancel()


def _applied(answer: Any) -> bool:
    return type(answer) is dict and answer.get("applied") is True


def _buffer(path: str, document: LiveDocument) -> Buffer:
    return Buffer(path, document.uri, document.version, document.source)


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
