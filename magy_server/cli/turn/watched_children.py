"""This module keeps track of the children of the session on the screen: states and questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from magy_server.api.service import Service
from magy_server.core.agents import tree
from magy_server.core.agents.child import LIVE, ChildInfo
from magy_server.core.agents.mail import Status
from magy_server.engine.trees import hear

if TYPE_CHECKING:  # who has no children does not wait for it
    from magy_server.api.wire.sessions import Interaction


class WatchedChildren:
    """Keeps track of the children. It calls `wake` when there may be news, and looks nothing up
    before something has changed, wherever the tree runs."""

    def __init__(self, service: Service, session: str, wake: Callable[[], None]) -> None:
        self.children: Sequence[ChildInfo] = ()
        """The children that were at work at some time."""
        self._service = service
        self._session = session
        self._wake = wake
        self._since = service.world.clock.now()
        self._changed = True
        self._seen: dict[str, Status] = {}
        self.close = hear(service.world.bus, session, self._hear)

    @property
    def working(self) -> Sequence[ChildInfo]:
        return [child for child in self.children if child.status in LIVE]

    @property
    def awaited(self) -> bool:
        """Returns whether a child is at work whose result makes the session go on."""
        return any(tree.asked_at(child.session) for child in self.working)

    async def news(self) -> Sequence[ChildInfo]:
        """Returns the children whose state is another than at the last call."""
        if not self._changed:
            return ()
        self._changed = False
        moved, every = [], await self._service.children.list(self._session, closed=True)
        for child in every:
            before = self._seen.get(child.session)
            if before is None and child.status not in LIVE and child.updated < self._since:
                continue
            if before != child.status:
                moved.append(child)
            self._seen[child.session] = child.status
        self.children = [child for child in every if child.session in self._seen]
        return moved

    async def questions(self) -> Mapping[str, Mapping[str, Any]]:
        """Returns the open questions by their ids, as updates have them."""
        if not any(child.questions for child in self.children):
            return {}
        from magy_server.api.sessions.interaction_verbs import QuestionVerbs
        from magy_server.api.wire.sessions import InteractionsParams

        asked = InteractionsParams(session_id=self._session)
        found = await QuestionVerbs(self._service, "").list(asked)
        return {
            one.interaction_id: _named(one)
            for one in found.interactions
            if one.session_id != self._session
        }

    def _hear(self, session: str) -> None:
        if tree.is_below(session, self._session):
            self._changed = True
            self._wake()


def _named(asked: Interaction) -> Mapping[str, Any]:
    """Returns the question with the names of the child and its parent in its title."""
    from magy_server.api.children.open_questions import who

    title = f"{who(asked.path)} asks: {asked.title}"
    return {**asked.model_dump(mode="json", by_alias=True), "title": title}
