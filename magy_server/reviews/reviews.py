"""`Reviews` is where others begin: it puts changes of files under review, decides and undoes.

One for each process. What it knows is in the streams of the store and in the files themselves, so
that all processes know the same, and a restart loses nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Literal

from magy_server.core.agents.tree import Stream
from magy_server.core.errors import Conflict, MagyError, NotFound, StoreError
from magy_server.core.ports import Batch
from magy_server.core.reviews.review_events import Noted, Restored, Reviewed
from magy_server.core.state.state import State
from magy_server.core.tool import Proposal
from magy_server.core.values import FileChange, Hash
from magy_server.engine.loaded_sessions import Sessions
from magy_server.engine.log import Letters, Write
from magy_server.engine.world import World
from magy_server.reviews import changes, current_review, streams
from magy_server.reviews.committed import Commits
from magy_server.reviews.current_review import Now
from magy_server.reviews.direct_edits import Applying
from magy_server.reviews.file_review import stored
from magy_server.reviews.look_cache import Look, Looks
from magy_server.reviews.notes import Pending, pending_lines, reminder
from magy_server.reviews.resolver import Resolver
from magy_server.reviews.review_store import Changed, ReviewStore
from magy_server.reviews.streams import APPLIED, PROPOSED, Standing
from magy_server.reviews.views import Outcome, ReviewFile, Summary, Wish

LOG = logging.getLogger(__name__)


class Reviews:
    """Paths are canonical and absolute. All methods may raise StoreError."""

    def __init__(self, world: World, sessions: Sessions) -> None:
        self._store = ReviewStore(world, sessions)
        self.applying = Applying(self._store)
        self._resolver = Resolver(self._store)
        self._commits = Commits(self._store)
        self._looks = Looks(self._store)

    def close(self) -> None:
        self._store.close()

    # --- what agents do -------------------------------------------------------------------------

    def changing(self, paths: Collection[str]) -> AbstractAsyncContextManager[None]:
        """Around a change of these files and the append that says so."""
        return self._store.changing(paths)

    async def decided(self) -> None:
        """Waits for the decisions about proposals that are being carried out: what they make of
        files is not in the logs of the sessions before."""
        await self._store.decided()

    def along(self, state: State, write: Write) -> Letters | None:
        """A companion of an append: what a call has changed comes under review with its end."""
        return changes.under_review(self._store, state, write)

    async def carried(
        self,
        root: str,
        session: str,
        event: Restored,
        blobs: Mapping[Hash, bytes],
        turns: Sequence[FileChange],
        append: Callable[[Sequence[Batch]], Awaitable[object]],
    ) -> None:
        """Appends a restore: `append` gets the batches that go with it."""
        await self._store.together(
            lambda: changes.carried(self._store, root, session, event, blobs, turns), append
        )
        # That a file was made or removed is in no review: with the file, its hunks come and go.
        self._store.put([change.path for change in event.changes])

    async def proposal(self, path: str) -> Proposal | None:
        """Made for what the file is now; None: nothing is proposed."""
        try:
            at = await self._store.known(path, proposed=True)
        except NotFound:
            return None
        now, _ = await self._look(at)
        if not now.hunks:
            return None
        text = now.held.text
        data = self._store.made(text).data if text.exists else None
        return Proposal(data, current_review.sessions(now.hunks))

    async def notes(self, state: State) -> Noted | None:
        """Returns a note for the beginning of a turn: which of this session's hunks are undecided,
        and what the person made of them; None when the model knows it."""
        opened = state.opened
        if opened is None:
            return None
        session = state.id
        try:
            pending = await self._all_of_session(opened.root or opened.cwd, session)
        except StoreError:
            raise
        except MagyError as error:  # a turn begins all the same
            LOG.warning("the reviews of %s: %s", state.stream, error.message)
            return None
        note = reminder(session, pending)
        known = (item.id for item in state.conversation.items if isinstance(item, Noted))
        return note if note and note.id not in known else None

    async def all_decided(self, root: str | None, session: str) -> bool:
        """Whether a person has decided all that the last turn of this session proposed, and
        whatever it proposed before."""
        return await streams.all_decided(self._store.world.store, root, session)

    async def _all_of_session(self, root: str, session: str) -> Sequence[str]:
        own = [at for at in await self._pending(root) if streams.of_session(at, session)]
        told = []
        for at, mark in zip(own, await self._looks.marks(own), strict=True):
            look = self._looks.known(at, mark)
            if look is None or (root, session) not in look.told:
                now, whole = await self._look(at)
                look = look or self._looks.made(at, mark, now, whole)
                look.told[root, session] = await self._told(root, at, session, now)
            told.append(look.told[root, session])
        return [one for one in told if one]

    async def _told(self, root: str, at: Standing, session: str, now: Now) -> str:
        own = [h for h in now.hunks if any(o.session == session for o in h.origins)]
        if not own:
            return ""
        wrote = None
        if any(hunk.amended for hunk in own):
            wrote = await self._wrote(at.stream, session)
        held = replace(now.held, root=root)
        lines = now.live.lines or ()
        return pending_lines(Pending(held.name, held.proposed, tuple(own), lines, wrote))

    async def _wrote(self, stream: Stream, session: str) -> Sequence[str] | None:
        """The lines of the file as that session's agent left it."""
        for entry in reversed(await self._store.world.store.read(stream)):
            event = entry.event
            if isinstance(event, Reviewed) and event.changed and event.changed.session == session:
                return (await self._store.held(event)).text.lines
        return None

    # --- what there is --------------------------------------------------------------------------

    async def list(self, root: str) -> Sequence[Summary]:
        """The files below `root` with something pending, by path; what is applied before what is
        proposed."""
        found = [
            replace(look.summary, root=root)
            for _, look in await self._looked(await self._pending(root))
            if look.summary
        ]
        return sorted(found, key=lambda one: (one.path, one.proposed))

    async def get(self, path: str, proposed: bool = False) -> ReviewFile:
        """The review of a file as it is now; without hunks when all is decided. Raises NotFound
        when it never was under review."""
        at = await self._store.known(path, proposed)
        now, _ = await self._look(at)
        return await asyncio.to_thread(current_review.review_file, now)

    async def navigate(
        self, root: str, path: str, line: int, direction: Literal["next", "previous"]
    ) -> tuple[str, int] | None:
        """Where the next pending hunk begins, after (or before) `line` of the live text, else in
        the next file, and round again; None when nothing is pending. `path` "": from the start."""
        forward = direction == "next"
        places: list[tuple[str, int]] = []
        for one in await self.list(root):
            file = await self.get(one.path, one.proposed)
            places += [(file.path, hunk.start) for hunk in file.hunks]
        places = sorted(set(places), reverse=not forward)
        here = (path, line)
        beyond = [place for place in places if (place > here if forward else place < here)]
        return next(iter(beyond or places), None)

    def under(self, path: str) -> bool:
        """Whether something of this file may be pending, as far as is known here; at once."""
        return self._store.under(path)

    def watch(self, changed: Changed) -> Callable[[], None]:
        """Calls `changed` after each change or decision, of any process. Returns a function that
        ends this."""
        return self._store.watch(changed)

    # --- what a person decides ------------------------------------------------------------------

    async def resolve(self, path: str, wish: Wish, proposed: bool = False) -> Outcome:
        """Raises NotFound (no review), InvalidRequest, ToolError or EditorError (the file cannot
        be written; nothing was decided)."""
        return await self._resolver.resolve(path, wish, proposed)

    async def undo(self, decision: str, path: str = "", by: str = "", key: str = "") -> Outcome:
        """Takes back any decision, also an undo. `path`: of the file, where it is known. What does
        not fit any more is said in `message`, and nothing is done. Raises NotFound, ToolError,
        EditorError."""
        return await self._resolver.undo(decision, path, by, key)

    async def settle(self, root: str, paths: Sequence[str] = ()) -> None:
        """Keeps what the person changed in files under review (all of them, or `paths`): what
        differs after a restart is theirs, too. Errors are only logged."""
        try:
            found = await self._pending(root, [APPLIED])
            if paths:
                found = [at for at in found if at.event and at.event.path in paths]
            for at, look in await self._looked(found, wait=False):
                if look.typed:
                    await self._settle(at)
        except MagyError as error:
            LOG.warning("the reviews of %s: %s", root, error.message)

    async def _settle(self, at: Standing) -> None:
        if self._store.locked(at.stream):
            return
        now, _ = await self._look(at)
        event = at.event
        if event is None or now.seq != at.seq or now.unreadable:
            return
        # What was seen may be an agent's, which is not in the journal yet.
        if self._store.locked(at.stream):
            return
        if streams.begun(at) or now.live.version == event.agent or not now.live.exists:
            return
        kept = stored(now.held, self._store.files.encode)
        try:
            await self._store.append(at, [kept], now.held.pending)
        except Conflict:
            return  # who was faster has seen it, too

    # --- looking --------------------------------------------------------------------------------

    async def _pending(
        self, root: str, kinds: Sequence[str] = (APPLIED, PROPOSED)
    ) -> Sequence[Standing]:
        await self.applying.mend(root)
        return [at for kind in kinds for at in await self._looks.pending(kind, root)]

    async def _looked(
        self, found: Sequence[Standing], wait: bool = True
    ) -> Sequence[tuple[Standing, Look]]:
        """What a look at each came to: at those of which something has moved since the last one.
        Without `wait`, none is taken at what somebody is deciding or changing just now."""
        looks = []
        for at, mark in zip(found, await self._looks.marks(found), strict=True):
            look = self._looks.known(at, mark)
            if look is None:
                if not wait and self._store.locked(at.stream):
                    continue
                look = self._looks.made(at, mark, *await self._look(at))
            looks.append((at, look))
        return looks

    async def _look(self, at: Standing) -> tuple[Now, bool]:
        """The review as it is now, after what was interrupted, and what git has, are counted; and
        whether all of that is written down."""
        if await self._resolver.mend(at):
            at = await self._store.standing(at.stream)
        now = await self._store.now(at)
        ids = await self._commits.accepted(now)
        if ids:
            await self._resolver.committed(at.stream, ids)
            now = await self._store.now(await self._store.standing(at.stream))
        held = now.held
        self._store.note(held.path, held.proposed, bool(now.hunks))
        # Another look may be writing this down, or a change waits for a person: git has them.
        left = tuple(hunk for hunk in now.hunks if hunk.id not in ids)
        return replace(now, hunks=left), len(left) == len(now.hunks)
