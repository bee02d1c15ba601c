"""The third act shows a child agent at work; Ada tells it what to test and answers its question."""

from __future__ import annotations

import asyncio
from typing import Any

from magy_server.demo.editor import Editor
from magy_server.demo.screen import Screen

STEER = "Take 0.1 and 0.2, please: what floats cannot add exactly is worth a test."


class Helper:
    """At the child's first question Ada sends it a message, and says a yes that holds from then
    on."""

    def __init__(self, editor: Editor, screen: Screen) -> None:
        self.session = ""
        self.updates: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        """What the server sends of `session`."""
        self._editor = editor
        self._screen = screen

    async def watch(self) -> None:
        """Shows what the child does, from its beginning until it rests."""
        about = {"parentSessionId": "demo"}
        (child,) = (await self._editor.request("magy/child/list", about))["children"]
        self.session = child["sessionId"]
        session = {"sessionId": self.session}
        attached = await self._editor.request("magy/session/subscribe", session)
        rests = False
        for event in attached["events"]:
            rests = await self._show(event["update"])
        while not rests:
            rests = await self._show(await self.updates.get())

    async def _show(self, update: dict[str, Any]) -> bool:
        """Whether the child rests with it."""
        self._screen.update(update)
        if "open" in update:
            self._screen.asked(update["open"]["title"])
            await asyncio.sleep(self._screen.pause)
            await self._editor.request("magy/child/send", {
                "sessionId": self.session,
                "requestKey": "steer",
                "prompt": [{"type": "text", "text": STEER}],
            })  # fmt: skip
            self._screen.answered(True, "", "for this session")
            await self._editor.request("magy/interaction/respond", {
                "sessionId": self.session,
                "interactionId": update["open"]["interactionId"],
                "outcome": "allow",
                "scope": "session",
            })  # fmt: skip
        return bool(update["sessionUpdate"] == "state_update" and update["state"] == "idle")
