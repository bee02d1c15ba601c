"""The database of a running server is removed, replaced or emptied: every later request says so,
and nothing is written into what is gone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .harness import RpcError, person

SCRIPT = "text: Hello.\n"


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("magy.db", "removed"), ("magy.db", "replaced"), ("magy.db", "emptied"),
        ("magy.db-wal", "removed"), ("magy.db-shm", "removed"),
    ],
)  # fmt: skip
async def test_what_is_gone_is_said(root: Path, state: Path, name: str, what: str) -> None:
    async with person(root, state, SCRIPT) as one:
        await one.new()
        await one.turn("One")
        (found,) = state.rglob(name)
        if what == "emptied":
            os.truncate(found, 0)
        else:
            os.rename(found, found.with_name("aside"))
        if what == "replaced":
            found.write_bytes(found.with_name("aside").read_bytes())
        for method, params in (
            ("session/prompt", {"messageId": "p2", "prompt": [{"type": "text", "text": "Two"}]}),
            ("session/new", {"sessionId": "s2", "cwd": str(root)}),
            ("session/fork", {"newSessionId": "s3"}),
        ):
            with pytest.raises(RpcError, match=f"{name} was {what}.* Magy writes nothing more"):
                await one.request(method, **params)
        if what == "emptied":
            assert found.stat().st_size == 0
        elif what == "removed":
            assert not found.exists()
        if what != "emptied":
            os.replace(found.with_name("aside"), found)
            assert (await one.turn("Two", "p2"))["stopReason"] == "end_turn"
            assert one.said().count("Hello.") == 2
