"""An editor is told some things without having subscribed: open questions, changed sessions, and
the progress of each turn in the editor's own way.

A listener of the engine. For an editor that knows no `magy/*` it also has permission asked, by
`plain/questions.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from magy_server.api.connected import Beside
from magy_server.api.service import Service
from magy_server.core.agents import tree
from magy_server.core.events import (
    Admitted,
    Answered,
    Asked,
    Ended,
    Entry,
    Finished,
    Judged,
    Resumed,
)
from magy_server.core.state.state import State
from magy_server.core.summary import question_of, title
from magy_server.engine import trees
from magy_server.lsp.server import Progress, Server

if TYPE_CHECKING:  # an editor may be open for days before an agent asks something
    from magy_server.api.wire.sessions import Interaction
    from magy_server.lsp.plain.questions import PlainQuestions


class Announcer:
    """`plain` asks a client that does not show questions itself; None: it does, and is sent
    `magy/*` notifications."""

    def __init__(self, server: Server, plain: PlainQuestions | None, spawn: Beside) -> None:
        self._service: Service | None = None
        self._roots: Collection[str] = ()
        self._server = server
        self._plain = plain
        self._knows_magy = plain is None
        self._notify = server.connection.notify
        self._spawn = spawn
        self._running: dict[str, str] = {}
        self._progress: dict[str, Progress] = {}
        self._beginning: dict[str, str] = {}
        """By turn whose progress the editor has not made yet: how it has ended meanwhile."""
        self._open: dict[str, set[str]] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}

    def attach(self, service: Service, roots: Collection[str]) -> Callable[[], None]:
        """What any process does with the sessions of these workspace roots, or deletes, is told
        until what this returns is called."""
        self._service = service
        self._roots = frozenset(roots)
        ends = ExitStack()
        ends.callback(service.world.bus.subscribe(trees.DELETED, self._deleted))
        if self._knows_magy:
            ends.callback(service.world.bus.subscribe(trees.CHANGED, self._changed_elsewhere))
        return ends.close

    @property
    def running(self) -> Sequence[str]:
        """The sessions that have a turn now, in the order in which these began; not children, which
        stop with who spawned them."""
        return [id for id in self._running if tree.parent(id) is None]

    def __call__(self, state: State, entries: Sequence[Entry]) -> None:
        session_id = state.id
        for entry in entries:
            self._show_progress(state, session_id, entry)
            match entry.event:
                case Asked() if entry.event.id in state.questions:
                    self._opened(state, session_id, entry.event, entry.at)
                case Answered():
                    self._resolved(session_id, [entry.event.id])
                case Finished() | Ended():
                    self._close(state, session_id)
                case Resumed():  # nobody has seen these questions in this editor yet
                    for question in state.questions.values():
                        self._opened(state, session_id, question.asked, question.at)
        if self._knows_magy and any(trees.is_listed(entry.event) for entry in entries):
            self._notify("magy/session/listChanged", {"sessionId": session_id})

    def _opened(self, state: State, session_id: str, asked: Asked, at: float) -> None:
        self._open.setdefault(session_id, set()).add(asked.id)
        about = question_of(state, asked, at)
        if self._knows_magy and asked.preview is None and tree.parent(session_id) is None:
            from magy_server.api.children.open_questions import of_root

            self._say_opened(of_root(session_id, about, state.agent, title(state)))
        elif self._knows_magy:
            self._spawn(self._look_and_say(session_id, about))
        else:
            self._asking[asked.id] = self._spawn(self._ask(session_id, about))

    async def _look_and_say(self, session_id: str, about: Mapping[str, Any]) -> None:
        """What it is about has to be looked up, or who is above a child that asks."""
        question = await self._looked_up(session_id, about)
        if question.interaction_id in self._open.get(session_id, ()):
            self._say_opened(question)

    async def _looked_up(self, session_id: str, about: Mapping[str, Any]) -> Interaction:
        from magy_server.api.children.open_questions import looked_up
        from magy_server.api.present import interaction

        if self._service is None:
            return interaction(session_id, about, {}, [])
        return (await looked_up(self._service.world.store, session_id, [about]))[0]

    def _say_opened(self, question: Interaction) -> None:
        self._changed(question.session_id, opened=[question])

    def _close(self, state: State, session_id: str) -> None:
        """Questions of calls that ended unanswered."""
        gone = [id for id in self._open.get(session_id, ()) if id not in state.questions]
        if gone:
            self._resolved(session_id, gone)

    def _changed_elsewhere(self, message: Mapping[str, Any]) -> None:
        """The same for what another process appended: whichever runs a session, who lists them
        must see it, and may answer."""
        if self._service is None or message["by"] == self._service.world.me:
            return
        if message["root"] not in self._roots:
            return
        session_id = str(message["session"])
        if message["resolved"]:
            self._resolved(session_id, [str(id) for id in message["resolved"]])
        if message["asked"]:
            self._spawn(self._find_questions(self._service, session_id))
        self._notify("magy/session/listChanged", {"sessionId": session_id})

    async def _find_questions(self, service: Service, session_id: str) -> None:
        """Tells the open questions of a session that were not told yet."""
        info = await service.world.store.info(tree.stream_of(session_id))
        told = self._open.setdefault(session_id, set())
        for about in info.summary.get("questions") or () if info else ():
            if about["interactionId"] not in told:
                told.add(about["interactionId"])
                await self._look_and_say(session_id, about)

    def _deleted(self, message: Mapping[str, Any]) -> None:
        session_id = str(message["session"])
        open = self._open.pop(session_id, set())
        if ids := sorted(open.union(map(str, message["questions"]))):
            self._resolved(session_id, ids)
        self._ended(session_id, "deleted")
        if self._knows_magy:
            self._notify("magy/session/listChanged", {"sessionId": session_id})

    def _resolved(self, session_id: str, ids: list[str]) -> None:
        self._open.get(session_id, set()).difference_update(ids)
        for id in ids:
            if asking := self._asking.pop(id, None):
                asking.cancel()  # answered elsewhere: the editor may take its window away
        if self._knows_magy:
            self._changed(session_id, resolved=ids)

    def _changed(
        self, session_id: str, *, opened: Sequence[Interaction] = (), resolved: Sequence[str] = ()
    ) -> None:
        from magy_server.api.wire.sessions import InteractionChanged

        change = InteractionChanged(
            session_id=session_id, opened=list(opened), resolved=list(resolved)
        )
        params = change.model_dump(mode="json", by_alias=True)
        self._notify("magy/interaction/changed", params)

    async def _ask(self, session_id: str, about: Mapping[str, Any]) -> None:
        """Permission in an editor without Magy code (G001)."""
        from magy_server.api.children.open_questions import who

        question = await self._looked_up(session_id, about)
        child = tree.parent(session_id) is not None
        asker = who(question.path) if child else ""
        answer = await self._plain.ask(question, asker) if self._plain else None
        self._asking.pop(question.interaction_id, None)
        if answer is None or self._service is None:
            return
        await self._service.answer(
            session_id,
            question.interaction_id,
            allow=answer.allow,
            reason="",
            scope=answer.scope,
            by="editor",
        )

    def _show_progress(self, state: State, session_id: str, entry: Entry) -> None:
        event = entry.event
        match event:
            case Admitted(opens=True, turn=turn):
                self._begin(state, session_id, turn)
            case Resumed() if state.turn:
                self._begin(state, session_id, state.turn.id)
            case Judged() if progress := self._progress.get(session_id):
                progress.report(event.facts.title)
            case Ended():
                self._ended(session_id, event.stop.replace("_", " "))

    def _ended(self, session_id: str, how: str) -> None:
        turn = self._running.pop(session_id, None)
        if progress := self._progress.pop(session_id, None):
            progress.end(how)
        elif turn in self._beginning:
            self._beginning[turn] = how

    def _begin(self, state: State, session_id: str, turn: str) -> None:
        about = f"Magy: {title(state)}" if title(state) else "Magy"
        self._running[session_id] = turn
        self._beginning[turn] = ""
        self._spawn(self._progress_of(session_id, turn, about))

    async def _progress_of(self, session_id: str, turn: str, about: str) -> None:
        def cancel() -> None:
            self._spawn(self._cancel(session_id, turn))

        progress = await self._server.progress(about, cancel=cancel)
        how = self._beginning.pop(turn)
        if progress is None:
            return
        if self._running.get(session_id) == turn:
            self._progress[session_id] = progress
        else:  # the turn was over before the editor had made the progress
            progress.end(how)

    async def _cancel(self, session_id: str, turn: str) -> None:
        if self._service is not None:
            await self._service.cancel(session_id, turn)
