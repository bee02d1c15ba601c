"""While the model reads, a person sees that it does; a stop that comes at any moment holds."""

from __future__ import annotations

import asyncio
from pathlib import Path

from magy_server.core.ports import ModelFacts, ModelRequest
from magy_server.engine.model import shown

from .home import home


async def test_a_stop_at_the_very_end_of_a_request_is_not_lost(tmp_path: Path) -> None:
    """It comes while the display is being taken down."""
    request = ModelRequest("1", "s", "script", (), (), (), 0)
    async with home(tmp_path, "text: Hello.\n") as here:
        session = await here.new()

        async def asked() -> None:
            async with shown(session, request, ModelFacts()):
                await asyncio.sleep(0)
                asyncio.get_running_loop().call_soon(asking.cancel)

        asking = asyncio.create_task(asked())
        await asyncio.wait([asking])
        assert asking.cancelled()
