"""A person can undo and redo every turn of a session: its files, its conversation, or both."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import takewhile
from types import MappingProxyType
from typing import Literal, Protocol

from magy_server.core.errors import InvalidRequest, NotFound
from magy_server.core.ports import Batch
from magy_server.core.reviews.file_history import History, TurnBegun, Undone, history
from magy_server.core.reviews.review_events import Restored, Restoring
from magy_server.core.state.rewind import cannot_go_back
from magy_server.core.state.state import State
from magy_server.dataclass import dataclass
from magy_server.engine import trees
from magy_server.engine.loaded_sessions import Sessions
from magy_server.engine.log import Write
from magy_server.engine.session import Session
from magy_server.engine.world import World
from magy_server.reviews.diffs import FileChanged, FileCount, counted, shown
from magy_server.reviews.restore_files import Performed, Plan, Restorer
from magy_server.reviews.reviews import Reviews
from magy_server.reviews.undo_plan import Aim, aim, first_words, note, said
from magy_server.tasks import Tasks

LEFT = "It was left alone: somebody else had changed it later."
TRIES, PAUSE = 250, 0.02
"""How often, and with how many seconds between, a session that should rest is looked at."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A turn as a point to go back to: its beginning.

    `state` is about its files: `partly` when some of them could not be undone. `restore` is the
    newest restore that undid something of it and can itself be undone: pass it as `undoes`.
    """

    turn: str
    prompt: str
    """The first words of it."""
    at: float
    """When the turn began, seconds since the epoch."""
    files: tuple[FileCount, ...] = ()
    state: Literal["applied", "undone", "partly"] = "applied"
    inherited: bool = False
    """Another session, of which this one is a copy, changed the files: they go back there only."""
    conversation: bool = True
    """The conversation can go back to the beginning of this turn; else `why` says why not."""
    why: str = ""
    restore: str = ""


@dataclass(frozen=True, slots=True)
class Preview:
    """`turns` are those that it takes back (or, of a redo, brings back), oldest first."""

    turn: str
    undoes: str
    turns: tuple[str, ...]
    files: tuple[FileChanged, ...]
    conversation: bool
    """It would go back (as far as was asked); else `why` says why not."""
    why: str = ""
    text: str = ""
    """The prompt of the turn that goes, so that it can be edited and sent again."""


@dataclass(frozen=True, slots=True)
class Restore(Preview):
    """What a restore came to."""

    id: str = ""


class Spawned(Protocol):
    """The children that turns had spawned."""

    async def stop_below(self, id: str, *, all: bool, since: int = -1) -> None:
        """Cancels what those below the session do; with `since`, only of those that its calls after
        this entry spawned. `all`: those that people spawned, too."""


class Checkpoints:
    """One for a process."""

    def __init__(
        self, world: World, sessions: Sessions, reviews: Reviews, children: Spawned
    ) -> None:
        self._world = world
        self._sessions = sessions
        self._reviews = reviews
        self._children = children
        self._tasks = Tasks()

    async def settle(self) -> None:
        """What was begun is done; for the end of the process."""
        await self._tasks.settle()

    # --- looking --------------------------------------------------------------------------------

    async def list(
        self, session: Session, *, limit: int = 50, before: str = ""
    ) -> Sequence[Checkpoint]:
        """The newest `limit` turns, oldest first; with `before`, those before that turn."""
        found = await self._history(session)
        turns = list(found.turns.values())
        if before:
            if before not in found.turns:
                raise NotFound(f"There is no turn {before!r} in this session.")
            turns = list(takewhile(lambda turn: turn.id != before, turns))
        newest = turns[-limit:]
        changes = {turn.id: [s.change for s in found.steps if s.turn == turn.id] for turn in newest}
        restorer = self._restorer(session)
        contents = await restorer.contents([c for some in changes.values() for c in some])
        by_turn = await asyncio.to_thread(
            lambda: {id: counted(some, contents) for id, some in changes.items()}
        )
        return [self._checkpoint(found, session.state, turn, by_turn[turn.id]) for turn in newest]

    @staticmethod
    def _checkpoint(
        found: History, state: State, turn: TurnBegun, files: tuple[FileCount, ...]
    ) -> Checkpoint:
        why = cannot_go_back(state, turn.id)
        restores = found.undone_by(turn.id)
        return Checkpoint(
            turn=turn.id,
            prompt=first_words(turn.content),
            at=turn.at,
            files=tuple(replace(f, state=found.state_of(turn.id, f.path)) for f in files),
            state=found.state_of(turn.id),
            inherited=turn.inherited and bool(files),
            conversation=not why,
            why=why,
            restore=restores[0].event.id if restores else "",
        )

    async def newest(self, session: Session) -> str | None:
        """The restore to take back next: the newest that undid something which is still undone."""
        restores = (await self._history(session)).undone_by()
        return restores[0].event.id if restores else None

    async def preview(
        self,
        session: Session,
        turn: str = "",
        *,
        files: bool = True,
        conversation: bool = True,
        undoes: str = "",
    ) -> Preview:
        """What `restore` would do now. Raises NotFound, InvalidRequest, as that does."""
        await self._reviews.decided()
        found = await self._history(session)
        _check_rests(session.state)
        to = aim(found, session.state, turn, undoes, files=files, conversation=conversation)
        plan = await self._restorer(session).plan(to.runs, to.moves)
        changed = await asyncio.to_thread(self._planned, session, plan)
        text = said(found.turns[to.turn].content) if to.conversation and not to.redid else ""
        return Preview(to.turn, undoes, to.turns, changed, to.conversation, to.why, text)

    def _planned(self, session: Session, plan: Plan) -> tuple[FileChanged, ...]:
        contents = replace(plan.contents, blobs={**plan.contents.blobs, **plan.blobs})
        changed = {change.path for change in plan.changes}
        as_they_are = sorted({*plan.conflicts, *(taken.path for taken in plan.taken)} - changed)
        found = [
            FileChanged(path, "nothing", conflict=plan.conflicts.get(path, ""))
            for path in as_they_are
        ]
        found += shown(plan.changes, contents, self._restorer(session).name)
        return tuple(sorted(found, key=lambda file: file.path))

    # --- going back -----------------------------------------------------------------------------

    async def restore(
        self,
        session: Session,
        id: str,
        turn: str = "",
        *,
        files: bool = True,
        conversation: bool = True,
        undoes: str = "",
    ) -> Restore:
        """Goes back to where `turn` began (else: the newest that is not undone), or takes the
        restore `undoes` back. The same `id` again says what came of it. What a process began that
        died is finished first; that is all, if the same was meant.

        Raises NotFound, InvalidRequest (a turn runs, there is nothing to take back, the
        conversation cannot go there), StoreError. Once begun it goes on to its end, whoever asked.
        """

        async def whole() -> Restore:
            await self._reviews.decided()
            async with session.arriving, self._held(session):
                found = await self._history(session)
                if begun := found.begun:
                    done = await self._finish(session, found, begun, {})
                    if begun.undoes == undoes and turn in ("", begun.turn):
                        return done  # the same was meant
                    found = await self._history(session)
                if known := found.restores.get(id):
                    return await self._known(session, found, known)
                to = aim(found, session.state, turn, undoes, files=files, conversation=conversation)
                return await self._restore(session, found, id, to, files=files)

        return await self._tasks.whole(whole())

    async def finish(self, session: Session) -> None:
        """Finishes what a process began that died. For who holds the tree's lease."""
        found = await self._history(session)
        if found.begun:
            await self._finish(session, found, found.begun, {})

    @asynccontextmanager
    async def _held(self, session: Session) -> AsyncIterator[None]:
        """The lease, for this session: no turn of it begins meanwhile, in no process. Raises
        InvalidRequest."""
        await self._take(session)
        tree, user = self._sessions.trees, trees.restorer(session.stream)
        try:
            await tree.take(user)
            _check_rests(session.state)
            yield
        finally:
            await tree.give_back(user)
            await tree.give_back(session.stream)
            self._world.results.forget()
            self._sessions.wake(session)

    async def _take(self, session: Session) -> None:
        """Who ran the last turn may hold it for a moment after that has ended."""
        for _ in range(TRIES):
            await session.refresh()
            _check_rests(session.state)
            if await self._sessions.trees.take(session.stream):
                await session.refresh()
                return
            await asyncio.sleep(PAUSE)
        text = f"Session {session.id!r} is at work; cancel its turn first."
        raise InvalidRequest(text, reason="busy")

    async def _restore(
        self, session: Session, found: History, id: str, to: Aim, *, files: bool
    ) -> Restore:
        if to.why:
            raise InvalidRequest(f"{to.why} The files alone can go back.", reason="conversation")
        if to.nothing:
            raise InvalidRequest("There is nothing to undo: those turns changed no files.")
        restorer = self._restorer(session)
        plan = await restorer.plan(to.runs, to.moves)
        begun = Restoring(
            id=id,
            turn=to.turn,
            files=files,
            conversation=to.conversation,
            changes=tuple(plan.changes),
            conflicts=tuple(sorted(plan.conflicts)),
            undoes=to.undoes,
        )
        await session.append(lambda now: Write([begun], plan.blobs))
        return await self._finish(session, found, begun, plan.conflicts, restorer)

    async def _finish(
        self,
        session: Session,
        found: History,
        begun: Restoring,
        conflicts: Mapping[str, str],
        restorer: Restorer | None = None,
    ) -> Restore:
        """From the intent on; the files look as they may. `restorer`: who made the plan."""
        restorer = restorer or self._restorer(session)
        await self._stop_spawned(session, begun)
        paths = [change.path for change in begun.changes]
        async with self._reviews.changing(paths):
            done = await restorer.perform(begun.changes, _label(found, begun))
            problems = {**dict.fromkeys(begun.conflicts, LEFT), **conflicts, **done.failures}
            asked = begun.model_dump(include={"id", "turn", "files", "conversation", "undoes"})
            made, left = tuple(done.changes), tuple(sorted(problems))
            restored = Restored(**asked, changes=made, conflicts=left)
            await self._written(session, found, restored, done)
        found = await self._history(session)
        return await self._known(session, found, found.restores[begun.id], problems)

    async def _stop_spawned(self, session: Session, begun: Restoring) -> None:
        """What the turns that go had others do is not wanted any more. What people spawned goes
        on."""
        past = session.state.history.past(begun.turn)
        if past and begun.conversation and not begun.undoes:
            await self._children.stop_below(session.id, all=False, since=past.seq)

    async def _written(
        self,
        session: Session,
        found: History,
        event: Restored,
        done: Performed,
    ) -> None:
        """Together with the reviews of the files, which go with them."""
        root = self._restorer(session).root
        turns = [step.change for step in found.steps]

        def append(others: Sequence[Batch]) -> Awaitable[object]:
            return session.append(lambda now: write(now, others))

        def write(now: State, others: Sequence[Batch]) -> Write:
            noted = note(now, event, found, root)
            return Write([event, noted] if noted else [event], done.blobs, others)

        await self._reviews.carried(root, session.id, event, done.blobs, turns, append)

    async def _known(
        self,
        session: Session,
        found: History,
        done: Undone,
        problems: Mapping[str, str] = MappingProxyType({}),
    ) -> Restore:
        """What a restore came to, from the log."""
        event, restorer = done.event, self._restorer(session)
        contents = await restorer.contents(event.changes)
        changed = await asyncio.to_thread(shown, event.changes, contents, restorer.name)
        left = [
            FileChanged(path, "nothing", conflict=problems.get(path, LEFT))
            for path in event.conflicts
        ]
        back = event.conversation and not done.redid
        return Restore(
            id=event.id,
            turn=event.turn,
            undoes=event.undoes,
            turns=found.turns_of(done.steps, done.talked),
            files=tuple(sorted([*changed, *left], key=lambda file: file.path)),
            conversation=event.conversation,
            text=said(found.turns[event.turn].content) if back else "",
        )

    async def _history(self, session: Session) -> History:
        await session.refresh()
        entries = await self._world.store.read(session.stream)
        return await asyncio.to_thread(history, entries)

    def _restorer(self, session: Session) -> Restorer:
        opened = session.state.opened
        if opened is None:
            raise InvalidRequest("There are no files to restore here.")
        return Restorer(self._world.files, self._world.store, session.state.place)


def _check_rests(state: State) -> None:
    if state.questions:
        text = "A question is open: answer it or cancel the turn first, then undo it."
        raise InvalidRequest(text, reason="busy")
    if state.turn:
        raise InvalidRequest("A turn is running: cancel it first, then undo it.", reason="busy")
    if state.compact:
        raise InvalidRequest("The conversation is being compacted: wait for it.", reason="busy")


def _label(found: History, begun: Restoring) -> str:
    """What the editor's own undo shows."""
    turn = found.turns.get(begun.turn)
    name = first_words(turn.content) if turn else ""
    return f"{'Redo' if begun.undoes else 'Undo'}: {name}" if name else "Undo a turn"
