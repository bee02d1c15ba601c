"""What a person is shown while a model reads the prompt and says nothing yet.

A model on a machine without a graphics card reads for minutes. Its server may say how far it is;
else how long it took so far, and after a while what would help.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from time import monotonic

from magy_server.core import sizes
from magy_server.core.ports import ModelFacts, ModelRequest, Reading
from magy_server.engine.session import Session

FIRST, EVERY, HELP = 3.0, 1.0, 20.0
"""Seconds until something is said, between two times, and until it is said what helps."""
_HELP = (
    "A shorter prompt (an agent with fewer tools, a new session), a smaller model or a graphics "
    "card makes this faster"
)


class Progress:
    def __init__(self, session: Session, request: ModelRequest, facts: ModelFacts) -> None:
        self._session = session
        self._request = request
        self._facts = facts
        self._began = monotonic()
        self._reading: Reading | None = None
        self._over = False

    def heard(self, reading: Reading) -> None:
        self._reading = reading
        self._show()

    def over(self) -> None:
        """The reply begins, or will not come."""
        if not self._over:
            self._over = True
            self._session.live.progress(self._request.id, "")

    async def tick(self) -> None:
        await asyncio.sleep(FIRST)
        while not self._over:
            self._show()
            await asyncio.sleep(EVERY)

    def _show(self) -> None:
        if not self._over:
            passed = monotonic() - self._began
            text = said(passed, self._reading, sizes.about(self._request), self._facts)
            self._session.live.progress(self._request.id, text)


@asynccontextmanager
async def shown(
    session: Session, request: ModelRequest, facts: ModelFacts
) -> AsyncIterator[Progress]:
    """Shows it for as long as the block lasts, or until `over`."""
    progress = Progress(session, request, facts)
    ticking = asyncio.create_task(progress.tick(), name=f"progress {request.id}")
    try:
        yield progress
    finally:
        progress.over()
        ticking.cancel()
        with suppress(asyncio.CancelledError):
            await ticking


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
