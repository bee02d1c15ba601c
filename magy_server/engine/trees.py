"""Sessions form trees: this module tells which of them run here, and what the store lists of them.

A tree (a root session and all its children) has one lease, that of the root's stream: taken for the
first of its sessions that needs it, shared by the others here, and released after the last. Lists
fold nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import field
from typing import Literal
from weakref import WeakValueDictionary

from magy_server.core.agents import tree
from magy_server.core.agents.tree import Stream, id_of, stream_of
from magy_server.core.events import (
    Admitted,
    Answered,
    Asked,
    Briefed,
    Configured,
    Ended,
    Entry,
    Event,
    Exited,
    Finished,
    Judged,
    Moved,
    Opened,
    Planned,
    Started,
)
from magy_server.core.ports import Bus, Lease, Store, StreamInfo
from magy_server.core.reviews.review_events import Noted
from magy_server.core.state.state import State, question_id
from magy_server.dataclass import dataclass


def root_of(stream: Stream) -> Stream:
    """The stream of the root of the tree that a session's stream is in."""
    return stream_of(tree.root(id_of(stream)))


def restorer(stream: Stream) -> Stream:
    """Returns the name under which a session that goes back takes its tree, besides its own."""
    return Stream(f"{stream}{_RESTORER}")


_RESTORER = "/:restoring"  # no child has such a name


def is_child(stream: Stream) -> bool:
    return tree.parent(id_of(stream)) is not None


Part = Literal["tree", "below"]
"""A whole tree; what is below one session of it."""


@dataclass(slots=True)
class _Tree:
    lease: Lease
    users: set[str] = field(default_factory=set)
    """The streams that need it."""
    entered: set[Stream] = field(default_factory=set)
    """The streams whose sessions began to run."""


class Trees:
    """All methods are to be called on the loop. `released` is called with the root of a tree that
    another process may have from now on."""

    def __init__(self, store: Store, released: Callable[[str], None]) -> None:
        self._store = store
        self._released = released
        self._held: dict[Stream, _Tree] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def take(self, stream: Stream) -> Lease | None:
        """The lease of the session's tree, for this one session. None: somebody here has it for the
        same session, or (when `holds` says no) another process has the tree. Raises StoreError."""
        root = root_of(stream)
        async with self._lock(root):
            taken = self._held.get(root)
            if taken is None:
                lease = await self._store.lease(root)
                if lease is None:
                    return None
                taken = self._held[root] = _Tree(lease)
            if stream in taken.users:
                return None
            taken.users.add(stream)
            return taken.lease

    async def give_back(self, stream: Stream) -> None:
        """The session needs it no more."""
        root = root_of(stream)
        if taken := self._held.get(root):
            taken.users.discard(stream)
        async with self._lock(root):
            taken = self._held.get(root)
            if taken is None or taken.users:
                return
            del self._held[root]
            await self._store.release(taken.lease)
        self._released(root)

    def holds(self, stream: Stream) -> bool:
        """Whether the tree of this session is run here."""
        return root_of(stream) in self._held

    def restores(self, stream: Stream) -> bool:
        """Whether this session, or one below it, goes back here."""
        taken = self._held.get(root_of(stream))
        users = taken.users if taken else ()
        return any(user.startswith(f"{stream}/") and user.endswith(_RESTORER) for user in users)

    def held(self) -> Collection[Stream]:
        """The roots of all that are run here."""
        return self._held.keys()

    def unseen(self, stream: Stream) -> Part | None:
        """Returns where the runner has not yet looked for what was left open, now that it runs this
        session, and takes it as seen: with the first session since the lease was taken the whole
        tree, with a later one what is below it, if no session above it was run."""
        entered = self._held[root_of(stream)].entered
        first, seen = not entered, any(f"{stream}/".startswith(f"{one}/") for one in entered)
        entered.add(stream)
        return "tree" if first else None if seen else "below"

    def _lock(self, root: str) -> asyncio.Lock:
        return self._locks.get(root) or self._locks.setdefault(root, asyncio.Lock())


