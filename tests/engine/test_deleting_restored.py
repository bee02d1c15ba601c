"""A session that goes back cannot be deleted meanwhile, and stays as it is for who watches it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from magy_server.api.service import Service
from magy_server.app import compose
from magy_server.core.agents.tree import stream_of
from magy_server.core.errors import InvalidRequest
from magy_server.core.values import Text

SCRIPT = """\
prompt: change it
call: edit_file {"path": "a.txt", "old_text": "old", "new_text": "new"}
---
text: Changed.
"""


@pytest.fixture
async def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Service]:
    """With a session whose only turn has changed a file."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.txt").write_text("old\n")
    (tmp_path / "script").write_text(SCRIPT)
    monkeypatch.setenv("MAGY_SCRIPT", str(tmp_path / "script"))
    monkeypatch.setenv("MAGY_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("MAGY_CONFIG_DIR", str(tmp_path / "config"))
    async with compose([str(root)], {"titles": False}) as (service, _):
        session = await service.open("root", str(root), str(root), "build", "")
        over = asyncio.Event()
        stop = session.watch(lambda: over.set() if session.state.last_stop else None)
        await service.prompt("root", "one", [Text(text="change it")], "steer")
        async with asyncio.timeout(120):
            await over.wait()
        stop()
        yield service


async def test_a_session_that_goes_back_is_not_deleted(service: Service, tmp_path: Path) -> None:
    session = await service.loaded.session(stream_of("root"))
    changed = str(tmp_path / "root" / "a.txt")
    begun = asyncio.Event()
    session.watch(lambda: begun.set() if session.state.history.restoring else None)
    async with service.reviews.changing([changed]):
        restoring = asyncio.create_task(service.checkpoints.restore(session, "back"))
        async with asyncio.timeout(120):
            await begun.wait()
        with pytest.raises(InvalidRequest, match="restored"):
            await service.delete("root")
    await restoring
    assert not session.gone
    assert await service.loaded.session(session.stream) is session
    assert await service.delete("root")
