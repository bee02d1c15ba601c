"""The resolver carries out decisions: file first, then log, so that neither says what is not so.

A decision that changes the file is put into the journal before that, as an intent with the review
as it was. Who finds an intent without its outcome (the process died in between) looks at the file:
when it is as decided, the outcome is written down; when not, nothing has happened, the hunks are
still pending, and the person decides again. To decide the same again does no harm.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from uuid import uuid4

from magy_server.core.agents.tree import Stream
from magy_server.core.errors import (
    Conflict,
    EditorError,
    EditRefused,
    InvalidRequest,
    NotFound,
    ToolError,
)
from magy_server.core.ports import Found
from magy_server.core.reviews.review_events import Decision
from magy_server.core.values import Hash
from magy_server.dataclass import dataclass
from magy_server.edits.agent_lines import Review
from magy_server.edits.text import plain
from magy_server.reviews import move_back, streams
from magy_server.reviews.current_review import Now, infos, review_file
from magy_server.reviews.decisions import DONE, Chosen, Made, choose, decide, undone
from magy_server.reviews.file_review import FileReview, Side, Stored, placed, stored, typed
from magy_server.reviews.move_back import Back
from magy_server.reviews.notes import noted
from magy_server.reviews.restore_files import change_of
from magy_server.reviews.review_store import ReviewStore
from magy_server.reviews.streams import APPLIED, PROPOSED, Standing, begun
from magy_server.reviews.views import HunkInfo, HunkState, Outcome, ReviewFile, Which, Wish

Same = Callable[[Decision], bool]
"""Whether a decision that has the key of a request is the one that is asked for."""
ATTEMPTS = 20
"""How often a decision is worked out again because file or log moved on meanwhile."""
SLICE = 0.05
"""Seconds for which a commit's hunks wait for a file about which something is being decided."""


@dataclass(frozen=True, slots=True)
class _Work:
    """A decision on its way. `hunks` are those that models are told of; `taken`: the verb that is
    taken back."""

    now: Now
    at: Standing
    made: Made
    decision: Decision
    hunks: tuple[HunkInfo, ...]
    cut: bool = False
    taken: str = ""
    agents: bool = False
    """What it does to the file is an agent's doing: a proposal is accepted, or that taken back."""
    again: tuple[Stored, ...] = ()
    """The intent once more, where others wrote into the journal after it."""


