"""This module takes changes of files back while others go on changing them: by a three-way merge,
so that later changes stay. Where the two meet, the file is a conflict and stays as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count

from magy_server.core.errors import ToolError
from magy_server.core.values import NO_FILE, FileChange, Hash, Kind, Version, digest
from magy_server.dataclass import dataclass
from magy_server.edits.rebasing.rebase import merge3

UNSAVED = "It has unsaved changes in the editor. Save or discard them first."
OTHER_END = "Magy cannot read the file at the other end of the move."
Run = Sequence[FileChange]
"""Changes in the order in which they were made, oldest first."""


@dataclass(frozen=True, slots=True)
class There:
    """What is at a path."""

    version: Version = NO_FILE
    data: bytes = b""
    unsaved: bool = False
    """An editor has it so, and the disk does not."""


@dataclass(frozen=True, slots=True)
class Contents:
    """How contents are read and written. `text`: raw, None for what is no text. `encode`: a text as
    bytes, with the encoding of some; raises ToolError. `blobs`: what the changes name."""

    text: Callable[[bytes], str | None]
    encode: Callable[[str, bytes], bytes]
    blobs: Mapping[Hash, bytes]

    def there(self, version: Version) -> There | None:
        """None: what it held is not known any more."""
        if version.hash is None:
            return There()
        data = self.blobs.get(version.hash)
        return None if data is None else There(version, data)


@dataclass(frozen=True, slots=True)
class Taken:
    """What becomes of a path. `problem`: why it is left alone, a sentence. `moved_from`: what is
    there now was at that path."""

    path: str
    now: There
    problem: str = ""
    moved_from: str = ""


@dataclass(frozen=True, slots=True)
class Net:
    """What changes of a file, each going on where the one before ended or began, came to."""

    path: str
    before: Version
    after: Version
    moved_from: str
    last: int
    """The number of the last of them, which says what to take back first."""


class _Problem(Exception):
    pass


def version(hash: Hash | None, kind: Kind, mode: int | None = None) -> Version:
    return Version(hash=hash, kind=kind, mode=mode) if hash else NO_FILE


def net(runs: Sequence[Run]) -> list[Net]:
    """What the changes came to, the newest first; what leads back to where it began is left out.
    Only within a run does one change go on where another ended."""
    found: list[Net] = []
    numbers = count()
    for run in runs:
        open_: dict[str, int] = {}
        for change in run:
            number = next(numbers)
            before = version(change.before, change.was, change.mode)
            after = version(change.after, change.now)
            at = open_.get(change.path)
            if at is not None and before in (found[at].after, found[at].before):
                # in the second case what was done was put back, or never came to be
                moved = found[at].moved_from or change.moved_from
                found[at] = replace(found[at], after=after, moved_from=moved, last=number)
            else:
                open_[change.path] = len(found)
                found.append(Net(change.path, before, after, change.moved_from, number))
    nothing = {one.path: one.moved_from for one in found if one.before == one.after == NO_FILE}
    moved_on = [replace(one, moved_from=_origin(one.moved_from, nothing)) for one in found]
    real = [one for one in moved_on if one.before != one.after]
    return sorted(real, key=lambda one: -one.last)


def _origin(path: str, through: Mapping[str, str]) -> str:
    """Returns where a file came from that was moved several times."""
    seen = {path}
    while through.get(path, path) not in seen:
        path = through[path]
        seen.add(path)
    return path


def tied(changes: Iterable[FileChange]) -> dict[str, set[str]]:
    """For each path of a move those at which its file was or came to be, step by step, this one
    included: they go back together, or none does."""
    found: dict[str, set[str]] = {}
    for change in changes:
        if change.moved_from:
            here = found.setdefault(change.path, {change.path})
            there = found.setdefault(change.moved_from, {change.moved_from})
            if here is not there:
                here |= there
                found |= dict.fromkeys(there, here)
    return found


def paths(runs: Iterable[Run]) -> list[str]:
    """Returns all paths that taking the changes back may touch."""
    return sorted({change.path for run in runs for change in run})


def take_back(
    runs: Sequence[Run], live: Mapping[str, There], contents: Contents, moves: Run = ()
) -> list[Taken]:
    """What the files become when the changes are taken back, by path. `live` has what is at each of
    `paths(runs)` now; a path that is missing there is left out. `moves`: other changes of these
    files, whose moves also tie paths to each other."""
    return _TakingBack(live, contents).all(net(runs), tied(chain(moves, *runs)))


class _TakingBack:
    def __init__(self, live: Mapping[str, There], contents: Contents) -> None:
        self._live = live
        self._now = dict(live)
        self._contents = contents
        self._problems: dict[str, str] = {}
        self._moved: dict[str, str] = {}

    def all(self, todo: Sequence[Net], tied: Mapping[str, set[str]]) -> list[Taken]:
        pairs = {one.last: (one, back) for one in todo if (back := self._other_end(one, todo))}
        pairs |= {back.last: pair for pair in pairs.values() for back in pair[1:]}
        for one in todo:
            pair = pairs.get(one.last)
            if pair and one.last != max(end.last for end in pair):
                continue  # both ends at once, when the later of them is due
            if not pair and one.path not in self._live:
                self._problems.setdefault(one.path, OTHER_END)
                continue
            try:
                if pair:
                    self._move(*pair)
                else:
                    self._change(one)
            except _Problem as problem:
                for end in pair or (one,):
                    self._problems.setdefault(end.path, str(problem))
        for path, now in self._now.items():
            if now.version == NO_FILE and self._live[path].unsaved:
                self._problems.setdefault(path, UNSAVED)
        self._spread(tied)
        return [self._taken(path) for path in sorted({one.path for one in todo} & set(self._live))]

    def _taken(self, path: str) -> Taken:
        if problem := self._problems.get(path):
            return Taken(path, self._live[path], problem)
        return Taken(path, self._now[path], moved_from=self._moved.get(path, ""))

    def _spread(self, tied: Mapping[str, set[str]]) -> None:
        for path, problem in sorted(self._problems.items()):
            for other in tied.get(path, ()):
                self._problems.setdefault(other, problem)

    @staticmethod
    def _other_end(one: Net, todo: Sequence[Net]) -> Net | None:
        """Returns where a file was that was moved to `one`."""
        if not one.moved_from or one.before != NO_FILE:
            return None
        ends = (other for other in todo if other.path == one.moved_from)
        return next((other for other in ends if other.after == NO_FILE), None)

    def _change(self, one: Net) -> None:
        here = self._now[one.path]
        if here.version == one.before:
            return
        if here.version == one.after:
            self._now[one.path] = self._known(one.before)
            return
        if one.before == NO_FILE:
            raise _Problem("That turn created it, and somebody else changed it later.")
        if one.after == NO_FILE:
            raise _Problem("That turn deleted it, and there is another file in its place now.")
        if here.version == NO_FILE:
            raise _Problem("It no longer exists: somebody else removed it later.")
        self._now[one.path] = self._merged(one.before, one.after, here)

    def _move(self, there: Net, back: Net) -> None:
        """Moves the file back to its old path, with what others changed in it meanwhile."""
        here, old = self._now.get(there.path), self._now.get(back.path)
        if here is None or old is None:
            raise _Problem(OTHER_END)
        if here.version == NO_FILE and old.version == back.before:
            return
        if here.version == NO_FILE or old.version != NO_FILE:
            self._change(there)
            self._change(back)
            return
        if here.version == there.after:
            restored = self._known(back.before)
        else:
            restored = self._merged(back.before, there.after, here)
        kept = restored.version.model_copy(update={"mode": here.version.mode})
        self._now[back.path], self._now[there.path] = There(kept, restored.data), There()
        self._moved[back.path] = there.path

    def _known(self, wanted: Version) -> There:
        found = self._contents.there(wanted)
        if found is None:
            raise _Problem("Its earlier content is no longer known.")
        return found

    def _merged(self, before: Version, after: Version, here: There) -> There:
        """Returns `here` without what led from `before` to `after`."""
        if "link" in (before.kind, after.kind, here.version.kind):
            raise _Problem("It is (or was) a symbolic link, and somebody changed it later.")
        theirs, base = self._known(before), self._known(after)
        texts = [self._contents.text(there.data) for there in (base, here, theirs)]
        if before.hash == after.hash:
            data = here.data
        elif any(text is None for text in texts):
            raise _Problem("It is not text, and somebody changed it later.")
        else:
            data = self._merged_text([text or "" for text in texts], here.data)
        kept = here.version.kind if here.version.kind != after.kind else before.kind
        return There(version(digest(data), kept, here.version.mode), data)

    def _merged_text(self, texts: Sequence[str], here: bytes) -> bytes:
        base, mine, theirs = texts
        merged = merge3(base, mine, theirs)
        if merged.conflicts:
            lines = ", ".join(str(conflict.live_line) for conflict in merged.conflicts[:5])
            raise _Problem(f"The same lines were changed later: at {lines}.")
        if not merged.changes:
            return here
        try:
            return self._contents.encode(merged.text, here)
        except ToolError as error:
            raise _Problem(error.message) from None
