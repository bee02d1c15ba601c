"""What an ACP client has not saved is never written over, whatever it answers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.client import RpcError
from tests.patience import PATIENCE

from .harness import FS, AcpClient, client
from .test_editor import EDIT, UNSAVED, said_of_calls

WRITE = """prompt: begin
call: write_file {"path": "new.py", "content": "AGENT = 1\\n"}
---
text: Done.
"""
SLOW = """prompt: polite
text: Wait.
delay: 1
call: edit_file {"path": "app.py", "old_text": "'hello'", "new_text": "'good morning'"}
---
text: Done.
prompt: hello
text: Hi.
"""


def fails(code: int) -> Any:
    def answer(params: dict[str, Any]) -> Any:
        raise RpcError({"code": code, "message": "boom"})

    return answer


@pytest.mark.parametrize(
    ("answer", "good"),
    [(fails(-32603), 0), (fails(-32603), 2), (lambda params: None, 0),
     (lambda params: {"content": 7}, 1)],
    ids=["internal error", "internal error later", "null", "no text later"],
)  # fmt: skip
async def test_a_file_that_is_not_shown_is_not_written(
    root: Path, state: Path, answer: Any, good: int
) -> None:
    """`good`: so many times it is shown before."""
    async with client(root, state, EDIT) as one:
        one.files[str(root / "app.py")] = UNSAVED
        reads = one.handlers["fs/read_text_file"]

        def flaky(params: dict[str, Any]) -> Any:
            return reads(params) if len(one.asked("fs/read_text_file")) <= good else answer(params)

        one.handlers["fs/read_text_file"] = flaky
        await one.initialize(**FS)
        await one.turn(await one.new(), "be polite")
        assert one.updates("tool_call_update")[-1]["status"] == "failed"
        assert f"{root / 'app.py'} may have" in said_of_calls(one)
        assert "hello" in (root / "app.py").read_text()
        assert not one.asked("fs/write_text_file")


@pytest.mark.parametrize("code", [-32002, -32601])
async def test_a_file_that_the_client_does_not_have_is_on_disk(
    root: Path, state: Path, code: int
) -> None:
    async with client(root, state, EDIT) as one:
        one.handlers["fs/read_text_file"] = fails(code)
        await one.initialize(**FS)
        await one.turn(await one.new(), "be polite")
        assert "good morning" in (root / "app.py").read_text()


async def test_a_buffer_that_was_never_saved_is_edited_there(root: Path, state: Path) -> None:
    async with client(root, state, WRITE) as one:
        one.files[str(root / "new.py")] = "MINE = 1\n"
        await one.initialize(**FS)
        await one.turn(await one.new(), "begin")
        assert one.asked("fs/write_text_file"), said_of_calls(one)
        assert one.files[str(root / "new.py")] == "AGENT = 1\n"


@pytest.mark.parametrize("shows", ["nothing", "an error", "an empty text"])
async def test_a_file_that_is_nowhere_is_made(root: Path, state: Path, shows: str) -> None:
    async with client(root, state, WRITE) as one:
        if shows == "an error":
            one.handlers["fs/read_text_file"] = fails(-32603)
        elif shows == "an empty text":
            one.files[str(root / "new.py")] = ""
        await one.initialize(**FS)
        await one.turn(await one.new(), "begin")
        assert (root / "new.py").read_text() == "AGENT = 1\n"


async def test_unsaved_text_in_another_encoding_is_kept(root: Path, state: Path) -> None:
    (root / "app.py").write_bytes("# café\nhello = 'hello'\n".encode("latin-1"))
    async with client(root, state, EDIT) as one:
        path = str(root / "app.py")
        one.files[path] = "# café\nhello = 'hello'\nMINE = 1\n"
        await one.initialize(**FS)
        session = await one.new()
        await one.turn(session, "be polite")
        assert one.files[path] == "# café\nhello = 'good morning'\nMINE = 1\n"
        (root / "app.py").write_bytes(b"# caf\xe9\nhello = 'hello'\n")
        one.files[path] = "# caf\ufffd\nhello = 'hello'\n"
        await one.turn(session, "be polite again")
        assert "encoding" in said_of_calls(one)
        assert (root / "app.py").read_bytes() == b"# caf\xe9\nhello = 'hello'\n"


async def test_files_are_asked_for_by_the_session_that_works(root: Path, state: Path) -> None:
    async with client(root, state, SLOW) as one:
        await one.initialize(**FS)
        first = await one.new()
        prompt = one.ask(first, "be polite")
        await one.until(lambda: one.said(first))
        second = await one.new()
        await one.turn(second, "hello")
        await prompt
        asked = [*one.asked("fs/read_text_file"), *one.asked("fs/write_text_file")]
        assert {m["params"]["sessionId"] for m in asked} == {first}
        assert {m["method"] for m in asked} == {"fs/read_text_file", "fs/write_text_file"}


async def test_an_interrupted_turn_goes_on_when_its_session_is_loaded(
    root: Path, state: Path
) -> None:
    path = str(root / "app.py")
    words = SLOW.replace("delay: 1\n", "delay: 3\n")

    async def killed() -> str:
        async with client(root, state, words) as one:
            await one.initialize(**FS)
            session = await one.new()
            prompt = one.ask(session, "be polite")
            await one.until(lambda: one.said(session))
            one.process.kill()
            await one.process.wait()
            prompt.cancel()
            return session

    def unsaved(two: AcpClient) -> None:
        two.files[path] = UNSAVED

    session = await killed()
    async with client(root, state, SLOW.replace("delay: 1\n", "")) as two:
        unsaved(two)
        await two.initialize(**FS)
        other = await two.new()
        assert (await two.turn(other, "hello"))["stopReason"] == "end_turn"
        listed = await two.request("_magy/session/list")
        states = {one["sessionId"]: one["state"] for one in listed["sessions"]}
        assert states[session] == "running", "it waits for who opens it"
        assert not two.asked("fs/read_text_file") and "hello" in Path(path).read_text()
        await two.request("session/load", sessionId=session, cwd=str(root), mcpServers=[])
        async with asyncio.timeout(PATIENCE):
            await two.until(lambda: two.said(session).endswith("Done."))
        assert {m["params"]["sessionId"] for m in two.asked("fs/write_text_file")} == {session}
        assert two.files[path] == UNSAVED.replace("'hello'", "'good morning'")
