"""`FileReview` is the review of one whole file as a value; the functions tell what changes of the
file make of it. No I/O.

Texts are reviewed by lines (`edits.agent_lines`); what is no text, or too large, and what is no
matter of lines (that a file exists, its executable bit), is reviewed as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace

from magy_server.core.errors import ToolError
from magy_server.core.reviews.review_events import Comment, Decision, Reviewed
from magy_server.core.values import NO_FILE, Hash, Mark, Origin, Version, digest
from magy_server.dataclass import dataclass
from magy_server.edits import agent_lines as lines
from magy_server.edits.agent_lines import Review, carry, compare
from magy_server.edits.proposal import Place, place, proposed
from magy_server.edits.text import split

LIMIT = 10_000_000
"""Bytes of the largest text that is reviewed by lines."""

Decode = Callable[[bytes], str | None]
Encode = Callable[[str, bytes], bytes]
"""(raw text, bytes whose encoding to keep). Raises ToolError."""


@dataclass(frozen=True, slots=True)
class Side:
    """What is, was, or shall be at a path. `lines` None: it is no text, or a large one."""

    version: Version = NO_FILE
    data: bytes = b""
    lines: Sequence[str] | None = ()

    @property
    def exists(self) -> bool:
        return self.version.hash is not None

    @property
    def text(self) -> str | None:
        """None: no file, or no text."""
        return "".join(self.lines) if self.exists and self.lines is not None else None


def side(version: Version, data: bytes, decode: Decode) -> Side:
    if version.hash is None:
        return Side()
    text = decode(data) if version.kind != "link" and len(data) <= LIMIT else None
    return Side(version, data, None if text is None else split(text))


@dataclass(frozen=True, slots=True)
class FileReview:
    """`base` is what the person has accepted; `text` what the file is now, or is proposed to be.
    `review` is of their lines; None: they are compared as a whole."""

    root: str
    path: str
    base: Side
    text: Side
    review: Review | None
    origins: tuple[Origin, ...] = ()
    comments: tuple[Comment, ...] = ()
    moved_from: str = ""
    removed: Hash | None = None
    """What an agent last removed, here or at `moved_from`: a buffer may show it still."""
    proposed: bool = False

    @property
    def name(self) -> str:
        """The path below the root, for people and models."""
        return self.below(self.path)

    @property
    def old_name(self) -> str:
        """The path below the root that the file had before it was moved; else empty."""
        return self.below(self.moved_from)

    def below(self, path: str) -> str:
        return path.removeprefix(self.root.rstrip("/") + "/")

    @property
    def differs(self) -> bool:
        """Returns whether the file differs as a whole: not (only) in its lines."""
        return bool(self.moved_from) or differs_whole(self.base, self.text, self.review)

    @property
    def pending(self) -> bool:
        return self.differs or bool(self.review and self.review.parts)


def differs_whole(base: Side, text: Side, review: Review | None) -> bool:
    if review is None:
        return base.version != text.version
    if base.exists and text.exists:
        return base.version.kind != text.version.kind
    return base.exists is not text.exists and not review.parts


def begun(root: str, path: str, base: Side, proposed: bool = False) -> FileReview:
    """Nothing is under review yet."""
    return FileReview(root, path, base, base, unchanged(base), proposed=proposed)


def unchanged(one: Side) -> Review | None:
    return None if one.lines is None else Review(one.lines)


def held_of(event: Reviewed, blobs: Mapping[Hash, bytes], decode: Decode) -> FileReview:
    """Returns the review as it was stored."""
    base = side(event.base, blobs.get(event.base.hash or "", b""), decode)
    text = side(event.agent, blobs.get(event.agent.hash or "", b""), decode)
    review = None
    if base.lines is not None and text.lines is not None:
        marks = (lines.Mark(m.start, m.end, m.origin, m.removed) for m in event.marks)
        review = compare(base.lines, text.lines, marks)
    return FileReview(
        event.root, event.path, base, text, review, event.origins, event.comments,
        event.moved_from, event.removed, event.proposed,
    )  # fmt: skip


# --- changes --------------------------------------------------------------------------------------


def typed(held: FileReview, now: Side) -> FileReview:
    """Returns the review after the person (or somebody else who is not reviewed) made the file
    `now`."""
    if now.version == held.text.version:
        return replace(held, text=now)
    if not held.pending or (held.text.exists and not now.exists):
        return begun(held.root, held.path, now)  # with the file, the review is over
    if held.review is None or now.lines is None:
        base = now if held.base.version == held.text.version else held.base
        return _compared(replace(held, base=base, text=now))
    review = carry(held.review, now.lines)
    base = _based(held, review, now)
    return replace(held, base=base, text=now, review=review)


def changed(held: FileReview, now: Side, origin: Origin) -> FileReview:
    """Returns the review after an agent made the file `now`."""
    if not held.pending:
        held = replace(held, origins=(), comments=())
    if held.text.exists and not now.exists:
        held = replace(held, removed=held.text.version.hash)
    if origin in held.origins:
        number = held.origins.index(origin)
    else:
        number = len(held.origins)
        held = replace(held, origins=(*held.origins, origin))
    if held.review is None or now.lines is None:
        return _compared(replace(held, text=now))
    review = carry(held.review, now.lines, number)
    # What a person had typed into a part, and the agent wrote over, is in the base from now on.
    return replace(held, base=reworded(held.base, review.base, now), text=now, review=review)


def _compared(held: FileReview) -> FileReview:
    """Where one side was no text: once both are, they have lines again."""
    if held.base.lines is None or held.text.lines is None:
        return replace(held, review=None)
    return replace(held, review=compare(held.base.lines, held.text.lines, ()))


def _based(held: FileReview, review: Review, now: Side) -> Side:
    """The base after a change of the person's, who may also have changed what kind of file it is,
    or written into a file that only an agent had made."""
    base = reworded(held.base, review.base, now)
    if base.exists and now.exists and held.base.version.kind == held.text.version.kind:
        return of_kind(base, now)
    return base


UNKNOWN = "?"
"""The hash of a side whose bytes have not been made yet."""


def reworded(base: Side, now: Sequence[str], like: Side) -> Side:
    """`base` with other lines; its bytes are made when it is stored."""
    if base.lines is not None and list(base.lines) == list(now):
        return base
    if not base.exists and not now:
        return base
    kind = base.version.kind if base.exists else like.version.kind
    mode = (base if base.exists else like).version.mode
    return Side(Version(hash=UNKNOWN, kind=kind, mode=mode), base.data or like.data, now)


def of_kind(one: Side, like: Side) -> Side:
    return replace(one, version=Version(hash=one.version.hash, kind=like.version.kind))


def made(one: Side, encode: Encode) -> Side:
    """Returns a side with its bytes. Raises ToolError when the encoding cannot hold the text."""
    if one.version.hash != UNKNOWN or one.text is None:
        return one
    data = encode(one.text, one.data)
    hash = digest(data)
    return Side(one.version.model_copy(update={"hash": hash}), data, one.lines)


# --- proposals ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Placed:
    """A proposal beside the live file: `held` is the proposal made for it, and `places` are its
    parts there. `conflict`: as a whole it does not fit any more."""

    held: FileReview
    places: tuple[Place, ...] = ()
    conflict: bool = False


def placed(held: FileReview, live: Side) -> Placed:
    """A proposal that does not touch lines fits as long as the file is as it was."""
    if live.version == held.base.version and held.review is not None and live.lines is not None:
        return Placed(held, place(held.review, live.lines))
    if live.version == held.text.version:
        return Placed(begun(held.root, held.path, live, proposed=True))
    by_lines = held.review is not None and live.lines is not None
    if not by_lines or live.exists is not held.base.exists or not held.text.exists:
        return Placed(held, conflict=live.version != held.base.version)
    assert held.review is not None and live.lines is not None
    places = place(held.review, live.lines)
    review = proposed(live.lines, places)
    like = live if held.text.version.kind == held.base.version.kind else held.text
    text = reworded(of_kind(held.text, like), list(review.text), live)
    base = reworded(live, review.base, live)
    return Placed(replace(held, base=base, text=text, review=review), places)


# --- storing --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stored:
    event: Reviewed
    blobs: dict[Hash, bytes] = field(default_factory=dict)


def stored(
    held: FileReview,
    encode: Encode,
    *,
    decision: Decision | None = None,
    by: Origin | None = None,
) -> Stored:
    """`by`: whose change led here."""
    base, text = _safely(held.base, encode), _safely(held.text, encode)
    marks = held.review.marks if held.review else ()
    used: Iterable[int] = {mark.by for mark in marks if mark.by != lines.PERSON}
    if held.differs:
        used = range(len(held.origins))
    numbers = {old: new for new, old in enumerate(sorted(used))}
    event = Reviewed(
        root=held.root,
        path=held.path,
        base=base.version,
        agent=text.version,
        marks=tuple(
            Mark(start=m.start, end=m.end, origin=numbers.get(m.by, -1), removed=m.removed)
            for m in marks
        ),
        origins=tuple(held.origins[old] for old in numbers if old < len(held.origins)),
        comments=held.comments if held.pending else (),
        moved_from=held.moved_from,
        removed=held.removed,
        proposed=held.proposed,
        changed=by,
        decision=decision,
    )
    return Stored(event, {s.version.hash: s.data for s in (base, text) if s.version.hash})


def _safely(one: Side, encode: Encode) -> Side:
    try:
        return made(one, encode)
    except ToolError:  # the person's text has what the older encoding cannot hold
        return made(replace(one, data=b""), encode)
