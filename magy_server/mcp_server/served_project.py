"""`Served` is what one process of `magy mcp serve` offers: one project, by the verbs that all front
doors share."""

from __future__ import annotations

import os
from collections.abc import Callable

from magy_server.api.children.child_verbs import ChildVerbs
from magy_server.api.connected import NoDocuments, Seat
from magy_server.api.edits.edit_verbs import EditVerbs
from magy_server.api.places import uri_of
from magy_server.api.reviews.review_verbs import ReviewVerbs
from magy_server.api.reviews.view import View
from magy_server.api.service import Service
from magy_server.api.sessions.interaction_verbs import QuestionVerbs
from magy_server.core.agents import tree
from magy_server.core.errors import InvalidRequest, NotFound
from magy_server.core.ports import StreamInfo
from magy_server.core.settings import Settings
from magy_server.tools.files.paths import below

CLIENT = "magy mcp serve"
"""What journals call who came in by this door."""


class Served:
    """`root`: the project, canonical. `settings`: what holds there at this moment."""

    def __init__(self, service: Service, root: str, settings: Callable[[], Settings]) -> None:
        at = Seat(service, CLIENT, [root], NoDocuments("utf-32"))
        self.service = service
        self.root = root
        self.settings = settings
        self.children = ChildVerbs(at)
        self.edits = EditVerbs(at)
        self.reviews = ReviewVerbs(at, View(at))
        self.questions = QuestionVerbs(service, CLIENT)

    async def info(self, session_id: str) -> StreamInfo:
        """Raises NotFound: there is no such session of this project."""
        info = await self.service.info(session_id)
        above = await self.service.info(tree.root(session_id))
        if above.root != self.root:
            raise NotFound(
                f"The session {session_id} is of another project ({above.root}); this server is "
                f"for {self.root}."
            )
        return info

    def directory(self, path: str) -> str:
        """The canonical path of a directory of the project. Raises InvalidRequest."""
        found = self._inside(path)
        if not os.path.isdir(found):
            raise InvalidRequest(f"{path!r} is not a directory.")
        return found

    def uri(self, path: str) -> str:
        """The URI of a file of the project. Raises InvalidRequest."""
        return uri_of(self._inside(path))

    def name(self, path: str) -> str:
        """A path as models read it: relative to the project, if it is in it."""
        return below(self.root, path) or path

    def _inside(self, path: str) -> str:
        found = os.path.realpath(os.path.join(self.root, path)) if "\0" not in path else ""
        if found != self.root and below(self.root, found) is None:
            raise InvalidRequest(f"{path!r} is not in {self.root}, for which this server is.")
        return found
