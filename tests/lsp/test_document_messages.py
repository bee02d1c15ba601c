"""What is read of documents without pygls comes to what pygls would make of it; the rest is left to
it."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from magy_server.app import compose
from magy_server.core.ports import Seen
from magy_server.doctor.issue import examination
from magy_server.jsonrpc.outbox import Outbox
from magy_server.lsp.document_messages import reading
from magy_server.lsp.front_door import EditorFrontDoor
from magy_server.lsp.server import Server
from magy_server.lsp.transport import PASSED_ON, Connection
from tests.lsp.client import Client, SimulatedEditor

TOP = Path(__file__).parents[2]
ECHO = [sys.executable, "-m", "tests.lsp.echo_server"]
ODD: Sequence[Any] = (
    3,
    "x",
    "",
    None,
    [],
    [None],
    {},
    {"x": 1},
    True,
    -1,
    1.5,
    2**31,
    2**40,
    "file:///x",
)
A, B = "file:///p/a%20b.py", "untitled:1"
TEXT = "one\r\ntwo 😋\n"
OPEN = {"uri": A, "languageId": "python", "version": 1, "text": TEXT}
START, END = {"line": 1, "character": 3}, {"line": 1, "character": 6}
USUAL: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "textDocument/didOpen": [
        {"textDocument": {**OPEN, "uri": B, "version": -3}},
        {"textDocument": {**OPEN, "text": "", "languageId": "", "more": {"jsonrpc": "2.0"}}},
    ],
    "textDocument/didChange": [
        {"textDocument": {"uri": A, "version": 2},
         "contentChanges": [{"range": {"start": START, "end": END}, "text": "x"}]},
        {"textDocument": {"uri": "file:///p/a b.py", "version": 2},
         "contentChanges": [{"text": "all of it"},
                            {"range": {"start": START, "end": END}, "rangeLength": 3, "text": ""}]},
        {"textDocument": {"uri": A, "version": 2}, "contentChanges": []},
        {"textDocument": {"uri": "file:///not/open", "version": 2}, "contentChanges": []},
    ],
    "textDocument/didSave": [{"textDocument": {"uri": A}},
                             {"textDocument": {"uri": B}, "text": "given"}],
    "textDocument/didClose": [{"textDocument": {"uri": A}}, {"textDocument": {"uri": B}}],
    "workspace/didChangeWorkspaceFolders": [
        {"event": {"added": [{"uri": "file:///q", "name": "q"}],
                   "removed": [{"uri": "file:///p", "name": "p"},
                               {"uri": "file:///q", "name": "q"}]}},
        {"event": {"added": [], "removed": []}},
    ],
    "workspace/didCreateFiles": [{"files": [{"uri": A}, {"uri": B}]}, {"files": []}],
    "workspace/didDeleteFiles": [{"files": [{"uri": A}]}],
    "workspace/didRenameFiles": [{"files": [{"oldUri": A, "newUri": "file:///p/c"}]}],
}  # fmt: skip
LEFT = {("textDocument/didChange", 3)}
"""Well-formed, but of a document that is not open: pygls says so in the log."""
NOT_READ = {"initialize", *(name for name in PASSED_ON if name.startswith("notebookDocument/"))}


def message(method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": copy.deepcopy(params)}


class Place:
    """Where the documents of a client are that has one open, and what was told of them."""

    def __init__(self) -> None:
        front = EditorFrontDoor(lambda: compose, lambda: "", lambda: examination)
        self.server = Server(Connection(Outbox()), front, greeted=True)
        folders = [{"uri": "file:///p", "name": "p"}]
        self.server.introduce({"capabilities": {}, "workspaceFolders": folders})
        self.workspace = self.server.workspace
        self.workspace.opened(A, TEXT, 1, "python")
        self.told: list[Any] = []
        self.workspace.follow(self._see)
        self.workspace.touched.add(self.told.append)

    def _see(self, seen: Seen) -> None:
        self.told.append((seen.path, seen.text, seen.opened, seen.saved, seen.on_disk))

    @property
    def state(self) -> Any:
        found = [self.workspace.open_document(uri) for uri in (A, B, "file:///x", "x", "")]
        texts = [one and (one.uri, one.source, one.version, one.language_id) for one in found]
        return texts, self.workspace.open_paths(), self.workspace.folder_paths(), self.told

    async def by_pygls(self, sent: dict[str, Any]) -> Any:
        (await self.server.standard()).receive(sent)
        return self.state


def changed(params: Any, odd: Any) -> Iterator[Any]:
    """The params with this value in the place of each part of them, and without that part."""
    parts = params.items() if isinstance(params, dict) else enumerate(params)
    for key, part in tuple(parts):
        without = copy.copy(params)
        del without[key]
        yield without
        others = [odd, *(changed(part, odd) if isinstance(part, dict | list) else ())]
        for other in others:
            whole = copy.copy(params)
            whole[key] = other
            yield whole


def test_each_method_is_read_here_or_left_for_a_reason() -> None:
    assert set(USUAL) == PASSED_ON - NOT_READ


@pytest.mark.parametrize("method", USUAL)
async def test_a_usual_message_does_what_it_does_with_pygls(method: str) -> None:
    for number, params in enumerate(USUAL[method]):
        here, there = Place(), Place()
        do = reading(here.workspace, message(method, params))
        assert (do is None) is ((method, number) in LEFT), params
        if do:
            do()
        assert here.state == await there.by_pygls(message(method, params)), params


@pytest.mark.parametrize("method", USUAL)
async def test_an_odd_message_does_what_it_does_with_pygls_or_is_left_to_it(method: str) -> None:
    left = 0
    for params in USUAL[method]:
        for odd in ODD:
            for wrong in (odd, *changed(params, odd)):
                here, there = Place(), Place()
                do = reading(here.workspace, message(method, wrong))
                assert here.state == Place().state
                left += do is None
                if do:
                    do()
                    assert here.state == await there.by_pygls(message(method, wrong)), wrong
    assert left > len(ODD)


async def test_a_listener_that_fails_does_not_end_the_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    place = Place()

    def fail(uri: str) -> None:
        raise ZeroDivisionError(uri)

    place.workspace.touched.add(fail)
    connection = place.server.connection
    connection._receive(message("textDocument/didClose", {"textDocument": {"uri": A}}))
    assert "textDocument/didClose failed" in caplog.text
    assert place.workspace.open_paths() == () and not connection.ended.done()


async def test_pygls_is_loaded_for_what_is_not_plain(tmp_path: Path) -> None:
    """With what comes after it in order."""
    async with Client.spawn(ECHO, cwd=TOP) as client:
        await client.initialize()
        path = tmp_path / "a.txt"
        editor = SimulatedEditor(client)
        editor.open(path, "shown\n")
        change = {"text": "all"}
        client.notify("textDocument/didChange", {
            "textDocument": {"uri": path.as_uri(), "version": 2.0}, "contentChanges": [change],
        })  # fmt: skip
        client.notify("textDocument/didChange", {
            "textDocument": {"uri": path.as_uri(), "version": 3},
            "contentChanges": [{"range": {"start": {"line": 0, "character": 0},
                                          "end": {"line": 0, "character": 1}}, "text": "A"}],
        })  # fmt: skip
        shown = await client.request("magy/buffer", {"path": str(path)})
        assert shown["text"] == "All" and shown["version"] == 3
