"""A server whose editor has gone ends, whatever keeps it busy."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.patience import PATIENCE

TOP = Path(__file__).parents[2]
BUSY = """
import os
from magy_server.jsonrpc.descriptors import end_with_client
end_with_client(0, grace=0.1)
os.write(1, b"ready")
while True:
    pass
"""


async def test_a_server_that_hears_nothing_any_more_ends_with_its_editor() -> None:
    pipe = asyncio.subprocess.PIPE
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-c", BUSY, cwd=TOP, stdin=pipe, stdout=pipe
    )
    assert server.stdin and server.stdout
    try:
        assert await server.stdout.readexactly(5) == b"ready"
        server.stdin.write(b"what it does not read")
        await server.stdin.drain()
        assert server.returncode is None
        server.stdin.close()
        async with asyncio.timeout(PATIENCE):
            assert await server.wait() == 1
    finally:
        if server.returncode is None:
            server.kill()
            await server.wait()
