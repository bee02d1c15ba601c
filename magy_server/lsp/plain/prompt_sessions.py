"""This module chooses the session for a command's prompt, sends it, and waits for the turn to
end."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from magy_server.api.connected import Connected
from magy_server.api.places import canonical, innermost, workspace_of
from magy_server.api.service import Outcome
from magy_server.api.sessions.pages import newer
from magy_server.core.agents.tree import stream_of
from magy_server.core.errors import InvalidRequest, NotFound, StoreError
from magy_server.core.events import Admitted, Ended, Entry, Replied, Requeued, Stop
from magy_server.core.state.state import State
from magy_server.core.values import Content
from magy_server.dataclass import dataclass
from magy_server.engine.loaded_sessions import FRESH

if TYPE_CHECKING:  # clients of Magy's own use no commands
    from magy_server.api.wire.commands import Prompted, Prompting

REMEMBERED = 50
"""Sessions that a connection used."""
LOOKED_AT = 10
"""Sessions of a project, the latest first, in which a prompt that is sent again is looked for; but
none in which nothing was done for `FRESH` seconds."""


@dataclass(frozen=True, slots=True)
class Answer:
    """How a turn ended that a command began. `text`: the agent's last words in it."""

    session_id: str
    stop: Stop
    text: str
    message: str


