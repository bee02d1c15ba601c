"""This module makes one request for an inline completion, and records what it took. After a failure
it asks that model no more for a while: nobody wants to hear of it at every keystroke."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing
from time import monotonic
from typing import Literal

from magy_server.api.completions.spending import Day, Spending
from magy_server.core.errors import MagyError, OverBudget, ProviderError, StoreError
from magy_server.core.events import Replied, Suggested
from magy_server.core.ports import Message, ModelFacts, ModelRequest, Provider
from magy_server.core.prompting import sizes
from magy_server.core.settings import CompletionSettings
from magy_server.core.values import Text, Usage
from magy_server.dataclass import dataclass
from magy_server.engine.world import World
from magy_server.tasks import Tasks

LOG = logging.getLogger(__name__)
AGENT = "completion"
"""The hidden agent whose text is the system prompt."""
FIRST, LONGEST, HOPELESS = 5.0, 300.0, 600.0
"""Seconds until a model is asked again after a first failure, after many in a row, and after one
that only a person can mend."""
RESTED = 60.0
"""Seconds until it is looked again whether there is money for a request, or a model."""


@dataclass(frozen=True, slots=True)
class Question:
    """`root`: whose settings hold. `key`: the same for all requests of one document, so that a
    provider finds the machine that has read it."""

    root: str | None
    model: str
    key: str
    settings: CompletionSettings
    text: str


@dataclass(frozen=True, slots=True)
class Pause:
    """A model is not asked before `until` (monotonic seconds), because of `why`."""

    until: float
    why: str
    failures: int


class Asking:
    """Nobody who types waits until a request is counted. `spent` is then called with the sums of
    the day."""

    def __init__(self, world: World, spent: Callable[[Day], None]) -> None:
        self._world = world
        self._counting = Tasks()
        self._spent = spent
        self.spending = Spending(world.store, world.clock)
        self._pauses: dict[str, Pause] = {}
        self._said: set[str] = set()

    def pause(self, model: str) -> str:
        """Returns why the model is not asked now; "" if it is."""
        pause = self._pauses.get(model)
        return pause.why if pause and monotonic() < pause.until else ""

    def rest(self, model: str, why: str) -> None:
        """Has the model not asked for a while, though it has not failed."""
        self._pauses[model] = Pause(monotonic() + RESTED, why, 0)

    def say_once(self, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            LOG.warning("%s", sentence)

    async def close(self) -> None:
        """Returns when all that was asked is counted."""
        await self._counting.settle()

    async def ask(self, question: Question) -> Replied | None:
        """Returns the reply; None if there is none to be had, which was then logged and recorded.
        Being cancelled ends the request. Raises StoreError."""
        try:
            request, provider, facts = self._prepared(question)
            await self._check_budget(question, request, facts)
        except OverBudget as error:
            self.rest(question.model, error.message)
            self.say_once(error.message)
            return None
        except StoreError:
            raise
        except MagyError as error:
            self._failed(question, error, Usage(), None)
            return None
        return await self._asked(question, request, provider, facts)

    def _prepared(self, question: Question) -> tuple[ModelRequest, Provider, ModelFacts]:
        agent = self._world.agent(AGENT, question.root)
        models = self._world.models(question.root)
        provider, own_name = models.named(question.model)
        request = ModelRequest(
            id=AGENT,
            session=question.key,
            model=own_name,
            system=(agent.prompt,),
            tools=(),
            messages=(Message("user", (Text(text=question.text),)),),
            max_tokens=question.settings.max_tokens,
            temperature=agent.temperature,
            single=True,
        )
        return request, provider, models.facts(question.model)

    async def _check_budget(
        self, question: Question, request: ModelRequest, facts: ModelFacts
    ) -> None:
        """Raises OverBudget: the request might cost more than is left of the day's money."""
        limit = question.settings.day_cost
        if not limit:
            return
        if facts.price is None:
            self.say_once(
                f"The price of {question.model} is not known, so completion.day_cost does not "
                "limit what its suggestions cost."
            )
            return
        usage = Usage(input=sizes.bound(request), output=request.max_tokens)
        today = await self.spending.today()
        if today.cost + facts.price.of(usage) > limit:
            raise OverBudget(
                f"Inline completion rests until tomorrow: it has cost ${today.cost:.4f} today, and "
                f"completion.day_cost is ${limit:g}."
            )

    async def _asked(
        self, question: Question, request: ModelRequest, provider: Provider, facts: ModelFacts
    ) -> Replied | None:
        sent = False
        try:
            async with asyncio.timeout(question.settings.timeout):
                async with self._world.slots.requests(question.model.partition("/")[0]):
                    sent = True
                    reply = await _reply(provider, request)
        except asyncio.CancelledError:
            if sent:
                self._count(question, "cancelled", *_estimate(request, facts))
            raise
        except TimeoutError:
            if not sent:
                return None  # the agents' requests had all places at the provider
            error = ProviderError(
                f"{question.model} did not answer within {question.settings.timeout:g} s; choose a "
                "faster completion.model, or raise completion.timeout.",
                fault="timeout",
                retryable=True,
            )
            self._failed(question, error, *_estimate(request, facts))
            return None
        except ProviderError as error:
            self._failed(question, error, Usage(), None)
            return None
        self._answered(question, reply, facts)
        return reply

    def _answered(self, question: Question, reply: Replied, facts: ModelFacts) -> None:
        self._pauses.pop(question.model, None)
        outcome: Literal["text", "nothing"] = "text" if text_of(reply).strip() else "nothing"
        if outcome == "nothing" and reply.stop == "max_tokens":
            self.say_once(
                f"{question.model} used all {question.settings.max_tokens} tokens before it wrote "
                "anything: choose a completion.model that does not think first."
            )
        self._count(question, outcome, reply.usage, facts.cost(reply.usage))

    def _failed(
        self, question: Question, error: MagyError, usage: Usage, cost: float | None
    ) -> None:
        """Asks that model no more for a while, the longer the oftener it has failed."""
        before = self._pauses.get(question.model)
        failures = before.failures + 1 if before else 1
        wait = HOPELESS
        if isinstance(error, ProviderError) and error.retryable:
            wait = max(min(FIRST * 2.0 ** (failures - 1), LONGEST), error.retry_after or 0.0)
        self._pauses[question.model] = Pause(monotonic() + wait, error.message, failures)
        said = f"Inline completion pauses for {wait:.0f} s: {error.message}"
        LOG.log(logging.WARNING if failures == 1 else logging.DEBUG, "%s", said)
        self._count(question, "failed", usage, cost, error.message)

    def _count(
        self,
        question: Question,
        outcome: Literal["text", "nothing", "cancelled", "failed"],
        usage: Usage,
        cost: float | None,
        why: str = "",
    ) -> None:
        event = Suggested(
            root=question.root, model=question.model, outcome=outcome, usage=usage, cost=cost,
            why=why,
        )  # fmt: skip
        self._counting.begin(self._record(event))

    async def _record(self, event: Suggested) -> None:
        try:
            self._spent(await self.spending.record(event))
        except StoreError as error:
            # What cannot be counted has no limit.
            self.rest(event.model, error.message)
            self.say_once(error.message)


async def _reply(provider: Provider, request: ModelRequest) -> Replied:
    async with aclosing(provider.stream(request)) as stream:
        async for item in stream:
            if isinstance(item, Replied):
                return item
    raise ProviderError(
        "The model ended its stream without a reply.", fault="malformed", retryable=True
    )


def _estimate(request: ModelRequest, facts: ModelFacts) -> tuple[Usage, float | None]:
    """What a request takes of which nobody heard the end: its prompt was read, at least."""
    return Usage(unreported=1), facts.cost(Usage(input=sizes.about(request)))


def text_of(reply: Replied) -> str:
    """The text as it was written, blanks at both ends included; "" if the model refused."""
    if reply.stop == "refusal":
        return ""
    return "".join(part.text for part in reply.content if isinstance(part, Text))
