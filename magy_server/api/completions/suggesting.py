"""`Completions` answers where somebody types: from what is known, else by a model, once the typing
pauses. Nothing here is ever said to the person: a suggestion that cannot be had is none."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Coroutine
from typing import Any

from magy_server.api.completions import cleaning, prompt
from magy_server.api.completions.asking import AGENT, Asking, Question, text_of
from magy_server.api.completions.declarations import Declarations
from magy_server.api.completions.known_suggestions import KnownSuggestions
from magy_server.api.completions.prompt import Declared
from magy_server.api.completions.requests import SCHEMES, Request
from magy_server.api.completions.spending import Day
from magy_server.api.completions.surroundings import Surroundings, around_column
from magy_server.api.connected import Connected, Document
from magy_server.api.places import canonical, innermost
from magy_server.api.positions import column, units
from magy_server.api.prompts.readable_files import Reach
from magy_server.api.wire.completions import CompletionStatus, CompletionStatusParams
from magy_server.api.wire.shapes import Position, Range
from magy_server.core.errors import MagyError, ProviderError
from magy_server.core.patterns import matches_file
from magy_server.core.settings import CompletionSettings, Settings
from magy_server.dataclass import dataclass
from magy_server.tools.files.paths import below

NONE = ""
"""In the place of a model: none is configured."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """`text` takes the place of `range`."""

    text: str
    range: Range


@dataclass(frozen=True, slots=True)
class _Spot:
    """Where a request points at: what is around it, and the range that the answer replaces.
    `kept`: the beginning of the answer, which is what the editor has selected."""

    place: Surroundings
    range: Range
    kept: str


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a model is to be asked about. `root`: whose settings hold."""

    request: Request
    place: Surroundings
    root: str | None
    model: str
    settings: CompletionSettings


