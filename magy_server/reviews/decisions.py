"""This module works out what a decision, or its undo, makes of the review and of the file. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from magy_server.core.errors import InvalidRequest, ToolError
from magy_server.core.reviews.review_events import Comment
from magy_server.core.values import Origin
from magy_server.dataclass import dataclass
from magy_server.edits.agent_lines import (
    PERSON,
    Mark,
    Part,
    Review,
    carry,
    compare,
    joined,
    put_back,
)
from magy_server.edits.hunks import accept, cut, reject
from magy_server.edits.proposal import accepted, within
from magy_server.edits.rebasing.diff import blocks
from magy_server.edits.rebasing.rebase import merge3
from magy_server.edits.text import plain, split, usual_end
from magy_server.reviews.current_review import Now
from magy_server.reviews.file_review import FileReview, Side, of_kind, reworded, unchanged
from magy_server.reviews.views import HunkInfo, HunkState, Which, Wish

DONE: dict[str, HunkState] = {
    "accept": "accepted", "reject": "rejected", "amend": "amended", "comment": "commented",
}  # fmt: skip
WHOLE = {"binary", "link", "create", "remove"}
"""Kinds of hunks after which a file is all of its other side."""
RENAME = (
    "Magy cannot redo a rename that was rejected: ask the agent again, or rename the file in the "
    "editor."
)


@dataclass(frozen=True, slots=True)
class Chosen:
    """Hunks, whole or (`cut`) only some lines of them: then these are what the hunks say."""

    hunks: tuple[HunkInfo, ...]
    missing: tuple[str, ...] = ()
    review: Review | None = None
    parts: tuple[int, ...] = ()
    cut: bool = False

    @property
    def kinds(self) -> set[str]:
        """The kinds of the hunks that are about the file as a whole."""
        return {hunk.kind for hunk in self.hunks if hunk.whole}


@dataclass(frozen=True, slots=True)
class Made:
    """`file`: what the file shall be; None: it stays. `moves`: to where it was before."""

    held: FileReview
    file: Side | None
    results: tuple[tuple[str, HunkState], ...]
    hunks: tuple[HunkInfo, ...]
    """Those that were decided."""
    moves: bool = False


def choose(now: Now, which: Which) -> Chosen:
    """`missing` are ids that name nothing (any more): then nothing may be decided."""
    known = {hunk.id: hunk for hunk in now.hunks}
    if which.lines is not None:
        return _by_lines(now, which.lines.start, which.lines.end)
    ids = tuple(known) if which.all else tuple(dict.fromkeys(which.ids))
    found = tuple(known[id] for id in ids if id in known)
    parts = tuple(number for id in ids for number in now.parts.get(id, ()))
    return Chosen(found, tuple(id for id in ids if id not in known), now.held.review, parts)


def _by_lines(now: Now, start: int, end: int) -> Chosen:
    own = [hunk for hunk in now.hunks if not hunk.whole]
    met = tuple(hunk for hunk in own if hunk.start <= end and start <= hunk.end
                and (max(hunk.start, start) < min(hunk.end, end) or hunk.start == hunk.end
                     or start == end))  # fmt: skip
    if now.held.proposed or now.held.review is None:
        parts = tuple(number for hunk in met for number in now.parts[hunk.id])
        return Chosen(met, () if met else (f"lines {start}-{end}",), now.held.review, parts)
    review, chosen = cut(now.held.review, start, end)
    missing = () if chosen else (f"lines {start}-{end}",)
    found = tuple(_cut(hunk, review, chosen) for hunk in met)
    return Chosen(found, missing, review, tuple(chosen), cut=found != met)


def _cut(hunk: HunkInfo, review: Review, chosen: Sequence[int]) -> HunkInfo:
    """The hunk with only those of its lines that are in the chosen parts, or between them."""
    parts = [review.parts[number] for number in chosen]
    own = [part for part in parts if hunk.start <= part.start and part.end <= hunk.end]
    if not own:
        return hunk
    start, end = own[0].start, own[-1].end
    new = review.text[start:end]
    old = put_back(new, [part.moved(-start) for part in own])
    return replace(hunk, start=start, end=end, old="".join(old), new="".join(new))


def decide(now: Now, wish: Wish, chosen: Chosen) -> Made:
    """Raises InvalidRequest, ToolError for what cannot be decided so."""
    if wish.verb == "comment":
        return _commented(now, wish, chosen)
    if wish.verb == "amend" and (len(chosen.hunks) != 1 or chosen.hunks[0].whole):
        raise InvalidRequest(
            "You can amend only one hunk of lines at a time: name the one that `text` is for."
        )
    if now.held.proposed:
        return _of_proposal(now, wish, chosen)
    _check_own(now, wish, chosen)
    results = _all(chosen, DONE[wish.verb])
    if wish.verb == "accept":
        return Made(_accepted(now.held, chosen), None, results, chosen.hunks)
    if wish.verb == "amend":
        held = _amended(now.held, chosen, wish.text)
        return Made(held, held.text, results, chosen.hunks)
    held = _rejected(now.held, chosen)
    return Made(held, held.text, results, chosen.hunks, moves="rename" in chosen.kinds)


def _all(chosen: Chosen, state: HunkState) -> tuple[tuple[str, HunkState], ...]:
    return tuple((hunk.id, state) for hunk in chosen.hunks)


def _commented(now: Now, wish: Wish, chosen: Chosen) -> Made:
    if not wish.text.strip():
        raise InvalidRequest("A comment needs a `text`.")
    made = [Comment(id=f"{wish.key}.{n}", hunk=h.id, text=wish.text)
            for n, h in enumerate(chosen.hunks)]  # fmt: skip
    held = replace(now.held, comments=(*now.held.comments, *made))
    return Made(held, None, _all(chosen, "commented"), chosen.hunks)


def _check_own(now: Now, wish: Wish, chosen: Chosen) -> None:
    """What is only compared as a whole cannot be put back without what came since."""
    if wish.verb in ("reject", "amend") and now.unreadable:
        raise ToolError(now.unreadable)
    touched = now.live.version != now.event.agent
    if wish.verb == "reject" and touched and chosen.kinds & (WHOLE - {"remove"}):
        raise InvalidRequest(
            f"{now.held.name} was changed after the agent wrote it, and the later changes would "
            "be lost. Restore it yourself, or accept it as it is.",
            reason="conflict",
        )


# --- what is applied ------------------------------------------------------------------------------


def _accepted(held: FileReview, chosen: Chosen) -> FileReview:
    review, base, text = held.review, held.base, held.text
    if review is not None and chosen.review is not None:
        review = accept(chosen.review, chosen.parts)
        base = reworded(base, review.base, text)
    if "mode" in chosen.kinds:
        base = of_kind(base, text)
    if chosen.kinds & WHOLE:
        base = text
    moved = "" if "rename" in chosen.kinds else held.moved_from
    return _ended(replace(held, base=base, review=review, moved_from=moved))


def _ended(held: FileReview) -> FileReview:
    """A file that is all accepted is its own base: so is one that is gone."""
    if held.review is not None and not held.review.parts and held.base.exists != held.text.exists:
        if held.text.exists and not held.text.lines:
            return held  # that it exists at all is still to be decided
        return replace(held, base=held.text)
    return held


def _rejected(held: FileReview, chosen: Chosen) -> FileReview:
    review, base, text = held.review, held.base, held.text
    if review is not None and chosen.review is not None:
        review = reject(chosen.review, chosen.parts, spare=True)
        base = reworded(base, review.base, text)  # with what is spared
        gone = not review.text and not base.exists
        new = list(review.text)
        like = text if text.exists else base
        text = Side() if gone else reworded(_existing(text, base, new), new, like)
    if "mode" in chosen.kinds:
        text = of_kind(text, base)
    if chosen.kinds & WHOLE:
        text = base
        review = unchanged(base)
    return replace(held, base=base, text=text, review=review)


def _existing(text: Side, base: Side, new: Sequence[str]) -> Side:
    """A file that is put back is of the kind that it was."""
    if text.exists or not new:
        return text
    return Side(base.version.model_copy(update={"hash": "?"}), base.data, ())


def _amended(held: FileReview, chosen: Chosen, text: str) -> FileReview:
    """With `text` in the place of the hunk, which is decided with that."""
    assert chosen.review is not None
    review = chosen.review
    own = [review.parts[number] for number in chosen.parts]
    start, end = own[0].start, own[-1].end
    new = _fitting(text, review.text, end)
    kept = [part for number, part in enumerate(review.parts) if number not in chosen.parts]
    shift = len(new) - (end - start)
    moved = [part.moved(shift if part.start >= end else 0) for part in kept]
    lines = put_back(review.text, [Part(start, end, new, ())])
    after = Review(lines, joined(lines, moved))
    base = reworded(held.base, after.base, held.text)
    here = held.text if held.text.exists else _existing(held.text, held.base, lines)
    return _ended(replace(held, base=base, text=reworded(here, lines, held.base), review=after))


def _fitting(text: str, lines: Sequence[str], end: int) -> tuple[str, ...]:
    """As whole lines with the line ends of the file."""
    whole = "".join(lines)
    usual = usual_end(whole) or "\n"
    ended = end < len(lines) or not lines or lines[-1].endswith(("\n", "\r"))
    if text and ended and not text.endswith(("\n", "\r")):
        text += "\n"
    return tuple(split(plain(text).replace("\n", usual)))


# --- what is proposed -----------------------------------------------------------------------------


def _of_proposal(now: Now, wish: Wish, chosen: Chosen) -> Made:
    held = now.held
    if wish.verb == "reject":
        return Made(_dropped(held, chosen), None, _all(chosen, "rejected"), chosen.hunks)
    if wish.verb == "amend":
        hunk = chosen.hunks[0]
        lines = list(now.live.lines or ())
        lines[hunk.start : hunk.end] = _fitting(wish.text, now.live.lines or (), hunk.end)
        file = reworded(_existing(now.live, held.text, lines), lines, held.text)
        return Made(_dropped(held, chosen), file, _all(chosen, "amended"), chosen.hunks)
    free = [hunk for hunk in chosen.hunks if hunk.state != "conflict"]
    results: tuple[tuple[str, HunkState], ...] = tuple(
        (hunk.id, "accepted" if hunk in free else "conflict") for hunk in chosen.hunks
    )
    parts = [number for hunk in free for number in now.parts.get(hunk.id, ())]
    taken = Chosen(tuple(free), (), held.review, tuple(parts))
    if not free:
        return Made(held, None, results, ())
    return Made(_accepted(held, taken), _applied(now, taken), results, tuple(free))


def _dropped(held: FileReview, chosen: Chosen) -> FileReview:
    """The proposal without these hunks."""
    review, text = held.review, held.text
    if review is not None:
        review = reject(review, chosen.parts)
        gone = not review.text and not held.base.exists
        text = Side() if gone else reworded(text, list(review.text), held.base)
    if "mode" in chosen.kinds:
        text = of_kind(text, held.base)
    if chosen.kinds & WHOLE or (review is not None and not review.parts and not held.text.exists):
        return replace(held, text=held.base, review=unchanged(held.base))
    return replace(held, text=text, review=review)


def _applied(now: Now, chosen: Chosen) -> Side:
    """The live file with these hunks."""
    live, text, kinds = now.live, now.held.text, chosen.kinds
    if kinds & WHOLE:
        return text
    if not text.exists:
        return Side()  # all its lines are proposed to go, and the file with them
    lines = list(live.lines or ())
    own = [hunk for hunk in chosen.hunks if not hunk.whole]
    review = now.held.review
    if own and review is not None:
        spots = [
            spot
            for number in chosen.parts
            for spot in within(now.places, review.parts[number].start, review.parts[number].end)
        ]
        lines = accepted(lines, list(dict.fromkeys(spots)))
    file = reworded(_existing(live, text, lines), lines, text)
    if "mode" in kinds or not live.exists:
        file = of_kind(file, text)
    return file


# --- taking back ----------------------------------------------------------------------------------


def undone(now: Now, before: FileReview, after: FileReview) -> Made | str:
    """What a decision led from and to, taken back in the review as it is now; or a sentence: what
    it was about has been changed since."""
    held = now.held
    if before.moved_from and before.text.exists and not (after.moved_from or after.text.exists):
        return RENAME
    base = _back(held.base, after.base, before.base)
    text = _back(held.text, after.text, before.text)
    file = _back(now.live, after.base, before.base) if held.proposed else text
    if base is None or text is None or file is None or before.moved_from != after.moved_from:
        return (
            f"Magy cannot take back the decision about {held.name}: the same lines were changed "
            "later. Change them in the editor."
        )
    origins = tuple(dict.fromkeys((*held.origins, *before.origins)))
    review = _review_back(now, before, base, text, origins)
    since = (held.base, held.text, held.review) != (after.base, after.text, after.review)
    own = _parts_back(held, before, after, text, origins) if since else None
    if own is not None and base.exists and text.exists and _keeps(own, base):
        review, base = own, reworded(base, own.base, text)
    said = [comment for comment in held.comments if comment not in after.comments]
    comments = tuple(dict.fromkeys((*before.comments, *said)))
    result = replace(held, base=base, text=text, review=review, origins=origins, comments=comments)
    changes = file.version != now.live.version
    return Made(result, file if changes else None, (), ())


def _back(now: Side, after: Side, before: Side) -> Side | None:
    """`after` -> `before`, done to `now`; None: it does not fit."""
    if before.version == after.version:
        return now
    if now.version == after.version:
        return before
    texts = now.lines is not None and after.lines is not None and before.lines is not None
    if not texts or not (now.exists and after.exists and before.exists):
        return None
    assert now.lines is not None and after.lines is not None and before.lines is not None
    merged = merge3("".join(after.lines), "".join(now.lines), "".join(before.lines))
    if merged.conflicts:
        return None
    found = reworded(now, split(merged.text), now)
    if before.version.kind == after.version.kind:
        return found
    if now.version.kind != after.version.kind:
        return None
    return of_kind(found, before)


def _review_back(
    now: Now, before: FileReview, base: Side, text: Side, origins: Sequence[Origin]
) -> Review | None:
    if base.lines is None or text.lines is None:
        return None
    again = _renumbered(before, origins)
    if before.base.lines == base.lines and before.text.lines == text.lines and again:
        return again
    hints: list[Mark] = []
    for one in (_renumbered(now.held, origins), again):
        if one is not None:
            hints += _found_again(one, text.lines)
    return compare(base.lines, text.lines, hints)


def _parts_back(
    held: FileReview, before: FileReview, after: FileReview, text: Side, origins: Sequence[Origin]
) -> Review | None:
    """The review of `text` by its parts: those that the decision ended are there again, and those
    that it made are not. What the person typed since is in the base then, unless it is in a part.
    None: others changed these parts since."""
    now, then, ended = _renumbered(held, origins), _renumbered(before, origins), after.review
    if held.proposed or text.lines is None or now is None or then is None or ended is None:
        return None
    back, gone = _without(then, ended), _without(ended, then)
    left = carry(replace(ended, parts=gone), now.text).parts
    if not {_where(part) for part in left} <= {_where(part) for part in now.parts}:
        return None
    kept = tuple(part for part in now.parts if _where(part) not in {_where(one) for one in left})
    stay = carry(replace(now, parts=kept), text.lines).parts
    come = carry(replace(then, parts=back), text.lines).parts
    parts = sorted((*stay, *come), key=lambda part: (part.start, part.end))
    if any(one.end > other.start for one, other in pairwise(parts)):
        return None
    return Review(text.lines, joined(text.lines, parts))


def _keeps(review: Review, base: Side) -> bool:
    """Whether no line of the text that is in this base is in a part instead."""
    left = Counter(base.lines or ()) - Counter(review.base)
    return left.keys().isdisjoint(review.text)


def _without(review: Review, other: Review) -> tuple[Part, ...]:
    """The parts that the other one has not, wherever they are."""
    sides = [[_said(one.text, part) for part in one.parts] for one in (review, other)]
    found = blocks(*sides)
    return tuple(part for a, b, _, _ in found for part in review.parts[a:b])


def _said(text: Sequence[str], part: Part) -> str:
    return repr((part.old, tuple(text[part.start : part.end])))


def _where(part: Part) -> tuple[int, int, tuple[str, ...]]:
    return part.start, part.end, part.old


def _renumbered(held: FileReview, origins: Sequence[Origin]) -> Review | None:
    if held.review is None:
        return None

    def by(mark: Mark) -> Mark:
        known = mark.by != PERSON and mark.by < len(held.origins)
        return replace(mark, by=origins.index(held.origins[mark.by])) if known else mark

    parts = (
        replace(part, marks=tuple(by(mark) for mark in part.marks)) for part in held.review.parts
    )
    return Review(held.review.text, tuple(parts))


def _found_again(review: Review, text: Sequence[str]) -> list[Mark]:
    """The marks of lines that `text` still has."""
    changes = blocks(review.text, text)
    found = []
    for mark in review.marks:
        delta = sum((d - c) - (b - a) for a, b, c, d in changes if b <= mark.start)
        if not any(max(a, mark.start) < min(b, mark.end) for a, b, _, _ in changes):
            found.append(replace(mark, start=mark.start + delta, end=mark.end + delta, removed=0))
    return found
