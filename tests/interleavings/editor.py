"""The other side of the wire: a client that forgets what nobody waits for, and an editor in which a
person types, saves and deletes, at the worst of moments."""

from __future__ import annotations

import asyncio
import json
import random
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from tests.lsp.client import Client, SimulatedEditor, path_of
from tests.patience import PATIENCE

Heard = Callable[[str, dict[str, Any]], None]


class Wire(Client):
    """Notifications go to who asked for them by session, and nowhere else."""

    def __init__(self, process: Any) -> None:
        super().__init__(process)
        self.sessions: dict[str, asyncio.Queue[dict[str, Any]]] = defaultdict(asyncio.Queue)

    async def _received(self, message: dict[str, Any]) -> None:
        params = message.get("params")
        if "method" in message and "id" not in message:
            session = params.get("sessionId") if isinstance(params, dict) else None
            if session in self.sessions or message["method"] == "magy/rewrite/draft":
                self.sessions[session].put_nowait(message)
            return
        await super()._received(message)
        self.received.clear()
        self._unread.clear()

    async def heard(self, session: str, right: Callable[[dict[str, Any]], bool]) -> list[Any]:
        """The messages of a session up to the first that is right."""
        found = []
        async with asyncio.timeout(PATIENCE):
            while not found or not right(found[-1]):
                found.append(await self.sessions[session].get())
        return found


class Editor(SimulatedEditor):
    """`moments` are told of each edit that comes, before it is made and after."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.moments: dict[str, Callable[[str], None]] = {}
        self.disk: dict[str, str] = {}
        self.stolen: dict[str, list[str]] = defaultdict(list)
        """What was saved that only the person may save."""
        self.traces: dict[str, list[str]] = defaultdict(list)
        """By document: what came and what was typed, in order."""
        self.running = asyncio.Lock()
        """Held while a command runs."""
        self.answering = random.Random()
        self.refused = 0

    async def _apply(self, params: dict[str, Any]) -> Any:
        uri = params["edit"]["documentChanges"][0]["textDocument"]["uri"]
        if self.answering.random() < 0.3:
            await asyncio.sleep(self.answering.random() * 0.003)
        tell = self.moments.get(uri)
        if tell:
            tell("before")
        if uri not in self.texts:
            return {"applied": False}
        self.traces[uri].append(f"edit {json.dumps(params['edit'])}")
        answer = await super()._apply(params)
        self.traces[uri].append(f"{answer}, version {self.versions.get(uri)}")
        self.edits.clear()
        self.refused += not answer["applied"]
        if tell and answer["applied"]:
            tell("after")
        return answer

    def _replace(self, uri: str, spans: list[tuple[int, int, str]]) -> None:
        super()._replace(uri, spans)
        self.traces[uri].append(f"{spans} is version {self.versions[uri]}")

    def _save(self, params: dict[str, Any]) -> dict[str, bool]:
        uri, tell = params["uri"], self.moments.get(params["uri"])
        if tell:
            tell("save")
        answer = super()._save(params)
        self.traces[uri].append(f"save {params['version']}: {answer}")
        self.saved.clear()
        if answer["saved"]:
            self.disk[uri] = self.texts[uri]
        return answer

    def load(self, uri: str, text: str) -> None:
        """The file is this by now, and nothing in the buffer is unsaved."""
        self.disk[uri] = text
        self._replace(uri, [(0, len(self.texts[uri]), text)])

    def save(self, uri: str) -> None:
        """The person saves. Where nothing is to be saved, an editor writes nothing."""
        if self.disk[uri] == self.texts[uri]:
            return
        with open(path_of(uri), "w", encoding="utf-8", newline="") as file:
            file.write(self.texts[uri])
        self.traces[uri].append("the person saves")
        self.disk[uri] = self.texts[uri]
        self.client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
