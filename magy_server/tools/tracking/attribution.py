"""This module tells which changes of a file are a command's: all that happened to it, but for what
others are known to have done.

What is on disk, and what the editor shows, are each kept as a review (`edits.agent_lines`) in which
the command's lines are the parts: its base is what would be there without the command. What others
do goes into the base; what nobody has told of is the command's. To save makes the disk what the
editor shows, to load does the opposite, each with all that is known of it. So the end of it is a
pair: what there is, and what there would be. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from magy_server.core.errors import ToolError
from magy_server.core.values import Kind, Version, digest
from magy_server.dataclass import dataclass
from magy_server.edits.agent_lines import PERSON, Part, Review, carry
from magy_server.edits.hunks import accept
from magy_server.edits.rebasing.diff import blocks
from magy_server.edits.rebasing.rebase import merge3
from magy_server.edits.text import plain, split, usual_end
from magy_server.tools.files.encodings import Encoding, decode, encode
from magy_server.tools.tracking.known_changes import (
    UNKNOWN,
    Claimed,
    Found,
    Heard,
    Made,
    Saved,
    Shown,
    Told,
    Touched,
)

COMMAND = 0
"""Who it is in the marks of a review."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What is there `now`, and in `review` which lines of it are the command's; None: it is, or
    was, no text, and `whole` is what would be there without the command. `exists`, `kind`: whether
    a file, and which, would be there then. `like`: the newest file there was, for what a text does
    not say."""

    now: Told
    review: Review | None
    whole: Told
    exists: bool
    kind: Kind
    like: Told

    @property
    def without(self) -> Told:
        if self.review is None:
            return self.whole
        lines = self.review.base
        if not lines and not self.exists:
            return UNKNOWN
        data = self.now.data
        if self.review.parts or not self.now.version.hash:
            data = _encoded("".join(lines), self.like.data)
        mode = self.like.version.mode
        return Told(Version(hash=digest(data), kind=self.kind, mode=mode), data)


def without_command(first: Told, heard: Sequence[Heard], last: Told) -> Told:
    """What the file would be now if the command, which found it as `first` and left it as `last`,
    had not run."""
    disk, buffer = _theirs(first), None
    clean = first  # what the editor last showed that was on disk
    silent = not any(isinstance(one, Saved) for one in heard)
    for one in [*heard, Found(last)]:
        if isinstance(one, Made | Claimed | Found):
            found = one.was if isinstance(one, Made) else one.now
            disk, saved = _found(disk, buffer, clean, found)
            if saved and buffer and silent:
                clean = buffer.now
        match one:
            case Made(now=now) | Touched(now=now):
                disk = _by_other(disk, now)
            case Claimed(now=now, was=was) if was is not None:
                disk = _by_other(_by_command(disk, was), now)
                buffer = _without(buffer, was, now)
            case Shown():
                disk, buffer, clean = _shown(disk, buffer, clean, one)
            case Saved():
                clean = buffer.now if buffer else one.now
                disk, buffer = _saved(disk, buffer, one)
    return first if _same(disk.without, first) and disk.kind == first.version.kind else disk.without


def told_of(first: Told, heard: Sequence[Heard], last: Told) -> bool:
    """Whether somebody has told who made `last`."""
    there, shown = first, None
    for one in heard:
        match one:
            case Made(now=now) | Touched(now=now) | Claimed(now=now):
                there = now
            case Shown(text=text):
                shown = _as_on_disk(text, last)
            case Saved(now=now):  # what was read then may be what it saves next
                there = now if shown is None else shown
    return _same(last, there)


def known_first(heard: Sequence[Heard]) -> Told | None:
    """What the file was when it was first heard of."""
    for one in heard:
        if not isinstance(one, Shown):
            return one.was if isinstance(one, Made) else one.now
    return None


# --- what happens ---------------------------------------------------------------------------------


def _theirs(now: Told) -> Shared:
    """Nothing of it is the command's."""
    text, version = now.text, now.version
    review = None if text is None else Review(split(text))
    return Shared(now, review, now, version.hash is not None, version.kind, now)


def _by_command(one: Shared, now: Told) -> Shared:
    text = now.text
    whole, review = one.without, None
    if one.review is not None and text is not None:
        review = carry(one.review, split(text), COMMAND)
    like = now if now.version.hash else one.like
    return replace(one, now=now, review=review, whole=whole, like=like)


def _by_other(one: Shared, now: Told) -> Shared:
    text, version = now.text, now.version
    if one.review is None or text is None or version.hash is None:
        return _theirs(now)
    review = carry(one.review, split(text))
    review = accept(review, [n for n, part in enumerate(review.parts) if _rewritten(part)])
    return replace(
        one,
        now=now,
        review=review,
        exists=one.exists or not review.parts or bool(review.base),
        kind=one.kind if version.kind == one.now.version.kind else version.kind,
        like=now,
    )


def _rewritten(part: Part) -> bool:
    """Others have written all of its lines anew."""
    whose = {mark.by for mark in part.marks if mark.start < mark.end}
    return PERSON in whose and COMMAND not in whose


