"""This module makes a review ready to be shown and decided about: its hunks as they are now, and
where they are in the live text."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from magy_server.core.ports import Found
from magy_server.core.reviews.review_events import Comment, Reviewed
from magy_server.core.values import Version
from magy_server.dataclass import dataclass
from magy_server.edits.hunks import ReviewHunk, hunks
from magy_server.edits.proposal import Place, within
from magy_server.edits.text import split, usual_end
from magy_server.reviews.file_review import Decode, FileReview, Placed, Side, placed, side, typed
from magy_server.reviews.views import HunkInfo, HunkKind, ReviewFile, Status, Summary


@dataclass(frozen=True, slots=True)
class Now:
    """The review of a file at this moment. `seq` is the newest entry of its stream; `held` is the
    review with the live text in it, or the proposal made for the live text."""

    seq: int
    event: Reviewed
    found: Found
    live: Side
    held: FileReview
    hunks: tuple[HunkInfo, ...] = ()
    parts: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """The numbers of the parts of each hunk of lines."""
    places: tuple[Place, ...] = ()
    """Where each part of a proposal stands in the live text."""
    unreadable: str = ""
    """Why the file cannot be looked into, or put back; "": it can."""

    @property
    def revision(self) -> str:
        return f"{self.seq}.{(self.live.version.hash or 'none')[:12]}.{self.live.version.kind[0]}"


def now(seq: int, stored: FileReview, event: Reviewed, found: Found, decode: Decode) -> Now:
    live = side(found.version, found.data, decode)
    if event.proposed:
        spots = placed(stored, live)
        bare = Now(seq, event, found, live, spots.held, places=spots.places)
        return _shown(bare, stored, spots)
    return _shown(Now(seq, event, found, live, typed(stored, live)), stored, None)


def blind(seq: int, stored: FileReview, event: Reviewed, why: str) -> Now:
    """How a file that cannot be read stands: as a whole, and as it was seen last."""
    text = replace(stored.text, lines=None)
    held = replace(stored, text=text, review=None)
    found = Found(event.path, event.agent, stored.text.data)
    shown = _shown(Now(seq, event, found, text, held), held, None)
    hunks = tuple(replace(hunk, new=f"{hunk.new} ({why})") for hunk in shown.hunks)
    return replace(shown, hunks=hunks, unreadable=why)


def _shown(bare: Now, stored: FileReview, spots: Placed | None) -> Now:
    held = replace(bare.held, comments=_followed(bare, stored))
    own = hunks(held.path, held.review) if held.review else []
    lines = [_info(held, hunk, spots, bare.live) for hunk in own]
    parts = {hunk.id: hunk.parts for hunk in own}
    return replace(bare, held=held, hunks=(*_whole(held, spots), *lines), parts=parts)


def infos(held: FileReview) -> tuple[HunkInfo, ...]:
    """The hunks of a review as it stands, whatever the live file is by now."""
    version = Version(hash=held.text.version.hash, kind=held.text.version.kind)
    event = Reviewed(root=held.root, path=held.path, base=version, agent=version)
    bare = Now(0, event, Found(held.path), held.text, replace(held, proposed=False))
    return _shown(bare, held, None).hunks


def _info(held: FileReview, hunk: ReviewHunk, spots: Placed | None, live: Side) -> HunkInfo:
    start, end, old, conflict = hunk.start, hunk.end, hunk.old, False
    if spots is not None:
        own = within(spots.places, hunk.start, hunk.end)
        start, end = (own[0].start, own[-1].end) if own else (0, len(live.lines or ()))
        conflict = any(spot.conflict for spot in own) or spots.conflict
        old = tuple((live.lines or ())[start:end]) if conflict else old
    kind: HunkKind = "change" if hunk.old and hunk.new else "add" if hunk.new else "delete"
    count = len(live.lines or ())
    return HunkInfo(
        id=hunk.id,
        kind=kind,
        start=start,
        end=end,
        base_start=hunk.base_start,
        base_end=hunk.base_end,
        old="".join(old),
        new="".join(hunk.new),
        anchor=max(0, min(start, count) - 1),
        above=start == 0,
        state="conflict" if conflict else "pending",
        amended=hunk.amended and spots is None,
        origins=tuple(held.origins[by] for by in hunk.by if by < len(held.origins)),
        comments=tuple(c for c in held.comments if c.hunk == hunk.id),
    )


def _whole(held: FileReview, spots: Placed | None) -> list[HunkInfo]:
    """The hunks of the file as a whole."""
    if not held.differs:
        return []
    found: list[tuple[HunkKind, str, str]] = []
    base, text = held.base, held.text
    if held.moved_from:
        found.append(("rename", held.old_name, held.name))
    if not base.exists and text.exists and not (held.review and held.review.parts):
        found.append(("create", "", words(text)))
    elif base.exists and not text.exists and not (held.review and held.review.parts):
        found.append(("remove", words(base), ""))
    elif base.exists and text.exists and base.version.kind != text.version.kind:
        links = "link" in (base.version.kind, text.version.kind)
        found.append(("link" if links else "mode", words(base), words(text)))
    elif held.review is None and base.version != text.version:
        found.append(("binary", words(base), words(text)))
    conflict = bool(spots and spots.conflict)
    return [
        HunkInfo(
            id=(id := _whole_id(held, kind, old, new)),
            kind=kind, start=0, end=0, base_start=0, base_end=0, old=old, new=new, above=True,
            state="conflict" if conflict else "pending",
            origins=held.origins,
            comments=tuple(c for c in held.comments if c.hunk == id),
        )
        for kind, old, new in found
    ]  # fmt: skip


def _whole_id(held: FileReview, kind: str, old: str, new: str) -> str:
    sides = (held.base.version.hash, held.text.version.hash) if kind == "binary" else ()
    return hashlib.sha1(repr((held.path, kind, old, new, sides)).encode()).hexdigest()[:12]


def words(one: Side) -> str:
    """What is there, for people."""
    if not one.exists:
        return ""
    if one.version.kind == "link":
        return f"a link to {one.data.decode('utf-8', 'replace')}"
    what = "an executable file" if one.version.kind == "executable" else "a file"
    if one.lines is None:
        return f"{what}, {len(one.data):,} bytes that are not text"
    return what if one.lines else f"{what}, empty"


def _followed(bare: Now, stored: FileReview) -> tuple[Comment, ...]:
    """The comments with the ids that their hunks have by now: the person's typing in a hunk makes
    another of it, which replaced the same lines."""
    comments = bare.event.comments
    if not comments or stored.review is None or bare.held.review is None:
        return comments
    here = hunks(stored.path, bare.held.review)
    left = {hunk.id for hunk in here}
    by_old = {hunk.old: hunk.id for hunk in reversed(here)}
    olds = {hunk.id: hunk.old for hunk in hunks(stored.path, stored.review)}
    found = []
    for comment in comments:
        if comment.hunk not in left and (now := by_old.get(olds.get(comment.hunk, ()))):
            comment = comment.model_copy(update={"hunk": now})
        found.append(comment)
    return tuple(found)


# --- for a front door -----------------------------------------------------------------------------


def status(held: FileReview) -> Status:
    if not held.base.exists and held.text.exists:
        return "created"
    if held.base.exists and not held.text.exists:
        return "deleted"
    return "renamed" if held.moved_from else "modified"


def sessions(found: Sequence[HunkInfo]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(origin.session for hunk in found for origin in hunk.origins))


def summary(one: Now) -> Summary:
    return Summary(**_summed(one))


def review_file(one: Now) -> ReviewFile:
    held = one.held
    base, live = held.base.text, one.live.text
    return ReviewFile(
        **_summed(one),
        hunks=one.hunks,
        base=base,
        live=live,
        proposed_text=held.text.text if held.proposed else None,
        version=one.found.buffer.version if one.found.buffer else None,
        eol=usual_end(live or base or "") or "\n",
        base_ends=_ends(base),
        live_ends=_ends(live),
    )


def _summed(one: Now) -> dict[str, Any]:
    """The fields of a summary."""
    lines = [hunk for hunk in one.hunks if not hunk.whole]
    return {
        "root": one.held.root,
        "path": one.held.path,
        "status": status(one.held),
        "revision": one.revision,
        "pending": len(one.hunks),
        "added": sum(len(split(hunk.new)) for hunk in lines),
        "removed": sum(len(split(hunk.old)) for hunk in lines),
        "sessions": sessions(one.hunks),
        "proposed": one.held.proposed,
        "moved_from": one.held.moved_from,
    }


def _ends(text: str | None) -> bool:
    return not text or text.endswith(("\n", "\r"))