Ending = Callable[[Answer], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Where sessions for a document work. `root` None: in no project."""

    root: str | None
    cwd: str


class Asking:
    """`ended` is told how turns ended that were begun here, None if the editor shows that itself;
    `running`: the sessions that have a turn, the latest last."""

    def __init__(
        self, at: Connected, ended: Ending | None, running: Callable[[], Sequence[str]]
    ) -> None:
        self._at = at
        self._service = at.service
        self._ended = ended
        self._running = running
        self._recent: dict[str, None] = {}
        self._choosing = asyncio.Lock()
        self._told: dict[str, str] = {}
        """By session: the turn whose end was told last."""
        self._following: dict[str, set[asyncio.Task[None]]] = {}

    # --- sessions -------------------------------------------------------------------------------

    def used(self, session_id: str) -> None:
        self._recent.pop(session_id, None)
        self._recent[session_id] = None
        if len(self._recent) > REMEMBERED:
            del self._recent[next(iter(self._recent))]

    def left(self, session_id: str) -> None:
        """Notes that a session was closed or deleted: no command goes there unless it names the
        session."""
        self._recent.pop(session_id, None)
        self._told.pop(session_id, None)
        for task in self._following.pop(session_id, ()):
            task.cancel()

    @property
    def last(self) -> str | None:
        return next(reversed(self._recent), None)

    def where(self, uri: str | None) -> Whereabouts:
        """Returns where a session for a document works; without a document, for the first
        folder."""
        path = canonical(uri) if uri else None
        if path is None:
            return Whereabouts(self._at.first, self._at.first or self._at.scratch)
        folder = os.path.dirname(path)
        if root := innermost(self._at.roots, folder):
            return Whereabouts(root, root)
        return Whereabouts(*workspace_of(folder, ())) if os.path.isdir(folder) else self.where(None)

    def foreign(self, uri: str) -> bool:
        """Whether it is a file in none of the editor's folders, if there are any."""
        if not self._at.roots or (path := canonical(uri)) is None:
            return False
        return innermost(self._at.roots, os.path.dirname(path)) is None

    async def new(self, where: Whereabouts, agent: str = "") -> str:
        session_id = f"{self._prefix}-{secrets.token_hex(6)}"
        agent = agent or self._at.trust.settings(where.root).default_agent
        await self._service.open(session_id, where.root, where.cwd, agent, "")
        self.used(session_id)
        return session_id

    @property
    def _prefix(self) -> str:
        plain = "".join(c for c in self._at.client if c.isascii() and c.isalnum()).lower()
        return plain[:20] or "editor"

    async def session(self, where: Whereabouts, agent: str = "") -> str:
        """The one used last in that project (by `agent`, if one is given), else a new one."""
        async with self._choosing:
            for session_id in reversed(list(self._recent)):
                state = await self._state(session_id)
                if state is None or state.opened is None or state.opened.root != where.root:
                    continue
                if agent in ("", state.agent):
                    return session_id
            return await self.new(where, agent)

    async def _asked_before(self, where: Whereabouts, message_id: str) -> str | None:
        """The session that this prompt went to, should it be there already: its answer was lost,
        maybe with the process."""
        page = await self._service.sessions(
            first_root=where.root, root=where.root, cursor=None, limit=LOOKED_AT
        )
        since = self._service.world.clock.now() - FRESH
        infos = [one for one in page.items if one.root == where.root and one.updated >= since]
        for session_id in dict.fromkeys([*reversed(self._recent), *(one.id for one in infos)]):
            try:
                state = await self._state(session_id)
            except StoreError:  # a damaged one keeps nobody from asking elsewhere
                continue
            if state is not None and message_id in state.queue.seqs:
                return session_id
        return None

    async def _state(self, session_id: str) -> State | None:
        try:
            return (await self._service.loaded.session(stream_of(session_id))).state
        except NotFound:  # it was deleted elsewhere
            self.left(session_id)
            return None

    # --- prompts --------------------------------------------------------------------------------

    async def prompt(
        self, asked: Prompting, where: Whereabouts, content: Sequence[Content], agent: str = ""
    ) -> Prompted:
        """Answers at once."""
        session_id = asked.session_id
        if session_id is None and asked.message_id:
            session_id = await self._asked_before(where, asked.message_id)
        session_id = session_id or await self.session(where, agent)
        message_id = asked.message_id or f"m-{secrets.token_hex(8)}"
        outcome = await self._prompt(session_id, message_id, content, asked.delivery)
        self.used(session_id)
        if outcome != "known":
            self.follow(session_id, message_id)
        from magy_server.api.wire.commands import Prompted

        return Prompted(session_id=session_id, message_id=message_id)

    async def _prompt(
        self, session_id: str, message_id: str, content: Sequence[Content], delivery: str
    ) -> Outcome:
        """The same command again is harmless, though what it makes of the files may be another
        text by now."""
        try:
            return await self._service.prompt(session_id, message_id, content, delivery)
        except InvalidRequest as error:
            if error.reason != "key_used":
                raise
            return "known"

    def follow(self, session_id: str, message_id: str) -> None:
        """Tells how the turn ends that this prompt enters."""
        if self._ended is not None:
            task = self._at.spawn(self._follow(session_id, message_id, self._ended))
            following = self._following.setdefault(session_id, set())
            following.add(task)
            task.add_done_callback(lambda task: self._over(session_id, task))

    def _over(self, session_id: str, task: asyncio.Task[None]) -> None:
        following = self._following.get(session_id, set())
        following.discard(task)
        if not following:
            self._following.pop(session_id, None)

    async def _follow(self, session_id: str, message_id: str, ended: Ending) -> None:
        session = await self._service.loaded.session(stream_of(session_id))
        waiting = _Waiting(message_id)
        cursor = session.state.queue.seqs.get(message_id, 1) - 1
        moved = asyncio.Event()
        stop = session.watch(moved.set)
        try:
            while not waiting.over:
                moved.clear()
                for entry in await newer(self._service.world.store, session, cursor):
                    cursor = entry.seq
                    waiting.see(entry)
                if session.state.seq <= cursor and not waiting.over:
                    await moved.wait()
        finally:
            stop()
        # Several prompts may have entered one turn.
        if waiting.stop is not None and self._told.get(session_id) != waiting.turn:
            self._told[session_id] = waiting.turn
            while len(self._told) > REMEMBERED:
                del self._told[next(iter(self._told))]
            await ended(Answer(session_id, waiting.stop, waiting.text, waiting.message))

    # --- stopping -------------------------------------------------------------------------------

    async def cancel(self, session_id: str | None) -> str | None:
        """The session that was stopped: the given one, else that whose turn began last, or where a
        prompt waits. None: nothing runs. Raises NotFound for a given one that is not there."""
        every = dict.fromkeys([*reversed(self._running()), *reversed(self._recent)])
        for id in [session_id] if session_id else every:
            if not session_id and await self._state(id) is None:
                continue
            if await self._service.cancel(id, None):
                return id
        return None


class _Waiting:
    """For the end of the turn that prompt `message_id` enters."""

    def __init__(self, message_id: str) -> None:
        self.turn = ""
        self.text = self.message = ""
        self.stop: Stop | None = None
        self.over = False
        self._message_id = message_id

    def see(self, entry: Entry) -> None:
        match entry.event:
            case Admitted(turn=turn, prompts=prompts) if self._message_id in prompts:
                self.turn = turn
            case Requeued(dropped=dropped) if self._message_id in dropped:
                # Stopped before a turn took it in: who asked is told that, too.
                self.turn, self.stop, self.over = self._message_id, "cancelled", True
            case Replied() as replied if self.turn:
                self.text = replied.text or self.text
            case Ended(turn=turn) as ended if self.turn and turn == self.turn and not self.over:
                self.stop, self.message, self.over = ended.stop, ended.message, True
