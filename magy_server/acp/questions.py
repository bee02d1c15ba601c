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

from magy_server.acp import elicitation, v1
from magy_server.acp.options import Json
from magy_server.acp.permission import ONCE, REFUSE, SCOPES
from magy_server.acp.shapes import read
from magy_server.api.children.open_questions import looked_up
from magy_server.api.service import Service
from magy_server.api.wire import sessions as wire
from magy_server.api.wire.forms import Form
from magy_server.core.agents import tree
from magy_server.core.errors import InvalidRequest
from magy_server.core.events import Answered, Asked, Ended, Entry, Finished, Resumed
from magy_server.core.state.state import State
from magy_server.core.summary import question_of
from magy_server.dataclass import dataclass
from magy_server.engine import trees
from magy_server.jsonrpc.peer import ClientError, NotAnswered, Peer

LOG = logging.getLogger(__name__)
METHOD = "session/request_permission"
NO_FORMS = "An MCP server asks the person to fill in a form, and this editor cannot show one."
DISMISSED = "The question was dismissed in the editor."
TRIES = 3
"""How often a form is asked to be filled in."""


@dataclass(frozen=True, slots=True)
class Said:
    """What became of a question in the client. `option`: one of SCOPES; `content`: what was filled
    in; `fault`: why this is no answer of the person's."""

    option: str
    fault: str = ""
    content: Mapping[str, Any] | None = None


class Questions:
    """`asking`: gives the parameters of the request; `shown`: whether the client has the session
    with this id; `forms`: it can have people fill in forms."""

    def __init__(
        self,
        peer: Peer,
        client: str,
        asking: Callable[[wire.Interaction], Json],
        shown: Callable[[str], bool],
        *,
        forms: bool,
    ) -> None:
        self._peer = peer
        self._parameters = asking
        self._client = client
        self._shown = shown
        self._forms = forms
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
        self.resolved(id for id in [*self._asking] if tree.root(id) == session_id)

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

    async def _ask(self, question: wire.Interaction, wrong: str = "", tries: int = TRIES) -> None:
        """`wrong`: why the form has to be filled in once more."""
        id, form = question.interaction_id, _form(question)
        if form and not self._forms and self._service and self._service.world.peers():
            return  # somebody else may show it
        try:
            said = await (self._filled_in(question, form, wrong) if form else self._asked(question))
        except NotAnswered:
            return  # it stays open
        except ClientError as error:
            said = Said(REFUSE, f"Nobody could be asked. {error.message}")
        except InvalidRequest as error:
            said = Said(REFUSE, f"The editor's answer cannot be understood. {error.message}")
        finally:
            if self._asking.get(id) is asyncio.current_task():  # else it is asked anew by now
                del self._asking[id]
        try:
            await self._answer(question, said)
        except InvalidRequest as error:
            if not form:
                raise
            if tries > 1:
                self._begin(id, self._ask(question, error.message, tries - 1))
            else:
                fault = f"The form is not filled in. {error.message}"
                await self._answer(question, Said(REFUSE, fault))

    async def _asked(self, question: wire.Interaction) -> Said:
        """What the client chose. Without a usable answer nobody would know that the turn waits:
        that is a refusal. Raises NotAnswered, ClientError, InvalidRequest."""
        given = await self._peer.request(METHOD, self._parameters(question))
        outcome = read(v1.RequestPermissionResponse, given if given else {}, METHOD).outcome
        if not isinstance(outcome, v1.SelectedPermissionOutcome):
            return Said(REFUSE, DISMISSED)
        if outcome.option_id not in SCOPES:
            known = ", ".join(SCOPES)
            fault = f"The editor chose {outcome.option_id!r}, which is none of {known}."
            return Said(REFUSE, fault)
        return Said(outcome.option_id)

    async def _filled_in(self, question: wire.Interaction, form: Form, wrong: str) -> Said:
        """As `_asked`."""
        if not self._forms:
            return Said(REFUSE, NO_FORMS)
        asked = elicitation.asking(question, form, wrong)
        given = await self._peer.request(elicitation.METHOD, asked)
        action, content = elicitation.answer_of(given)
        if action == "accept":
            return Said(ONCE, content=content)
        return Said(REFUSE, DISMISSED if action == "cancel" else "")

    async def _answer(self, question: wire.Interaction, said: Said) -> None:
        """Raises InvalidRequest: the form is not filled in as it must be."""
        assert self._service is not None
        if said.fault:
            LOG.warning("Question %s is answered with no: %s", question.interaction_id, said.fault)
        await self._service.answer(
            question.session_id,
            question.interaction_id,
            allow=said.option != REFUSE,
            reason=said.fault,
            scope=SCOPES[said.option],
            by=self._client,
            content=said.content,
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


def _form(question: wire.Interaction) -> Form | None:
    """What is to be filled in, if anything is."""
    return question.form if question.form and question.form.fields else None


def _of(interaction: str, session_id: str) -> bool:
    return interaction.rpartition("/")[0] == session_id
