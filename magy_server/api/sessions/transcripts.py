"""Editors that show no transcripts themselves get them as Markdown: as `magy:/transcript/ID.md`
where the editor takes texts from the server, as a file in the state directory where it does not."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from magy_server.api.connected import Beside
from magy_server.api.places import SCHEME, split
from magy_server.api.service import Service
from magy_server.core.agents import tree
from magy_server.core.agents.tree import stream_of
from magy_server.core.errors import EditorError, MagyError, NotFound
from magy_server.engine import trees
from magy_server.engine.session import Session

if TYPE_CHECKING:  # most editors show transcripts themselves
    from magy_server.api.sessions.texts import Transcript

LOG = logging.getLogger(__name__)
REFRESH = "workspace/textDocumentContent/refresh"
EVERY = 1.0
"""Seconds between two refreshes of one transcript."""
UNSHOWN = 30.0
"""Seconds without a request for a text that was refreshed, after which it is not shown any more."""
ANSWER = 10.0
HELD = 8
"""Transcripts in memory."""
SHOWN = 32
"""Transcripts that are refreshed."""
_PREFIX = "/transcript/"
_LONGEST_NAME = 200

Request = Callable[[str, Any, float], Coroutine[Any, Any, Any]]


def uri_of(session_id: str) -> str:
    return f"{SCHEME}:{_PREFIX}{quote(session_id, safe='')}.md"


def session_of(uri: str) -> str | None:
    """None: it is not the URI of a transcript."""
    parts = split(uri)
    name = parts.path.removeprefix(_PREFIX)
    if parts.scheme != SCHEME or name == parts.path or not name.endswith(".md"):
        return None
    return unquote(name.removesuffix(".md"))


class Transcripts:
    """`request` sends one to the editor; `folder` is where files are written."""

    def __init__(self, service: Service, request: Request, spawn: Beside, folder: Path) -> None:
        self._service = service
        self._request = request
        self._spawn = spawn
        self._folder = folder
        self._held: dict[str, Transcript] = {}
        self._shown: dict[str, _Shown] = {}

    async def text(self, session_id: str, link: Callable[[str], str] = uri_of) -> str:
        """`link`: session id -> what a reader follows to its text. Raises NotFound."""
        from magy_server.api.sessions.texts import Transcript, relations

        try:
            info = await self._service.info(session_id)
        except NotFound:  # it may have been deleted anywhere
            self.forget(session_id)
            raise
        held = self._held.get(session_id)
        if held is not None and held.made != info.created:  # it is another with the same id
            self.forget(session_id)
        held = self._held.pop(session_id, None)
        held = held or Transcript(self._service.world.store, info)
        self._held[session_id] = held
        while len(self._held) > HELD:
            del self._held[next(iter(self._held))]
        text = await held.text() + await relations(self._service.world.store, session_id, link)
        held.end = text.rstrip("\n").count("\n")
        return text

    async def shown(self, session_id: str) -> str:
        """The text, for an editor that is refreshed from now on as it grows."""
        await self._service.info(session_id)
        shown = self._shown.get(session_id)
        if shown is None or shown.closed:
            session = self._service.loaded.watch(stream_of(session_id))
            shown = _Shown(uri_of(session_id), session, self._request, self._spawn)
            self._show(session_id, shown)
        shown.asked_for()
        return await self.text(session_id)

    async def file(self, session_id: str) -> Path:
        """Writes the transcript, and those of the children, anew into files that nobody else can
        read. Raises NotFound, MagyError."""
        for info in await trees.below(self._service.world.store, session_id):
            await self._file(info.id)
        return await self._file(session_id)

    async def _file(self, session_id: str) -> Path:
        text = await self.text(session_id, lambda id: quote(file_name(id)))
        return await asyncio.to_thread(write, self._folder, file_name(session_id), text)

    def end(self, session_id: str) -> int:
        """The last line, from 0, of the text made last."""
        held = self._held.get(session_id)
        return held.end if held else 0

    def forget(self, session_id: str) -> None:
        """Forgets a session that was deleted, and its children, and removes their files."""
        below = {id for id in (*self._held, *self._shown) if tree.is_below(id, session_id)}
        for id in (session_id, *below):
            self._held.pop(id, None)
            if shown := self._shown.pop(id, None):
                shown.close()
        self._remove(self._folder / file_name(session_id))
        for path in self._folder.glob(f"{quote(f'{session_id}/', safe='')}*.md"):
            self._remove(path)

    async def tidy(self) -> None:
        """Removes the files of sessions that were deleted elsewhere, or while nothing ran."""
        for path in await asyncio.to_thread(lambda: list(self._folder.glob("*.md"))):
            ours = path.name.isascii()  # as `file_name` makes them
            if ours and await self._service.world.store.info(stream_of(unquote(path.stem))) is None:
                self._remove(path)

    def close(self) -> None:
        for shown in self._shown.values():
            shown.close()

    def _show(self, session_id: str, shown: _Shown) -> None:
        self._shown = {id: one for id, one in self._shown.items() if not one.closed}
        self._shown[session_id] = shown
        while len(self._shown) > SHOWN:
            self._shown.pop(next(iter(self._shown))).close()

    def _remove(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            LOG.warning("%s cannot be removed: %s.", path, error.strerror)


class _Shown:
    """A text that the editor shows: it is told when there is more, until it does not ask for the
    text any more."""

    def __init__(self, uri: str, session: Session, request: Request, spawn: Beside) -> None:
        self.closed = False
        self._uri = uri
        self._session = session
        self._request = request
        self._spawn = spawn
        self._loop = asyncio.get_running_loop()
        self._seq = session.state.seq
        self._asked = self._said = self._loop.time()
        self._due: asyncio.TimerHandle | None = None
        self._stop = session.watch(self._grown)

    def asked_for(self) -> None:
        self._asked = self._loop.time()

    def close(self) -> None:
        self.closed = True
        self._stop()
        if self._due:
            self._due.cancel()
            self._due = None

    def _grown(self) -> None:
        """The log, or only what streams, which the text does not show."""
        streams = self._session.log.loaded and self._session.state.seq == self._seq
        if self.closed or self._due or streams:
            return
        now = self._loop.time()
        if self._said > self._asked and now - self._said > UNSHOWN:
            self.close()
        else:
            self._due = self._loop.call_at(max(now, self._said + EVERY), self._refresh)

    def _refresh(self) -> None:
        self._due = None
        self._seq = self._session.state.seq
        self._said = self._loop.time()
        self._spawn(self._tell())

    async def _tell(self) -> None:
        with suppress(EditorError):  # it cannot: it asks again by itself, or not
            await self._request(REFRESH, {"uri": self._uri}, ANSWER)


def file_name(session_id: str) -> str:
    """The name of the session's file. A long id is cut; then two sessions may share one file."""
    name = quote(session_id, safe="")[-_LONGEST_NAME:].lstrip(".%") or "session"
    return f"{name}.md"


def write(folder: Path, name: str, text: str) -> Path:
    """Writes a file that nobody else can read, and returns its path. Raises MagyError."""
    import tempfile

    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, made = tempfile.mkstemp(prefix=".magy-", dir=folder)  # 0600
        try:
            with open(descriptor, "w", encoding="utf-8", errors="replace") as file:
                file.write(text)
            os.replace(made, folder / name)
        except OSError:
            with suppress(FileNotFoundError):
                os.unlink(made)
            raise
    except OSError as error:
        raise MagyError(
            f"{folder / name} cannot be written: {error.strerror}.", reason="state"
        ) from None
    return folder / name
