"""Whatever is asked of them in whatever order, both stores give the same answers."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from magy_server.core.errors import Conflict, NotFound
from magy_server.core.events import Admitted, Finished
from magy_server.core.ports import Batch, Snapshot, Store
from magy_server.store.memory import MemoryStore
from magy_server.store.sqlite import SqliteStore
from tests.contracts.build import blob, finished, hash_of, opened, said
from tests.contracts.conftest import Clock, sqlite
from tests.thorough import examples

_STREAMS = st.sampled_from(["session/a", "session/b", "session/b/c", "project/p"])
_PREFIXES = st.sampled_from(["", "session/", "session/b", "session/b/"])
_WORDS = st.sampled_from(["x", "yy", "zzz"])
_EVENTS = st.lists(
    st.one_of(
        st.sampled_from([opened("/r"), opened(None), Admitted(turn="1", prompts=())]),
        _WORDS.map(said),
        _WORDS.map(finished),
    ),
    max_size=3,
)
_BATCHES = st.builds(
    Batch,
    _STREAMS,
    st.integers(0, 3),
    _EVENTS,
    st.sampled_from([{}, blob("x"), blob("x") | blob("yy") | blob("zzz"), {hash_of("x"): b"y"}]),
    st.sampled_from([None, {}, {"title": "t"}]),
)
_SEQS = st.none() | st.integers(-1, 8)
_CALLS = st.one_of(
    st.tuples(st.just("append"), st.lists(_BATCHES, min_size=1, max_size=2)),
    st.tuples(st.just("append head"), _STREAMS, _EVENTS),
    st.tuples(st.just("delete"), _STREAMS),
    st.tuples(st.just("below"), _STREAMS),
    st.tuples(st.just("heads"), _PREFIXES),
    st.tuples(st.just("keep"), _STREAMS, st.integers(1, 3)),
    st.tuples(st.just("snapshot"), _STREAMS),
    st.tuples(st.just("read"), _STREAMS, st.integers(-1, 8), _SEQS, _SEQS),
    st.tuples(
        st.just("streams"),
        _PREFIXES,
        _SEQS,
        st.integers(0, 3),
        st.booleans(),
    ),
    st.tuples(st.just("turns"), _STREAMS, st.integers(-1, 3), _SEQS),
    st.tuples(st.just("blob"), _WORDS),
)


async def _call(store: Store, call: tuple[Any, ...]) -> Any:
    match call:
        case ("append", batches):
            return await store.append(batches)
        case ("append head", stream, events):
            blobs = {
                e.output: w.encode()
                for w in ("x", "yy", "zzz")
                for e in events
                if isinstance(e, Finished) and e.output == hash_of(w)
            }
            return await store.append([Batch(stream, await store.head(stream), events, blobs)])
        case ("delete", stream):
            return await store.delete(stream)
        case ("keep", stream, seq):
            return await store.keep(stream, Snapshot(seq, "code", b"body"))
        case ("snapshot", stream):
            return await store.snapshot(stream)
        case ("below", stream):
            return await store.below(stream)
        case ("heads", prefix):
            return list(await store.heads(prefix))
        case ("read", stream, after, before, limit):
            return await store.read(stream, after=after, before=before, limit=limit)
        case ("streams", prefix, rooted, limit, flat):
            root = None if rooted is None else "/r"
            page = await store.streams(prefix, first_root=root, limit=limit, flat=flat)
            rest = await store.streams(prefix, first_root=root, cursor=page.cursor, flat=flat)
            return page, rest
        case ("turns", stream, last, before):
            return await store.turn_starts(stream, last, before)
        case ("blob", word):
            return await store.blob(hash_of(word))


async def _outcome(store: Store, call: tuple[Any, ...]) -> Any:
    try:
        return await _call(store, call)
    except (Conflict, NotFound, ValueError) as error:
        return type(error), str(error)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(_CALLS, max_size=25))
def test_the_store_in_memory_is_like_the_one_on_disk(calls: list[tuple[Any, ...]]) -> None:
    async def compare(directory: Path) -> None:
        memory, disk = MemoryStore(Clock()), await SqliteStore.open(directory, clock=Clock())
        for call in calls:
            assert await _outcome(memory, call) == await _outcome(disk, call)
        await disk.close()

    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(compare(Path(directory)))


_MOVES = st.one_of(
    st.tuples(st.just("append head"), _STREAMS, st.just([opened("/r")])),
    st.tuples(st.just("delete"), _STREAMS),
)


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.booleans(), st.booleans(), _PREFIXES, _MOVES), max_size=12))
def test_lists_of_heads_hold_what_this_and_others_have_written(
    moves: list[tuple[bool, bool, str, tuple[Any, ...]]],
) -> None:
    """They are kept between two questions; others are asked while a change is under way."""

    async def compare(directory: Path) -> None:
        async with sqlite(directory) as one, sqlite(directory) as another:
            for other, listed, prefix, move in moves:
                for store in (one, another) if listed else ():
                    await store.heads(prefix)
                mover = another if other else one
                before, after = ([store.heads(prefix) for store in (one, another)] for _ in "12")
                await asyncio.gather(*before, _outcome(mover, move), *after)
                page = await mover.streams(prefix)
                standing = [(info.stream, info.head, info.created) for info in page.items]
                for store in (one, another):
                    assert [tuple(head) for head in await store.heads(prefix)] == standing

    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(compare(Path(directory)))