class Resolver:
    def __init__(self, store: ReviewStore) -> None:
        self._store = store

    async def resolve(self, path: str, wish: Wish, proposed: bool) -> Outcome:
        stream = (await self._store.known(path, proposed)).stream
        wish = replace(wish, key=wish.key or uuid4().hex)
        return await self._once(
            stream, wish.key, lambda had: _wished(had, wish), lambda: self._resolve(stream, wish)
        )

    async def undo(self, id: str, path: str, by: str, key: str) -> Outcome:
        stream, key = await self._find(id, path), key or uuid4().hex
        return await self._once(
            stream, key, lambda had: had.undoes == id, lambda: self._undo(stream, id, by, key)
        )

    async def _find(self, id: str, path: str) -> Stream:
        """The stream of a decision. Raises NotFound."""
        store = self._store.world.store
        if path:
            for proposed in (False, True):
                stream = streams.stream_of(path, proposed)
                if streams.find(await store.read(stream), id):
                    return stream
        for kind in (APPLIED, PROPOSED) if not path else ():
            for info in await streams.below(store, kind):
                if streams.find(await store.read(info.stream), id):
                    return info.stream
        raise NotFound(
            f"There is no decision {id!r}. Its id came with the answer to the request that decided."
        )

    async def mend(self, at: Standing) -> bool:
        """True when a decision that was interrupted is now written down."""
        lock = self._store.lock(at.stream)
        if not begun(at) or lock.locked():
            return False
        async with lock:
            return await self._mend(at.stream)

    async def committed(self, stream: Stream, ids: tuple[str, ...]) -> None:
        """Accepts these hunks, which are in the commit that is checked out. It does not wait for a
        decision that is being carried out, which may wait for a person: the next look accepts
        them."""
        lock = self._store.lock(stream)
        try:
            async with asyncio.timeout(SLICE):
                await lock.acquire()
        except TimeoutError:
            return
        try:
            await self._committed(stream, ids)
        finally:
            lock.release()

    async def _committed(self, stream: Stream, ids: tuple[str, ...]) -> None:
        at = await self._store.standing(stream)
        now = await self._store.now(at)
        chosen = choose(now, Which(ids=ids))
        if chosen.missing or begun(at):
            return
        made = await asyncio.to_thread(decide, now, Wish("accept", Which(ids=ids)), chosen)
        decision = Decision(id=uuid4().hex, verb="commit", hunks=ids, by="git")
        with suppress(Conflict):  # the next look finds it
            await self._write_both(_Work(now, at, made, decision, made.hunks))

    # --- what is asked for ----------------------------------------------------------------------

    async def _once(
        self, stream: Stream, key: str, same: Same, work: Callable[[], Awaitable[Outcome]]
    ) -> Outcome:
        """What came of the request `key`, if it came before; else of the `work`. Raises
        InvalidRequest if another decision has this key."""
        async with self._store.lock(stream):
            await self._mend(stream)
            if known := await self._known(stream, key, same):
                return known
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    return await work()
                except (Conflict, EditRefused) as error:
                    if isinstance(error, EditRefused) and error.final:
                        raise
                    last = error
                    await asyncio.sleep(0.01 * attempt)
            raise last

    async def _known(self, stream: Stream, key: str, same: Same) -> Outcome | None:
        found = streams.find(await self._store.world.store.read(stream), key)
        if found is None or found.after is None:
            return None
        if not same(found.decision):
            raise InvalidRequest(
                f"{key!r} is the key of another decision about this file. You can repeat a "
                "decision without harm; another one needs its own key.",
                reason="key_used",
            )
        now = await self._store.now(await self._store.standing(stream))
        state = _STATES.get(found.decision.verb, "pending")
        results = tuple((id, state) for id in found.decision.hunks)
        return Outcome(await _file(now), key, results, known=True)

    async def _resolve(self, stream: Stream, wish: Wish) -> Outcome:
        at = await self._store.standing(stream)
        now = await self._store.now(at)
        if wish.which.lines and wish.revision:
            _check(now, wish.revision)
        chosen = choose(now, wish.which)
        if chosen.missing or not chosen.hunks:
            return await self._stale(now, chosen)
        made = await asyncio.to_thread(decide, now, wish, chosen)
        if not made.hunks:
            text = f"{now.held.name}: the user changed these lines since they were proposed."
            return Outcome(await _file(now), "", made.results, text)
        decision = Decision(
            id=wish.key,
            verb=wish.verb,
            hunks=tuple(hunk.id for hunk in made.hunks),
            reason=wish.reason,
            text=wish.text,
            by=wish.by,
        )
        agents = now.held.proposed and wish.verb == "accept"
        work = _Work(now, at, made, decision, made.hunks, chosen.cut, agents=agents)
        return await (self._move_back(work) if made.moves else self._carry_out(work))

    async def _stale(self, now: Now, chosen: Chosen) -> Outcome:
        results: list[tuple[str, HunkState]] = [(id, "stale") for id in chosen.missing]
        results += [(hunk.id, hunk.state) for hunk in chosen.hunks]
        text = "That hunk no longer exists; nothing was decided. Look at the current hunks."
        if not now.hunks:
            text = f"Nothing is pending in {now.held.name}."
        return Outcome(await _file(now), "", tuple(results), text)

    async def _undo(self, stream: Stream, id: str, by: str, key: str) -> Outcome:
        entries = await self._store.world.store.read(stream)
        found = streams.find(entries, id)
        if found is None or found.after is None:
            raise NotFound(f"There is no decision {id!r}.")
        at = await self._store.standing(stream)
        now = await self._store.now(at)
        if id in streams.taken_back(entries):
            return Outcome(await _file(now), message="That decision was undone already.")
        before, after = await self._store.held(found.before), await self._store.held(found.after)
        made = await asyncio.to_thread(undone, now, before, after)
        if isinstance(made, str):
            return Outcome(await _file(now), message=made)
        about = {hunk.id: hunk for hunk in (*infos(before), *infos(after))}
        hunks = tuple(about[hunk] for hunk in found.decision.hunks if hunk in about)
        decision = Decision(id=key, verb="undo", hunks=found.decision.hunks, by=by, undoes=id)
        agents = found.decision.change is not None
        return await self._carry_out(
            _Work(now, at, made, decision, hunks, taken=found.decision.verb, agents=agents)
        )

    # --- carrying it out ------------------------------------------------------------------------

    async def _carry_out(self, work: _Work) -> Outcome:
        """Raises EditRefused or Conflict: something moved on, work it out again."""
        now, made, files = work.now, work.made, self._store.files
        file = self._store.made(made.file) if made.file is not None else None
        if file is None or file.version == now.live.version:
            return await self._write_both(work)
        held = made.held if now.held.proposed else replace(made.held, text=file)
        work = replace(work, made=replace(made, held=held, file=file))
        sides: dict[Hash, bytes] = {}
        if work.agents:
            change = change_of(now.found, file.version)
            work = replace(work, decision=work.decision.model_copy(update={"change": change}))
            sides = {s.version.hash: s.data for s in (now.found, file) if s.version.hash}
        intent = self._intent(now.held, work)
        intent = replace(intent, blobs={**intent.blobs, **sides})
        at = await self._store.append(work.at, [intent], pending=True)
        label = f"Magy: {work.decision.verb} in {now.held.name}"
        try:
            put = await files.put(now.held.root, now.found, file.version, file.data, label)
        except EditRefused:
            await self._withdraw(at, now)
            raise
        except (ToolError, EditorError):
            found = await files.look(now.held.root, now.held.path)
            if found.version != file.version:
                await self._withdraw(at, now)
                raise
        else:
            # What is typed meanwhile is no part of the decision: to undo it would take that back.
            alone = put.was.version == now.live.version
            mine = replace(now.found, version=file.version, data=file.data, text=file.text)
            found = put.now if alone else mine
        return await self._finish(replace(work, at=at), found)

    async def _write_both(self, work: _Work) -> Outcome:
        """The file stays as it is."""
        now, held = work.now, work.made.held
        if now.held.proposed:
            held = placed(held, now.live).held
        return await self._written(work, [self._intent(now.held, work)], held, now.found)

    async def _finish(self, work: _Work, found: Found) -> Outcome:
        """The file is as decided, or as the editor then made it."""
        first = work
        for _ in range(ATTEMPTS):
            live = self._store.side(found)
            held = work.made.held
            held = placed(held, live).held if held.proposed else typed(held, live)
            there = await self._store.files.look(held.root, held.path)
            try:
                return await self._written(work, work.again, held, there)
            except Conflict:
                if known := await self._known(work.at.stream, work.decision.id, lambda _: True):
                    return replace(known, known=False, results=work.made.results)
                work, found = await self._moved_on(first)
        raise Conflict(
            f"{work.now.held.name}: too many decisions about it arrived at once; try again."
        )

    async def _written(
        self, work: _Work, intent: Sequence[Stored], held: FileReview, found: Found
    ) -> Outcome:
        """Raises Conflict: others wrote into the journal."""
        outcome = stored(held, self._store.files.encode, decision=work.decision)
        seq = work.at.seq + len(intent) + 1
        after = await self._store.shown(seq, held, outcome.event, found)
        notes = noted(held, work.decision, work.hunks, after.hunks, work.cut, work.taken)
        await self._store.append(work.at, [*intent, outcome], after.held.pending, notes)
        return await self._outcome(work, after)

    async def _moved_on(self, work: _Work) -> tuple[_Work, Found]:
        """Somebody else wrote into the journal after the file was put: from there the file shows
        what was decided. The intent is written anew beside it, as an undo leads back to it."""
        at = await self._store.standing(work.at.stream)
        now = await self._store.now(at)
        held = now.held
        if work.decision.verb == "amend" and not held.proposed:
            held = _taken(now, work)
        shown = replace(now, held=held)
        back = await asyncio.to_thread(undone, shown, work.now.held, work.made.held)
        before = now.held if isinstance(back, str) else back.held
        again = (self._intent(before, work),)
        return replace(work, at=at, made=replace(work.made, held=held), again=again), now.found

    def _intent(self, held: FileReview, work: _Work) -> Stored:
        """What is put into the journal before anything is done. `held`: the review until then."""
        decision = work.decision.model_copy(update={"intent": True})
        return stored(held, self._store.files.encode, decision=decision)

    async def _withdraw(self, at: Standing, now: Now) -> None:
        """Nothing was done."""
        with suppress(Conflict):  # then what came after it says how things are
            await self._store.append(at, [stored(now.held, self._store.files.encode)], True)

    async def _move_back(self, work: _Work) -> Outcome:
        """A file that an agent moved goes back to where it was, with what is still pending."""
        now = work.now
        back = await move_back.planned(self._store, now, work.made)
        intent = self._intent(now.held, work)
        work = replace(work, at=await self._store.append(work.at, [intent], True))
        try:
            return await self._moved_back(work, back)
        except (ToolError, EditorError):
            await self._withdraw(work.at, now)
            raise

    async def _moved_back(self, work: _Work, back: Back) -> Outcome:
        held, root = back.held, work.now.held.root
        label = f"Magy: {work.decision.verb} in {work.now.held.name}"
        found, gone = await move_back.carry_out(self._store, root, back, label)
        target = await self._store.standing(streams.stream_of(held.path, False))
        if held.pending and not target.pending:
            pending = typed(held, self._store.side(found))
            await self._store.append(target, [stored(pending, self._store.files.encode)], True)
        left = replace(back.made.held, base=Side(), text=Side(), review=Review(()), moved_from="")
        return await self._finish(replace(work, made=replace(back.made, held=left)), gone)

    # --- what was interrupted -------------------------------------------------------------------

    async def _mend(self, stream: Stream) -> bool:
        at = await self._store.standing(stream)
        if not begun(at):
            return False
        assert at.event is not None and at.event.decision is not None
        now = await self._store.now(at)
        decision = at.event.decision.model_copy(update={"intent": False})
        before = await self._store.held(at.event)
        hunks = tuple(hunk for hunk in infos(before) if hunk.id in decision.hunks)
        work = _Work(now, at, Made(now.held, None, (), hunks), decision, hunks)
        was = before.base if before.proposed else before.text
        if back := await move_back.begun(self._store, at, before, decision, now):
            with suppress(Conflict, ToolError, EditorError):
                await self._moved_back(work, back)
                return True
            return False
        if now.unreadable or now.live.version == was.version:
            return False
        if decision.verb == "undo":
            mended = await self._undone_again(work, before)
        else:
            left = any(hunk.id in decision.hunks for hunk in now.hunks)
            mended = None if left else work
        if mended is None:
            return False
        if decision.verb == "amend" and not before.proposed:
            mended = replace(mended, made=replace(mended.made, held=_taken(now, mended)))
        try:
            await self._finish(mended, now.found)
        except Conflict:
            return False
        return True

    async def _undone_again(self, work: _Work, before: FileReview) -> _Work | None:
        """What the undo comes to, if the file shows that it was done."""
        entries = await self._store.world.store.read(work.at.stream)
        found = streams.find(entries, work.decision.undoes)
        if found is None or found.after is None:
            return None
        source = replace(work.now, held=before, live=before.text)
        made = undone(
            source, await self._store.held(found.before), await self._store.held(found.after)
        )
        if isinstance(made, str) or made.file is None:
            return None
        held = replace(made.held, text=self._store.made(made.held.text))
        wanted = {hunk.id for hunk in infos(held)}
        shown = {hunk.id for hunk in infos(typed(held, work.now.live))}
        if not wanted & shown and wanted:
            return None
        about = {hunk.id: hunk for hunk in (*infos(held), *infos(before))}
        hunks = tuple(about[id] for id in work.decision.hunks if id in about)
        return replace(work, made=made, hunks=hunks, taken=found.decision.verb)

    # --- answers --------------------------------------------------------------------------------

    async def _outcome(self, work: _Work, after: Now) -> Outcome:
        message = ""
        if any(state == "conflict" for _, state in work.made.results):
            message = "Hunks were left out whose lines the user changed after they were proposed."
        results = work.made.results
        if not results:
            results = tuple((hunk.id, "pending") for hunk in after.hunks
                            if hunk.id in work.decision.hunks)  # fmt: skip
        return Outcome(await _file(after), work.decision.id, results, message)


