"""The bus: within a process, and between real processes that die, hang and talk nonsense."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import stat
import struct
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from magy_server.bus import sockets
from magy_server.bus.link import MAX_WAITING
from magy_server.bus.local import LocalBus
from magy_server.core.errors import InvalidConfig, MagyError
from tests.contracts.conftest import Child, Spawn, until
from tests.patience import PATIENCE

Message = Mapping[str, Any]


@pytest.fixture
async def bus(short_path: Path) -> AsyncIterator[LocalBus]:
    node = LocalBus(short_path)
    await node.start()
    yield node
    await node.close()


@pytest.fixture
async def child(bus: LocalBus, short_path: Path, spawn: Spawn) -> tuple[str, Child]:
    """Another process that subscribes to `news`, and its id."""
    process = await spawn("bus", short_path, "news")
    id = await process.line()
    await until(lambda: id in bus.peer_ids() and "news" in bus._wanted)
    return id, process


async def knows(child: Child, *ids: str) -> None:
    """Waits until just these are the child's peers."""
    answer = None
    async with asyncio.timeout(PATIENCE):
        while answer != {"peers": sorted(ids)}:
            await child.tell(["peers"])
            answer = await child.line()


# --- within a process ---------------------------------------------------------------------------


async def test_subscribers_of_a_topic_receive_at_once_and_in_order(bus: LocalBus) -> None:
    got: list[tuple[str, Message]] = []
    for name in "ab":
        bus.subscribe("news", partial(lambda name, message: got.append((name, message)), name))
    bus.subscribe("weather", lambda message: got.append(("c", message)))
    bus.publish("news", {"n": 1})
    assert got == [("a", {"n": 1}), ("b", {"n": 1})]


async def test_a_subscription_ends_alone_and_only_once(bus: LocalBus) -> None:
    got: list[Message] = []
    first, second = bus.subscribe("news", got.append), bus.subscribe("news", got.append)
    first()
    first()
    bus.publish("news", {})
    assert len(got) == 1
    second()
    bus.publish("news", {})
    assert len(got) == 1
    assert bus.topics() == []


async def test_receivers_may_subscribe_unsubscribe_and_publish(bus: LocalBus) -> None:
    got: list[str] = []
    end: list[Callable[[], None]] = []

    def once(message: Message) -> None:
        got.append("once")
        end.pop()()
        bus.subscribe("news", lambda message: got.append("later"))
        bus.publish("echo", {})

    bus.subscribe("echo", lambda message: got.append("echo"))
    end.append(bus.subscribe("news", once))
    bus.publish("news", {})
    bus.publish("news", {})
    assert got == ["once", "echo", "later"]


async def test_a_receiver_that_raises_is_logged_and_harms_nobody(
    bus: LocalBus, caplog: pytest.LogCaptureFixture
) -> None:
    got: list[Message] = []
    bus.subscribe("news", lambda message: message["missing"])
    bus.subscribe("news", got.append)
    bus.publish("news", {"n": 1})
    assert got == [{"n": 1}]
    assert [record.message for record in caplog.records] == ["a receiver of news failed"]


async def test_it_works_alone_before_it_is_started(short_path: Path) -> None:
    bus, got = LocalBus(short_path), list[Message]()
    bus.subscribe("news", got.append)
    bus.publish("news", {})
    await bus.close()
    assert got == [{}]
    assert os.listdir(short_path) == []


# --- between processes --------------------------------------------------------------------------


async def test_messages_travel_both_ways_to_who_wants_them(
    bus: LocalBus, child: tuple[str, Child]
) -> None:
    got: list[Message] = []
    bus.subscribe("answers", got.append)
    bus.publish("gossip", {"unwanted": True})
    bus.publish("news", {"text": "hé"})
    assert await child[1].line() == ["news", {"text": "hé"}]
    await child[1].tell(["publish", "answers", {"n": 1}])
    await until(lambda: bool(got))
    assert got == [{"n": 1}]


async def test_later_subscriptions_are_told(bus: LocalBus, child: tuple[str, Child]) -> None:
    await child[1].tell(["subscribe", "weather"])
    await until(lambda: "weather" in bus._wanted)
    bus.publish("weather", {"sun": 1})
    assert await child[1].line() == ["weather", {"sun": 1}]


async def test_three_processes_are_a_mesh(
    bus: LocalBus, child: tuple[str, Child], spawn: Spawn, short_path: Path
) -> None:
    third = await spawn("bus", short_path, "news")
    id = await third.line()
    await until(lambda: len(bus.peer_ids()) == 2)
    await knows(child[1], bus.id, id)
    await third.tell(["publish", "news", {"from": "third"}])
    assert await child[1].line() == ["news", {"from": "third"}]


