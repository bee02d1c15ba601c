"""The verbs of `magy/review/*` list the files under review, show and find hunks, decide about them,
and undo decisions."""

from __future__ import annotations

import logging

from magy_server.api.connected import Seat
from magy_server.api.reviews import present
from magy_server.api.reviews.view import View
from magy_server.api.wire import reviews as wire
from magy_server.core.errors import InvalidRequest
from magy_server.reviews.views import Lines, Outcome, ReviewFile, Which, Wish
from magy_server.tasks import to_end

LOG = logging.getLogger(__name__)


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
