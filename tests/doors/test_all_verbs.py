"""A door that offers all verbs: it makes one value for its client, and Magy does the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import pytest

from magy_server.api.connected import Beside, Connected, NoDocuments, Source
from magy_server.api.service import Service
from magy_server.api.verbs import Magy
from magy_server.api.wire.verbs import handler, handlers
from magy_server.app import compose
from magy_server.config.trust import Trust
from magy_server.core.errors import InvalidRequest
from magy_server.store.faulty import Fault, FaultyStore
from magy_server.store.sqlite import SqliteStore
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

        def notify(method: str, params: Any) -> None:
            told.put_nowait((method, params))

        magy = Magy(_connected(service, trust, root, notify, group.create_task))
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


async def test_what_was_begun_for_a_client_does_not_outlive_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client may leave at once. What is still read for it then would find the store closed."""
    monkeypatch.setenv("MAGY_STATE_DIR", str(tmp_path / "state"))
    fault = Fault("streams", until=asyncio.Event())
    store = FaultyStore(await SqliteStore.open(str(tmp_path / "state")), fault)
    begun: list[asyncio.Task[None]] = []

    def spawn(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        begun.append(asyncio.create_task(work))
        return begun[-1]

    async with compose([str(tmp_path)], {}, store=store) as (service, trust):
        magy = Magy(_connected(service, trust, tmp_path, lambda method, params: None, spawn))
        magy.begin()
        await fault.reached.wait()
        await magy.close()
        left = [task for task in begun if not (task.done() or task.cancelling())]
        for task in begun:
            task.cancel()
        assert not left


async def test_a_verb_that_declares_nothing_is_named() -> None:
    async def nothing() -> None:
        return

    with pytest.raises(TypeError, match=r"Declare the first parameter of .*nothing at .*"):
        await handler("magy/nothing", nothing)({})  # type: ignore[arg-type]


def _connected(
    service: Service, trust: Trust, root: Path, notify: Callable[[str, Any], None], spawn: Beside
) -> Connected:
    return Connected(
        service=service, trust=trust, client="door", roots=[str(root)],
        scratch=str(root), documents=NoDocuments("utf-8"), outbox=Deaf(), notify=notify,
        warn=lambda text: None, spawn=spawn, examine=_no_doctor, draws=True,
    )  # fmt: skip


def _no_doctor() -> Any:
    raise AssertionError("nobody is ill")
