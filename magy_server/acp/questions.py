"""Permission is asked of an ACP client by a request, and is kept as an event all the same.

A request that nobody answers leaves its question open in the log: it is asked again when the client
comes back, and taken away when somebody answers elsewhere. An answer that is none counts as no. A
listener of the engine.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from magy_server.acp import v1
from magy_server.acp.options import Json
from magy_server.acp.shapes import read
from magy_server.api.children.present import looked_up
from magy_server.api.service import Service
from magy_server.api.wire import sessions as wire
from magy_server.core.agents import tree
from magy_server.core.errors import InvalidRequest
from magy_server.core.events import Answered, Asked, Ended, Entry, Finished, Resumed
from magy_server.core.state.state import State
from magy_server.core.summary import question_of
from magy_server.engine import trees
from magy_server.jsonrpc.peer import ClientError, NotAnswered, Peer

LOG = logging.getLogger(__name__)
METHOD = "session/request_permission"
NO_FORMS = (
    "An MCP server asks the person to fill in a form, and an editor with the Agent Client Protocol "
    "cannot show one."
)
SCOPES = {"once": "once", "session": "session", "project": "project", "refuse": "once"}
"""By option, how long an answer holds."""


class Questions:
    """`asking`: gives the parameters of the request; `shown`: whether the client has the session
    with this id."""

    def __init__(
        self,
        peer: Peer,
        client: str,
        asking: Callable[[wire.Interaction], Json],
        shown: Callable[[str], bool],
    ) -> None:
        self._peer = peer
        self._parameters = asking
        self._client = client
        self._shown = shown
        self._service: Service | None = None
        self._asking: dict[str, asyncio.Task[None]] = {}

    def attach(self, service: Service) -> Callable[[], None]:
        """What other processes do is heard until what this returns is called."""
        self._service = service
        return service.world.bus.subscribe(trees.CHANGED, self._elsewhere)

    def __call__(self, state: State, entries: Sequence[Entry]) -> None:
        if not self._shown(tree.root(state.id)):
            return
        for entry in entries:
            match entry.event:
                case Asked() if entry.event.id in state.questions:
                    self._look(state.id, question_of(state, entry.event, entry.at))
                case Answered():
                    self.resolved([entry.event.id])
                case Finished() | Ended():
                    gone = [id for id in self._asking if _of(id, state.id)]
                    self.resolved(id for id in gone if id not in state.questions)
                case Resumed():
                    for one in state.questions.values():
                        self._look(state.id, question_of(state, one.asked, one.at))

    def ask(self, question: wire.Interaction) -> None:
        """Asks, unless the client is being asked already."""
        if question.interaction_id not in self._asking:
            self._begin(question.interaction_id, self._ask(question))

    def resolved(self, ids: Any) -> None:
        for id in [*ids]:
            if asking := self._asking.pop(id, None):
                asking.cancel()  # the client may take its window away

    def leave(self, session_id: str) -> None:
        """The client does not show this session any more."""
        self.resolved(id for id in [*self._asking] if id.startswith(session_id))

    # --- inside ---------------------------------------------------------------------------------

    def _begin(self, id: str, work: Any) -> None:
        self._asking[id] = self._peer.spawn(work)

    def _look(self, session_id: str, about: Mapping[str, Any]) -> None:
        if about["interactionId"] not in self._asking:
            self._begin(about["interactionId"], self._look_and_ask(session_id, about))

    async def _look_and_ask(self, session_id: str, about: Mapping[str, Any]) -> None:
        assert self._service is not None
        (question,) = await looked_up(self._service.world.store, session_id, [about])
        await self._ask(question)

    async def _ask(self, question: wire.Interaction) -> None:
        id = question.interaction_id
        if question.form and question.form.fields and self._service and self._service.world.peers():
            return  # somebody else may show it
        try:
            option, reason = await self._asked(question)
        except NotAnswered:
            return  # it stays open
        finally:
            if self._asking.get(id) is asyncio.current_task():  # else it is asked anew by now
                del self._asking[id]
        if reason:
            LOG.warning("Question %s is answered with no: %s", id, reason)
        await self._answer(question, option, reason)

    async def _asked(self, question: wire.Interaction) -> tuple[str, str]:
        """The option that the client chose. Without a usable answer nobody would know that the
        turn waits: that is a refusal, and the second value says why. Raises NotAnswered."""
        if question.form and question.form.fields:
            return "refuse", NO_FORMS
        try:
            given = await self._peer.request(METHOD, self._parameters(question))
            outcome = read(v1.RequestPermissionResponse, given if given else {}, METHOD).outcome
        except ClientError as error:
            return "refuse", f"Nobody could be asked. {error.message}"
        except InvalidRequest as error:
            return "refuse", f"The editor's answer cannot be understood. {error.message}"
        if not isinstance(outcome, v1.SelectedPermissionOutcome):
            return "refuse", "The question was dismissed in the editor."
        if outcome.option_id not in SCOPES:
            known = ", ".join(SCOPES)
            return "refuse", f"The editor chose {outcome.option_id!r}, which is none of {known}."
        return outcome.option_id, ""

    async def _answer(self, question: wire.Interaction, option: str, reason: str) -> None:
        assert self._service is not None
        scope: Any = SCOPES[option]
        await self._service.answer(
            question.session_id,
            question.interaction_id,
            allow=option != "refuse",
            reason=reason,
            scope=scope,
            by=self._client,
        )

    def _elsewhere(self, message: Mapping[str, Any]) -> None:
        session_id = str(message["session"])
        service = self._service
        if service is None or message["by"] == service.world.me:
            return
        self.resolved(str(id) for id in message["resolved"])
        if message["asked"] and self._shown(tree.root(session_id)):
            self._peer.spawn(self._find(service, session_id))

    async def _find(self, service: Service, session_id: str) -> None:
        info = await service.world.store.info(tree.stream_of(session_id))
        for about in info.summary.get("questions") or () if info else ():
            self._look(session_id, about)


def _of(interaction: str, session_id: str) -> bool:
    return interaction.rpartition("/")[0] == session_id
