"""Ten thousand hostile frames, and the server is as it was."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from magy_server.jsonrpc.messages import Malformed
from magy_server.lsp.frames import FrameDecoder
from tests.lsp.client import frame
from tests.lsp.fuzz import Hostile, fuzz

TOP = Path(__file__).parents[2]


@pytest.mark.req("F001")
@pytest.mark.timeout(180)
@pytest.mark.parametrize("seed", [1, 2])
async def test_hostile_frames(seed: int) -> None:
    report = await fuzz(
        [sys.executable, "-m", "tests.lsp.echo_server"],
        seed=seed,
        frames=5_000,
        methods=["magy/echo", "magy/cancelled", "magy/open", "magy/spell"],
        good=("magy/echo", {"good": True}),
        cwd=TOP,
    )
    assert report.checks == 10
    assert report.exit_code == 1
    assert report.answers > 2_000
    assert "Exception" not in report.log
    assert "stopped because the editor disconnected" in report.log


@pytest.mark.parametrize("piece", [1, 13, 65536])
def test_the_decoder_never_stumbles(piece: int) -> None:
    """After any hostile bytes, of two good messages the second is read."""
    decoder, good = FrameDecoder(max_body=100_000), frame(b'{"good":1}')
    for data in Hostile(3, ["magy/echo"]).frames(300):
        data += good * 2
        found = [
            message
            for at in range(0, len(data), piece)
            for message in decoder.feed(data[at : at + piece])
        ]
        assert found[-1] == {"good": 1}
        assert all(isinstance(m, Malformed | dict | list | str | int | float | None) for m in found)
