"""This module makes the edits that a front door asks for, and no agent: of all files, or of none.

What is meant is in the log, with the bytes before and after, before the first file is touched; what
came of it is appended together with the reviews. Where the process died in between, whoever looks
at the root next writes down how far it had come: what was done by then is under review.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import field
from os.path import relpath

from magy_server.core.agents.tree import Stream, stream_of
from magy_server.core.errors import EditorError, InvalidRequest, MagyError, ToolError
from magy_server.core.events import Finished, Opened, Started
from magy_server.core.ports import Batch, Found, Head, Lease, Put
from magy_server.core.reviews.undo_merge import There
from magy_server.core.state.state import State
from magy_server.core.state.turn import CallState, Turn
from magy_server.core.values import Call, Evidence, FileChange, Hash, Version, digest
from magy_server.dataclass import dataclass
from magy_server.engine.calls import happened
from magy_server.reviews import changes as review_changes
from magy_server.reviews.restore_files import bytes_of, change_of, put_or_found, turns
from magy_server.reviews.review_store import ReviewStore
from magy_server.reviews.streams import below

EDITS = "edit/"
REMEMBERED = 200
"""Requests of a root that are not carried out again."""
TRIES, PAUSE = 1500, 0.02
"""How often, and after how many seconds, it is asked whether another process is through."""


@dataclass(frozen=True, slots=True)
class Want:
    """What a file shall be. `data`: the bytes of `now`; `moved_from`: another file, whose removal
    is a want of its own."""

    found: Found
    now: Version
    data: bytes = b""
    moved_from: str = ""


@dataclass(frozen=True, slots=True)
class Applied:
    """What came of a request. `finished.changes` are the files that are now otherwise than before:
    all of them, none, or those that could not be brought back. `path` is where `problem` was."""

    finished: Finished
    path: str = ""
    problem: MagyError | None = None
    known: bool = False
    """It was so before: this is the same request again."""


@dataclass(slots=True)
class _Made:
    """What was done, and stays."""

    done: list[tuple[Want, Put]] = field(default_factory=list)
    path: str = ""
    problem: MagyError | None = None

    @property
    def changes(self) -> tuple[FileChange, ...]:
        return tuple(change_of(put.was, put.now.version, one.moved_from) for one, put in self.done)

    @property
    def blobs(self) -> dict[Hash, bytes]:
        return bytes_of(side for _, put in self.done for side in (put.was, put.now))


class Applying:
    def __init__(self, store: ReviewStore) -> None:
        self._store = store
        self._mending = asyncio.Lock()
        self._whole: Sequence[Head] = ()
        """The newest entries of all roots, when no edit was left unfinished in any."""

    async def known(self, root: str, key: str) -> Finished | None:
        """What came of this request before, if it changed anything."""
        stream = _stream(root)
        return await self._known(stream, await self._store.world.store.head(stream), key)

    async def apply(
        self, root: str, key: str, wants: Sequence[Want], *, by: str, label: str, output: bytes
    ) -> Applied:
        """`by`: the agent that the reviews name; `label`: for the editor's undo; `output`: kept
        with the outcome if all is done. Raises InvalidRequest (another process is at work for very
        long), StoreError."""
        await self.mend(root)
        stream = _stream(root)
        async with self._held(stream) as lease:
            await self._mend(root, lease)
            head = await self._store.world.store.head(stream)
            if known := await self._known(stream, head, key):
                return Applied(known, known=True)
            meant = tuple(change_of(want.found, want.now, want.moved_from) for want in wants)
            started = Started(call=key, evidence=Evidence(changes=meant))
            summary = {"root": root, "by": by, "pending": True}
            sides = [side for want in wants for side in (want.found, There(want.now, want.data))]
            begun = Batch(stream, head, [started], bytes_of(sides), summary)
            async with self._store.changing([want.found.path for want in wants]):
                await self._store.world.store.append([begun], lease)
                made = await self._carry_out(root, wants, label)
                self._store.world.results.forget()
                finished, blobs = _ended(root, key, made, output)
                await self._close(root, by, finished, blobs, lease)
            return Applied(finished, made.path, made.problem)

    async def mend(self, root: str) -> None:
        """Writes down what came of edits whose process died: of this root, and of those above and
        below it, since a file under review is the same whichever root it is looked at from."""
        store = self._store.world.store
        async with self._mending:
            heads = await store.heads(EDITS)
            if heads == self._whole:
                return
            found = await below(store, EDITS)
            if not any(info.summary.get("pending") for info in found):
                self._whole = heads
            for info in found:
                own = info.summary["root"]
                near = _contains(own, root) or _contains(root, own)
                if not (near and info.summary.get("pending")):
                    continue
                lease = await store.lease(_stream(own))
                if lease is None:
                    continue  # it is being done
                try:
                    await self._mend(own, lease)
                finally:
                    await store.release(lease)

    # --- doing it -------------------------------------------------------------------------------

    async def _carry_out(self, root: str, wants: Sequence[Want], label: str) -> _Made:
        """When something goes wrong, what was done is brought back."""
        made = _Made()
        order = turns({want.found.path: want.now.hash is None for want in wants})
        for want in sorted(wants, key=lambda want: order[want.found.path]):
            try:
                files = self._store.files
                put = await put_or_found(files, root, want.found, want.now, want.data, label)
                made.done.append((want, put))
            except (ToolError, EditorError) as error:
                made.path, made.problem = want.found.path, error
                made.done = [
                    (want, put)
                    for want, put in reversed(made.done)
                    if not await self._brought_back(root, put, label)
                ]
                break
        return made

    async def _brought_back(self, root: str, put: Put, label: str) -> bool:
        """False: somebody else has changed it meanwhile, or it cannot be written."""
        try:
            await self._store.files.put(root, put.now, put.was.version, put.was.data, label)
        except (ToolError, EditorError):
            return False
        return True

    # --- the log --------------------------------------------------------------------------------

    @asynccontextmanager
    async def _held(self, stream: Stream) -> AsyncIterator[Lease]:
        """One edit of a root after the other, in all processes."""
        store = self._store.world.store
        async with self._store.lock(stream):
            for _ in range(TRIES):
                if lease := await store.lease(stream):
                    break
                await asyncio.sleep(PAUSE)
            else:
                text = "Another Magy is changing files in this folder. Try again when it is done."
                raise InvalidRequest(text, reason="busy")
            try:
                yield lease
            finally:
                await store.release(lease)

    async def _known(self, stream: Stream, head: int, key: str) -> Finished | None:
        after = max(0, head - 2 * REMEMBERED)
        for entry in reversed(await self._store.world.store.read(stream, after=after)):
            event = entry.event
            if isinstance(event, Finished) and event.call == key and event.changes:
                return event
        return None

    async def _mend(self, root: str, lease: Lease) -> None:
        store, stream = self._store.world.store, _stream(root)
        info = await store.info(stream)
        if info is None or not info.summary.get("pending"):
            return
        (entry,) = await store.read(stream, after=info.head - 1)
        assert isinstance(entry.event, Started)
        key, meant = entry.event.call, entry.event.evidence
        call = CallState(Call(id=key, name="edit", arguments={}), started=meant)
        changes = await happened(self._store.files, root, call)
        finished = Finished(
            call=key,
            status="completed" if len(changes) == len(meant.changes) else "unknown",
            for_model=_interrupted(root, meant.changes, changes),
            changes=_settled(changes),
        )
        await self._close(root, str(info.summary.get("by", "")), finished, {}, lease)

    async def _close(
        self, root: str, by: str, finished: Finished, blobs: Mapping[Hash, bytes], lease: Lease
    ) -> None:
        """What was changed comes under review in the same append, as if a call of an agent had
        changed it: of no session."""
        store, stream = self._store.world.store, _stream(root)
        head = await store.head(stream)
        opened = Opened(root=root, cwd=root, agent=by, model="")
        options = {"agent": by, "review": "review"}
        turn = Turn(id=finished.call, began=0.0)
        state = State(stream=stream_of(""), opened=opened, options=options, turn=turn)
        own = Batch(stream, head, [finished], blobs, {"root": root, "by": by, "pending": False})
        await self._store.together(
            lambda: review_changes.batches(self._store, state, finished, blobs),
            lambda reviews: store.append([own, *reviews], lease),
        )


def _ended(
    root: str, key: str, made: _Made, output: bytes
) -> tuple[Finished, Mapping[Hash, bytes]]:
    if made.problem is not None:
        text = _sentence(made.problem.message) + _stay(root, made.changes)
        changes = _settled(made.changes)
        return Finished(call=key, status="failed", for_model=text, changes=changes), made.blobs
    hash = digest(output)
    done = Finished(call=key, status="completed", for_model="", output=hash, changes=made.changes)
    return done, {**made.blobs, hash: output}


def _contains(root: str, path: str) -> bool:
    return f"{path}/".startswith(f"{root.rstrip('/')}/")


def _stream(root: str) -> Stream:
    name = hashlib.sha256(root.encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return Stream(EDITS + name)


def _settled(changes: Iterable[FileChange]) -> tuple[FileChange, ...]:
    """The changes of an edit that was not done whole: a file counts as moved only where its old
    place is empty."""
    made = tuple(changes)
    gone = {change.path for change in made if change.after is None}
    return tuple(
        change if change.moved_from in gone else change.model_copy(update={"moved_from": ""})
        for change in made
    )


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _stay(root: str, left: Sequence[FileChange]) -> str:
    if not left:
        return ""
    return f" These files could not be restored and stay changed: {_names(root, left)}."


def _interrupted(root: str, meant: Sequence[FileChange], done: Sequence[FileChange]) -> str:
    text = "Magy was stopped while it did this. "
    made = {change.path for change in done}
    left = [change for change in meant if change.path not in made]
    if done:
        text += f"Already done: {_names(root, done)}. "
    if left:
        text += f"Not done: {_names(root, left)}. "
    return text + "Read the files before you send the rest as a new request."


def _names(root: str, changes: Iterable[FileChange]) -> str:
    return ", ".join(relpath(change.path, root) for change in changes)
