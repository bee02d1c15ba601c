"""The verbs of `magy/review/*` list the files under review, show and find hunks, decide about them,
and undo decisions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Hashable, Iterable

from magy_server.api.connected import Seat
from magy_server.api.places import innermost, named_paths, of_virtual, paths_of, uri_of
from magy_server.api.reviews import present
from magy_server.api.wire import reviews as wire
from magy_server.core.errors import InvalidRequest, MagyError, NotFound
from magy_server.reviews.views import Lines, Outcome, ReviewFile, Which, Wish
from magy_server.tasks import to_end

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
        found = []
        for path in named_paths(uri):
            if not self.reviews.under(path):
                continue
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


class ReviewVerbs:
    """A decision that has begun is made, also when the request is cancelled in the middle."""

    def __init__(self, at: Seat, view: View) -> None:
        self._at = at
        self._view = view
        self._reviews = view.reviews

    async def list(self, params: wire.ReviewListParams) -> wire.ReviewListResult:
        roots = self._view.roots
        if params.cwd:
            roots = [self._at.place(params.cwd)[0]]
            self._view.include(roots[0])
        # of roots in one another, a file is the innermost one's
        listed = [one for root in sorted(roots, key=len) for one in await self._reviews.list(root)]
        found = list({(one.path, one.proposed): one for one in listed}.values())
        if params.session_id is not None:
            found = [one for one in found if params.session_id in one.sessions]
        keyed = sorted((f"{one.path}\0{int(one.proposed)}", one) for one in found)
        rest = [(key, one) for key, one in keyed if key > (params.cursor or "")]
        page = rest[: params.limit]
        return wire.ReviewListResult(
            files=[present.entry(one, self._view.uri) for _, one in page],
            next_cursor=page[-1][0] if len(rest) > len(page) else None,
        )

    async def get(self, params: wire.ReviewGetParams) -> wire.ReviewGetResult:
        file = await self._view.file(self._view.path(params.uri), params.proposed)
        return wire.ReviewGetResult(file=self._present(file) if file else None)

    async def resolve(self, params: wire.ReviewResolveParams) -> wire.ReviewOutcome:
        which = _which(params)
        if params.decision == "amend" and params.text is None:
            raise InvalidRequest("To amend a hunk, give the new lines in `text`.")
        path = self._view.path(params.uri)
        wish = Wish(
            verb=params.decision,
            which=which,
            reason=params.reason,
            text=params.text or "",
            by=self._view.by,
            key=params.request_key,
            revision=params.revision or "",
        )
        found = await to_end(self._reviews.resolve(path, wish, params.proposed))
        return self._outcome(found, params.decision)

    async def comment(self, params: wire.ReviewCommentParams) -> wire.ReviewOutcome:
        wish = Wish(
            verb="comment",
            which=Which(ids=(params.hunk_id,)),
            text=params.text,
            by=self._view.by,
            key=params.request_key,
        )
        path = self._view.path(params.uri)
        found = await to_end(self._reviews.resolve(path, wish, params.proposed))
        return self._outcome(found, "comment")

    async def undo(self, params: wire.ReviewUndoParams) -> wire.ReviewOutcome:
        path = self._view.path(params.uri) if params.uri else ""
        undone = self._reviews.undo(
            params.decision_id, path=path, by=self._view.by, key=params.request_key
        )
        return self._outcome(await to_end(undone), "undo")

    async def navigate(self, params: wire.ReviewNavigateParams) -> wire.ReviewNavigateResult:
        path = self._view.path(params.uri) if params.uri else ""
        own = self._view.root_of(path) if path else None
        roots = [own] if own else self._view.roots
        for root in roots:
            found = await self._reviews.navigate(root, path, params.line, params.direction)
            if found and (result := await self._there(*found)):
                return result
        return wire.ReviewNavigateResult()

    async def _there(self, path: str, line: int) -> wire.ReviewNavigateResult | None:
        for proposed in (False, True):
            file = await self._view.file(path, proposed)
            if file is None:
                continue
            shown = self._present(file)
            for hunk, about in zip(shown.hunks, file.hunks, strict=True):
                if line in (about.start, about.anchor):
                    return wire.ReviewNavigateResult(
                        uri=shown.uri, range=hunk.range, hunk_id=hunk.hunk_id, proposed=proposed
                    )
        return None

    def _outcome(self, found: Outcome, verb: str) -> wire.ReviewOutcome:
        self._view.forget([found.file.path])
        return present.outcome(found, verb, self._view.encoding, self._view.uri)

    def _present(self, file: ReviewFile) -> wire.ReviewFile:
        return present.review_file(file, self._view.encoding, self._view.uri)


def _which(params: wire.ReviewResolveParams) -> Which:
    """Raises InvalidRequest."""
    given = [params.hunk_ids is not None, params.lines is not None, params.all]
    if sum(given) != 1:
        raise InvalidRequest("Give exactly one of `hunkIds`, `lines` and `all`.")
    lines = params.lines
    if lines and lines.start > lines.end:
        raise InvalidRequest(f"Lines {lines.start} to {lines.end} are the wrong way round.")
    if lines and params.revision is None:
        raise InvalidRequest("`lines` needs the `revision` that they were seen in.")
    return Which(
        ids=tuple(params.hunk_ids or ()),
        lines=Lines(lines.start, lines.end) if lines else None,
        all=params.all,
    )
