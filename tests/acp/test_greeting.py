"""What is answered before the door is there is what the door would answer, and the rest is left to
it."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest

from magy_server.acp.connection import Connection
from magy_server.acp.door import Door
from magy_server.acp.draft import Draft
from magy_server.acp.greeting import answer, greet
from magy_server.acp.serving import Entrance
from magy_server.app import compose
from magy_server.core.errors import InvalidRequest
from magy_server.doctor.issue import examination
from magy_server.jsonrpc.greeting import Greeting
from magy_server.jsonrpc.outbox import Outbox
from tests.acp.harness import client

ODD: tuple[Any, ...] = (
    None, 0, 1, 2, 3, 65535, -1, 2**70, 1.0, True, "1", [], [1], {}, {"name": "x"},
    {"name": "x", "version": "1"}, {"name": "x", "version": None}, {"fs": 3}, {"_meta": []},
    {"fs": {"readTextFile": "yes"}}, {"_meta": {"magy": 3}},
)  # fmt: skip


def initialize(params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}


def of_the_door(params: Any, *, draft: bool) -> dict[str, Any] | None:
    """The result that the door gives; None if it refuses."""
    connection = Connection(Outbox())

    def door(version: int) -> Door:
        made = Draft if version == 2 else Door
        return made(connection, lambda: compose, lambda: "", lambda: examination)

    try:
        return dict(Entrance(connection, door, draft=draft).open(params))
    except InvalidRequest:
        return None


@pytest.mark.parametrize("draft", [False, True])
async def test_every_client_gets_the_answer_of_the_door_or_waits_for_it(draft: bool) -> None:
    answered = 0
    for version, told in itertools.product(ODD, ODD):
        for names in (("clientInfo", "clientCapabilities"), ("info", "capabilities")):
            for name in names:
                params = {"protocolVersion": version, name: told}
                early = answer(initialize(params), draft=draft)
                if early is not None:
                    assert early["result"] == of_the_door(params, draft=draft), params
                answered += early is not None
    assert answered > 200


def said(data: bytes) -> tuple[Greeting, bytes]:
    """What comes of input that begins so, and then pauses."""
    (stdin, sender), (reader, stdout) = os.pipe(), os.pipe()
    os.write(sender, data)
    greeting = greet(stdin, stdout, draft=False)
    os.close(stdout)
    written = os.read(reader, 1 << 16)
    for end in (stdin, sender, reader):
        os.close(end)
    return greeting, written


def test_what_came_with_the_first_message_is_kept() -> None:
    first = json.dumps(initialize({"protocolVersion": 1})).encode() + b"\n"
    greeting, written = said(first + b'{"jsonrpc":"2.0","id":2')
    assert greeting == Greeting(first + b'{"jsonrpc":"2.0","id":2', len(first))
    assert json.loads(written) == answer(initialize({"protocolVersion": 1}), draft=False)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}',
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n',
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":NaN}}\n',
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"x":1e999}}\n',
        b'{"id":"\\ud800","method":"initialize","params":{"protocolVersion":1}}\n',
        b'{"jsonrpc":"2.0","method":"initialize","params":{"protocolVersion":1}}\n',
        b'{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"protocolVersion":1}}\n',
        b"[]\n",
        b"GET / HTTP/1.1\r\n",
        b"Content-Length: 80",
    ],
)
def test_what_begins_otherwise_is_left_to_the_door(data: bytes) -> None:
    assert said(data) == (Greeting(data), b"")


async def test_who_begins_otherwise_is_answered_by_the_door(root: Path, state: Path) -> None:
    async with client(root, state, "text: Hello.") as one:
        one.send_raw(b"\n")
        assert (await one.initialize())["agentInfo"]["name"] == "magy"
        assert (await one.turn(await one.new(), "hi"))["stopReason"] == "end_turn"
