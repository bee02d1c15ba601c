"""An editor that lets a request for a file time out is waited for once, not once a file; what it
may have unsaved is never written over."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from magy_server.acp import editor
from magy_server.acp.connection import Connection
from magy_server.acp.editor import AskedEditor
from magy_server.core.errors import Unseen
from magy_server.jsonrpc.outbox import Outbox, lined

from .harness import FS, GONE, client
from .test_editor import EDIT, UNSAVED, said_of_calls


class End:
    """The write end of a client that plays an editor. `answers`: whether it does."""

    def __init__(self) -> None:
        self.connection: Connection
        self.answers = True
        self.asked = 0

    def write(self, data: bytes) -> None:
        for line in data.splitlines():
            message = json.loads(line)
            if message["method"] == "fs/read_text_file":
                self.asked += 1
                if self.answers:
                    answer = {"jsonrpc": "2.0", "id": message["id"], "result": {"content": "typed"}}
                    self.connection.feed(json.dumps(answer).encode() + b"\n")

    def get_write_buffer_size(self) -> int:
        return 0

    def abort(self) -> None: ...


@pytest.mark.req("G006")
async def test_a_hanging_editor_is_waited_for_once(root: Path, state: Path) -> None:
    path = root / "app.py"
    async with client(root, state, EDIT) as one:
        one.files[str(path)] = UNSAVED
        one.handlers["fs/read_text_file"] = lambda params: GONE
        await one.initialize(fs=FS["fs"], session={"notices": {}})
        session = await one.new()
        assert (await one.turn(session, "look"))["stopReason"] == "end_turn"
        (seen,) = [m for m in one.updates("tool_call_update") if m.get("status") == "completed"]
        shown = seen["content"][0]["content"]["text"]
        assert "did not answer fs/read_text_file" in shown or "stopped answering" in shown
        assert f"{path} may have unsaved changes there" in shown and "on disk" in shown
        (notice,) = one.updates("notice")
        assert notice["title"] == "The editor hangs"
        await one.turn(session, "be polite")
        assert one.updates("tool_call_update")[-1]["status"] == "failed"
        assert "has stopped answering" in said_of_calls(one)
        assert len(one.asked("fs/read_text_file")) == 1, "nobody waits once a file"
        assert "hello" in path.read_text() and not one.asked("fs/write_text_file")


async def test_an_editor_that_answers_again_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "app.py"
    file.write_text("saved")
    monkeypatch.setattr(editor, "READS", 0.01)
    outbox, end = Outbox(framed=lined), End()
    end.connection = Connection(outbox)
    outbox.attach(end)
    writing = asyncio.ensure_future(outbox.run())
    hung: list[Any] = []
    here = AskedEditor(
        end.connection, lambda path: "one", lambda *said: hung.append(said), writes=True
    )

    async def look() -> str | None:
        await here.look(str(file))
        buffer = here.buffer(str(file))
        return buffer.text if buffer else None

    assert await look() == "typed"
    end.answers = False
    for _ in range(3):
        with pytest.raises(Unseen, match=r"app\.py may have unsaved changes"):
            await look()
        assert here.buffer(str(file)) is None
    assert end.asked == 2 and len(hung) == 1
    end.answers = True
    with pytest.raises(Unseen, match="stopped answering"):
        await look()
    monkeypatch.setattr(here, "_quiet", 0.0)  # the minute has passed
    assert await look() == "typed" and await look() == "typed"
    assert end.asked == 4 and len(hung) == 1
    writing.cancel()