class Completions:
    """One request a document at a time: a newer one ends the older one."""

    def __init__(self, at: Connected, reach: Reach) -> None:
        self._at = at
        self._world = at.service.world
        self._reach = reach
        self._asking = Asking(self._world, self._spent)
        self._known = KnownSuggestions()
        self._declarations = Declarations()
        self._running: dict[str, asyncio.Task[str]] = {}

    def closed(self, uri: str) -> None:
        """Forgets what was suggested in a document."""
        self._known.forget(uri)

    async def close(self) -> None:
        await self._asking.close()

    async def suggest(self, request: Request, fresh: Callable[[], bool]) -> Suggestion | None:
        """`fresh` tells whether the document still is as it was when the request came."""
        try:
            return await self._suggest(request, fresh)
        except MagyError as error:
            self._asking.say_once(f"No inline completion: {error.message}")
            return None

    async def _suggest(self, request: Request, fresh: Callable[[], bool]) -> Suggestion | None:
        document = self._at.documents.open_document(request.uri)
        path = canonical(request.uri)
        root = innermost(self._at.roots, path) if path else self._at.first
        all_settings = self._world.settings(root)
        settings = all_settings.completion
        if document is None or not settings.enabled or not fresh():
            return None
        if self._off(request, root, path, settings):
            return None
        spot = _spot(document, request, self._at.documents.encoding, settings)
        welcome = request.invoked or cleaning.wanted(spot.place)
        if spot.place.empty or not welcome:
            return None
        model = await self._model(root, all_settings)
        if model == NONE:
            return None
        text = self._known.find(request.uri, model, spot.place)
        if text is None:
            if not request.invoked and self._asking.pause(model):
                return None
            about = _Asked(request, spot.place, root, model, settings)
            text = await self._newest(request.uri, self._made(about, fresh))
        if not text or not fresh():
            return None
        return Suggestion(spot.kept + text.replace("\n", spot.place.end), spot.range)

    async def _newest(self, uri: str, work: Coroutine[Any, Any, str]) -> str:
        """Ends what an older request in this document waits for."""
        if older := self._running.get(uri):
            older.cancel()
        task = self._running[uri] = asyncio.ensure_future(work)
        try:
            await asyncio.wait({task})
        finally:
            task.cancel()
            await asyncio.wait({task})  # until its request has ended
            if self._running.get(uri) is task:
                del self._running[uri]
        return "" if task.cancelled() else task.result()

    async def _made(self, about: _Asked, fresh: Callable[[], bool]) -> str:
        request, place, settings = about.request, about.place, about.settings
        if not request.invoked:
            await asyncio.sleep(settings.debounce_ms / 1000)
            if not fresh():  # the editor asks again, if it wants to
                return ""
        others = self._others(request.uri, about.root, settings.neighbours)
        text = prompt.told(place, self._reach.called(request.uri), request.language, others)
        key = f"completion-{hashlib.sha256(request.uri.encode()).hexdigest()[:24]}"
        question = Question(about.root, about.model, key, settings, text)
        reply = await self._asking.ask(question)
        if reply is None:
            return ""
        complete = reply.stop != "max_tokens"
        made = cleaning.cleaned(text_of(reply), place, request.language, complete=complete)
        self._known.keep(request.uri, about.model, place, made)
        return made

    async def _model(self, root: str | None, settings: Settings) -> str:
        """NONE, or ProviderError: none is configured."""
        agent = self._world.agent(AGENT, root)
        named = agent.model or settings.completion.model or settings.model.small
        if named or self._asking.pause(NONE):  # servers of this machine are not tried again at once
            return named
        try:
            return await self._world.models(root).default()
        except ProviderError as error:
            self._asking.rest(NONE, error.message)
            raise

    def _off(
        self, request: Request, root: str | None, path: str | None, settings: CompletionSettings
    ) -> bool:
        """Whether nothing may be suggested in a document. Raises InvalidConfig: the rules are not
        known."""
        if request.uri.partition(":")[0] not in SCHEMES or request.language in settings.off:
            return True
        if path is None:
            return self._reach.hidden(request.uri)
        relative = below(root, path) if root else None
        patterns = (matches_file(one, path, relative, exact=False) for one in settings.off)
        return any(patterns) or self._reach.denied(path)

    def _others(self, uri: str, root: str | None, most: int) -> list[Declared]:
        """What other open files of the same kind declare, those opened last first."""
        documents, own = self._at.documents, canonical(uri)
        if not most or own is None:
            return []
        kind, found = os.path.splitext(own)[1], list[Declared]()
        for path in reversed(self._world.editor.open_paths()):
            if path == own or os.path.splitext(path)[1] != kind or len(found) == most:
                continue
            document = documents.document(path)
            if document is None or (root and not below(root, path)) or self._reach.denied(path):
                continue
            lines = self._declarations.of(path, documents.state_of(path), document)
            if lines:
                found.append(Declared(self._reach.name(path), lines))
        return found

    # --- what it costs --------------------------------------------------------------------------

    async def status(self, params: CompletionStatusParams) -> CompletionStatus:
        root = self._at.first if params.cwd is None else self._at.place(params.cwd)[0]
        return await self._status(root, await self._asking.spending.today())

    async def _status(self, root: str | None, day: Day) -> CompletionStatus:
        all_settings = self._world.settings(root)
        settings, model, why = all_settings.completion, "", ""
        try:
            model = await self._model(root, all_settings) if settings.enabled else ""
            why = self._asking.pause(model)
        except MagyError as error:
            why = error.message
        return CompletionStatus(
            enabled=settings.enabled, model=model, paused=why, requests=day.requests,
            tokens=day.tokens, cost=day.cost, estimated=day.estimated, day_cost=settings.day_cost,
        )  # fmt: skip

    def _spent(self, day: Day) -> None:
        if self._at.draws:
            self._at.spawn(self._tell(day))

    async def _tell(self, day: Day) -> None:
        status = await self._status(self._at.first, day)
        params = status.model_dump(mode="json", by_alias=True)
        self._at.notify("magy/completion/changed", params)


def _spot(
    document: Document, request: Request, encoding: str, settings: CompletionSettings
) -> _Spot:
    number = request.position.line
    line = document.line(number)
    end = start = column(line, request.position.character, encoding)
    selected, kept = request.selected, ""
    if selected and selected.range.end == request.position:
        start = min(column(line, selected.range.start.character, encoding), end)
        kept = selected.text
    here, at = line[:start] + kept + line[end:], start + len(kept)
    place = around_column(
        document.line, number, here, at, before=settings.before, after=settings.after
    )
    first, last = (
        Position(line=number, character=units(line[:offset], encoding)) for offset in (start, end)
    )
    return _Spot(place, Range(start=first, end=last), kept)