def _found(disk: Shared, buffer: Shared | None, clean: Told, now: Told) -> tuple[Shared, bool]:
    """Nobody has told of it: it is the command's. But the editor may have saved before that, and
    not said so yet: then all that was not saved is in it, and it is nearer to that. And whether
    the editor has."""
    if now.data == disk.now.data and now.version == disk.now.version:
        return disk, False
    saved = False
    if buffer is not None and not _same(buffer.now, disk.now):
        if _same(now, buffer.now):
            return _written(disk, buffer, now), True
        nearer = _far(buffer.now, now) < _far(disk.now, now)
        saved = nearer and _has(now, clean, buffer.now)
        if saved:
            disk = _written(disk, buffer, buffer.now)
    return _by_command(disk, now), saved


def _shown(
    disk: Shared, buffer: Shared | None, clean: Told, one: Shown
) -> tuple[Shared, Shared, Told]:
    told = _as_on_disk(one.text, disk.now)
    there = _same(told, disk.now)
    if there and (buffer is None or one.opened or not _typed(clean, buffer, one, told)):
        return disk, disk, told  # it has loaded it
    if buffer is None or one.opened:
        return disk, _theirs(told), clean
    return disk, _by_other(buffer, told), told if there else clean


def _typed(clean: Told, buffer: Shared, shown: Shown, now: Told) -> bool:
    """Whether the editor comes to show what is on disk by being typed in, and had saved it before
    it said so. It does not load a file over text that is not saved; who has it do so loses that
    text, which takes it further from what it showed than from what it had saved."""
    before = buffer.now if shown.before is None else _as_on_disk(shown.before, now)
    return not _same(clean, before) and _far(before, now) <= _far(clean, now)


def _saved(disk: Shared, buffer: Shared | None, saved: Saved) -> tuple[Shared, Shared | None]:
    """An editor may make another text of it by saving, and then shows that: what it does not show
    somebody wrote right after it."""
    now = saved.now
    if buffer is None:
        return _by_other(disk, now), None
    if _alike(now, buffer.now):
        return _written(disk, buffer, now), buffer
    if saved.shown:
        buffer = _by_other(buffer, now)
        return _written(disk, buffer, now), buffer
    return _by_command(_written(disk, buffer, buffer.now), now), buffer


def _written(disk: Shared, buffer: Shared, now: Told) -> Shared:
    """The disk is what the editor shows."""
    text, kind = now.text, now.version.kind
    if buffer.review is None or text is None:
        return _theirs(now)
    lines = split(text)
    alike = len(lines) == len(buffer.review.text)
    review = Review(lines, buffer.review.parts) if alike else carry(buffer.review, lines)
    kind = disk.kind if disk.now.version.hash else kind
    return Shared(now, review, now, buffer.exists, kind, now)


def _without(buffer: Shared | None, was: Told, now: Told) -> Shared | None:
    """What another command made, the editor may have loaded already."""
    if buffer is None or buffer.review is None or not buffer.review.parts:
        return buffer
    shown, before, after = buffer.now.text, was.text, now.text
    if shown is None or before is None or after is None:
        return buffer
    back = merge3(after, shown, before).text
    if back == shown:
        return buffer
    without = _by_command(buffer, _as_on_disk(back, buffer.now))
    return _by_other(without, buffer.now)


# --- texts ----------------------------------------------------------------------------------------


def _as_on_disk(shown: str, disk: Told) -> Told:
    """What the editor shows, as it would be saved: some hide line ends."""
    text = disk.text or ""
    if "\r" in text and "\r" not in shown:
        shown = shown.replace("\n", usual_end(text))
    data = _encoded(shown, disk.data)
    return Told(Version(hash=digest(data), kind=disk.version.kind), data)


def _encoded(text: str, like: bytes) -> bytes:
    try:
        encoding = decode(like, "")[1]
    except ToolError:
        encoding = Encoding()
    try:
        return encode(text, encoding, "")
    except ToolError:
        return text.encode("utf-8", "surrogatepass")


def _same(one: Told, other: Told) -> bool:
    if (one.version.hash is None) != (other.version.hash is None):
        return False
    if one.data == other.data:
        return True
    texts = one.text, other.text
    return None not in texts and plain(texts[0] or "") == plain(texts[1] or "")


def _has(now: Told, before: Told, shown: Told) -> bool:
    """Whether all that makes `shown` of `before` is in `now`, or was changed since."""
    texts = before.text or "", now.text or "", shown.text or ""
    return merge3(*texts).text == texts[1]


def _far(one: Told, other: Told) -> float:
    """In lines; infinite for what is no text."""
    texts = one.text, other.text
    if None in texts or not (one.version.hash and other.version.hash):
        return float("inf")
    lines = (plain(text or "").split("\n") for text in texts)
    return sum(b - a + d - c for a, b, c, d in blocks(*lines))


def _alike(one: Told, other: Told) -> bool:
    """But for blanks that an editor may leave out when it saves."""
    texts = one.text, other.text
    if None in texts:
        return one.data == other.data
    first, second = (plain(text or "").rstrip().split("\n") for text in texts)
    return [line.rstrip() for line in first] == [line.rstrip() for line in second]
