"""A door that offers all verbs: it makes one value for its client, and Magy does the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from magy_server.api.connected import Connected, NoDocuments, Source
from magy_server.api.verbs import Magy
from magy_server.api.wire.verbs import handler, handlers
from magy_server.app import compose
from magy_server.core.errors import InvalidRequest
from tests.patience import PATIENCE

SCRIPT = """prompt: hello
call: write_file {"path": "new.txt", "content": "a line\\n"}
---
text: Done.
"""


class Deaf:
    """Nothing that streams is read."""

    def send(self, message: Mapping[str, Any] | bytes) -> None:
        return

    def wake(self, source: Source) -> None:
        return

    def forget(self, source: Source) -> None:
        return


async def test_a_door_that_makes_the_value_and_begins_is_told_of_reviews(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, root = tmp_path / "model.script", tmp_path / "project"
    script.write_text(SCRIPT)
    root.mkdir()
    for name, value in (("MAGY_SCRIPT", script), ("MAGY_STATE_DIR", tmp_path / "state")):
        monkeypatch.setenv(name, str(value))
    told: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
    allowed = {"permission": {"edit": "allow"}}
    async with (
        compose([str(root)], allowed) as (service, trust),
        asyncio.TaskGroup() as group,
        asyncio.timeout(PATIENCE),
    ):
        magy = Magy(
            Connected(
                service=service, trust=trust, client="door", roots=[str(root)],
                scratch=str(root), documents=NoDocuments("utf-8"), outbox=Deaf(),
                notify=lambda method, params: told.put_nowait((method, params)),
                warn=lambda text: None, spawn=group.create_task, examine=_no_doctor, draws=True,
            )
        )  # fmt: skip
        magy.begin()
        ask = handlers(magy.verbs(), magy.made)
        for method, answer in ask.items():
            with pytest.raises(InvalidRequest, match=f"^{method}: .*nonsense is not known here"):
                await answer({"nonsense": 1})
        await ask["magy/session/new"]({"sessionId": "s", "cwd": str(root)})
        said = [{"type": "text", "text": "hello"}]
        await ask["magy/session/prompt"]({"sessionId": "s", "messageId": "p", "prompt": said})
        method, params = await told.get()
        assert (method, params["files"][0]["path"]) == (
            "magy/review/changed", str(root / "new.txt"),
        )  # fmt: skip
        await magy.close()


async def test_a_verb_that_declares_nothing_is_named() -> None:
    async def nothing() -> None:
        return

    with pytest.raises(TypeError, match=r"nothing at .* declares nothing"):
        await handler("magy/nothing", nothing)({})  # type: ignore[arg-type]


def _no_doctor() -> Any:
    raise AssertionError("nobody is ill")
