"""The verbs of `magy/rewrite/*` start rewrites; for clients that know only plain LSP a command does
so."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from os.path import basename

from magy_server.api.connected import Connected
from magy_server.api.places import paths_of
from magy_server.api.positions import Positions
from magy_server.api.rewrites.live_preview import Drafts
from magy_server.api.rewrites.start import MESSAGE, Place, Rewriting, session_of
from magy_server.api.wire import rewriting as wire
from magy_server.core.agents.tree import Stream, id_of, stream_of
from magy_server.core.errors import EditRefused, MagyError
from magy_server.core.events import Prompted
from magy_server.core.text.sanitizing import one_line
from magy_server.edits.selection import Span, carried
from magy_server.edits.text import plain


class RewriteVerbs:
    def __init__(self, at: Connected) -> None:
        self._at = at
        self._service = at.service
        self._rewriting = Rewriting(at.service)
        self._followed: dict[str, Drafts] = {}
        self._starting = asyncio.Lock()
        """One after the other: the same again finds what was begun."""

    def close(self) -> None:
        for drafts in tuple(self._followed.values()):
            drafts.close()
        self._followed.clear()

    async def start(self, params: wire.RewriteStartParams) -> wire.RewriteStartResult:
        return await self._start(params, tells=True)

    async def command(self, about: wire.RewriteCommand) -> wire.RewriteStartResult:
        """`magy.rewrite`."""
        params = wire.RewriteStartParams(
            request_key=about.request_key or str(uuid.uuid4()),
            uri=about.uri,
            range=about.range,
            instruction=about.instruction,
        )
        return await self._start(params, tells=self._at.draws)

    async def resume(self, streams: Sequence[Stream]) -> None:
        """Shows what a process that died had begun (`left_open`), and this one goes on with."""
        for stream in streams:
            await self._resumed(stream)

    # --- inside ---------------------------------------------------------------------------------

    async def _start(
        self, params: wire.RewriteStartParams, *, tells: bool
    ) -> wire.RewriteStartResult:
        path = paths_of(params.uri)[-1]
        root, cwd = self._at.place(params.cwd or path.rpartition("/")[0] or "/")
        session_id = session_of(root, params.request_key)
        async with self._starting:
            if await self._rewriting.known(session_id):
                drafts = self._follow(session_id, tells=tells)
            else:
                place = await self._found(params, root, cwd, path)
                drafts = await self._begun(session_id, params, place, tells)
        # The answer to the request goes out first: it tells the client the session's id. What was
        # over before is told again, as who asks again does not know it.
        asyncio.get_running_loop().call_soon(drafts.begin)
        return wire.RewriteStartResult(session_id=session_id, message_id=MESSAGE)

    async def _begun(
        self, session_id: str, params: wire.RewriteStartParams, place: Place, tells: bool
    ) -> Drafts:
        drafts = self._follow(session_id, tells=tells)
        try:
            await self._rewriting.start(session_id, place, params.instruction, params.model or "")
        except (MagyError, asyncio.CancelledError):
            if await self._rewriting.known(session_id):  # it has begun all the same
                drafts.begin()
            else:
                self._unfollow(session_id)
            raise
        return drafts

    async def _found(
        self, params: wire.RewriteStartParams, root: str, cwd: str, path: str
    ) -> Place:
        """The place that was meant when the request came, in the text as it is now."""
        files, meant = self._service.world.files, self._at.documents.meant()
        found = await files.look(root, path)
        now = plain(found.text or "")
        if meant is None and found.buffer and found.disk is not None:
            raise _moved(path)  # it was opened after that, and holds something else
        text = now if meant is None else plain(meant)
        at = Positions(text, self._at.documents.encoding)
        start, end = sorted(
            at.offset(one.line, one.character) for one in (params.range.start, params.range.end)
        )
        span: Span | None = (start, end)
        if text != now and found.text is not None:
            span = await asyncio.to_thread(carried, text, now, (start, end))
        if span is None:
            raise _moved(path)
        return Place(root, cwd, params.uri, found, span)

    async def _resumed(self, stream: Stream) -> None:
        entries = await self._service.world.store.read(stream)
        prompted = next((e.event for e in entries if isinstance(e.event, Prompted)), None)
        if prompted is not None and prompted.by not in self._service.world.peers():
            self._follow(id_of(stream), tells=self._at.draws).begin()

    def _follow(self, session_id: str, *, tells: bool) -> Drafts:
        if known := self._followed.get(session_id):
            return known
        session = self._service.loaded.watch(stream_of(session_id))
        drafts = Drafts(self._at, session, tells=tells, done=lambda: self._unfollow(session_id))
        self._followed[session_id] = drafts
        return drafts

    def _unfollow(self, session_id: str) -> None:
        if drafts := self._followed.pop(session_id, None):
            drafts.close()


def _moved(path: str) -> EditRefused:
    text = f"{one_line(basename(path))} was changed at the selection right after the request."
    return EditRefused(f"{text} Select it again and ask once more.", reason="stale")
