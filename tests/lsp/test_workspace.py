"""Edits of live buffers through a real process, with an editor that behaves and with ones that do
not: done is what the editor showed, refused is what changed nothing, the rest is unverified."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.client import Client, RpcError, SimulatedEditor
from tests.patience import PATIENCE

TOP = Path(__file__).parents[2]
ECHO = [sys.executable, "-m", "tests.lsp.echo_server"]
TEXT = "def f():\r\n    return '😋é'  # \x0c\u2028 odd\r\nlast"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "odd name é.py"
    path.write_bytes(b"on disk\n")
    return path


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with Client.spawn(ECHO, cwd=TOP) as client:
        await client.initialize()
        await client.request("magy/echo")
        yield client


@pytest.fixture
def editor(client: Client) -> SimulatedEditor:
    return SimulatedEditor(client)


async def edit(client: Client, path: Path, *changes: list[Any], **more: Any) -> Any:
    params = {"path": str(path), "changes": changes, **more}
    return await client.request("magy/edit", params)


async def refused(client: Client, path: Path, *changes: list[Any], **more: Any) -> RpcError:
    with pytest.raises(RpcError) as error:
        await edit(client, path, *changes, **more)
    return error.value


async def shown(client: Client, path: Path) -> str:
    return str((await client.request("magy/buffer", {"path": str(path)}))["text"])


@pytest.mark.req("G006")
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
@pytest.mark.parametrize("full_sync", [False, True])
async def test_edits_reach_the_buffer_exactly(path: Path, encoding: str, full_sync: bool) -> None:
    async with Client.spawn(ECHO, cwd=TOP) as client:
        result = await client.initialize(
            capabilities={"general": {"positionEncodings": [encoding]}}
        )
        assert result["capabilities"]["positionEncoding"] == encoding
        editor = SimulatedEditor(client, encoding)
        editor.full_sync = full_sync
        uri = editor.open(path, TEXT)
        assert await shown(client, path) == TEXT
        at = TEXT.index("é")
        done = await edit(
            client, path, [at, at + 1, "𝄞"], [4, 5, "gg"], [len(TEXT), len(TEXT), "\r\n"],
            label="Rename f",
        )  # fmt: skip
        after = TEXT.replace("é", "𝄞").replace("f()", "gg()") + "\r\n"
        assert done == {"version": 2, "text": after}
        assert editor.text(path) == after
        assert editor.edits[0]["label"] == "Rename f"
        (change,) = editor.edits[0]["edit"]["documentChanges"]
        assert change["textDocument"] == {"uri": uri, "version": 1}
        assert path.read_bytes() == b"on disk\n"
        editor.type(path, 0, 0, "# typed\r\n")
        assert await shown(client, path) == "# typed\r\n" + after


async def test_changes_at_the_seam_of_a_crlf(
    client: Client, editor: SimulatedEditor, path: Path
) -> None:
    editor.open(path, "a\r\nb")
    done = await edit(client, path, [0, 2, "x"], [2, 3, "y"])
    assert done["text"] == "xyb" == editor.text(path)
    editor.open(path, "a\r\nb")
    assert (await edit(client, path, [2, 3, "x\n"]))["text"] == "a\rx\nb" == editor.text(path)


async def test_a_client_without_document_changes(path: Path) -> None:
    async with Client.spawn(ECHO, cwd=TOP) as client:
        await client.initialize(
            capabilities={"workspace": {"applyEdit": True, "workspaceEdit": {}}}
        )
        editor = SimulatedEditor(client)
        uri = editor.open(path)
        assert (await edit(client, path, [0, 2, "off"]))["text"] == "off disk\n"
        assert list(editor.edits[0]["edit"]) == ["changes"]
        assert list(editor.edits[0]["edit"]["changes"]) == [uri]


async def test_what_is_open(client: Client, editor: SimulatedEditor, path: Path) -> None:
    assert await client.request("magy/buffer", {"path": str(path)}) is None
    editor.open(path)
    assert await client.request("magy/open") == [str(path)]
    editor.close(path)
    assert await client.request("magy/open") == []
    assert (await refused(client, path, [0, 0, "x"])).reason == "not_found"


async def test_nothing_to_change_asks_nobody(
    client: Client, editor: SimulatedEditor, path: Path
) -> None:
    editor.open(path)
    assert (await edit(client, path, [0, 2, "on"]))["version"] == 1
    assert editor.edits == []


@pytest.mark.req("G013")
async def test_a_stale_edit_is_refused_at_once(
    client: Client, editor: SimulatedEditor, path: Path
) -> None:
    editor.open(path)
    client.handlers["editor/meanwhile"] = lambda params: editor.type(path, 0, 0, "I was ")
    error = await refused(client, path, [0, 2, "off"], ask="editor/meanwhile")
    assert (error.code, error.reason) == (-32801, "stale")
    assert "version 1 is now 2" in error.message
    assert editor.edits == []
    assert editor.text(path) == "I was on disk\n"


async def test_the_person_types_while_the_edit_is_on_its_way(
    client: Client, editor: SimulatedEditor, path: Path
) -> None:
    editor.open(path)
    editor.type_before = "typed "
    error = await refused(client, path, [0, 2, "off"])
    assert (error.code, error.reason) == (-32801, "stale")
    assert editor.text(path) == "typed on disk\n" == await shown(client, path)


async def test_the_person_types_right_after_the_edit(
    client: Client, editor: SimulatedEditor, path: Path
) -> None:
    """What was asked for was there; that the text went on is no reason to doubt it."""
    editor.open(path)
    editor.type_after = "typed "
    assert await edit(client, path, [0, 2, "off"]) == {"version": 2, "text": "off disk\n"}
    assert await shown(client, path) == "typed off disk\n"


async def test_the_answer_may_come_before_the_change(
    client: Client, editor: SimulatedEditor, path: Path
) -> None:
    editor.open(path)
    editor.answer_first = True
    assert (await edit(client, path, [0, 2, "off"]))["text"] == "off disk\n"


@pytest.mark.req("G006")
async def test_an_editor_that_refuses(client: Client, editor: SimulatedEditor, path: Path) -> None:
    editor.open(path)
    editor.refuse = "the buffer is read-only"
    error = await refused(client, path, [0, 2, "off"])
    assert (error.code, error.reason) == (-32803, "edit_refused")
    assert "the buffer is read-only" in error.message
    del client.handlers["workspace/applyEdit"]
    assert (await refused(client, path, [0, 2, "off"])).reason == "edit_refused"


@pytest.mark.parametrize("answer", [None, {}, [], {"applied": "yes"}, {"applied": False}])
async def test_odd_answers_are_refusals(
    client: Client, editor: SimulatedEditor, path: Path, answer: Any
) -> None:
    editor.open(path)
    client.handlers["workspace/applyEdit"] = lambda params: answer
    assert (await refused(client, path, [0, 2, "off"])).reason == "edit_refused"


@pytest.mark.req("G006")
async def test_an_editor_that_lies_is_not_believed(
    client: Client, editor: SimulatedEditor, path: Path
) -> None:
    editor.open(path)
    editor.silent = True
    error = await refused(client, path, [0, 2, "off"])
    assert error.reason == "edit_unverified"
    assert "showed no change" in error.message


async def test_an_editor_that_reformats_is_noticed(
    client: Client, editor: SimulatedEditor, path: Path
) -> None:
    editor.open(path)
    editor.hook = str.upper
    error = await refused(client, path, [0, 2, "off"])
    assert error.reason == "edit_unverified"
    assert "showed another text" in error.message
    assert await shown(client, path) == "OFF DISK\n"


async def test_an_editor_that_converts_line_ends(
    client: Client, editor: SimulatedEditor, path: Path
) -> None:
    editor.open(path, "one\r\ntwo\r\n")
    editor.line_ends = "\r\n"
    done = await edit(client, path, [0, 3, "1\n1a"])
    assert done["text"] == "1\r\n1a\r\ntwo\r\n" == editor.text(path)


async def test_an_editor_that_closes_the_document_instead(
    client: Client, editor: SimulatedEditor, path: Path
) -> None:
    editor.open(path)
    editor.close_it = True
    error = await refused(client, path, [0, 2, "off"])
    assert error.reason == "edit_unverified"
    assert "closed" in error.message
    editor.open(path)
    editor.close_it = False
    assert (await edit(client, path, [0, 2, "off"]))["text"] == "off disk\n"


async def test_an_editor_that_asks_the_person_first(
    client: Client, editor: SimulatedEditor, path: Path
) -> None:
    """It may take as long as it likes; the person is told what is waited for."""
    editor.open(path)
    editor.hold = asyncio.Event()
    waiting = asyncio.ensure_future(edit(client, path, [0, 2, "off"]))
    told = await client.wait_for("window/showMessage", lambda p: "has not answered" in p["message"])
    assert str(path) in told["message"]
    assert not waiting.done() and editor.text(path) == "on disk\n"
    editor.hold.set()
    assert (await waiting)["text"] == "off disk\n" == editor.text(path)


async def test_a_document_that_is_closed_ends_the_waiting(
    client: Client, editor: SimulatedEditor, path: Path
) -> None:
    editor.open(path)
    editor.never_answer = True
    waiting = asyncio.ensure_future(refused(client, path, [0, 2, "off"]))
    await client.wait_until(lambda: editor.edits)
    editor.close(path)
    error = await waiting
    assert error.reason == "edit_unverified" and "closed" in error.message


async def test_an_edit_that_shows_was_made_whether_or_not_it_is_answered(
    client: Client, editor: SimulatedEditor, path: Path
) -> None:
    editor.open(path)
    editor.never_answer = True
    waiting = asyncio.ensure_future(edit(client, path, [0, 2, "off"]))
    await client.wait_until(lambda: editor.edits)
    editor.type(path, 0, 2, "off")
    assert (await waiting)["text"] == "off disk\n"


async def test_an_answer_that_does_not_come(
    client: Client, editor: SimulatedEditor, path: Path
) -> None:
    """It is lost, and the next edit is made."""
    editor.open(path)
    editor.never_answer = True
    error = await refused(client, path, [0, 2, "off"], answer=0.5)
    assert error.reason == "edit_unverified" and "within 0.5 seconds" in error.message
    editor.never_answer = False
    assert (await edit(client, path, [0, 2, "off"], answer=PATIENCE))["text"] == "off disk\n"


async def test_documents_do_not_wait_for_each_other(
    client: Client, editor: SimulatedEditor, path: Path
) -> None:
    other = path.with_name("other.py")
    editor.open(path)
    editor.open(other, "other\n")
    editor.never_answer = True
    waiting = asyncio.ensure_future(refused(client, path, [0, 2, "off"]))
    await client.wait_until(lambda: editor.edits)
    editor.never_answer = False
    assert (await edit(client, other, [0, 0, "an"]))["text"] == "another\n"
    assert not waiting.done()
    editor.close(path)
    await waiting


async def test_an_edit_that_is_given_up_before_the_editor_answers(
    client: Client, editor: SimulatedEditor, path: Path
) -> None:
    editor.open(path)
    editor.never_answer = True
    waiting = asyncio.ensure_future(edit(client, path, [0, 2, "off"]))
    await client.wait_for("window/showMessage", lambda p: "has not answered" in p["message"])
    waiting.cancel()
    client.cancel(max(client._answers))
    await client.wait_for("$/cancelRequest")
    editor.never_answer = False
    assert (await edit(client, path, [0, 2, "off"]))["text"] == "off disk\n"


async def test_edits_of_one_document_wait_for_each_other(
    client: Client, editor: SimulatedEditor, path: Path
) -> None:
    """Ten at once on the same version: one is applied, the others are told that they are stale."""
    editor.open(path)
    editor.answer_first = True
    results = await asyncio.gather(
        *(edit(client, path, [0, 2, f"off {n}"]) for n in range(10)), return_exceptions=True
    )
    done = [r["text"] for r in results if isinstance(r, dict)]
    assert done == [editor.text(path)]
    assert [r.reason for r in results if isinstance(r, RpcError)] == ["stale"] * 9
    assert len(editor.edits) == 1


async def test_changes_that_overlap_are_a_mistake(
    client: Client, editor: SimulatedEditor, path: Path
) -> None:
    editor.open(path)
    for changes in ([[0, 3, "x"], [2, 4, "y"]], [[0, 99, ""]], [[3, 2, ""]]):
        assert (await refused(client, path, *changes)).code == -32602
    assert editor.edits == []


async def test_saving_is_the_editor_s(client: Client, editor: SimulatedEditor, path: Path) -> None:
    assert await client.request("magy/save", {"path": str(path)}) is False
    editor.open(path, "unsaved\n")
    assert await client.request("magy/save", {"path": str(path)}) is True
    assert path.read_text() == "unsaved\n"
    del client.handlers["magy/editor/save"]
    assert await client.request("magy/save", {"path": str(path)}) is False


async def test_a_large_document(client: Client, editor: SimulatedEditor, path: Path) -> None:
    text = "a line of thirty characters, 😋.\n" * 150_000
    editor.open(path, text)
    end = len(text)
    assert len((await edit(client, path, [end, end, "done"]))["text"]) == end + 4
