"""In the second act Ada looks at what the agent did, hunk by hunk, while it works and she types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from magy_server.demo.editor import Editor
from magy_server.demo.screen import Screen

TYPED = "\nCURRENCY = 'EUR'\n"
"""What Ada types above the agent's hunks that are still pending."""
REASON = "Do not round here: who shows a sum rounds it. Say so in the docstring instead."


class Review:
    def __init__(self, editor: Editor, screen: Screen, file: Path) -> None:
        self._editor = editor
        self._screen = screen
        self._file = file
        self._decisions = 0

    async def look(self) -> None:
        """While the agent waits: one hunk is accepted, one moves as Ada types, one is refused."""
        hunks = await self._hunks()
        self._screen.aside(
            f"Three hunks are pending in {self._file.name}; the file already has them:"
        )
        for hunk in hunks:
            self._show(hunk)
        vat, average, total = hunks
        await self._decide("accept", vat)
        at = average["range"]["start"]["line"]
        self._editor.type(self._file, at - 3, TYPED)
        self._screen.aside("Ada types two lines above the others, while the agent works.")
        (moved,) = [h for h in await self._hunks() if h["hunkId"] == average["hunkId"]]
        now = moved["range"]["start"]["line"]
        self._screen.aside(f"The hunk at line {at + 1} is still pending, now at line {now + 1}.")
        await self._decide("reject", total, REASON)

    async def finish(self) -> bool:
        """Accepts what is left; whether nothing is pending then."""
        hunks = await self._hunks()
        for hunk in hunks:
            self._show(hunk)
        self._screen.decided(True, "Ada accepts the rest.")
        await self._resolve({"decision": "accept", "all": True})
        return not await self._hunks()

    async def accept_all(self, file: Path | None = None) -> None:
        self._screen.decided(True, "Ada accepts the change: it is hers now.")
        if await self._hunks(file):
            await self._resolve({"decision": "accept", "all": True}, file)

    async def _hunks(self, file: Path | None = None) -> list[dict[str, Any]]:
        asked = {"uri": (file or self._file).as_uri()}
        found = (await self._editor.request("magy/review/get", asked))["file"]
        return list(found["hunks"]) if found else []

    async def _decide(self, decision: str, hunk: dict[str, Any], reason: str = "") -> None:
        line = hunk["range"]["start"]["line"] + 1
        word = "accepts" if decision == "accept" else "rejects"
        said = f", saying: {reason}" if reason else ""
        self._screen.decided(decision == "accept", f"Ada {word} the hunk at line {line}{said}")
        await self._resolve({"decision": decision, "hunkIds": [hunk["hunkId"]], "reason": reason})

    async def _resolve(self, wish: dict[str, Any], file: Path | None = None) -> None:
        self._decisions += 1
        key, uri = f"demo-{self._decisions}", (file or self._file).as_uri()
        await self._editor.request("magy/review/resolve", {"uri": uri, "requestKey": key, **wish})

    def _show(self, hunk: dict[str, Any]) -> None:
        self._screen.say(f"    at line {hunk['range']['start']['line'] + 1}")
        for mark, text in (("-", hunk["oldText"]), ("+", hunk["newText"])):
            self._screen.diff("".join(f"{mark}{line}\n" for line in text.splitlines()))
