"""This module puts what a tool call changed under review, in the same append as the end of the
call."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from magy_server.core.errors import ProposedElsewhere, ToolError
from magy_server.core.events import Ended, Entry, Finished
from magy_server.core.ports import Batch, Found
from magy_server.core.reviews.review_events import Restored, Reviewed
from magy_server.core.state.state import State
from magy_server.core.state.turn import Turn
from magy_server.core.values import FileChange, Hash, Kind, Origin, Version
from magy_server.edits.rebasing.diff import apply
from magy_server.edits.rebasing.rebase import merge3, rebase
from magy_server.edits.text import split
from magy_server.engine.log import Letter, Letters, Write
from magy_server.engine.rules import review_mode
from magy_server.reviews import streams
from magy_server.reviews.current_review import Now, infos, sessions
from magy_server.reviews.decisions import undone
from magy_server.reviews.file_review import (
    FileReview,
    Side,
    begun,
    changed,
    placed,
    reworded,
    side,
    stored,
    typed,
)
from magy_server.reviews.review_store import ReviewStore
from magy_server.reviews.streams import Standing

_Step = tuple[FileReview, FileReview, Origin]
"""What a review was, what an agent made of it, and which."""
COMMAND = 200
"""Characters of a command that are kept with what changed while it ran."""


def under_review(store: ReviewStore, state: State, write: Write) -> Letters | None:
    """A companion of an append: what a call has changed, or proposes, comes under review with its
    end; what of a turn's work could not be merged, with the turn's. To work it out may raise
    ProposedElsewhere."""
    turn = (write.during or state).turn
    ends = [one for one in write.events if isinstance(one, Finished | Ended) and one.changes]
    # a copy of a conversation ends no call, and no turn
    ended = [one for one in ends if turn and _ends(turn, one)]
    return partial(_reviews, store, write.during or state, ended, write.blobs) if ended else None


def _ends(turn: Turn, event: Finished | Ended) -> bool:
    return event.turn == turn.id if isinstance(event, Ended) else turn.is_open(event.call)


async def _reviews(
    store: ReviewStore, state: State, ended: Sequence[Finished | Ended], blobs: Mapping[Hash, bytes]
) -> Sequence[Letter]:
    found = [batch for event in ended for batch in await batches(store, state, event, blobs)]

    def posted(appended: Sequence[Entry]) -> None:
        if appended:
            store.said(found)

    return (Letter(found, posted),) if found else ()


async def batches(
    store: ReviewStore, state: State, finished: Finished | Ended, blobs: Mapping[Hash, bytes]
) -> list[Batch]:
    """Raises ProposedElsewhere."""
    opened = state.opened
    auto = await review_mode(store.world, state) == "auto"
    changes = [one for one in finished.changes if one.via == "proposed" or not auto]
    if opened is None or not changes:
        return []
    root = opened.root or opened.cwd
    made = _Changes(store, root, blobs)
    moves = {change.moved_from for change in changes if _moves(change)}
    gone = {c.path: c for c in changes if c.path in moves and c.after is None}
    for change in changes:
        commit = await store.files.head(root, change.path)
        origin = _origin(state, finished, change, commit or "")
        if _moves(change):
            await made.move(change, gone.get(change.moved_from), origin)
        elif change.path not in gone or change.via == "proposed":
            await made.add(change, origin)
    return await asyncio.to_thread(made.batches)


async def carried(
    store: ReviewStore,
    root: str,
    session: str,
    event: Restored,
    blobs: Mapping[Hash, bytes],
    turns: Sequence[FileChange],
) -> list[Batch]:
    """What a person had undone of turns is not to be decided any more, and what was done again is;
    what is left to decide goes with the files that had been moved. `session`: id of the one that
    goes back; `turns`: all that its turns changed."""
    made = _Changes(store, root, blobs)
    gone = {change.path: change for change in event.changes if change.after is None}
    for change in event.changes:
        own = {one.after: one for one in turns if one.path == change.path}
        if _moves(change) and change.moved_from in gone:
            source = await store.standing(streams.stream_of(change.moved_from, False))
            origin = await made.done_again(change, session, event, own)
            if origin or source.pending:
                await made.move(change, gone[change.moved_from], origin)
        elif change.before and change.after and not change.moved_from:
            await made.go_back(change, session, event, own)
    return await asyncio.to_thread(made.batches)


def _open(event: Reviewed) -> bool:
    """Something was to be decided."""
    return bool(event.marks or event.moved_from) or event.base != event.agent


def _moves(change: FileChange) -> bool:
    """What is only proposed is a file to make and one to remove."""
    return bool(change.moved_from) and change.before is None and change.via != "proposed"


def _gone_back(
    held: FileReview, event: Reviewed, after: Side, steps: Sequence[_Step]
) -> FileReview:
    """Without the steps, the newest last. What they do not explain, the person did."""
    for was, became, _ in reversed(steps):
        held = _accepted_back(held, was.text.text, became.text.text)
        made = undone(Now(0, event, Found(held.path), held.text, held), was, became)
        if not isinstance(made, str):
            held = made.held
    return typed(held, after)


def _accepted_back(held: FileReview, was: str | None, became: str | None) -> FileReview:
    """What the person had accepted of a step is in the base. They take it back from there, too:
    else it would be a hunk that takes it out of the text, and that nobody made."""
    base, text = held.base.text, held.text.text
    if was is None or became is None or base is None or text is None:
        return held
    back = rebase(base, text, merge3(became, base, was).changes).changes
    return typed(held, reworded(held.text, split(apply(text, back)), held.text)) if back else held


def _origin(state: State, finished: Finished | Ended, change: FileChange, commit: str) -> Origin:
    turn = state.turn
    id = finished.call if isinstance(finished, Finished) else ""
    call = turn.calls.get(id) if turn else None
    command = str(call.call.arguments.get("command", "")) if call else ""
    return Origin(
        session=state.id,
        agent=state.agent,
        turn=turn.id if turn else "",
        call=id,
        command=command[:COMMAND] if change.via == "command" else "",
        commit=commit,
    )


def _brought(held: FileReview, now: Side) -> FileReview:
    return placed(held, now).held if held.proposed else typed(held, now)


def _with_unsaved(was: str, now: str, live: str) -> tuple[str, str]:
    """A change of the disk, told beside what only the editor shows: that is in both texts then. Of
    lines that both changed, the disk's count, and the difference is typed later. All raw."""
    unsaved = merge3(now, now, live).changes
    there = rebase(now, was, unsaved)
    pairs = zip(unsaved, there.moved, strict=True)
    kept = [one for one, moved in pairs if not (moved.conflict or moved.same)]
    return apply(was, there.changes), apply(now, kept)