async def test_processes_that_start_together_find_each_other_once(
    short_path: Path, spawn: Spawn
) -> None:
    children = await asyncio.gather(*(spawn("bus", short_path) for _ in range(4)))
    ids = [await child.line() for child in children]
    bus = LocalBus(short_path)
    await bus.start()
    assert sorted(bus.peer_ids()) == sorted(ids)
    for id, child in zip(ids, children, strict=True):
        await knows(child, *({bus.id, *ids} - {id}))
        assert len(bus._links) == 4
    await bus.close()


async def test_who_is_killed_is_gone_and_its_socket_is_cleared_away(
    bus: LocalBus, child: tuple[str, Child], short_path: Path
) -> None:
    id, process = child
    asked = asyncio.ensure_future(bus.request(id, "never", {}))
    await asyncio.sleep(0.05)
    await process.kill()
    await until(lambda: not bus.peer_ids())
    with pytest.raises(MagyError) as caught:
        await asked
    assert caught.value.reason == "peer_gone"
    bus.publish("news", {})  # wanted by nobody now
    assert (short_path / f"{id}.sock").exists()
    async with asyncio.timeout(PATIENCE):
        late = LocalBus(short_path)
        await late.start()
        assert late.peer_ids() == (bus.id,)
        assert sorted(os.listdir(short_path)) == sorted(
            [f"{bus.id}.sock", f"{late.id}.sock", "lock"]
        )
        await late.close()


async def test_a_process_that_stops_reading_never_blocks_and_loses_only_messages(
    bus: LocalBus, child: tuple[str, Child]
) -> None:
    id, process = child
    os.kill(process.pid, signal.SIGSTOP)
    message = {"text": "x" * 65536}
    slowest = 0.0
    for _ in range(MAX_WAITING // 65536 * 3):
        start = time.perf_counter()
        bus.publish("news", message)
        slowest = max(slowest, time.perf_counter() - start)
    assert slowest < 1
    waiting = bus._peers[id]._transport.get_write_buffer_size()
    assert MAX_WAITING <= waiting < MAX_WAITING + 2 * 65536
    with pytest.raises(MagyError, match="does not read") as caught:
        await bus.request(id, "echo", {})
    assert caught.value.reason == "peer_busy"
    bus.subscribe("answers", (got := list[Message]()).append)  # while it cannot be told

    os.kill(process.pid, signal.SIGCONT)
    length = (await process.line())[1]
    assert length > 65536
    await until(lambda: not bus._peers[id]._behind)
    bus.publish("news", {"n": "last"})
    while (line := await process.line()) != ["news", {"n": "last"}]:
        assert line == ["news", length]
    await process.tell(["publish", "answers", {"told": "later"}])
    await until(lambda: bool(got))


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\xff" * 64,
        struct.pack(">I", 5) + b"hello",
        struct.pack(">I", 2) + b"{}",
        struct.pack(">I", 22) + b'["publish","news", {}]',
        struct.pack(">I", 16) + b'["hello",1,true]',
        struct.pack(">I", 2**31) + b"x",
    ],
)
async def test_nonsense_closes_just_that_connection(
    bus: LocalBus, child: tuple[str, Child], short_path: Path, nonsense: bytes
) -> None:
    got: list[Message] = []
    bus.subscribe("news", got.append)
    reader, writer = await asyncio.open_unix_connection(str(short_path / f"{bus.id}.sock"))
    writer.write(nonsense)
    async with asyncio.timeout(PATIENCE):
        with suppress(ConnectionResetError):
            await reader.read()  # its hello, then the end
    writer.close()
    await until(lambda: len(bus._links) == 1)
    bus.publish("news", {"n": 1})
    assert await child[1].line() == ["news", {"n": 1}]
    assert got == [{"n": 1}]


STRANGER = 65_534


