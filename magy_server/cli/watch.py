"""Shows a session until its turn is over, answers its questions, and hears Ctrl-C."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any, Protocol

from magy_server.cli.keyboard import Keyboard
from magy_server.cli.terminal import ECHO, Output, Screen
from magy_server.cli.text import Span
from magy_server.cli.view import View
from magy_server.core.errors import MagyError, StoreUnavailable
from magy_server.core.updates import Update
from magy_server.engine.engine import Engine
from magy_server.engine.follow import Follower
from magy_server.engine.session import Session

PACE = 0.03
"""Seconds between two looks: what streams merges meanwhile."""
TICK = 1.0
"""Seconds between two looks at the clock while nothing comes."""
BUDGET = 64 * 1024
BY = "magy run"
NOBODY = (
    "Nobody can be asked: this runs without a terminal. Do without it, and say at the end what "
    "could not be done."
)
KEYS = {"y": "once", "a": "session", "p": "project"}


class Printer(Protocol):
    """A form of output."""

    async def show(self, updates: Sequence[Update]) -> None: ...

    async def idle(self, seconds: int, *prompts: str) -> None:
        """Nothing is new for so many seconds; `prompts` is what a person is asked to type, in
        forms that get shorter: the first that fits is shown."""
        ...

    def folded(self, call_id: str) -> bool:
        """Whether a question about this call has shown only the beginning of the diff."""
        ...

    async def unfold(self, call_id: str) -> None:
        """Shows the whole diff."""
        ...

    async def say(self, spans: Sequence[Span]) -> None:
        """A line for the person at the terminal; none at all wipes what is passing."""
        ...


class Lines:
    """For people. `quiet`: only the questions."""

    def __init__(self, screen: Screen, view: View, *, quiet: bool = False) -> None:
        self._screen = screen
        self._view = view
        self._quiet = quiet
        self._prompted = ""

    async def show(self, updates: Sequence[Update]) -> None:
        width = self._screen.width
        self._view.height = self._screen.height
        spans: list[Span] = []
        for update in updates:
            new = self._view.update(update, width)
            if not self._quiet or update["sessionUpdate"] == "_magy_interaction":
                spans += new
        await self._write(spans, self._view.live(width))

    async def _write(self, spans: list[Span], live: str) -> None:
        """What is written stands in the place of the question, which is asked again below."""
        if self._prompted and not self._screen.passing:
            spans = [("\n", ""), *spans]
        self._prompted = ""
        await self._screen.write(spans, live)

    async def idle(self, seconds: int, *prompts: str) -> None:
        room = (self._screen.width or 80) - ECHO
        prompt = next((form for form in prompts if len(form) <= room), prompts[-1])
        if prompt:
            if prompt != self._prompted:
                await self._screen.prompt(prompt)
        elif live := self._view.live(self._screen.width):
            await self._screen.write([], f"{live} ({seconds} s)" if seconds >= 2 else live)
        self._prompted = prompt

    def folded(self, call_id: str) -> bool:
        return self._view.folded(call_id)

    async def unfold(self, call_id: str) -> None:
        await self.say(self._view.unfold(call_id))

    async def say(self, spans: Sequence[Span]) -> None:
        width = self._screen.width
        live = self._view.live(width) if spans else ""
        await self._write([*self._view.close(width), *spans], live)


class Records:
    """For programs: each update as `magy/session/update` carries it."""

    def __init__(self, output: Output, session_id: str) -> None:
        self._output = output
        self._id = session_id

    async def show(self, updates: Sequence[Update]) -> None:
        lines = (record({"sessionId": self._id, "update": update}) for update in updates)
        await self._output.write("".join(lines))

    async def idle(self, seconds: int, *prompts: str) -> None: ...

    def folded(self, call_id: str) -> bool:
        return False

    async def unfold(self, call_id: str) -> None: ...

    async def say(self, spans: Sequence[Span]) -> None: ...


class Silence:
    async def show(self, updates: Sequence[Update]) -> None: ...

    async def idle(self, seconds: int, *prompts: str) -> None: ...

    def folded(self, call_id: str) -> bool:
        return False

    async def unfold(self, call_id: str) -> None: ...

    async def say(self, spans: Sequence[Span]) -> None: ...


def record(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"


class Watch:
    """`awaited`: the id of our prompt; the turn that it joins is watched to its end. None: to the
    end of whatever turn is open."""

    def __init__(
        self,
        engine: Engine,
        session: Session,
        cursor: int,
        printer: Printer,
        keyboard: Keyboard | None,
        awaited: str | None,
    ) -> None:
        self.unasked: list[str] = []
        """The rules whose questions were refused because nobody can be asked."""
        self._engine = engine
        self._session = session
        self._id = session.stream.removeprefix("session/")
        self._follower = Follower(engine, session, cursor)
        self._printer = printer
        self._keyboard = keyboard
        self._awaited = awaited
        self._ours = awaited is None
        self._over = False
        self._broken = ""
        self._questions: dict[str, dict[str, Any]] = {}
        self._refusing = ""
        """The question for whose refusal a reason is being typed."""
        self._wake = asyncio.Event()
        self._cancelling: asyncio.Task[bool] | None = None

    async def run(self) -> None:
        """Returns when the turn is over. Raises MagyError."""
        unwatch = self._session.watch(self._wake.set)
        self._engine.runner.broken = self._break
        if self._keyboard:
            self._keyboard.wake = self._wake.set
        self._session.want_partials()
        try:
            await self._loop()
        finally:
            unwatch()
            if self._keyboard:
                self._keyboard.rest()
            if self._cancelling:
                self._cancelling.cancel()  # it may be waiting for a reader that never reads
                await asyncio.gather(self._cancelling, return_exceptions=True)

    async def _loop(self) -> None:
        since = time.monotonic()
        while True:
            self._wake.clear()
            if self._broken:
                raise StoreUnavailable(self._broken)
            if not self._refusing and (updates := await self._news()):
                since = time.monotonic()
                await self._printer.show(updates)
                if self._over:
                    return
                continue
            await self._ask()
            waited = int(time.monotonic() - since)
            await self._printer.idle(waited, *self._prompts())
            await self._pause()

    async def _news(self) -> list[Update]:
        updates = await self._follower.news(BUDGET)
        for update in updates:
            self._note(update)
        return updates or self._follower.deltas()

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(TICK):
                await self._wake.wait()
        except TimeoutError:
            return
        await asyncio.sleep(PACE)

    def _break(self, stream: str, sentence: str) -> None:
        if stream == self._session.stream:
            self._broken = sentence
            self._wake.set()

    def _note(self, update: Update) -> None:
        match update["sessionUpdate"]:
            case "_magy_queue":
                self._ours = self._ours or self._awaited in update.get("admitted", ())
                self._over = self._over or self._awaited in update.get("dropped", ())
            case "state_update" if update["state"] == "idle":
                self._questions.clear()
                more = self._awaited is None and self._session.state.waiting
                self._over = self._over or (self._ours and not more)
            case "_magy_interaction":
                if opened := update.get("open"):
                    self._questions[opened["interactionId"]] = opened
                elif resolved := update.get("resolved"):
                    self._questions.pop(resolved["interactionId"], None)
        # A call can end without its question being answered.
        if update.get("status") in ("completed", "failed", "cancelled"):
            for id, question in tuple(self._questions.items()):
                if question["toolCallId"] == update["toolCallId"]:
                    del self._questions[id]

    # --- Ctrl-C ---------------------------------------------------------------------------------

    def cancel(self) -> None:
        """From a signal handler of the loop: cancels the turn and says so."""
        if self._cancelling is None:
            self._cancelling = asyncio.ensure_future(self._cancel())

    async def _cancel(self) -> bool:
        self._refusing = ""
        if self._keyboard:
            self._keyboard.rest()
        cancelled = await self._engine.cancel(self._id, None)
        self._wake.set()
        await self._printer.say([("cancelling; Ctrl-C again leaves at once\n", "yellow")])
        return cancelled

    # --- questions ------------------------------------------------------------------------------

    async def _ask(self) -> None:
        """One step with the first open question: nobody there, a key, a reason."""
        if not self._questions or self._cancelling:
            if self._keyboard:
                self._refusing = ""
                self._keyboard.rest()
            return
        id, question = next(iter(self._questions.items()))
        if self._keyboard is None or self._keyboard.gone:
            await self._nobody(id, question)
            return
        if self._refusing:
            if (reason := self._keyboard.line()) is not None:
                self._refusing = ""
                await self._answer(id, allow=False, reason=reason)
            return
        self._keyboard.listen("key")
        while key := self._keyboard.key():
            if key == "n":
                self._refusing = id
                self._keyboard.listen("line")
                return
            scope = KEYS.get(key, "")
            if scope == "once" or (scope and question["remember"]):
                await self._answer(id, allow=True, scope=scope)
                return
            if key == "?":
                folded = self._printer.folded(question["toolCallId"])
                await self._printer.say(help_of(question, folded=folded))
            if key == "d" and self._printer.folded(question["toolCallId"]):
                await self._printer.unfold(question["toolCallId"])

    def _prompts(self) -> Sequence[str]:
        """What is asked for, in forms that get shorter."""
        if self._refusing:
            return ("why not? (Enter: no reason) ", "why not? ")
        if not self._questions or self._cancelling or self._keyboard is None:
            return ("",)
        question = next(iter(self._questions.values()))
        keys = [("y", "once", "once")]
        if question["remember"]:
            keys.append(("a", "always in this session", "session"))
            keys.append(("p", "always in this project", "project"))
        if self._printer.folded(question["toolCallId"]):
            keys.append(("d", "whole diff", "diff"))
        keys += [("n", "no", "no"), ("?", "help", "help")]
        return (
            "  ".join(f"[{key}] {long}" for key, long, _ in keys) + " ",
            "  ".join(f"[{key}] {short}" for key, _, short in keys) + " ",
            " ".join(f"[{key}]" for key, *_ in keys) + " ",
        )

    async def _nobody(self, id: str, question: dict[str, Any]) -> None:
        self.unasked.append(question["rule"])
        await self._answer(id, allow=False, reason=NOBODY)

    async def _answer(self, id: str, *, allow: bool, reason: str = "", scope: Any = "once") -> None:
        self._questions.pop(id, None)
        if self._keyboard:
            self._keyboard.rest()
        try:
            await self._engine.answer(self._id, id, allow=allow, reason=reason, scope=scope, by=BY)
        except MagyError as error:
            await self._printer.say([(f"{error.message}\n", "red")])


def help_of(question: dict[str, Any], *, folded: bool) -> list[Span]:
    grants = " and ".join(f"{grant['key']} `{grant['pattern']}`" for grant in question["remember"])
    lines = ["y  allow this call"]
    if grants:
        lines += [
            f"a  allow {grants} until this session ends",
            f"p  allow {grants} in this project, from now on",
        ]
    if folded:
        lines.append("d  show the whole diff")
    lines += ["n  refuse; the agent is told why, if you say why", "Ctrl-C  stop the whole turn"]
    return [(f"    {line}\n", "") for line in lines]
