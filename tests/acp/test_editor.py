"""Files through an ACP client: unsaved text is read and written by `fs/*`, and looked at again."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.client import RpcError
from tests.nursery import ran
from tests.patience import PATIENCE

from .harness import FS, GONE, AcpClient, client

UNSAVED = "def greet():\n    return 'hello'\n\n\ndef typed():\n    return 1\n"
EDIT = """prompt: look
call: read_file {"path": "app.py"}
---
text: Seen.
prompt: polite
call: edit_file {"path": "app.py", "old_text": "'hello'", "new_text": "'good morning'"}
---
text: Done.
"""


def said_of_calls(one: AcpClient) -> str:
    """What the finished calls showed."""
    return "\n".join(
        part["content"]["text"]
        for update in one.updates("tool_call_update")
        for part in update.get("content", [])
        if part["type"] == "content"
    )


@pytest.mark.req("G006")
async def test_unsaved_text_is_read_and_written_through_the_editor(root: Path, state: Path) -> None:
    path = str(root / "app.py")
    async with client(root, state, EDIT) as one:
        one.files[path] = UNSAVED
        await one.initialize(**FS)
        session = await one.new()
        await one.turn(session, "look")
        assert "6 of 6 lines" in said_of_calls(one)
        await one.turn(session, "be polite")
        assert one.files[path] == UNSAVED.replace("'hello'", "'good morning'")
        (written,) = one.asked("fs/write_text_file")
        assert written["params"]["sessionId"] == session
        request = ran(
            (sys.executable, "-m", "magy_server", "replay", session), str(root),
            {**os.environ, "MAGY_STATE_DIR": str(state), "MAGY_CONFIG_DIR": str(state)},
            timeout=PATIENCE,
        )  # fmt: skip
        assert "good morning" in request.stdout
        assert "so it was not saved" not in request.stdout, "the editor has saved it"
        after = [m.get("method") for m in one.received[one.received.index(written) :]]
        assert "fs/read_text_file" in after, "Magy looked at what then stood there"


async def test_an_edit_that_is_not_there_afterwards_is_not_said_to_be_made(
    root: Path, state: Path
) -> None:
    path = str(root / "app.py")
    async with client(root, state, EDIT) as one:
        one.files[path] = UNSAVED

        def reformats(params: dict[str, Any]) -> Any:
            one.files[path] = params["content"].upper()
            return {}

        one.handlers["fs/write_text_file"] = reformats
        await one.initialize(**FS)
        session = await one.new()
        await one.turn(session, "be polite")
        assert one.updates("tool_call_update")[-1]["status"] == "failed"
        assert "gave another text" in said_of_calls(one)


async def test_what_the_person_typed_meanwhile_stays(root: Path, state: Path) -> None:
    """The text moves on between the question and the edit: it is made beside what was typed."""
    path = str(root / "app.py")
    async with client(root, state, EDIT) as one:
        one.files[path] = UNSAVED

        def types(params: dict[str, Any]) -> str:
            one.files[path] = "# typed\n" + one.files[path]
            return "allow_once"

        one.permission = types
        await one.initialize(**FS)
        session = await one.new()
        await one.turn(session, "be polite")
        assert one.files[path] == "# typed\n" + UNSAVED.replace("'hello'", "'good morning'")


async def test_an_editor_that_refuses_to_write_keeps_its_text(root: Path, state: Path) -> None:
    path = str(root / "app.py")
    async with client(root, state, EDIT) as one:
        one.files[path] = UNSAVED

        def refuse(params: dict[str, Any]) -> Any:
            raise RpcError({"code": -32603, "message": "not here"})

        one.handlers["fs/write_text_file"] = refuse
        await one.initialize(**FS)
        session = await one.new()
        assert (await one.turn(session, "be polite"))["stopReason"] == "end_turn"
        assert one.files[path] == UNSAVED
        assert "good morning" not in (root / "app.py").read_text()
        assert "not here" in said_of_calls(one)


async def test_an_editor_that_only_reads(root: Path, state: Path) -> None:
    path = str(root / "app.py")
    async with client(root, state, EDIT) as one:
        await one.initialize(fs={"readTextFile": True})
        session = await one.new()
        one.files[path] = UNSAVED
        await one.turn(session, "be polite")
        assert "lets nobody else write" in said_of_calls(one)
        del one.files[path]
        await one.turn(session, "be polite again")
        assert "good morning" in (root / "app.py").read_text()


async def test_a_turn_can_be_cancelled_while_the_editor_hangs(root: Path, state: Path) -> None:
    async with client(root, state, EDIT) as one:
        one.handlers["fs/read_text_file"] = lambda params: GONE
        await one.initialize(**FS)
        session = await one.new()
        prompt = one.ask(session, "look")
        asked = await one.until(lambda: one.asked("fs/read_text_file"))
        one.notify("session/cancel", sessionId=session)
        async with asyncio.timeout(30):
            assert (await prompt)["stopReason"] == "cancelled"
        withdrawn = await one.until(lambda: one.asked("$/cancel_request"))
        assert withdrawn[0]["params"]["requestId"] == asked[0]["id"]
