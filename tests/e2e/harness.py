"""A person at a real server: `magy lsp` over real stdio, a scripted model, and short ways to do
what people do."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

from tests.guard import SESSION, SHUT
from tests.loopback import ChatServer
from tests.lsp.client import Client, RpcError, SimulatedEditor
from tests.nursery import ADAPTERS, ALSO

MAGY = (sys.executable, "-m", "magy_server", "lsp")


class Person:
    """One editor window on one project. `updates` are the session updates of SESSION so far."""

    def __init__(self, client: Client, root: Path) -> None:
        self.client = client
        self.root = root
        self.editor = SimulatedEditor(client)

    async def start(
        self,
        *,
        knows_magy: bool = True,
        settings: Any = None,
        offers: Any = None,
        said: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        """`offers`: what the client can besides, as it would announce it; `said`: what else it
        says of itself."""
        offers = {"interactions": knows_magy, "editor": {"save": True}, **(offers or {})}
        asking = {"permission": {"edit": "ask"}}
        given = {"titles": False, **asking, **(settings or {})}
        magy = {"client": {"name": "test"}, "capabilities": offers, "settings": given}
        magy |= said or {}
        await self.client.initialize(root=self.root, options={"magy": magy}, **options)

    async def new(self, session: str = SESSION, **params: Any) -> None:
        await self.request("session/new", cwd=str(self.root), sessionId=session, **params)
        await self.request("session/subscribe", sessionId=session)

    async def request(self, method: str, **params: Any) -> Any:
        about = {} if method in ("session/list", "workspace/trust") else {"sessionId": SESSION}
        return await self.client.request(f"magy/{method}", {**about, **params})

    async def ask(self, text: str, id: str = "p1", **params: Any) -> Any:
        prompt = [{"type": "text", "text": text}]
        return await self.request("session/prompt", messageId=id, prompt=prompt, **params)

    async def turn(self, text: str, id: str = "p1", **params: Any) -> dict[str, Any]:
        """Asks, and waits for the end."""
        await self.ask(text, id, **params)
        return await self.end()

    async def end(self, session: str = SESSION) -> dict[str, Any]:
        return await self.update("state_update", lambda u: u["state"] == "idle", session)

    async def update(
        self,
        kind: str,
        match: Callable[[dict[str, Any]], Any] = lambda update: True,
        session: str = SESSION,
    ) -> dict[str, Any]:
        def right(params: Mapping[str, Any]) -> bool:
            update = params["update"]
            same = params["sessionId"] == session and update["sessionUpdate"] == kind
            return same and bool(match(update))

        found: dict[str, Any] = (await self.client.wait_for("magy/session/update", right))["update"]
        return found

    def updates(self, kind: str, session: str = SESSION) -> list[dict[str, Any]]:
        return [
            params["update"]
            for params in self.client.notifications("magy/session/update")
            if params["sessionId"] == session and params["update"]["sessionUpdate"] == kind
        ]

    async def question(self) -> dict[str, Any]:
        update = await self.update("_magy_interaction", lambda u: "open" in u)
        found: dict[str, Any] = update["open"]
        return found

    async def answer(self, allow: bool = True, **params: Any) -> Any:
        """Answers the next question that comes up."""
        question = await self.question()
        return await self.respond(question["interactionId"], allow, **params)

    async def respond(self, interaction: str, allow: bool = True, **params: Any) -> Any:
        outcome = "allow" if allow else "refuse"
        return await self.request("interaction/respond", interactionId=interaction,
                                  outcome=outcome, **params)  # fmt: skip

    def outputs(self) -> list[str]:
        """What finished calls showed, in order."""
        return [
            "".join(
                block["content"]["text"]
                for block in update.get("content", [])
                if block["type"] == "content"
            )
            for update in self.updates("tool_call_update")
            if update.get("status") in ("completed", "failed", "cancelled")
        ]

    def said(self, session: str = SESSION) -> str:
        """The agent's whole messages."""
        return "\n".join(
            block["text"]
            for update in self.updates("agent_message", session)
            for block in update["content"]
        )


def findable(system: str) -> set[str]:
    """The tools that a system text names, without describing them."""
    found = re.search(r"You have more tools: (.*?)\. `find_tools`", system)
    return set(found[1].split(", ")) if found else set()


def served(server: ChatServer) -> dict[str, Any]:
    """Settings with which this server has the model."""
    provider = {"name": "mine", "kind": "openai-chat", "base_url": server.base_url}
    return {"provider": [provider], "model": {"default": "mine/qwen"}}


@contextlib.asynccontextmanager
async def person(
    root: Path,
    state: Path,
    script: str | None = None,
    *,
    env: Mapping[str, str] | None = None,
    command: tuple[str, ...] = MAGY,
    **start: Any,
) -> AsyncIterator[Person]:
    """Starts a server with `script` as its model and connects; `state` is where it keeps things."""
    environment = {"MAGY_STATE_DIR": str(state), "MAGY_CONFIG_DIR": str(state)}
    if script is None:
        environment[ALSO] = ADAPTERS
    environment |= env or {}
    if script is not None:
        file = state / "model.script"
        state.mkdir(parents=True, exist_ok=True)
        file.write_text(script, encoding="utf-8")
        environment["MAGY_SCRIPT"] = str(file)
    elif not os.path.lexists(file := state / "magy.toml"):
        state.mkdir(parents=True, exist_ok=True)
        file.write_text(SHUT, encoding="utf-8")
    async with Client.spawn(command, cwd=root, env=environment) as client:
        one = Person(client, root)
        await one.start(**start)
        yield one


__all__ = ["MAGY", "SESSION", "Person", "RpcError", "person", "served"]