async def below(store: Store, session: str) -> list[StreamInfo]:
    """Returns all sessions below this one, parents before their children."""
    found = await store.below(stream_of(session))
    return sorted(found, key=lambda info: info.stream.split(tree.SEPARATOR))


async def whole(store: Store, session: str) -> list[StreamInfo]:
    """Returns this session, if it exists, and all below it."""
    info = await store.info(stream_of(session))
    return [*([info] if info else []), *await below(store, session)]


async def path(store: Store, session: str) -> list[StreamInfo]:
    """Returns the sessions from the root of the tree to this one, as far as they exist."""
    names = [*reversed(tree.ancestors(session)), session]
    infos = [await store.info(stream_of(name)) for name in names]
    return [info for info in infos if info is not None]


def tree_topic(root: str) -> str:
    """Returns the topic for messages that a session of a tree has changed: {"session": its id}."""
    return f"tree/{root}"


def hear(bus: Bus, session_id: str, heard: Callable[[str], None]) -> Callable[[], None]:
    """Calls `heard` with the id of every session of that tree that has changed, wherever it runs.
    Returns a function that ends this."""
    topic = tree_topic(tree.root(session_id))
    return bus.subscribe(topic, lambda message: heard(str(message.get("session"))))


DELETED = "session/deleted"
"""Where it is said that a session is no more: {"session": its id, "questions": the ids of those
that were open, "child": what `summary.about_child` made, null of a root,
"created" and "updated"}."""


def say_deleted(bus: Bus, info: StreamInfo) -> None:
    """Tells all processes that a session was deleted. `info`: as it was."""
    bus.publish(DELETED, {
        "session": info.id,
        "questions": [one["interactionId"] for one in info.summary.get("questions") or ()],
        "child": info.summary.get("child"),
        "created": info.created,
        "updated": info.updated,
    })  # fmt: skip


CHANGED = "session/changed"
"""Where it is said that a session looks different in a list, or has other open questions:
{"session": its id, "root": that of its workspace or null, "by": the process whose listeners heard
of it already ("" if none did), "asked": whether there are new questions, "resolved": ids of
questions that are none any more}."""


def is_listed(event: Event) -> bool:
    """Whether the session's row in a list looks different after it."""
    return isinstance(event, Opened | Configured | Admitted | Asked | Answered | Ended)


def forked(bus: Bus, state: State) -> None:
    """Says so of a session whose log was copied: of that no listener hears."""
    bus.publish(CHANGED, {
        "session": state.id, "root": state.root, "by": "", "asked": False, "resolved": [],
    })  # fmt: skip


class Herald:
    """A listener: says on the bus that a session has changed, for who lists them anywhere. `me` is
    the id of this process."""

    def __init__(self, bus: Bus, me: str) -> None:
        self._bus = bus
        self._me = me

    def __call__(self, state: State, entries: Sequence[Entry]) -> None:
        if any(not isinstance(entry.event, _QUIET) for entry in entries):
            self.moved(state.stream)
        if not state.stream.startswith(tree.SESSIONS):
            return
        resolved = [id for entry in entries if (id := _resolved(state.id, entry.event))]
        if resolved or any(is_listed(entry.event) for entry in entries):
            asked = any(isinstance(entry.event, Asked) for entry in entries)
            self._bus.publish(CHANGED, {
                "session": state.id, "root": state.root, "by": self._me, "asked": asked,
                "resolved": resolved,
            })  # fmt: skip

    def moved(self, stream: Stream) -> None:
        """A session has changed in what no log says, too: its place in a line."""
        if is_child(stream):
            session = id_of(stream)
            self._bus.publish(tree_topic(tree.root(session)), {"session": session})


def _resolved(session: str, event: Event) -> str:
    """The id of the question that is over with this event; that of a call that ran is over since
    its answer."""
    if isinstance(event, Answered):
        return event.id
    if isinstance(event, Finished) and event.status != "completed":
        return question_id(session, event.call)
    return ""


_QUIET = (Judged, Started, Noted, Planned, Briefed, Exited, Moved)
"""They change nothing that a list shows."""
