"""What a client gets that attaches: one moment of the session, whatever is appended meanwhile."""

from __future__ import annotations

from magy_server.api.sessions import pages
from magy_server.core.agents.tree import Stream
from magy_server.core.events import Configured, Event, Opened
from magy_server.core.ports import Batch
from magy_server.store.memory import MemoryStore


async def test_a_page_ends_where_its_summary_does() -> None:
    store, stream = MemoryStore(), Stream("session/one")

    async def append(after: int, *events: Event) -> None:
        await store.append([Batch(stream, after, events, {}, {"head": after + len(events)})])

    titles = [Configured(option="title", value=str(n)) for n in range(3)]
    await append(0, Opened(root=None, cwd="/", agent="build", model="none"), titles[0])
    info = await store.info(stream)
    assert info is not None
    await append(2, *titles[1:])  # before its entries are read
    attached = await pages.attach(store, info, after=None, tail=20)
    assert [entry.seq for entry in attached.entries] == [1, 2]
    assert (attached.head, attached.info.summary) == (2, {"head": 2})
