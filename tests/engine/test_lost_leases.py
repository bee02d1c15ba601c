"""A process that has lost its lease of a session, as on a file system that forgets its locks."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from magy_server.core.errors import Conflict
from magy_server.store.sqlite import SqliteStore
from tests.patience import PATIENCE

from .running import place, until

SCRIPT = """
prompt:
call: ask {"name": "door"}
---
text: Done.
"""


async def test_an_answer_is_refused_and_not_tried_for_ever(tmp_path: Path) -> None:
    async with place(tmp_path, SCRIPT) as one, AsyncExitStack() as closing:
        session = await one.root()
        await one.prompt("s", "go", "p1")
        await until(lambda: session.state.questions)
        for lock in (tmp_path / "locks").iterdir():
            lock.unlink()
        other = await SqliteStore.open(tmp_path)
        closing.push_async_callback(other.close)
        assert await other.lease(session.stream)
        (question,) = session.state.questions
        with pytest.raises(Conflict, match="taken at epoch 1 and is now at epoch 2"):
            async with asyncio.timeout(PATIENCE):
                await one.service.answer(
                    "s", question, allow=True, reason="", scope="once", by="me"
                )