class _Changes:
    """The reviews of the files that one call changed."""

    def __init__(self, store: ReviewStore, root: str, blobs: Mapping[Hash, bytes]) -> None:
        self._store = store
        self._root = root
        self._blobs = blobs
        self._at: dict[str, Standing] = {}
        self._held: dict[str, FileReview] = {}
        self._by: dict[str, Origin | None] = {}
        self._live: dict[str, FileReview] = {}
        """What a review is in the editor, where that has more than the disk."""

    async def add(self, change: FileChange, origin: Origin) -> None:
        before = await self._side(change.before, change.was, change.mode)
        after = await self._side(change.after, change.now)
        key = await self._enter(change.path, change.via == "proposed", before)
        if change.via == "proposed":
            _check_own(self._held[key], origin.session)
        self._held[key] = await asyncio.to_thread(changed, self._held[key], after, origin)
        self._by[key] = origin
        if change.via == "command" and (event := self._at[key].event) and self._at[key].pending:
            await self._show(key, event, before, after, origin)

    async def _show(
        self, key: str, event: Reviewed, before: Side, after: Side, origin: Origin
    ) -> None:
        """A command's change is of the disk. What an agent changed in the buffer, and nobody has
        saved, is not there, and yet the person did not remove it."""
        try:
            live = (await self._store.files.look(self._root, event.path)).text
        except ToolError:  # it is no file any more
            return
        was, now = before.text, after.text
        if was is None or now is None or live is None or live == now:
            return
        there, shown = await asyncio.to_thread(_with_unsaved, was, now, live)
        stood = await self._store.held(event)
        held = await asyncio.to_thread(_brought, stood, reworded(before, split(there), before))
        after = reworded(after, split(shown), after)
        self._live[key] = await asyncio.to_thread(changed, held, after, origin)

    async def move(
        self, change: FileChange, gone: FileChange | None, origin: Origin | None
    ) -> None:
        """The file's review goes with it; where it was, nothing is left to decide. `origin` None: a
        person moved it, and what is otherwise than before is theirs."""
        before = await self._side(gone.before, gone.was, gone.mode) if gone else Side()
        after = await self._side(change.after, change.now)
        old = await self._enter(change.moved_from, False, before)
        new = await self._enter(change.path, False, Side())
        source = self._held[old]
        from_, removed = source.moved_from, source.removed
        if origin is not None:
            removed = removed if from_ else before.version.hash
            from_ = (from_ or change.moved_from) if source.base.exists else ""
        from_ = "" if from_ == change.path else from_
        held = replace(source, path=change.path, moved_from=from_, removed=removed)
        self._held[new] = await asyncio.to_thread(
            lambda: typed(held, after) if origin is None else changed(held, after, origin)
        )
        self._held[old] = begun(self._root, change.moved_from, Side())
        self._by[new] = origin
        if self._at[old].event is None:
            del self._held[old]  # it never was under review

    async def go_back(
        self,
        change: FileChange,
        session: str,
        event: Restored,
        own: Mapping[Hash | None, FileChange],
    ) -> None:
        """`own`: what the turns did to the file, by what it then was."""
        at = await self._store.standing(streams.stream_of(change.path, False))
        if at.event is None:
            return
        steps = await self._steps(at, session, event.turn, own)
        again = bool(event.undoes) and bool(steps)
        if not at.pending and not again:
            return
        before = await self._side(change.before, change.was, change.mode)
        after = await self._side(change.after, change.now)
        key = await self._enter(change.path, False, before)
        held = self._held[key]
        if again:
            self._held[key] = await asyncio.to_thread(changed, held, after, steps[-1][2])
        else:
            self._held[key] = await asyncio.to_thread(_gone_back, held, at.event, after, steps)

    async def done_again(
        self,
        change: FileChange,
        session: str,
        event: Restored,
        own: Mapping[Hash | None, FileChange],
    ) -> Origin | None:
        """Which turn a redo brings a move back of; `own` as in `go_back`."""
        if not event.undoes:
            return None
        at = await self._store.standing(streams.stream_of(change.path, False))
        steps = await self._steps(at, session, event.turn, own)
        return steps[-1][2] if steps else None

    async def _steps(
        self, at: Standing, session: str, turn: str, made: Mapping[Hash | None, FileChange]
    ) -> list[_Step]:
        """What the session, and those below it, made of the review since `turn` began."""
        found: list[_Step] = []
        last: Reviewed | None = None
        for entry in await self._store.world.store.read(at.stream):
            if not isinstance(entry.event, Reviewed):
                continue
            event, by = entry.event, entry.event.changed
            own = by is not None and f"{by.session}/".startswith(f"{session}/")
            change = made.get(event.agent.hash)
            if by is not None and own and change and (found or by.turn == turn):
                before = await self._side(change.before, change.was, change.mode)
                earlier = begun(event.root, event.path, before)
                if last is not None and _open(last):
                    stood = await self._store.held(last)
                    earlier = await asyncio.to_thread(_brought, stood, before)
                later = await self._store.held(event)
                found.append((earlier, later, by))
            last = event
        return found

    async def _enter(self, path: str, proposed: bool, before: Side) -> str:
        """The key under which the review of a file is here, brought to what the file then was."""
        key = streams.stream_of(path, proposed)
        if key in self._held:
            return key
        at = self._at[key] = await self._store.standing(key)
        held = begun(self._root, path, before, proposed)
        if at.event is not None and at.pending:
            found = await self._store.held(at.event)
            held = await asyncio.to_thread(_brought, found, before)
        self._held[key] = held
        return key

    async def _side(self, hash: Hash | None, kind: Kind, mode: int | None = None) -> Side:
        if hash is None:
            return Side()
        data = self._blobs.get(hash)
        if data is None:
            data = await self._store.world.store.blob(hash)
        version = Version(hash=hash, kind=kind, mode=mode)
        return await asyncio.to_thread(side, version, data, self._store.files.text)

    def batches(self) -> list[Batch]:
        found: list[Batch] = []
        for key, held in self._held.items():
            if self._at[key].event is None and not held.pending:
                continue  # what was done was undone at once
            by = self._by.get(key)
            made = [stored(held, self._store.files.encode, by=by)]
            if key in self._live:
                held = self._live[key]
                made.append(stored(held, self._store.files.encode))
            blobs = {hash: data for one in made for hash, data in one.blobs.items()}
            events = [one.event for one in made]
            found.append(streams.batch(self._at[key], events, blobs, held.pending))
        return found


def _check_own(held: FileReview, session: str) -> None:
    others = [one for one in sessions(infos(held)) if one != session] if held.pending else []
    if others:
        raise ProposedElsewhere(
            f"Session {others[0]} has proposed changes to {held.name} that the user has not "
            "judged yet, so nothing was proposed. Continue with something else, or ask the "
            "user to judge those first."
        )
