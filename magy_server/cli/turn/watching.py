"""`Watch` shows a session until its turn is over, takes answers to questions, and hears Ctrl-C."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from magy_server.api.service import Service
from magy_server.api.sessions.follow import Follower
from magy_server.cli.screen.keyboard import Keyboard
from magy_server.cli.screen.printers import Printer
from magy_server.cli.screen.text import Span
from magy_server.cli.screen.tool_calls import ONCE, is_about_agents
from magy_server.cli.turn.filling import Filling
from magy_server.cli.turn.watched_children import WatchedChildren
from magy_server.core.agents.tree import Stream
from magy_server.core.errors import InvalidRequest, MagyError, StoreUnavailable
from magy_server.core.events import NOBODY
from magy_server.core.steps import opener
from magy_server.core.text.sanitizing import one_line
from magy_server.core.updates import Update
from magy_server.engine.session import Session

PACE = 0.03
"""Seconds between two looks: what streams merges meanwhile."""
TICK = 1.0
"""Seconds between two looks at the clock while nothing comes."""
BUDGET = 64 * 1024
BY = "magy run"
UNATTENDED = (
    "Nobody can answer: Magy runs without a terminal. Do without this, and say at the end what "
    "you could not do."
)
PROMPT = "your next prompt"
KEYS = {"y": "once", "s": "session", "p": "project"}
"""Those that allow; as in Emacs."""


class Watch:
    """`awaited`: the id of our prompt; the turn that it joins is watched to its end. None: to the
    end of whatever turn is open."""

    def __init__(
        self,
        service: Service,
        session: Session,
        cursor: int,
        printer: Printer,
        keyboard: Keyboard | None,
        awaited: str | None,
    ) -> None:
        self.unasked: list[str] = []
        """The rules whose questions Magy refused because it could ask nobody."""
        self._service = service
        self._session = session
        self._id = session.id
        self._follower = Follower(service, session, cursor)
        self._printer = printer
        self._keyboard = keyboard
        self._awaited = awaited
        self._ours = awaited is None
        self._over = False
        self._broken = ""
        self._questions: dict[str, Mapping[str, Any]] = {}
        self._current = ""
        """The question that stands on the screen above the keys."""
        self._refusing = ""
        """The question for whose refusal a reason is being typed."""
        self._filling: Filling | None = None
        """What is being filled in."""
        self._wake = asyncio.Event()
        self._children = WatchedChildren(service, self._id, self._wake.set)
        self._cancelling: asyncio.Task[bool] | None = None

    async def run(self) -> None:
        """Watches, and returns when the turn is over. Raises MagyError."""
        unwatch = self._session.watch(self._wake.set)
        unbreak = self._service.loaded.news.broken.add(self._break)
        untyped = self._keyboard.typed.add(self._wake.set) if self._keyboard else None
        self._session.want_partials()
        try:
            await self._loop()
        finally:
            unwatch()
            unbreak()
            if untyped:
                untyped()
            self._children.close()
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
            typing = self._refusing or self._filling
            updates = [] if typing else await self._news()
            moved = () if typing else await self._children.news()
            if updates or moved:
                since = time.monotonic()
                await self._printer.below(moved, self._children.working)
                await self._printer.show(updates)
            if self._over and await self._rests():
                return
            if updates:
                continue
            await self._ask_below()
            await self._ask()
            waited = int(time.monotonic() - since)
            await self._printer.idle(waited, *self._prompts())
            await self._pause()

    async def _news(self) -> list[Update]:
        updates = await self._follower.news(BUDGET)
        for update in updates:
            self._note(update)
        return updates or self._follower.deltas()

    async def _rests(self) -> bool:
        """Returns whether nothing of the children makes the session go on, now or later, or has
        made it go on since the last look."""
        if not self._children.children:
            return True
        # A result is in its log as soon as the child's turn has ended: read as far.
        await self._session.refresh()
        state = self._session.state
        first = opener(state)  # none where the turn was stopped: what came then waits for a person
        told = first is not None and first.type == "mailed"
        seen = self._follower.cursor >= state.seq
        return seen and state.turn is None and not told and not self._children.awaited

    async def _ask_below(self) -> None:
        """The questions of children join the session's own."""
        open_ = await self._children.questions()
        self._drop(lambda one: not _is_own(one) and one["interactionId"] not in open_)
        if not self._cancelling:
            self._questions |= {id: one for id, one in open_.items() if id not in self._questions}

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(TICK):
                await self._wake.wait()
        except TimeoutError:
            return
        await asyncio.sleep(PACE)

    def _break(self, stream: Stream, sentence: str) -> None:
        if stream == self._session.stream:
            self._broken = sentence
            self._wake.set()

    def _note(self, update: Update) -> None:
        match update["sessionUpdate"]:
            case "_magy_queue":
                self._ours = self._ours or self._awaited in update.get("admitted", ())
                self._over = self._over or self._awaited in update.get("dropped", ())
            case "state_update" if update["state"] == "idle":
                self._drop(_is_own)  # they are over with its turn
                more = self._awaited is None and opener(self._session.state) is not None
                self._over = self._over or (self._ours and not more)
            case "_magy_interaction":
                if opened := update.get("open"):
                    self._questions[opened["interactionId"]] = opened
                elif resolved := update.get("resolved"):
                    self._questions.pop(resolved["interactionId"], None)
        # A call can end without its question being answered.
        if update.get("status") in ("completed", "failed", "cancelled"):
            self._drop(lambda one: _is_own(one) and one["toolCallId"] == update["toolCallId"])

    def _drop(self, over: Callable[[Mapping[str, Any]], bool]) -> None:
        self._questions = {id: one for id, one in self._questions.items() if not over(one)}

    # --- Ctrl-C ---------------------------------------------------------------------------------

    @property
    def cancelled(self) -> bool:
        """Returns whether somebody pressed Ctrl-C, whether it found the turn or only children at
        work."""
        return self._cancelling is not None

    def cancel(self) -> None:
        """Cancels the turn and says so; for a signal handler of the loop."""
        if self._cancelling is None:
            self._cancelling = asyncio.ensure_future(self._cancel())

    async def _cancel(self) -> bool:
        self._refusing, self._filling = "", None
        if self._keyboard:
            self._keyboard.rest()
        cancelled = await self._service.cancel(self._id, None)
        self._wake.set()
        await self._printer.say([("cancelling; press Ctrl-C again to leave at once\n", "yellow")])
        return cancelled

    # --- questions ------------------------------------------------------------------------------

    async def _ask(self) -> None:
        """One step with the first open question: show it, nobody there, a key, a reason."""
        if not self._questions or self._cancelling:
            self._refusing = self._current = ""
            self._filling = None
            if self._keyboard:
                self._keyboard.rest()
            return
        id, question = next(iter(self._questions.items()))
        if self._current != id:
            await self._show(id)
        if self._keyboard is None or self._keyboard.gone:
            await self._nobody(id, question)
            return
        if self._refusing:
            if (reason := self._keyboard.line()) is not None:
                self._refusing = ""
                await self._answer(id, allow=False, reason=reason)
            return
        if self._filling:
            await self._fill(self._filling, self._keyboard)
            return
        self._keyboard.listen("key")
        await self._heard(id, question, self._keyboard)

    async def _show(self, id: str) -> None:
        """What was typed until it stands there is for another question, or for none."""
        if self._keyboard:
            self._keyboard.rest()
        self._current, self._refusing, self._filling = id, "", None
        await self._printer.question(self._questions[id])

    async def _heard(self, id: str, question: Mapping[str, Any], keyboard: Keyboard) -> None:
        while key := keyboard.key():
            if key == "n" and question.get("form"):
                await self._answer(id, allow=False)
                return
            if key == "n":
                self._refusing = id
                keyboard.listen("line")
                return
            scope = KEYS.get(key, "")
            form = question.get("form")
            if scope == "once" and form and form["fields"]:
                self._filling = Filling(id, form)
                keyboard.listen("line")
                return
            if scope == "once" or (scope and question["remember"]):
                await self._answer(id, allow=True, scope=scope)
                return
            if key == "?":
                folded = self._printer.folded(id)
                await self._printer.say(help_of(question, folded=folded))
            if key == "v":
                await self._printer.unfold(id)

    async def _fill(self, filling: Filling, keyboard: Keyboard) -> None:
        """One step with a form: a line for the next field."""
        line = keyboard.line()
        if line is None:
            return
        if wrong := filling.take(line):
            await self._printer.say([(f"    {one_line(wrong)}\n", "yellow")])
        elif filling.done:
            self._filling = None
            await self._answer(filling.id, allow=True, content=filling.content)
        self._wake.set()  # the next line may be there already

    def _prompts(self) -> Sequence[str]:
        """What is asked for, in forms that get shorter."""
        if self._filling:
            return self._filling.prompts()
        if self._refusing:
            return ("why not? (Enter: no reason) ", "why not? ")
        question = self._questions.get(self._current)
        if question is None or self._cancelling or self._keyboard is None:
            return ("",)
        once = f"until {PROMPT}" if is_about_agents(question) else "once"
        once = yes_to(question["form"]) if question.get("form") else once
        keys = [("n", "no", "no"), ("y", once, once)]
        if question["remember"]:
            keys.append(("s", "for this session", "session"))
            keys.append(("p", "for this project", "project"))
        if self._printer.folded(self._current):
            keys.append(("v", "all of it", "all"))
        keys.append(("?", "help", "help"))
        return (
            "  ".join(f"[{key}] {long}" for key, long, _ in keys) + " ",
            "  ".join(f"[{key}] {short}" for key, _, short in keys) + " ",
            " ".join(f"[{key}]" for key, *_ in keys) + " ",
        )

    async def _nobody(self, id: str, question: Mapping[str, Any]) -> None:
        self.unasked.append(question["rule"])
        await self._answer(id, allow=False, reason=UNATTENDED, by=NOBODY)

    async def _answer(
        self,
        id: str,
        *,
        allow: bool,
        reason: str = "",
        scope: Any = "once",
        by: str = BY,
        content: Mapping[str, Any] | None = None,
    ) -> None:
        question = self._questions.pop(id, {})
        session = question.get("sessionId")
        self._current = ""
        self._wake.set()  # the next one may be open already
        if self._keyboard:
            self._keyboard.rest()
        try:
            answered = await self._service.answer(
                session or self._id,
                id,
                allow=allow,
                reason=reason,
                scope=scope,
                by=by,
                content=content,
            )
        except MagyError as error:
            await self._printer.say([(f"{error.message}\n", "red")])
            if isinstance(error, InvalidRequest) and content is not None:
                self._questions[id] = question
            return
        if session and answered and self._keyboard:  # its log is not shown here
            said = "allowed" if allow else f"refused: {reason}" if reason else "refused"
            await self._printer.say([(f"    {one_line(said)}\n", "green" if allow else "red")])


def _is_own(question: Mapping[str, Any]) -> bool:
    """Whether the session itself asks: a child's question names its session."""
    return "sessionId" not in question


def yes_to(form: Mapping[str, Any]) -> str:
    """What a yes to a form means."""
    return "fill it in" if form["fields"] else "tell the server that you agree"


def help_of(question: Mapping[str, Any], *, folded: bool) -> list[Span]:
    lines = ["n  refuse; you can give the agent a reason", "y  allow this call"]
    if form := question.get("form"):
        lines = ["n  refuse; the server is told that you do", f"y  {yes_to(form)}"]
    if is_about_agents(question):
        lines[1] = f"y  allow this agent, and others, until {PROMPT}"
    if grants := " and ".join(question["covers"]):
        lines += [
            f"s  allow {grants} until this session ends",
            f"p  allow {grants} in this project, from now on",
        ]
    elif not form:
        lines.append(ONCE)
    lines.append("v  show all of it" if folded else "v  show it once more")
    lines.append("Ctrl-C  stop the whole turn")
    return [(f"    {line}\n", "") for line in lines]
