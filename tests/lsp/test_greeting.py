"""What is answered before pygls is there is what pygls would answer, and the rest is left to it."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import Mapping
from typing import Any

import pytest

from magy_server.app import compose
from magy_server.doctor.issue import examination
from magy_server.jsonrpc.greeting import Greeting
from magy_server.jsonrpc.outbox import Outbox
from magy_server.lsp.frames import FrameDecoder
from magy_server.lsp.front_door import EditorFrontDoor
from magy_server.lsp.greeting import answer, greet
from magy_server.lsp.server import Server
from magy_server.lsp.transport import PASSED_ON, Connection
from tests.lsp.client import CAPABILITIES

USUAL: Mapping[str, Any] = {"processId": 7, "rootUri": "file:///p", "capabilities": CAPABILITIES}
EMACS = {
    "general": {"positionEncodings": ["utf-32", "utf-8", "utf-16"]},
    "workspace": {"applyEdit": True, "executeCommand": {"dynamicRegistration": False}},
    "textDocument": {"synchronization": {"didSave": True, "willSave": True}},
}
CODE = {
    "general": {
        "positionEncodings": ["utf-16"], "markdown": {"parser": "marked", "version": "1.1.0"},
        "staleRequestSupport": {"cancel": True, "retryOnContentModified": []},
    },
    "workspace": {
        "fileOperations": {
            "dynamicRegistration": True, "didCreate": True, "didRename": True, "didDelete": True,
            "willCreate": True, "willRename": True, "willDelete": True,
        },
        "didChangeConfiguration": {"dynamicRegistration": True},
    },
    "textDocument": {
        "rename": {"prepareSupport": True}, "diagnostic": {},
        "inlineCompletion": {"dynamicRegistration": True},
    },
    "notebookDocument": {"synchronization": {"dynamicRegistration": True}},
    "window": {"showMessage": {"messageActionItem": {"additionalPropertiesSupport": True}}},
}  # fmt: skip
NEOVIM = {
    "general": {"positionEncodings": ["utf-8", "utf-16", "utf-32"]},
    "workspace": {"fileOperations": {"didCreate": False, "didRename": True}},
    "textDocument": {"inlineCompletion": {"dynamicRegistration": False}},
    "experimental": {"magy": {"jsonrpc": "2.0"}},
}
ODD = (3, "x", "", None, [], [None], {}, {"x": 1}, True, -1, 1.5, 2**40, ["utf-8", 3], "file:///x")
PLACES = (
    "processId", "rootUri", "rootPath", "locale", "clientInfo", "clientInfo.name", "trace",
    "clientInfo.version", "workspaceFolders", "workDoneToken", "initializationOptions",
    "capabilities", "capabilities.general", "capabilities.general.positionEncodings",
    "capabilities.workspace", "capabilities.workspace.fileOperations", "capabilities.window",
    "capabilities.workspace.fileOperations.didRename", "capabilities.textDocument.codeAction",
    "capabilities.textDocument.synchronization.willSave", "capabilities.textDocument.rename",
    "capabilities.general.markdown", "capabilities.textDocument", "capabilities.unheard",
    "capabilities.textDocument.inlineCompletion",
    "capabilities.textDocument.inlineCompletion.dynamicRegistration",
)  # fmt: skip


class End:
    """A write end that keeps what it is given."""

    def __init__(self) -> None:
        self.written = b""

    def write(self, data: bytes) -> None:
        self.written += data

    def get_write_buffer_size(self) -> int:
        return 0

    def abort(self) -> None:
        raise NotImplementedError


async def served(message: Mapping[str, Any], *, greeted: bool) -> tuple[Server, bytes]:
    """A server that got this message first, and what it has sent."""
    end, outbox = End(), Outbox()
    outbox.attach(end)
    connection = Connection(outbox)
    front = EditorFrontDoor(lambda: compose, lambda: "", lambda: examination)
    server = Server(connection, front, greeted=greeted)
    connection.feed(framed(message))
    while not greeted and not end.written:
        await asyncio.sleep(0.001)
    return server, end.written


async def of_pygls(message: Mapping[str, Any]) -> dict[str, Any]:
    """What the whole server sends for this message, if it is initialized by it. What it then knows
    of the client is what it would know from the message alone, if that says who the client is."""
    server, written = await served(message, greeted=False)
    (sent,) = FrameDecoder().feed(written)
    if answer(message) is not None:
        greeted, nothing = await served(message, greeted=True)
        assert not nothing and known(greeted) == known(server)
    return dict(sent)


def known(server: Server) -> list[Any]:
    client, workspace = server.client, server.workspace
    return [vars(client.can), client.name, workspace.folder_paths(), workspace.encoding]


def framed(message: Mapping[str, Any]) -> bytes:
    body = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def initialize(params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}


def with_odd(params: Mapping[str, Any], place: str, value: Any) -> dict[str, Any]:
    changed: dict[str, Any] = json.loads(json.dumps(params))
    part, (*sections, name) = changed, place.split(".")
    for section in sections:
        if not isinstance(part.get(section), dict):
            part[section] = {}
        part = part[section]
    part[name] = value
    return changed


@pytest.mark.req("F001")
@pytest.mark.parametrize("capabilities", [{}, CAPABILITIES, EMACS, CODE, NEOVIM])
async def test_usual_clients_get_the_answer_that_pygls_would_give(capabilities: Any) -> None:
    folders = [{"uri": "file:///p", "name": "p"}, {"uri": "file:///q%20r", "name": "q"}]
    options = {"magy": {"client": {"name": "x"}}, "jsonrpc": "2.0"}
    message = initialize(
        {
            "processId": None, "rootPath": "/p", "rootUri": "file:///p", "locale": "en",
            "clientInfo": {"name": "Editor", "version": "1"}, "trace": "off",
            "workspaceFolders": folders, "initializationOptions": options,
            "capabilities": capabilities,
        }
    )  # fmt: skip
    assert answer(message) == await of_pygls(message)


@pytest.mark.req("F001")
@pytest.mark.parametrize("place", PLACES)
async def test_an_odd_client_gets_the_answer_that_pygls_would_give_or_waits_for_pygls(
    place: str,
) -> None:
    for base in (CAPABILITIES, CODE):
        for value in ODD:
            params = with_odd({**USUAL, "capabilities": base}, place, value)
            ours = answer(initialize(params))
            assert ours is None or ours == await of_pygls(initialize(params)), value


async def test_odd_things_together() -> None:
    chance, answered = random.Random(17), 0
    for _ in range(180):
        params: dict[str, Any] = {**USUAL, "capabilities": chance.choice((EMACS, CODE, NEOVIM))}
        for _ in range(chance.randint(1, 3)):
            params = with_odd(params, chance.choice(PLACES), chance.choice(ODD))
        ours = answer(initialize(params))
        assert ours is None or ours == await of_pygls(initialize(params)), params
        answered += ours is not None
    assert 30 < answered < 120


async def test_what_is_passed_on_is_all_that_the_standard_server_handles() -> None:
    server, _ = await served(initialize(USUAL), greeted=False)
    ours = {"initialized", "shutdown", "exit", "$/setTrace", *server.connection.methods}
    standard = await server.standard()
    assert standard.handles - ours == PASSED_ON


def said(data: bytes) -> tuple[Greeting, bytes]:
    """What comes of input that begins so, and then pauses."""
    (stdin, client), (reader, stdout) = os.pipe(), os.pipe()
    os.write(client, data)
    greeting = greet(stdin, stdout)
    os.close(stdout)
    written = os.read(reader, 1 << 16)
    for end in (stdin, client, reader):
        os.close(end)
    return greeting, written


@pytest.mark.parametrize("number", [b"NaN", b"-Infinity", b"1e999"])
def test_a_number_that_json_has_not_is_left_to_the_whole_server(number: bytes) -> None:
    """It would answer that this is no message."""
    body = json.dumps(initialize({**USUAL, "initializationOptions": {"x": 0}})).encode()
    body = body.replace(b'{"x": 0}', b'{"x": %b}' % number)
    data = b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    assert said(data) == (Greeting(data), b"")


def test_what_came_with_the_first_message_is_kept() -> None:
    first = framed(initialize(USUAL))
    data = first + framed({"jsonrpc": "2.0", "method": "initialized"})
    greeting, written = said(data)
    assert greeting == Greeting(data, len(first))
    assert list(FrameDecoder().feed(written)) == [answer(initialize(USUAL))]


@pytest.mark.parametrize(
    "data",
    [
        framed(initialize(USUAL))[:-1],
        framed(initialize({**USUAL, "processId": "7"})),
        framed({"jsonrpc": "2.0", "id": 1, "method": "magy/session/list", "params": {}}),
        framed(initialize(USUAL)).replace(b"\r\n\r\n", b"\r\nContent-Type: x\r\n\r\n"),
        b"Content-Length: 2\r\n\r\n[]",
        b"Content-Length: 2\r\n\r\n{{",
        b"Content-Length: 99999999\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"",
    ],
)
def test_what_begins_otherwise_is_left_to_the_whole_server(data: bytes) -> None:
    assert said(data) == (Greeting(data), b"")
