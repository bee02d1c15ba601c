"""What the other processes of the contract tests do: `python -m tests.contracts.children ROLE ...`.

Each prints JSON values, one a line, and ends when its input does.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from functools import partial
from itertools import count
from typing import Any

from magy_server.bus.local import LocalBus
from magy_server.core.agents.tree import Stream
from magy_server.core.errors import Conflict, InvalidRequest
from magy_server.core.ports import Batch
from magy_server.store.shrinking import shrink
from magy_server.store.sqlite import SqliteStore
from tests.contracts.build import blob, finished, hash_of, said


def say(value: Any) -> None:
    print(json.dumps(value), flush=True)


async def commands() -> AsyncIterator[Any]:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    try:
        while line := await reader.readline():
            yield json.loads(line)
    finally:
        transport.close()


async def write(directory: str, stream: str, name: str, count: str) -> None:
    """When told to, appends `count` events, against whoever else writes to the stream."""
    store = await SqliteStore.open(directory)
    say("ready")
    await anext(commands())
    conflicts = 0
    for number in range(int(count)):
        while True:
            head = await store.head(stream)
            try:
                (entry,) = await store.append([Batch(stream, head, [said(f"{name}{number}")])])
                break
            except Conflict:
                conflicts += 1
        say(entry.seq)
    say({"conflicts": conflicts})
    await store.close()


async def hold(directory: str, root: str) -> None:
    """Takes a lease, and starts a program that outlives this process."""
    store = await SqliteStore.open(directory)
    lease = await store.lease(root)
    program = subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    say({"epoch": lease and lease.epoch, "program": program.pid})
    async for _ in commands():
        pass
    program.kill()
    program.wait()
    await store.close()


async def share(directory: str) -> None:
    """Until its input ends, makes one session after the other whose blobs others name, too, and
    looks whether they are there."""
    store = await SqliteStore.open(directory)
    ended = asyncio.create_task(anext(commands(), None))
    number = 0
    while not ended.done():
        text = f"text {number % 5}"
        stream = Stream(f"session/{number}")
        await store.append([Batch(stream, 0, [finished(text)], blob(text))])
        assert await store.blob(hash_of(text)) == text.encode()
        say(number)
        number += 1
    await store.close()


async def shrunk(path: str) -> None:
    """Gives the room of a database back; in the middle of it, waits to be told to go on."""
    asked = count()

    def stopped() -> bool:
        if next(asked) == 5:
            say("in the middle")
            sys.stdin.readline()
        return False

    say(shrink(path, stopped))


async def bus(directory: str, *topics: str) -> None:
    """A process of the mesh; it repeats what it receives, and does what it is told."""
    node = LocalBus(directory)
    for topic in topics:
        node.subscribe(topic, partial(_repeat, topic))
    node.serve("echo", _echo)
    node.serve("refuse", _refuse)
    node.serve("fail", _fail)
    node.serve("never", _never)
    node.serve("set", _set)
    await node.start()
    say(node.id)
    async for command in commands():
        match command:
            case ["publish", topic, message]:
                node.publish(topic, message)
            case ["subscribe", topic]:
                node.subscribe(topic, partial(_repeat, topic))
            case ["peers"]:
                say({"peers": sorted(node.peer_ids())})
    await node.close()


def _repeat(topic: str, message: Mapping[str, Any]) -> None:
    text = json.dumps(message)
    say([topic, message if len(text) < 1000 else len(text)])


async def _echo(params: Mapping[str, Any]) -> Any:
    return params


async def _refuse(params: Mapping[str, Any]) -> Any:
    raise InvalidRequest("That buffer is not open here.")


async def _fail(params: Mapping[str, Any]) -> Any:
    raise KeyError("bug")


async def _never(params: Mapping[str, Any]) -> Any:
    await asyncio.Event().wait()


async def _set(params: Mapping[str, Any]) -> Any:
    return {1, 2}


if __name__ == "__main__":
    roles: dict[str, Callable[..., Coroutine[Any, Any, None]]]
    roles = {"write": write, "hold": hold, "share": share, "shrunk": shrunk, "bus": bus}
    asyncio.run(roles[sys.argv[1]](*sys.argv[2:]))
