"""A draft shows the person a rewrite while it streams: the text so far, at the place where the
selection is by now. Magy keeps nothing but what the log and the stream say, so a process that
resumes a rewrite shows it like the one that began it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Mapping, Sequence
from time import perf_counter
from typing import Any, Literal

from magy_server.api.connected import Connected, Documents, notification
from magy_server.api.positions import Positions
from magy_server.api.rewrites.start import MESSAGE, TOOL
from magy_server.api.wire.rewriting import RewriteDraft
from magy_server.api.wire.shapes import Range
from magy_server.core.errors import MagyError
from magy_server.core.events import Ended, Event, Finished, Prompted, Replied, Requeued
from magy_server.core.values import Call, Embedded, Selected, Text
from magy_server.edits.model import EditError
from magy_server.edits.selection import PROSE, Argument, Rewrite, Span, carried
from magy_server.edits.text import plain
from magy_server.engine.session import Session
from magy_server.engine.streaming import Partial

PACE = 0.05
"""Seconds between two drafts, at least; each has all of the text."""
SLOWER = 1_000_000
"""Characters for each of which it is a second more."""
RATHER = 4
"""Times as long as it took to find the place: the server has other things to do."""
SAID = 300
"""Characters of what a model said instead of rewriting that are shown."""

State = Literal["streaming", "applied", "failed", "cancelled"]


class Drafts:
    """An outbox `Source`. Nothing is sent before `begin`. `tells`: the client draws drafts; others
    are only told what went wrong. `done` is called when it is over."""

    def __init__(
        self, at: Connected, session: Session, *, tells: bool, done: Callable[[], None]
    ) -> None:
        self._session = session
        self._tells = tells
        self._warn = at.warn
        self._done = done
        self._world = at.service.world
        self._documents = at.documents
        self._outbox = at.outbox
        self._loop = asyncio.get_running_loop()
        self._log = Outcome()
        self._cursor = 0
        self._place: LivePlace | None = None
        self._argument: tuple[Partial, Argument, int] | None = None
        self._text = ""
        self._sent: RewriteDraft | None = None
        self._last = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._unwatch: Callable[[], None] = lambda: None
        self._untrack: Callable[[], None] = lambda: None
        self._begun = self._closed = self._ending = False
        self._looking = self._looked = False

    def begin(self) -> None:
        """Starts sending drafts. Calling it again has no effect."""
        if not self._closed and not self._begun:
            self._begun = True
            self._unwatch = self._session.watch(self._wake)
            self._wake()

    def close(self) -> None:
        self._closed = True
        self._unwatch()
        self._untrack()
        self._outbox.forget(self)
        if self._timer:
            self._timer.cancel()

    def _wake(self) -> None:
        self._outbox.wake(self)

    async def pull(self, budget: int) -> Sequence[Mapping[str, Any]]:
        try:
            await self._read()
        except MagyError as error:
            self._lost(error)
            return []
        if not self._log.over:
            return self._paced()
        if not self._ending:  # other sources must not wait for the looking that it takes
            self._ending = True
            self._session.later(self._finish())
        return []

    def _lost(self, error: MagyError) -> None:
        self._warn(f"Magy: a rewrite can no longer be shown: {error.message}")
        self._done()

    # --- the log --------------------------------------------------------------------------------

    async def _read(self) -> None:
        entries = self._session.log.entries_after(self._cursor)
        if entries is None:
            entries = await self._world.store.read(self._session.stream, after=self._cursor)
        for entry in entries:
            self._cursor = entry.seq
            if isinstance(entry.event, Prompted) and entry.event.id == MESSAGE:
                await self._asked(entry.event)
            self._log.take(entry.event)

    async def _asked(self, prompted: Prompted) -> None:
        for part in prompted.content:
            if isinstance(part, Embedded) and part.selected:
                data = await self._world.store.blob(part.selected.base)
                text = self._world.files.text(data) or ""
                self._place = LivePlace(part.uri, part.selected, text, self._documents)
                self._untrack = self._documents.watch(part.uri, lambda document: self._wake())

    # --- what streams ---------------------------------------------------------------------------

    def _paced(self) -> Sequence[Mapping[str, Any]]:
        place = self._place
        if place is None or not self._tells or self._looking or self._wait(place):
            return []
        if place.stale and not self._looked:
            self._looking = True
            self._session.later(self._look(place))
            return []
        self._looked = False
        draft = self._draft(place)
        if place.stale:  # typed in while it was looked at
            self._wake()
        if draft == self._sent:
            return []
        self._sent, self._last = draft, self._loop.time()
        return [_message(draft)]

    def _wait(self, place: LivePlace) -> bool:
        """Whether it is too early for another draft; then it is made when it is time."""
        if self._looked:
            return False
        pause = PACE + len(self._text) / SLOWER + place.cost * RATHER
        wait = self._last + pause - self._loop.time()
        if wait > 0 and self._timer is None:
            self._timer = self._loop.call_later(wait, self._again)
        return wait > 0

    def _again(self) -> None:
        self._timer = None
        self._wake()

    async def _look(self, place: LivePlace) -> None:
        try:
            await place.look()
        finally:
            self._looking, self._looked, self._last = False, True, self._loop.time()
        if not self._closed:
            self._wake()

    def _draft(self, place: LivePlace) -> RewriteDraft:
        if (argument := self._so_far()) is not None:
            self._text = place.rewrite.so_far(argument)
        notice = self._session.streaming.partials.get(("notice", "notice"))
        said = notice.since(0).strip().rpartition("\n")[2] if notice else ""
        return self._made(place.range, self._text, "streaming", said)

    def _so_far(self) -> str | None:
        """None: nothing streams now."""
        partials = self._session.streaming.partials.values()
        found = [one for one in partials if one.kind == "call" and one.name == TOOL]
        if not found:
            return None
        partial = found[0]  # the first that runs ends the turn
        if self._argument is None or self._argument[0] is not partial:
            self._argument = (partial, Argument("text"), 0)
        _, argument, offset = self._argument
        argument.feed(partial.since(offset))
        self._argument = (partial, argument, partial.size)
        return argument.text

    # --- the end --------------------------------------------------------------------------------

    async def _finish(self) -> None:
        """Sends the last draft, and returns when it is sent, unless the client is gone."""
        try:
            await self._end()
        except MagyError as error:
            self._lost(error)
        else:
            self._done()

    async def _end(self) -> None:
        state, message = self._log.verdict()
        if not self._tells:
            if state == "failed":
                self._warn(f"Magy: {message}")
        elif (place := self._place) is not None:
            if (answer := self._log.answer) is not None:
                self._text = _fitted(place.rewrite, answer)
            if state == "applied" and not self._log.proposed:
                range = await place.replaced(await self._live(place), self._text)
            else:
                await place.look()
                range = place.range
            if not self._closed:
                self._outbox.send(_message(self._made(range, self._text, state, message)))

    async def _live(self, place: LivePlace) -> str:
        live = place.live
        if live is None:
            path = place.selected.path
            live = (await self._world.files.look(path.rpartition("/")[0] or "/", path)).text
        return live or ""

    def _made(
        self, range: Mapping[str, Any], text: str, state: State, message: str
    ) -> RewriteDraft:
        assert self._place is not None
        return RewriteDraft(
            session_id=self._session.id,
            uri=self._place.uri,
            range=Range.model_validate(range),
            text=text,
            state=state,
            message=message,
        )


class LivePlace:
    """The selection in the text as the editor has it now; of a file that is not open, as it was.

    It is carried on from the last text in which it was whole: two texts that one change lies
    between are compared at once, however large, while those with several have to be diffed. That
    is done in a thread."""

    def __init__(self, uri: str, selected: Selected, raw: str, documents: Documents) -> None:
        self.uri = uri
        self.selected = selected
        prose = selected.path.lower().endswith(PROSE)
        self.rewrite = Rewrite(plain(raw), (selected.start, selected.end), prose)
        self.cost = 0.0
        """Seconds that the last look took."""
        self._documents = documents
        self._seen: Hashable = None
        self._whole = self.rewrite.base, self.rewrite.place
        self.range = self._at(*self._whole)
        """Where it was last, when the person has typed into it."""

    @property
    def live(self) -> str | None:
        """Raw."""
        document = self._documents.document(self.selected.path)
        return document.source if document else None

    @property
    def stale(self) -> bool:
        """Whether something was typed since the last `look`."""
        return self._documents.state_of(self.selected.path) not in (None, self._seen)

    async def look(self) -> None:
        """Brings `range` up to date."""
        live, seen = self.live, self._documents.state_of(self.selected.path)
        if live is None or seen == self._seen:
            return
        began = perf_counter()
        found = await asyncio.to_thread(self._carried, *self._whole, live)
        if found:
            self._whole, self.range = found
        self._seen, self.cost = seen, perf_counter() - began

    async def replaced(self, live: str, text: str) -> dict[str, Any]:
        """Returns the range of `text`, which took the place of the selection, in `live` (raw)."""
        start, end = self.rewrite.place
        after = self.rewrite.base[:start] + text + self.rewrite.base[end:]
        found = await asyncio.to_thread(self._carried, after, (start, start + len(text)), live)
        return found[1] if found else self.range

    def _carried(
        self, text: str, span: Span, live: str
    ) -> tuple[tuple[str, Span], dict[str, Any]] | None:
        live = plain(live)
        now = carried(text, live, span)
        return ((live, now), self._at(live, now)) if now else None

    def _at(self, text: str, span: Span) -> dict[str, Any]:
        return Positions(text, self._documents.encoding).range(*span)


class Outcome:
    """What the log says of the turn."""

    def __init__(self) -> None:
        self.over = False
        self._said = ""
        self._calls: dict[str, str | None] = {}
        """The text of each, by its id."""
        self._finished: Finished | None = None
        self._ended: Ended | None = None

    @property
    def answer(self) -> str | None:
        """Returns the argument of the call that was carried out, or else of the last call."""
        if self._finished and self._applied:
            return self._calls[self._finished.call]
        return next((text for text in reversed(self._calls.values()) if text is not None), None)

    @property
    def _applied(self) -> bool:
        done = self._finished
        return done is not None and (done.status == "completed" or bool(done.changes))

    @property
    def proposed(self) -> bool:
        changes = self._finished.changes if self._finished else ()
        return any(change.via == "proposed" for change in changes)

    def take(self, event: Event) -> None:
        match event:
            case Replied():
                self._reply(event)
            case Finished() if event.call in self._calls and not self._applied:
                if event.status != "not_run" or self._finished is None:
                    self._finished = event
            case Requeued() if MESSAGE in event.dropped:
                self.over = True
            case Ended() if event.turn == MESSAGE:
                self._ended, self.over = event, True

    def _reply(self, reply: Replied) -> None:
        parts = [part.text for part in reply.content if isinstance(part, Text)]
        self._said = "\n".join(parts).strip()
        for part in reply.content:
            if isinstance(part, Call) and part.name == TOOL:
                text = part.arguments.get("text")
                self._calls[part.id] = text if isinstance(text, str) else None

    def verdict(self) -> tuple[State, str]:
        """Returns how the rewrite ended, and a sentence for the person."""
        done, end = self._finished, self._ended
        if done and self._applied:
            return "applied", self._remark(done)
        if end is None or end.stop == "cancelled":
            return "cancelled", ""
        if end.stop == "max_tokens":
            text = "The model's answer was cut off at its limit of length, so nothing was replaced."
            return "failed", f"{text} Select less, or raise the limit of a reply (`max_tokens`)."
        if end.stop == "end_turn" and done:
            return "failed", done.for_model
        if end.stop == "refusal":
            return "failed", "The model refused to answer."
        said = self._said if len(self._said) <= SAID else self._said[: SAID - 1] + "…"
        return "failed", end.message or f"The model did not rewrite it, but answered: {said}"

    def _remark(self, done: Finished) -> str:
        if not done.changes:
            return "The selection is unchanged: the model answered with the same text."
        if self.proposed:
            return "The rewrite is only proposed: accept or reject it in the review."
        return "" if done.status == "completed" else done.for_model


def _fitted(rewrite: Rewrite, text: str) -> str:
    try:
        return rewrite.fitted(text)
    except EditError:
        return plain(text)


def _message(draft: RewriteDraft) -> Mapping[str, Any]:
    return notification("magy/rewrite/draft", draft.model_dump(mode="json", by_alias=True))