async def _file(now: Now) -> ReviewFile:
    return await asyncio.to_thread(review_file, now)


def _wished(had: Decision, wish: Wish) -> bool:
    """Whether that was this wish. Which hunks lines and `all` meant then, nobody knows any more."""
    if (had.verb, had.reason, had.text) != (wish.verb, wish.reason, wish.text):
        return False
    return not wish.which.ids or set(wish.which.ids) >= set(had.hunks)


def _check(now: Now, revision: str) -> None:
    """Lines mean nothing in a text that has changed."""
    if now.hunks and now.revision != revision:
        raise EditRefused(
            f"The review of {now.held.path} is no longer at revision {revision}, so its lines may "
            "have changed. Get it again.",
            reason="stale",
        )


def _taken(now: Now, work: _Work) -> FileReview:
    """What a person amended is accepted as it then reads."""
    texts = {plain(work.decision.text).rstrip("\n")}
    olds = {hunk.old for hunk in work.hunks}
    ids = [h.id for h in now.hunks if plain(h.new).rstrip("\n") in texts and h.old in olds]
    if not ids:
        return now.held
    chosen = choose(now, Which(ids=tuple(ids)))
    return decide(now, Wish("accept", Which(ids=tuple(ids))), chosen).held


_STATES: dict[str, HunkState] = {**DONE, "commit": "accepted"}
