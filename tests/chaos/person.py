"""The person at the editor, who does not mind how often the server dies: whatever was asked may be
asked again."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from tests.lsp.client import Client

from .cast import result, steer, task
from .model import Model
from .stage import Stage

FIRST = "m1"
"""The turn that the person begins; all others begin by themselves."""


class Person:
    """One life of the server, seen from the editor. `chance` None: no question is answered."""

    def __init__(
        self, client: Client, stage: Stage, model: Model, chance: random.Random | None
    ) -> None:
        self._client = client
        self._stage = stage
        self._model = model
        self._chance = chance
        self._ended: set[str] = set()
        """Turns of the root that are over."""
        self._mailed: set[str] = set()
        """The messages from its children that the root's transcript shows."""
        self._heard = 0
        self._answered: set[str] = set()

    async def play(self) -> None:
        """To the end of the whole tree's work."""
        await self.start()
        await self.go_on()

    async def go_on(self) -> None:
        """From where it is."""
        async with asyncio.TaskGroup() as group:
            answering = group.create_task(self._answer_questions())
            await self._talk()
            answering.cancel()

    async def start(self) -> None:
        """The session is there, prompted, and watched."""
        await self._client.initialize(self._stage.root, options={"magy": self._offers()})
        root = {"sessionId": self._stage.session}
        await self.ask("session/new", **root, cwd=str(self._stage.root), agent="boss")
        attached = await self.ask("session/subscribe", **root)
        for event in attached["events"]:
            self._note(event["update"])
        await self.ask("session/prompt", **root, messageId=FIRST, prompt=_text(task("root")))

    async def look_on(self) -> None:
        """Connected, and nothing else."""
        await self._client.initialize(self._stage.root, options={"magy": self._offers()})

    async def _talk(self) -> None:
        roles = self._stage.play.roles
        if "review" in roles:
            await self._have_reviewed()
        await self._until(lambda: FIRST in self._ended)
        if "gamma" in roles:
            await self._steer_gamma()
            # The turn is called by what opened it: gamma's result, which came late and is seen.
            await self._until(lambda: self._ended & self._mailed and "root" in self._model.ended)

    async def _have_reviewed(self) -> None:
        mine = await self.ask(
            "child/spawn", parentSessionId=self._stage.session, requestKey="review",
            agent="worker", prompt=_text(task("review")),
        )  # fmt: skip
        await self._result("review", mine["child"]["sessionId"])

    async def _steer_gamma(self) -> None:
        root = self._stage.session
        children = (await self.ask("child/list", parentSessionId=root))["children"]
        gamma = next(child["sessionId"] for child in children if child["name"] == "gamma")
        said = _text(steer("gamma", self._stage.tag))
        await self.ask("child/send", sessionId=gamma, requestKey="steer", prompt=said)
        await self._result("gamma", gamma)

    async def _result(self, role: str, session: str) -> None:
        """Waits for the child, as long as it takes."""
        waited = await self.ask("child/wait", sessionIds=[session], until="all")
        texts = [found["text"] for found in waited["results"]]
        if waited["timedOut"] or [result(role, self._stage.tag) in t for t in texts] != [True]:
            self._model.wrong.append(f"waited for {role} and got {waited}")

    async def _answer_questions(self) -> None:
        open_ = await self.ask("interaction/list", sessionId=self._stage.session)
        await self._answer(open_["interactions"])
        for number in itertools.count():
            await self._client.wait_until(partial(self._news, number), timeout=600)
            await self._answer(self._news(number)[0]["opened"])

    async def _answer(self, questions: Sequence[Mapping[str, Any]]) -> None:
        for question in questions:
            if self._chance and (name := question["interactionId"]) not in self._answered:
                self._answered.add(name)
                await asyncio.sleep(self._chance.uniform(0, 0.1))
                whose = question["sessionId"]
                await self.ask(
                    "interaction/respond", sessionId=whose, interactionId=name, outcome="allow"
                )

    def _news(self, after: int) -> list[Any]:
        return self._client.notifications("magy/interaction/changed")[after:]

    async def _until(self, holds: Any) -> None:
        def look() -> bool:
            new = self._client.received[self._heard :]
            self._heard += len(new)
            for message in new:
                params = message.get("params") or {}
                if "update" in params and params["sessionId"] == self._stage.session:
                    self._note(params["update"])
            return bool(holds())

        await self._client.wait_until(look, timeout=600)

    def _note(self, update: Mapping[str, Any]) -> None:
        if update["sessionUpdate"] == "_magy_mail":
            self._mailed.add(update["messageId"])
        if update["sessionUpdate"] == "state_update" and update["state"] == "idle":
            assert update["stopReason"] == "end_turn", update
            self._ended.add(update["_meta"]["magy"]["turnId"])

    async def ask(self, method: str, **params: Any) -> Any:
        return await self._client.request(f"magy/{method}", params, timeout=600)

    def _offers(self) -> dict[str, Any]:
        return {
            "client": {"name": "chaos"},
            "capabilities": {"interactions": True},
            "settings": self._stage.settings(self._model.base_url),
        }


def _text(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]
