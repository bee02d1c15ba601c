"""The sessions of a tree as the store lists them: nothing is folded for it."""

from __future__ import annotations

from collections.abc import Sequence

from magy_server.core import family
from magy_server.core.events import Briefed, Entry, Exited, Judged, Noted, Planned, Started
from magy_server.core.ports import Bus, Store, StreamInfo
from magy_server.core.state import State


def id_of(info: StreamInfo) -> str:
    return info.stream.removeprefix("session/")


async def below(store: Store, session: str) -> list[StreamInfo]:
    """All sessions below this one: parents before their children."""
    found = await store.below(f"session/{session}")
    return sorted(found, key=lambda info: info.stream.split(family.SEPARATOR))


async def whole(store: Store, session: str) -> list[StreamInfo]:
    """This one, if it is there, and all below it."""
    info = await store.info(f"session/{session}")
    return [*([info] if info else []), *await below(store, session)]


async def path(store: Store, session: str) -> list[StreamInfo]:
    """From the root of its tree to itself, as far as they are there."""
    names = [*reversed(family.ancestors(session)), session]
    infos = [await store.info(f"session/{name}") for name in names]
    return [info for info in infos if info is not None]


def tree_topic(root: str) -> str:
    """Where it is said which session of a tree has changed: {"session": its id}."""
    return f"tree/{root}"


DELETED = "session/deleted"
"""Where it is said that a session is no more: {"session": its id, "questions": the ids of those
that were open, "child": what `glance` made, null of a root, "created" and "updated"}."""


def say_deleted(bus: Bus, info: StreamInfo) -> None:
    """To all processes. `info`: as it was."""
    bus.publish(DELETED, {
        "session": id_of(info),
        "questions": [one["interactionId"] for one in info.summary.get("questions") or ()],
        "child": info.summary.get("child"),
        "created": info.created,
        "updated": info.updated,
    })  # fmt: skip


class Herald:
    """A listener: says on the bus that a child has changed, for who lists them anywhere."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    def __call__(self, state: State, entries: Sequence[Entry]) -> None:
        if any(not isinstance(entry.event, _QUIET) for entry in entries):
            self.moved(state.stream)

    def moved(self, stream: str) -> None:
        """A session has changed in what no log says, too: its place in a line."""
        session = stream.removeprefix("session/")
        if family.parent(session) is not None:
            self._bus.publish(tree_topic(family.root(session)), {"session": session})


_QUIET = (Judged, Started, Noted, Planned, Briefed, Exited)
"""They change nothing that a list shows."""
