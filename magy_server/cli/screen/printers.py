"""A terminal shows a session in one of these forms: for people, for programs, or not at all."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from magy_server.cli.screen.child_lines import line, live
from magy_server.cli.screen.terminal import ECHO, Output, Screen
from magy_server.cli.screen.text import Span, record
from magy_server.cli.screen.updates_view import View
from magy_server.core.agents.child import ChildInfo
from magy_server.core.updates import Update
from magy_server.core.wire_values import child

DRAFTING = 0.05
"""Seconds from one draft of a text that streams to the next: rendering takes its time."""


class Printer:
    """A form of output. This one shows nothing."""

    async def show(self, updates: Sequence[Update]) -> None:
        """Shows what is new."""

    async def idle(self, seconds: int, *prompts: str) -> None:
        """Shows that nothing is new for so many seconds. `prompts` asks the person to type, in
        forms that get shorter; the first that fits is shown."""

    def folded(self, question: str) -> bool:
        """Whether this question has shown only the beginning of what it is about."""
        return False

    async def unfold(self, question: str) -> None:
        """Shows all that the question is about."""

    async def say(self, spans: Sequence[Span]) -> None:
        """Shows a line to the person at the terminal; an empty one wipes what is passing."""

    async def below(self, moved: Sequence[ChildInfo], working: Sequence[ChildInfo]) -> None:
        """Shows the children whose state is another than before, and all that are at work."""

    async def question(self, asked: Mapping[str, Any]) -> None:
        """Shows an open question. One at a time: it is what stands above the keys."""


class Lines(Printer):
    """Shows a session to people. With `quiet` it shows only the questions."""

    def __init__(self, screen: Screen, view: View, *, quiet: bool = False) -> None:
        self._screen = screen
        self._view = view
        self._quiet = quiet
        self._prompted = ""
        self._next_draft = 0.0
        self._unshown: set[str] = set()
        """The questions of the session that it has not shown yet, by their ids."""
        self._working = ""
        """One line with the children at work."""
        self._waiting: list[Span] = []
        """What is to be told of children as soon as no text is in the middle of a line."""

    async def show(self, updates: Sequence[Update]) -> None:
        await self._update([update for update in updates if self._due(update)])

    def _due(self, update: Update) -> bool:
        """Not yet a question; and never an answer to one that was not shown."""
        if update["sessionUpdate"] != "_magy_interaction":
            return True
        if opened := update.get("open"):
            self._unshown.add(opened["interactionId"])
            return False
        resolved = update["resolved"]["interactionId"]
        shown = resolved not in self._unshown
        self._unshown.discard(resolved)
        return shown

    async def _update(self, updates: Sequence[Update]) -> None:
        width = self._screen.width
        self._view.height = self._screen.height
        spans: list[Span] = []
        for update in updates:
            new = self._view.update(update, width)
            if not self._quiet or update["sessionUpdate"] == "_magy_interaction":
                spans += new
            if not self._view.mid_line:
                spans += self._waited(width)
        await self._write(spans, self._live(width))

    def _waited(self, width: int | None) -> list[Span]:
        """Returns what has waited. It begins on a line of its own, and waits no more."""
        if not self._waiting:
            return []
        spans = [*self._view.close(width), *self._waiting]
        self._waiting.clear()
        return spans

    def _live(self, width: int | None) -> str:
        """Returns what is under way; while the session only waits for children that work, it shows
        them."""
        return "" if self._view.mid_line else self._working or self._view.live(width)

    async def below(self, moved: Sequence[ChildInfo], working: Sequence[ChildInfo]) -> None:
        self._working = live(working)
        top = min((child.depth for child in (*moved, *working)), default=1) - 1
        told = [child for child in moved if child.status != "queued"]
        if not self._quiet:
            for child in told:
                self._waiting += line(child, self._screen.marks, top, self._screen.width)
        if self._waiting and not self._view.mid_line:
            width = self._screen.width
            await self._write(self._waited(width), self._live(width))

    async def question(self, asked: Mapping[str, Any]) -> None:
        self._unshown.discard(asked["interactionId"])
        if self._waiting:
            await self.say([])
        await self._update([{"sessionUpdate": "_magy_interaction", "open": asked}])

    async def _write(self, spans: list[Span], live: str) -> None:
        """What is written stands in the place of the question, which is asked again below."""
        drafted = time.monotonic()
        if not (spans or self._prompted) and self._view.mid_line and drafted < self._next_draft:
            return  # the next piece of the text, or `idle`, draws both
        self._next_draft = drafted + DRAFTING
        if self._prompted and not self._screen.passing:
            spans = [("\n", ""), *spans]
        self._prompted = ""
        await self._screen.write(spans, live, self._draft())

    def _draft(self) -> Sequence[Span]:
        return [] if self._quiet else self._view.draft(self._screen.width, self._screen.height)

    async def idle(self, seconds: int, *prompts: str) -> None:
        room = (self._screen.width or 80) - ECHO
        prompt = next((form for form in prompts if len(form) <= room), prompts[-1])
        if prompt:
            if prompt != self._prompted:
                await self._screen.prompt(prompt)
        elif self._view.mid_line:
            await self._write([], "")
        elif passing := self._live(self._screen.width):
            timed = f"{passing} ({seconds} s)" if seconds >= 2 else passing
            await self._screen.write([], timed, self._draft())
        self._prompted = prompt

    def folded(self, question: str) -> bool:
        return self._view.folded(question)

    async def unfold(self, question: str) -> None:
        await self.say(self._view.unfold(question, self._screen.width))

    async def say(self, spans: Sequence[Span]) -> None:
        width = self._screen.width
        before = [*self._view.close(width), *self._waited(width)]
        await self._write([*before, *spans], self._live(width) if spans else "")


class Records(Printer):
    """Writes a session for programs: each update as `magy/session/update` carries it."""

    def __init__(self, output: Output, session_id: str) -> None:
        self._output = output
        self._id = session_id

    async def show(self, updates: Sequence[Update]) -> None:
        lines = (record({"sessionId": self._id, "update": update}) for update in updates)
        await self._output.write("".join(lines))

    async def below(self, moved: Sequence[ChildInfo], working: Sequence[ChildInfo]) -> None:
        updates = ({"sessionUpdate": "_magy_child", "child": child(one)} for one in moved)
        await self.show(list(updates))
