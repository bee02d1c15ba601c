"""What every store does, whatever it is made of."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from magy_server.core.codec import encode
from magy_server.core.errors import Conflict, InvalidRequest, NotFound, StoreUnavailable
from magy_server.core.events import Admitted, Event, Resumed
from magy_server.core.ports import Batch, Lease, Snapshot, Store
from tests.contracts.build import blob, finished, hash_of, opened, said
from tests.contracts.conftest import Clock

S = "session/one"


async def fill(store: Store, stream: str, count: int) -> None:
    await store.append([Batch(stream, 0, [said(str(n)) for n in range(1, count + 1)])])


# --- append -------------------------------------------------------------------------------------


async def test_what_is_appended_is_read_back(store: Store) -> None:
    events: list[Event] = [opened(), said("hello \u2603 \0"), Resumed(by="p")]
    first = await store.append([Batch(S, 0, events[:2])])
    second = await store.append([Batch(S, 2, events[2:])])
    assert await store.read(S) == first + second
    assert [entry.event for entry in first + second] == events
    assert [(e.stream, e.seq, e.at) for e in first + second] == [
        (S, 1, 1001), (S, 2, 1001), (S, 3, 1002),
    ]  # fmt: skip
    assert await store.head(S) == 3


@pytest.mark.parametrize("after", [0, 1, 3, 99])
async def test_a_log_that_moved_on_is_a_conflict(store: Store, after: int) -> None:
    await fill(store, S, 2)
    with pytest.raises(Conflict, match="stands at entry 2, not at"):
        await store.append([Batch(S, after, [said("late")])])
    assert await store.head(S) == 2


async def test_all_batches_or_none(store: Store) -> None:
    await fill(store, "session/two", 1)
    batches = [
        Batch(S, 0, [finished("long")], blob("long"), {"title": "x"}),
        Batch("session/two", 0, [said("y")]),
    ]
    with pytest.raises(Conflict, match="session/two"):
        await store.append(batches)
    assert await store.info(S) is None
    assert await store.read(S) == []
    with pytest.raises(NotFound):
        await store.blob(hash_of("long"))
    await store.append([batches[0], Batch("session/two", 1, [said("y")])])
    assert (await store.head(S), await store.head("session/two")) == (1, 2)


async def test_a_stream_may_be_named_twice_in_one_append(store: Store) -> None:
    await store.append([Batch(S, 0, [said("1")]), Batch(S, 1, [said("2")], {}, {"n": 2})])
    assert [entry.seq for entry in await store.read(S)] == [1, 2]
    with pytest.raises(Conflict):
        await store.append([Batch(S, 2, [said("3")]), Batch(S, 2, [said("4")])])
    assert await store.head(S) == 2


async def test_of_many_writers_to_one_place_exactly_one_wins(store: Store) -> None:
    appends = [store.append([Batch(S, 0, [said(str(n))])]) for n in range(64)]
    outcomes = await asyncio.gather(*appends, return_exceptions=True)
    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 63
    (winner,) = [outcome for outcome in outcomes if isinstance(outcome, list)]
    assert await store.read(S) == winner


async def test_appends_at_the_same_time_fail_alone(store: Store) -> None:
    batches = [Batch(f"session/{n}", n % 2, [said(str(n))]) for n in range(10)]
    outcomes = await asyncio.gather(
        *(store.append([batch]) for batch in batches), return_exceptions=True
    )
    assert [isinstance(outcome, Conflict) for outcome in outcomes] == [False, True] * 5
    assert [await store.head(f"session/{n}") for n in range(10)] == [1, 0] * 5


async def test_times_never_go_back_in_a_log(store: Store, clock: Clock) -> None:
    await fill(store, S, 1)
    clock.now = 10
    await store.append([Batch(S, 1, [said("2")])])
    assert [entry.at for entry in await store.read(S)] == [1001, 1001]


async def test_a_new_stream_begins_with_an_event(store: Store) -> None:
    with pytest.raises(ValueError, match="must begin with an event"):
        await store.append([Batch(S, 0, [], {}, {"title": "x"})])
    assert await store.info(S) is None


async def test_a_batch_with_nothing_in_it_says_where_its_stream_must_stand(store: Store) -> None:
    await fill(store, S, 1)
    before = await store.info(S)
    await store.append([Batch("session/b", 0, [said("1")]), Batch(S, 1, []), Batch("none", 0, [])])
    assert await store.info(S) == before
    assert await store.info("none") is None
    for wrong in (Batch(S, 0, []), Batch(S, 2, []), Batch("none", 1, [])):
        with pytest.raises(Conflict, match=wrong.stream):
            await store.append([Batch("session/b", 1, [said("2")]), wrong])
    assert await store.head("session/b") == 1


# --- read ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "seqs"),
    [
        ({}, [1, 2, 3, 4, 5, 6]),
        ({"after": 4}, [5, 6]),
        ({"after": 6}, []),
        ({"after": 99}, []),
        ({"before": 3}, [1, 2]),
        ({"before": 1}, []),
        ({"limit": 2}, [1, 2]),
        ({"limit": 0}, []),
        ({"after": 2, "limit": 2}, [3, 4]),
        ({"before": 6, "limit": 2}, [4, 5]),
        ({"before": 2, "limit": 5}, [1]),
        ({"after": 1, "before": 6, "limit": 2}, [2, 3]),
        ({"after": 1, "before": 4}, [2, 3]),
        ({"after": 4, "before": 2}, []),
    ],
)
async def test_a_window_of_a_log(store: Store, window: dict[str, int], seqs: list[int]) -> None:
    await fill(store, S, 6)
    assert [entry.seq for entry in await store.read(S, **window)] == seqs


async def test_an_unknown_stream_is_empty(store: Store) -> None:
    assert await store.read("session/none") == []
    assert await store.head("session/none") == 0
    assert await store.info("session/none") is None
    assert await store.turn_starts("session/none", 3) == []
    assert not await store.delete("session/none")


async def test_the_last_turns_are_found(store: Store) -> None:
    for n in range(5):
        admitted = Admitted(turn=str(n), prompts=(str(n),))
        steer = Admitted(turn=str(n), prompts=("x",), opens=False)
        await store.append([Batch(S, n * 3, [said(str(n)), admitted, steer])])
    assert await store.turn_starts(S, 2) == [11, 14]
    assert await store.turn_starts(S, 2, before=11) == [5, 8]
    assert await store.turn_starts(S, 99) == [2, 5, 8, 11, 14]
    assert await store.turn_starts(S, 0) == []


# --- streams ------------------------------------------------------------------------------------


async def test_what_is_known_of_a_stream(store: Store) -> None:
    await store.append([Batch(S, 0, [opened("/proj/a")], {}, {"title": "né", "n": [1]})])
    await store.append([Batch(S, 1, [said("x")])])
    info = await store.info(S)
    assert info is not None
    assert (info.stream, info.root, info.head) == (S, "/proj/a", 2)
    assert (info.created, info.updated) == (1001, 1002)
    assert info.summary == {"title": "né", "n": [1]}
    await store.append([Batch(S, 2, [], {}, {})])  # only the summary
    info = await store.info(S)
    assert info is not None
    assert (info.head, info.updated, info.summary) == (2, 1002, {})
    await store.append([Batch("project/abc", 0, [said("x")])])
    project = await store.info("project/abc")
    assert project is not None
    assert project.root is None


async def test_the_list_has_the_first_root_first_and_then_the_newest(store: Store) -> None:
    roots = {"1": "/a", "2": "/b", "3": None, "4": "/a", "5": "/b"}
    for name, root in roots.items():
        await store.append([Batch(f"session/{name}", 0, [opened(root)])])
    await fill(store, "project/1", 1)
    await store.append([Batch("session/1", 1, [said("again")])])

    async def names(**query: Any) -> str:
        page = await store.streams("session/", **query)
        assert page.cursor is None
        return "".join(info.stream[-1] for info in page.items)

    assert await names() == "15432"
    assert await names(first_root="/b") == "52143"
    assert await names(first_root="/none") == "15432"
    assert await names(root="/a") == "14"
    assert await names(root="/a", first_root="/b") == "14"
    assert await names(root="/none") == ""
    assert [info.stream for info in (await store.streams("project/")).items] == ["project/1"]


@pytest.mark.parametrize("first_root", [None, "/0", "/none"])
async def test_pages_hold_each_stream_once(
    store: Store, clock: Clock, first_root: str | None
) -> None:
    for n in range(11):
        clock.now = 1000 + n // 3  # some are equally new
        await store.append([Batch(f"session/{n:02}", 0, [opened(f"/{n % 2}")])])
    whole = [i.stream for i in (await store.streams("session/", first_root=first_root)).items]
    paged: list[str] = []
    cursor = None
    while True:
        page = await store.streams("session/", first_root=first_root, cursor=cursor, limit=2)
        paged += [info.stream for info in page.items]
        if (cursor := page.cursor) is None:
            break
        assert len(page.items) == 2
    assert paged == whole
    assert len(set(whole)) == 11


async def test_a_flat_list_leaves_out_what_is_below(store: Store) -> None:
    for name in ("a", "a/1.0", "a/1.0/2.0", "a/2.0", "ab", "b"):
        await fill(store, f"session/{name}", 1)

    async def names(prefix: str, **query: Any) -> list[str]:
        page = await store.streams(prefix, **query)
        return [info.stream.removeprefix("session/") for info in page.items]

    assert await names("session/", flat=True) == ["b", "ab", "a"]
    assert await names("session/a", flat=True) == ["ab", "a"]
    assert await names("session/a/", flat=True) == ["a/2.0", "a/1.0"]
    assert await names("session/a/") == ["a/2.0", "a/1.0/2.0", "a/1.0"]
    first = await store.streams("session/", flat=True, limit=2)
    assert [info.stream for info in first.items] == ["session/b", "session/ab"]
    assert await names("session/", flat=True, cursor=first.cursor) == ["a"]


async def test_all_below_a_stream_are_found_however_they_move(store: Store) -> None:
    for name in ("a", "a/1.0", "a/1.0/2.0", "a/10", "a-b", "a/1-b", "ab/1", "b"):
        await fill(store, f"session/{name}", 1)
    found = [info.stream.removeprefix("session/") for info in await store.below("session/a")]
    assert found == ["a/1-b", "a/1.0", "a/1.0/2.0", "a/10"]
    await store.append([Batch("session/a/10", 1, [said("more")])])  # now the newest
    again = await store.below("session/a")
    assert [(info.stream.removeprefix("session/"), info.head) for info in again] == [
        ("a/1-b", 1), ("a/1.0", 1), ("a/1.0/2.0", 1), ("a/10", 2)]  # fmt: skip
    assert await store.below("session/b") == []
    assert await store.below("session/none") == []


_NAMES = ["a", "a\ud7ff", "a\ud7ffx", "a\ue000", "a\U0010ffff", "a\U0010ffffx", "b", "\U0010ffff"]


@pytest.mark.parametrize("prefix", ["", "a", "a\ud7ff", "a\U0010ffff", "\U0010ffff", "c"])
async def test_a_prefix_means_all_that_begin_with_it(store: Store, prefix: str) -> None:
    """Also at the ends of the code points."""
    for name in _NAMES:
        await fill(store, name, 1)
    found = [info.stream for info in (await store.streams(prefix)).items]
    assert sorted(found) == sorted(name for name in _NAMES if name.startswith(prefix))


async def test_a_wrong_cursor_is_refused(store: Store) -> None:
    with pytest.raises(InvalidRequest, match="not a cursor"):
        await store.streams("session/", cursor="page two")


# --- blobs --------------------------------------------------------------------------------------


async def test_blobs_are_stored_with_their_events(store: Store) -> None:
    await store.append([Batch(S, 0, [finished("long")], blob("long") | blob("other"))])
    await store.append([Batch(S, 1, [finished("long")])])  # known by now
    assert await store.blob(hash_of("long")) == b"long"
    both = [hash_of("long"), hash_of("other")]
    assert await store.blobs(both) == blob("long") | blob("other")
    assert await store.blobs([]) == {}
    with pytest.raises(NotFound, match=hash_of("never")):
        await store.blobs([*both, hash_of("never")])


async def test_a_blob_may_come_with_an_earlier_batch_or_append(store: Store) -> None:
    first = Batch(S, 0, [finished("long")], blob("long"))
    await store.append([first, Batch("session/two", 0, [finished("long")])])
    await asyncio.gather(
        store.append([Batch(S, 1, [finished("more")], blob("more"))]),
        store.append([Batch("session/two", 1, [finished("more")])]),
    )
    assert await store.head("session/two") == 2


async def test_a_wrong_or_missing_blob_is_the_callers_fault(store: Store) -> None:
    with pytest.raises(ValueError, match="a blob given as"):
        await store.append([Batch(S, 0, [finished("long")], {hash_of("long"): b"short"})])
    with pytest.raises(ValueError, match="which does not exist"):
        await store.append([Batch(S, 0, [finished("long")])])
    assert await store.head(S) == 0
    with pytest.raises(NotFound):
        await store.blob(hash_of("long"))


async def test_a_fork_survives_the_deletion_of_its_source(store: Store) -> None:
    await store.append([Batch(S, 0, [opened(), finished("shared")], blob("shared"))])
    await store.append([Batch(S, 2, [finished("own")], blob("own"))])
    entries = await store.read(S, before=3)
    await store.append([Batch("session/fork", 0, [entry.event for entry in entries])])
    assert await store.delete(S)
    assert await store.blob(hash_of("shared")) == b"shared"
    assert [e.event for e in await store.read("session/fork")] == [e.event for e in entries]
    with pytest.raises(NotFound):
        await store.blob(hash_of("own"))
    assert await store.delete("session/fork")
    with pytest.raises(NotFound):
        await store.blob(hash_of("shared"))


async def test_all_below_goes_with_a_stream(store: Store) -> None:
    ends = [finished(word) for word in ("own", "shared")]
    both = [opened(), *ends]
    await store.append([Batch(f"{S}/1.0", 0, both, blob("own") | blob("shared"))])
    await store.append([Batch(f"{S}-b", 0, [opened(), ends[1]])])
    await fill(store, S, 1)
    await fill(store, f"{S}/1.0/x", 2)
    assert await store.delete(S)
    assert [info.stream for info in (await store.streams("session/")).items] == [f"{S}-b"]
    assert [await store.head(f"{S}{name}") for name in ("", "/1.0", "/1.0/x", "-b")] == [0, 0, 0, 2]
    assert await store.read(f"{S}/1.0") == []
    assert await store.blob(hash_of("shared")) == b"shared"
    with pytest.raises(NotFound):
        await store.blob(hash_of("own"))
    await fill(store, f"{S}/1.0", 1)
    assert await store.delete(S)  # what is below, though it is not there itself
    assert not await store.delete(S)


async def test_a_deleted_stream_is_gone_and_its_name_free(store: Store) -> None:
    admitted = Admitted(turn="1", prompts=())
    await store.append([Batch(S, 0, [opened(), admitted], {}, {"title": "x"})])
    assert await store.delete(S)
    assert not await store.delete(S)
    assert await store.read(S) == []
    assert await store.turn_starts(S, 9) == []
    assert (await store.streams("session/")).items == []
    with pytest.raises(Conflict):
        await store.append([Batch(S, 2, [said("late")])])
    await fill(store, S, 1)
    info = await store.info(S)
    assert info is not None
    assert (info.head, info.root, info.summary) == (1, None, {})


async def test_what_was_appended_to_meanwhile_is_not_deleted(store: Store, clock: Clock) -> None:
    """Be it in a stream below; and then nothing goes, no blob either."""
    await store.append([Batch(S, 0, [opened(), finished("own")], blob("own"))])
    await fill(store, f"{S}/1.0", 1)  # at 1002
    await fill(store, f"{S}-b", 1)  # no part of it
    assert not await store.delete(S, before=1002.0)
    assert (await store.head(S), await store.head(f"{S}/1.0")) == (2, 1)
    assert await store.blob(hash_of("own")) == b"own"
    assert await store.delete(S, before=1002.5)
    assert [info.stream for info in (await store.streams("session/")).items] == [f"{S}-b"]


async def test_what_would_go_with_streams_is_known_before(store: Store) -> None:
    """Their entries and snapshots, and the blobs that nobody else refers to."""
    ends = [finished(word) for word in ("own", "shared", "both")]
    blobs = blob("own") | blob("shared") | blob("both")
    await store.append([Batch(S, 0, ends, blobs)])
    await store.append([Batch(f"{S}/1.0", 0, ends[2:])])
    await store.append([Batch("session/two", 0, ends[1:2])])
    await store.keep(S, Snapshot(2, "a", b"12345"))
    size = len(encode(ends[0]))
    assert len({len(encode(end)) for end in ends}) == 1
    assert await store.weigh([S]) == 3 * size + 5 + len("own")
    assert await store.weigh([f"{S}/1.0"]) == size
    assert await store.weigh([S, f"{S}/1.0"]) == 4 * size + 5 + len("own" + "both")
    everything = [S, f"{S}/1.0", "session/two"]
    assert await store.weigh(everything) == 5 * size + 5 + len("own" + "both" + "shared")
    assert await store.weigh([]) == await store.weigh(["session/none"]) == 0


# --- snapshots ------------------------------------------------------------------------------------


async def test_the_latest_snapshot_of_a_stream_is_kept_and_goes_with_it(store: Store) -> None:
    await fill(store, S, 3)
    assert await store.snapshot(S) is None
    await store.keep(S, Snapshot(2, "a", b"two"))
    await store.keep(S, Snapshot(3, "b", b"three\0"))
    assert await store.snapshot(S) == Snapshot(3, "b", b"three\0")
    assert await store.snapshot(f"{S}/1.0") is None
    await fill(store, f"{S}/1.0", 1)
    await store.keep(f"{S}/1.0", Snapshot(1, "a", b"below"))
    assert await store.delete(S)
    await fill(store, S, 3)
    await fill(store, f"{S}/1.0", 1)
    assert [await store.snapshot(stream) for stream in (S, f"{S}/1.0")] == [None, None]


async def test_no_snapshot_is_kept_of_entries_that_are_not_there(store: Store) -> None:
    await store.keep(S, Snapshot(1, "a", b"none"))
    await fill(store, S, 1)
    await store.keep(S, Snapshot(2, "a", b"more"))
    assert await store.snapshot(S) is None


# --- leases -------------------------------------------------------------------------------------


async def test_a_lease_has_one_holder_and_a_growing_epoch(store: Store) -> None:
    lease = await store.lease(S)
    assert lease == Lease(S, 1)
    assert await store.lease(S) is None
    assert await store.lease("session/two") == Lease("session/two", 1)
    await store.append([Batch(S, 0, [opened()])], lease)
    await store.release(lease)
    await store.release(lease)
    assert await store.lease(S) == Lease(S, 2)
    await store.release(lease)  # of an earlier holding: frees nothing
    assert await store.lease(S) is None


async def test_only_the_current_holder_appends_under_the_lease(store: Store) -> None:
    lease = await store.lease(S)
    assert lease
    await store.release(lease)
    with pytest.raises(Conflict, match="take it again"):
        await store.append([Batch(S, 0, [opened()])], lease)
    assert await store.lease(S)
    for stale in (lease, Lease(S, 99), Lease("session/never", 0)):
        with pytest.raises(Conflict, match="take it again"):
            await store.append([Batch(S, 0, [opened()])], stale)
    assert await store.head(S) == 0


async def test_a_closed_store_says_so(store: Store) -> None:
    await store.close()
    await store.close()
    uses: list[Callable[[], Awaitable[Any]]] = [
        lambda: store.append([Batch(S, 0, [opened()])]),
        lambda: store.read(S),
        lambda: store.streams(""),
        lambda: store.lease(S),
    ]
    for use in uses:
        with pytest.raises(StoreUnavailable, match="is closed"):
            await use()
