"""Hostile frames at the real server, which must still serve a prompt afterwards."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from magy_server.api.wire.methods import CLIENT_TO_SERVER
from tests.lsp.fuzz import BASE, Hostile
from tests.patience import PATIENCE

from .harness import RpcError, person

METHODS = [method.name for method in CLIENT_TO_SERVER]
FRAMES = 10_000


@pytest.mark.timeout(240)
@pytest.mark.parametrize("seed", [2026])
async def test_ten_thousand_hostile_frames(root: Path, state: Path, seed: int) -> None:
    async with person(root, state, "text: Still here.\n") as one:
        one.client._ids = itertools.count(BASE)
        for n, data in enumerate(Hostile(seed, METHODS).frames(FRAMES), 1):
            one.client.send_raw(data)
            assert one.client.process.stdin is not None
            await one.client.process.stdin.drain()
            if n % 1000 == 0:
                with pytest.raises(RpcError, match="no method"):
                    await one.client.request("magy/are/you/there", {}, timeout=PATIENCE)
        assert one.client.process.returncode is None
        await one.new("after")
        await one.ask("Hello?", sessionId="after")
        assert (await one.end("after"))["stopReason"] == "end_turn"
        for line in one.client.log.splitlines():
            assert "failed inside Magy" not in line and "Traceback" not in line, line
