"""This module asks a model for the next reply of a session, with retries: nothing that was half
streamed ever reaches the log. It shows a person how far the model has read the prompt, until the
reply begins.

A model on a machine without a graphics card reads for minutes. Its server may say how far it is.
Otherwise Magy shows how long it took so far, and after a while what would help."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, aclosing, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from time import monotonic

from pydantic_core import PydanticSerializationError

from magy_server.core import prompt
from magy_server.core.codec import encode
from magy_server.core.errors import Conflict, OverBudget, ProviderError
from magy_server.core.events import CompactAsked, Compacted, Ended, Event, Replied
from magy_server.core.ports import ModelFacts, ModelRequest, Provider, Reading
from magy_server.core.prompting import sizes
from magy_server.core.prompting.compaction import possible
from magy_server.core.prompting.seldom_tools import CALL, unwrapped
from magy_server.core.prompting.transcript import transcript
from magy_server.core.settings import ModelSettings
from magy_server.core.state.state import State
from magy_server.core.steps import hand_back
from magy_server.core.text.surrogates import Joining, all_whole
from magy_server.engine.feature_ports import Purse
from magy_server.engine.log import Write
from magy_server.engine.prefetch import Early
from magy_server.engine.session import Session
from magy_server.engine.world import World

Permit = Callable[[], AbstractAsyncContextManager[None]]

AT_ONCE = 100
"""So many items of a conversation are made into messages on the loop, which takes a millisecond;
more of them, for the first request after a start, are left to a thread."""
LONGEST_WAIT = 60.0
"""Seconds. A provider that asks for more is not waited for: the person decides."""


async def call_model(
    session: Session,
    world: World,
    purse: Purse,
    early: Early,
    ends: Callable[[Ended], Awaitable[Ended]],
) -> None:
    """`ends` makes of the end of a turn what is to be said of it."""
    state = session.state
    turn = state.turn
    if turn is None:
        return
    came: Event
    try:
        came = await ask(session, world, purse, await request_of(state, world), early)
    except OverBudget as error:
        early.discard()
        came = Ended(turn=turn.id, stop="max_run", message=hand_back(state, turn, error.message))
    except ProviderError as error:
        early.discard()
        came = Ended(turn=turn.id, stop="error", message=error.message)
        if error.fault == "too_long" and possible(state):
            came = CompactAsked(why="too_long")
    if isinstance(came, Ended):
        came = await ends(came)
    alone = Write([came])
    write = await early.along(came) if isinstance(came, Replied) else alone
    try:
        await session.append(lambda now: write if _awaits(now, state) else None)
    except Conflict:
        if not write.others:
            raise
        early.discard()  # it was allowed by grants that are no more
        await session.append(lambda now: alone if _awaits(now, state) else None)


async def request_of(state: State, world: World) -> ModelRequest:
    """The request that the log calls for; `model` is `provider/model` yet."""
    built = prompt.begun(state, world.built.get(state.stream))
    texts = await world.texts(prompt.needed(built, state))
    pictures = await world.pictures(prompt.pictured(built, state))
    build = partial(prompt.build_on, built, state, texts, pictures)
    new = len(state.conversation.items) - len(built.items)
    request, built = await asyncio.to_thread(build) if new > AT_ONCE else build()
    world.built.keep(state.stream, built)
    return request


async def as_text(state: State, world: World, room: int) -> str:
    """The conversation in about `room` characters, for a request of its own: what a compaction
    left, which is all that is known of what was before, and what came since."""
    items = state.conversation.items
    hashes = {item.summary for item in items[:1] if isinstance(item, Compacted) and item.summary}
    texts = await world.texts(hashes)
    before = "".join(f"{texts[hash]}\n\n" for hash in hashes)
    return before[: room // 2] + transcript(items, max(room - len(before), room // 2))


async def ask(
    session: Session,
    world: World,
    purse: Purse,
    request: ModelRequest,
    early: Early | None = None,
) -> Replied:
    """The reply, fit for the log, with what it cost. Without `early` nothing of it is shown while
    it streams. Raises ProviderError, OverBudget."""
    root = session.state.root
    models = world.models(root)
    provider, own_name = models.named(request.model)
    sent = replace(request, model=own_name)
    settings = world.settings(root).model
    permit = partial(world.slots.requests, request.model.partition("/")[0])
    facts = models.facts(request.model)
    async with purse.reserved(session, request, facts) as slip:
        _check_fits(request, facts)
        came = await _retried(session, settings, provider, sent, early, permit, facts)
        reply = unwrapped(_storable(came))
        cost = facts.cost(reply.usage)
        reply = reply.model_copy(update={"model": request.model, "cost": cost})
        slip.took(reply)
    return reply


async def _retried(
    session: Session,
    settings: ModelSettings,
    provider: Provider,
    request: ModelRequest,
    early: Early | None,
    permit: Permit,
    facts: ModelFacts,
) -> Replied:
    """Retries what may succeed later: no call with an effect has run yet, so asking again is always
    safe. A permit is held while it asks, not while it waits."""
    retries = settings.retries
    told = ""
    for attempt in range(retries + 1):
        try:
            async with permit():
                return await _stream(session, provider, request, early, facts)
        except ProviderError as error:
            if early:
                early.discard()
                session.restart(request.id)
            wait = _wait(error, attempt, settings.retry_delay)
            if error.retryable and wait > LONGEST_WAIT:
                raise _patience(error, wait) from error
            if not error.retryable or attempt == retries:
                raise
            if early:
                which = f"try {attempt + 2} of {retries + 1}"
                why = "" if error.message == told else f"{error.message} "
                session.streaming.notice(f"{why}Trying again in {wait:.0f} s ({which}).\n")
                told = error.message
            await asyncio.sleep(wait)
    raise AssertionError("unreachable")


def _patience(error: ProviderError, wait: float) -> ProviderError:
    text = f"{error.message} The provider asks to wait {wait:.0f} s; send the prompt again then."
    return ProviderError(text, fault=error.fault, retryable=True, retry_after=wait)


def _wait(error: ProviderError, attempt: int, first: float) -> float:
    if error.retry_after is not None:
        return error.retry_after
    spread: float = random.uniform(0.75, 1.25)
    return min(first * 2.0**attempt * spread, LONGEST_WAIT)


def _check_fits(request: ModelRequest, facts: ModelFacts) -> None:
    """Raises ProviderError (`too_long`) for a prompt that no tokenizer makes fit: a small server
    would cut it, or read it for minutes and then refuse it."""
    if facts.window and (least := sizes.least(request)) > facts.window:
        tools = sum(sizes.characters(tool) for tool in request.tools) // 5
        advice = (
            "start its server with a larger context (OLLAMA_CONTEXT_LENGTH=32768, --ctx-size 32768 "
            "or --max-model-len 32768), or use an agent with fewer tools"
            if facts.local
            else "use a model with a larger window, or an agent with fewer tools"
        )
        raise ProviderError(
            f"{request.model}: the prompt has at least {least:,} tokens ({tools:,} of them the "
            f"tools), and the model's window is {facts.window:,}, so it was not sent. What to do: "
            f"{advice}.",
            fault="too_long",
        )


async def _stream(
    session: Session,
    provider: Provider,
    request: ModelRequest,
    early: Early | None,
    facts: ModelFacts,
) -> Replied:
    reply: Replied | None = None
    pieces = Joining()
    with shown(session, request, facts) if early else nullcontext() as progress:
        async with aclosing(provider.stream(request)) as stream:
            async for item in stream:
                if isinstance(item, Reading):
                    if progress:
                        progress.heard(item)
                    continue
                if progress:
                    progress.over()
                if isinstance(item, Replied):
                    reply = item
                elif early:
                    id = f"{request.id}.{item.index}" if item.kind == "call" else request.id
                    text = pieces.feed((item.kind, id), item.text, last=item.done)
                    if item.name != CALL:  # it is shown as what it calls, which is not known yet
                        session.stream_delta(item.kind, id, text, item.name)
                    early.take(id, item, text)
    if reply is None:
        raise ProviderError("The model ended its stream without a reply.", fault="malformed",
                            retryable=True)  # fmt: skip
    return reply


def _storable(reply: Replied) -> Replied:
    """A model can write half a surrogate pair, as an escape in JSON; UTF-8 cannot hold it."""
    try:
        encode(reply)
    except PydanticSerializationError:
        return Replied.model_validate(all_whole(reply.model_dump()))
    return reply


def _awaits(now: State, then: State) -> bool:
    """The turn still stands where the request was made; only its inbox may have grown."""
    return (
        now.turn is not None
        and then.turn is not None
        and now.turn.id == then.turn.id
        and now.turn.spent.requests == then.turn.spent.requests
    )


FIRST, EVERY, HELP = 3.0, 1.0, 20.0
"""Seconds until something is said, between two times, and until it is said what helps."""
_HELP = (
    "A shorter prompt (an agent with fewer tools, a new session), a smaller model or a graphics "
    "card makes this faster"
)


class Progress:
    """Begins to be shown after `FIRST` seconds."""

    def __init__(self, session: Session, request: ModelRequest, facts: ModelFacts) -> None:
        self._session = session
        self._request = request
        self._facts = facts
        self._began = monotonic()
        self._reading: Reading | None = None
        self._over = False
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(FIRST, self._tick)

    def heard(self, reading: Reading) -> None:
        self._reading = reading
        self._show()

    def over(self) -> None:
        """The reply begins, or will not come."""
        if not self._over:
            self._over = True
            self._timer.cancel()
            self._session.streaming.progress(self._request.id, "")

    def _tick(self) -> None:
        self._show()
        self._timer = self._loop.call_later(EVERY, self._tick)

    def _show(self) -> None:
        if not self._over:
            passed = monotonic() - self._began
            text = said(passed, self._reading, sizes.about(self._request), self._facts)
            self._session.streaming.progress(self._request.id, text)


@contextmanager
def shown(session: Session, request: ModelRequest, facts: ModelFacts) -> Iterator[Progress]:
    """Shows it for as long as the block lasts, or until `over`."""
    progress = Progress(session, request, facts)
    try:
        yield progress
    finally:
        progress.over()


def said(passed: float, reading: Reading | None, prompt: int, facts: ModelFacts) -> str:
    """`passed`: seconds; `prompt`: tokens, roughly."""
    if reading is not None and reading.total:
        return _read(reading)
    text = f"waiting for the model for {duration(passed)}: it reads about {prompt:,} tokens"
    return f"{text}. {_HELP}" if facts.local and passed >= HELP else text


def _read(reading: Reading) -> str:
    text = f"the model reads the prompt: {reading.done:,} of {reading.total:,} tokens"
    read = reading.done - reading.cached
    if read <= 0 or reading.seconds <= 0:
        return text
    rate = read / reading.seconds
    left = (reading.total - reading.done) / rate
    speed = f"{rate:,.0f}" if rate >= 1 else f"{rate:.1f}"
    return f"{text}, {speed} a second, about {duration(left)} left"


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