async def test_the_kernel_says_who_is_at_the_other_end(short_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as calling:
        listening.bind(str(short_path / "s"))
        listening.listen()
        calling.connect(str(short_path / "s"))
        accepted, _ = listening.accept()
        with accepted:
            assert sockets.user_behind(accepted) == sockets.user_behind(calling) == os.geteuid()
    assert sockets.user_behind(calling) is None  # and who is not known is not let in


async def test_another_user_gets_no_word_even_where_the_directory_is_open(
    bus: LocalBus, short_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only root can be somebody else for a moment; for others the server has changed."""
    place = short_path / f"{bus.id}.sock"
    short_path.chmod(0o755)
    place.chmod(0o666)
    got: list[Message] = []
    bus.subscribe("news", got.append)
    me = os.geteuid()
    with socket.socket(socket.AF_UNIX) as calling:
        if me == 0:
            os.seteuid(STRANGER)
        else:
            monkeypatch.setattr(os, "geteuid", lambda: me + 1)
        try:
            calling.connect(str(place))
        finally:
            if me == 0:
                os.seteuid(0)
        with suppress(BrokenPipeError):
            for frame in (b'["hello","x",[]]', b'["publish","news",{"n":1}]'):
                calling.sendall(struct.pack(">I", len(frame)) + frame)
        calling.setblocking(False)
        reader, writer = await asyncio.open_unix_connection(sock=calling.dup())
        said = b""
        with suppress(ConnectionResetError):
            async with asyncio.timeout(PATIENCE):
                said = await reader.read()
        writer.close()
    assert (said, got, bus.peer_ids(), len(bus._links)) == (b"", [], (), 0)


async def test_a_frame_of_a_newer_kind_is_skipped(bus: LocalBus, short_path: Path) -> None:
    got: list[Message] = []
    bus.subscribe("news", got.append)
    _, writer = await asyncio.open_unix_connection(str(short_path / f"{bus.id}.sock"))
    for body in (b'["hello","x",[]]', b'["sing",1]', b'["publish","news",{"n":1}]'):
        for byte in struct.pack(">I", len(body)) + body:  # however it is cut
            writer.write(bytes([byte]))
            await writer.drain()
    await until(lambda: bool(got))
    assert bus.peer_ids() == ("x",)
    writer.close()
    await until(lambda: not bus.peer_ids())


# --- requests -----------------------------------------------------------------------------------


async def test_a_request_is_answered_or_refused_in_words(
    bus: LocalBus, child: tuple[str, Child], caplog: pytest.LogCaptureFixture
) -> None:
    id = child[0]
    big = {"text": "ü" * 2**20}
    assert await bus.request(id, "echo", big) == big
    answers = await asyncio.gather(*(bus.request(id, "echo", {"n": n}) for n in range(50)))
    assert answers == [{"n": n} for n in range(50)]
    for method, reason, words in (
        ("refuse", "invalid_request", "That buffer is not open here."),
        ("fail", "peer_error", "fail failed: KeyError: 'bug'"),
        ("set", "peer_error", "not JSON"),
        ("dance", "peer_error", "does not serve 'dance'"),
    ):
        with pytest.raises(MagyError, match=words) as caught:
            await bus.request(id, method, {})
        assert caught.value.reason == reason
    with pytest.raises(MagyError, match=r"within 0\.05 s") as caught:
        await bus.request(id, "never", {}, timeout=0.05)
    assert caught.value.reason == "peer_timeout"
    with pytest.raises(MagyError) as caught:
        await bus.request("nobody", "echo", {})
    assert caught.value.reason == "peer_gone"
    with pytest.raises(MagyError, match="more than are allowed"):
        await bus.request(id, "echo", {"text": "x" * 2**24})
    assert await bus.request(id, "echo", {}) == {}


async def test_leaving_ends_the_requests_of_both_sides(short_path: Path) -> None:
    one, two = LocalBus(short_path), LocalBus(short_path)
    await one.start()
    await two.start()
    cancelled: list[bool] = []

    async def never(params: Message) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(True)

    two.serve("never", never)
    asked = asyncio.ensure_future(one.request(two.id, "never", {}))
    await until(lambda: bool(two._serving))
    await two.close()
    with pytest.raises(MagyError):
        await asked
    assert cancelled == [True]
    await until(lambda: not one.peer_ids())
    await one.close()
    assert os.listdir(short_path) == ["lock"]


# --- the place ----------------------------------------------------------------------------------


async def test_only_the_owner_can_reach_it(short_path: Path) -> None:
    short_path.chmod(0o755)
    bus = LocalBus(short_path)
    await bus.start()
    assert stat.S_IMODE(short_path.stat().st_mode) == 0o700
    assert stat.S_IMODE((short_path / f"{bus.id}.sock").stat().st_mode) == 0o600
    await bus.close()


async def test_a_long_directory_is_reached_by_a_short_link(tmp_path: Path, spawn: Spawn) -> None:
    directory = tmp_path / ("long" * 20) / "bus"
    bus = LocalBus(directory)
    await bus.start()
    link = Path(bus._place)
    try:
        assert link.is_symlink() and link.resolve() == directory.resolve()
        child = await spawn("bus", directory)
        assert (await child.line(),) == bus.peer_ids()
    finally:
        await bus.close()
        link.unlink()


async def test_a_file_in_the_place_of_the_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "bus").touch()
    with pytest.raises(MagyError, match=f"{tmp_path}/bus cannot be used.*: File exists. Check"):
        await LocalBus(tmp_path / "bus").start()


async def test_a_link_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    directory = tmp_path / ("long" * 20) / "bus"
    bus = LocalBus(directory)
    await bus.start()
    await bus.close()
    link = Path(bus._place)
    link.unlink()
    link.symlink_to(tmp_path)
    try:
        with pytest.raises(InvalidConfig, match="Remove it"):
            await LocalBus(directory).start()
    finally:
        link.unlink()
    assert os.listdir(tmp_path) == ["long" * 20]


async def test_a_socket_left_over_by_the_dead_is_removed(short_path: Path) -> None:
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(short_path / "1-dead.sock"))
    left.close()
    (short_path / "2-file.sock").write_text("not even a socket")
    bus = LocalBus(short_path)
    await bus.start()
    assert sorted(os.listdir(short_path)) == sorted([f"{bus.id}.sock", "lock"])
    assert not bus.peer_ids()
    await bus.close()


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
