"""A store that the engine is given is closed in the end, also where the engine never began."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from magy_server.core.errors import InvalidConfig
from tests.engine.home import faulty, home


@pytest.mark.parametrize(
    "wrong", [{"unheard_of": 1}, {"permission": 3}], ids=["unknown key", "no table"]
)
async def test_wrong_settings_leave_no_store_open(tmp_path: Path, wrong: dict[str, Any]) -> None:
    (tmp_path / "state").mkdir()
    store = await faulty(tmp_path)
    with pytest.raises(InvalidConfig):
        async with home(tmp_path, "", settings=wrong, store=store):
            pass
    closed = len(store.done["close"])
    await store.close()  # or its threads would keep this process
    assert closed == 1
