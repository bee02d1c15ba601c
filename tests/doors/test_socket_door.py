"""A new front door needs nothing of Magy but `app.compose` and `api/`."""

from __future__ import annotations

import ast
import asyncio
import os
from pathlib import Path

import pytest

from magy_server.app import compose
from magy_server.core.agents.tree import stream_of
from magy_server.core.values import Text
from tests.doors import socket_door
from tests.patience import PATIENCE

SCRIPT = """prompt: hello
speed: 200
text: Good day to you.

prompt: again
text: Good night.
"""


async def read(path: Path, session: str, until: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(f"{session}\n".encode())
    try:
        async with asyncio.timeout(PATIENCE):
            return await reader.readuntil(until)
    finally:
        writer.close()


async def test_what_a_session_says_can_be_read_at_a_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, root, path = tmp_path / "model.script", tmp_path / "project", tmp_path / "door"
    script.write_text(SCRIPT)
    root.mkdir()
    for name, value in (("MAGY_SCRIPT", script), ("MAGY_STATE_DIR", tmp_path / "state")):
        monkeypatch.setenv(name, str(value))
    async with compose([str(root)], {}) as (service, _), socket_door.opened(service, path):
        assert os.stat(path).st_mode & 0o777 == 0o600
        await service.open("s", str(root), str(root), "build", "")
        reading = asyncio.create_task(read(path, "s", b"night.\n"))
        await service.prompt("s", "p1", [Text(text="hello")], "steer")
        await service.prompt("s", "p2", [Text(text="again")], "queue")
        assert await reading == b"Good day to you.\nGood night.\n"
        assert await read(path, "s", b"night.\n") == b"Good day to you.\nGood night.\n"
        assert b"'nobody'" in await read(path, "nobody", b"\n")
        session = service.loaded.watch(stream_of("s"))
        async with asyncio.timeout(PATIENCE):  # who has gone away leaves nothing behind
            while session.watched:
                await asyncio.sleep(0.01)


def test_it_is_small_and_knows_only_what_doors_share() -> None:
    source = Path(socket_door.__file__).read_text()
    assert len(source.splitlines()) < 150
    found = [n.module or "" for n in ast.walk(ast.parse(source)) if isinstance(n, ast.ImportFrom)]
    rooms = {name.split(".")[1] for name in found if name.startswith("magy_server.")}
    assert rooms <= {"api", "core"}
