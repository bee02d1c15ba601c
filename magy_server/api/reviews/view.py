"""`View` is what is under review, as an editor is shown it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from magy_server.api.connected import Seat
from magy_server.api.places import innermost, named_paths, of_virtual, paths_of, uri_of
from magy_server.core.errors import MagyError, NotFound

if TYPE_CHECKING:  # most of the time nothing is under review
    from magy_server.api.wire import reviews as wire
    from magy_server.reviews.views import ReviewFile

LOG = logging.getLogger(__name__)


class View:
    """What is under review, as the editor is shown it. Everything that asks again for the same
    state of a file (lenses, code actions at every movement of the cursor) is answered from memory.
    """

    def __init__(self, at: Seat) -> None:
        self.reviews = at.service.reviews
        self.roots = list(at.roots)
        """The projects whose review this editor shows: its folders, and those it asked for."""
        self.by = at.client
        """The editor's name, in the journal."""
        self._files = at.service.world.files
        self._documents = at.documents
        self._held: dict[tuple[str, bool], tuple[Hashable, ReviewFile | None]] = {}
        self._learnt = asyncio.Event()

    @property
    def encoding(self) -> str:
        return self._documents.encoding

    def uri(self, path: str) -> str:
        return self._documents.uri_of_path(path) or uri_of(path)

    def root_of(self, path: str) -> str | None:
        return innermost(self.roots, path)

    async def learn(self) -> None:
        """Finds out what was left pending, here or elsewhere. Until then `shown` waits."""
        try:
            for root in self.roots:
                await self.reviews.list(root)
        except MagyError as error:
            LOG.warning("The list of reviews cannot be read: %s", error)
        finally:
            self._learnt.set()

    def include(self, root: str) -> None:
        if root not in self.roots:
            self.roots.append(root)

    def forget(self, paths: Iterable[str]) -> None:
        """Their review is not what it was."""
        for path in paths:
            for proposed in (False, True):
                self._held.pop((path, proposed), None)

    async def file(self, path: str, proposed: bool = False) -> ReviewFile | None:
        """None: nothing is under review there. Raises MagyError: the file cannot be read."""
        try:
            file = await self.reviews.get(path, proposed)
        except NotFound:
            return None
        return file if file.hunks else None

    async def shown(self, uri: str) -> list[wire.ReviewFile]:
        """What is pending in an open document, applied and proposed; [] also when it cannot be
        said. Cheap for a document that is not under review, or that did not change."""
        await self._learnt.wait()
        under = [path for path in named_paths(uri) if self.reviews.under(path)]
        if not under:
            return []
        from magy_server.api.reviews import present

        found = []
        for path in under:
            for proposed in (False, True):
                if file := await self._held_file(path, proposed):
                    found.append(present.review_file(file, self.encoding, lambda path: uri))
        return found

    async def _held_file(self, path: str, proposed: bool) -> ReviewFile | None:
        state = self._documents.state_of(path)
        held = self._held.get((path, proposed))
        if held and state is not None and held[0] == state:
            return held[1]
        try:
            file = await self.file(path, proposed)
        except MagyError:
            return None  # `magy/review/get` says why
        if state is not None and state == self._documents.state_of(path):
            self._held[path, proposed] = (state, file)
        return file

    def path(self, uri: str) -> str:
        """The one of the names of a file that is under review. Raises InvalidRequest."""
        paths = paths_of(uri)
        return next((path for path in paths if self.reviews.under(path)), paths[-1])

    async def text(self, uri: str) -> str:
        """The text that a `magy:` URI names. A file that is not under review any more is its own
        base: an open diff then shows no difference. Raises InvalidRequest, NotFound."""
        side, path = of_virtual(uri)
        file = await self.file(path, side == "proposed")
        if file is None:
            return await self._live(path)
        return (file.base if side == "base" else file.proposed_text) or ""

    async def _live(self, path: str) -> str:
        root = self.root_of(path)
        if root is None:
            raise NotFound(f"{path} is not in an open folder.")
        return (await self._files.look(root, path)).text or ""
