"""`Turn` begins or joins a turn, and shows it on this terminal to its end."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress

from magy_server.api.service import Service
from magy_server.api.sessions.settling import kill, settled
from magy_server.api.sessions.totals import totals
from magy_server.cli.screen.complaints import complain
from magy_server.cli.turn.interrupts import Interrupts
from magy_server.cli.turn.outcome import Counts
from magy_server.cli.turn.presentation import Shown
from magy_server.cli.turn.watching import Watch
from magy_server.core.agents.tree import stream_of
from magy_server.core.errors import MagyError
from magy_server.core.state.state import State
from magy_server.core.values import Content
from magy_server.engine.session import Session
from magy_server.reviews.views import Summary

CLOSING = 5.0
"""Seconds that a turn has to end when its output cannot be written any more."""
WIPING = 0.3
"""Seconds that a terminal which may be stopped has to take the last line."""


class Turn:
    """One turn on this terminal. As long as it lasts, questions are answered with yes, if the
    options say so."""

    def __init__(
        self, service: Service, interrupts: Interrupts, shown: Shown, session_id: str
    ) -> None:
        self._service = service
        self._interrupts = interrupts
        self._shown = shown
        self._id = session_id
        self._bypass: bool = shown.options.bypass

    async def __aenter__(self) -> Turn:
        if (await self._service.loaded.session(stream_of(self._id))).state.bypass:
            complain(
                "bypass is on in this session: Magy answers every permission question with yes."
            )
            self._bypass = False
        if self._bypass:
            await self._service.configure(self._id, "bypass", "on")
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._bypass:
            await self._service.configure(self._id, "bypass", "off")

    async def prompt(self, content: Sequence[Content]) -> int:
        message = f"run-{secrets.token_hex(8)}"
        start = (await self._service.info(self._id)).head
        await self._service.prompt(self._id, message, content, "steer")
        return await self.watch(start, message)

    async def watch(self, start: int, awaited: str | None, *, graph: bool = False) -> int:
        """Shows what comes after entry `start`, and what an open turn does by then, to the end of
        the turn that the prompt `awaited` joins; None: of whatever turn is open. The exit code.
        `graph`: it is to do a graph, and has failed unless all of that comes to a result."""
        session = await self._service.loaded.session(stream_of(self._id))
        start = min([start, *_under_way(session.state)])
        with ExitStack() as closing:
            keyboard = self._shown.keyboard()
            if keyboard:
                closing.enter_context(keyboard)
                self._interrupts.terminal(keyboard.restore)
            printer = self._shown.printer(self._id, keyboard is not None)
            watch = Watch(self._service, session, start, printer, keyboard, awaited)
            try:
                with self._interrupts.cancels(watch.cancel):
                    await watch.run()
            except asyncio.CancelledError:
                with suppress(MagyError, TimeoutError):
                    async with asyncio.timeout(WIPING):
                        await printer.say([])
                await kill(self._service, session)
                self._interrupts.resting = session.state.turn is None
                raise
            except MagyError:
                # Nobody sees what it does any more, so it shall not go on doing it.
                with suppress(MagyError, TimeoutError):
                    await self._service.cancel(self._id, None)
                    async with asyncio.timeout(CLOSING):
                        await settled(session, lambda now: now.turn is None)
                raise
        entries = await self._service.world.store.read(session.stream, after=start)
        found = totals(entries)
        if watch.cancelled:
            found.stop = "cancelled"
        reviewed = await self._reviewed(session)
        counts = await self._counts(session) if graph else None
        return await self._shown.end(self._id, found, watch.unasked, reviewed, counts)

    async def _counts(self, session: Session) -> Counts:
        """Of the latest graph of the session."""
        from magy_server.api.graphs.shown_graphs import graphs_of  # most runs have no graph

        found = await graphs_of(self._service.world.store, session.stream, most=1)
        return found[-1]["counts"] if found else {}

    async def _reviewed(self, session: Session) -> Sequence[Summary]:
        opened = session.state.opened
        with suppress(MagyError):  # the turn has ended as it has
            if opened and opened.root:
                return await self._service.reviews.list(opened.root)
        return ()


def _under_way(state: State) -> Iterator[int]:
    """Where the requests stand whose calls are open: what these ask is asked after that."""
    for call in state.turn.open_calls if state.turn else ():
        yield int(call.call.id.partition(".")[0])
