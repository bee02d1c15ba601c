"""This module finds the files of a git work tree that change while a command runs, for review.

Before the command it is seen which files differ from the index or are unknown to git, and their
bytes are kept; of all others git has the bytes. After it the same is seen again. So a command costs
about two looks at the status, however large the files are. What is ignored is not looked at.

Whether the command did it cannot be known; what others are known to have done (`known_changes`) is
left out. So is what is as in another commit that was checked out meanwhile: a checkout is no edit.
But a file is covered if that took content from it which git has nowhere.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import field

from magy_server.core.errors import ToolError
from magy_server.core.no_editor import NO_EDITOR
from magy_server.core.ports import Editor
from magy_server.core.values import NO_FILE, FileChange, Hash
from magy_server.dataclass import dataclass
from magy_server.edits.text import plain as plain_text
from magy_server.tools.files.change import busy
from magy_server.tools.files.commits import Commits
from magy_server.tools.files.live_file import same
from magy_server.tools.files.paths import below
from magy_server.tools.files.versions import look
from magy_server.tools.git.names import listed
from magy_server.tools.git.repository import Repository
from magy_server.tools.shell.processes import Processes
from magy_server.tools.temporary import temporary
from magy_server.tools.tracking import attribution, known_changes
from magy_server.tools.tracking import index as worktree_git
from magy_server.tools.tracking.index import Index, Listing
from magy_server.tools.tracking.known_changes import Told, Watch
from magy_server.tools.tracking.snapshot import ABSENT, ALL, Held, hold, plain, spare, stamps

MOST = 500
"""Changed files that are covered."""
UNKNOWN = 20_000
"""Files that git neither knows nor ignores; with more, none of a work tree is covered."""
SECONDS = 5.0
"""To look at a work tree before a command, on a machine with nothing else to do."""
PAUSE = 120.0
"""Seconds for which a work tree that takes longer is left alone."""
LATE = 20.0
"""Seconds to find out after a command what changed."""
NAMED = 10
"""Files named to the person."""
CHANGES = 5.0
"""Seconds for who changes a file to be done with it, beside somebody who types without a pause."""
WAIT = 5.0
"""Seconds for an editor to have told what it writes."""
EMPTY = 1.0
"""Seconds in which an editor that writes a file may leave it empty."""
Changing = Callable[[Collection[str]], Awaitable[None]]
SAYS = 0.1
"""Seconds in which an editor says that it has saved a file, if it cannot be asked."""
AGAIN = 0.02
"""Seconds after which a file that was just written is looked at again."""
_BEFORE = 50_000_000
"""Nanoseconds by which the clock of files may be behind."""
_UNKNOWN = Held(problem="its earlier content is unknown")


@dataclass(frozen=True, slots=True)
class Outcome:
    """`note` is one or more lines for the person; "" when nothing changed."""

    changes: tuple[FileChange, ...] = ()
    blobs: Mapping[Hash, bytes] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, slots=True)
class _Before:
    repository: Repository
    index: Index
    listing: Listing
    kept: dict[bytes, Held]
    head: str | None
    began: int


@dataclass(slots=True)
class _Found:
    """What is different. `problems`: files that are not covered, and why."""

    pairs: dict[bytes, tuple[Held, Held]] = field(default_factory=dict)
    problems: dict[bytes, str] = field(default_factory=dict)
    checked_out: int = 0
    odd: int = 0


async def _alone(paths: Collection[str]) -> None:
    """Nobody else changes any."""


@dataclass(eq=False)
class Around:
    """One command. `changes` is to be asked once, after it."""

    trees: Worktrees
    root: str
    folder: str
    watch: Watch
    editor: Editor
    changing: Changing
    _before: _Before | None = field(default=None, init=False)
    _problem: str = field(default="", init=False)

    async def begin(self) -> None:
        try:
            async with asyncio.timeout(seconds := _patience()):
                self._before = await self.trees.before(self.root, self.folder)
                await asyncio.to_thread(self._begun, self._before)
        except ToolError as error:
            self._problem = error.message
        except TimeoutError:
            self._problem = self.trees.too_slow(self.root, seconds)

    def _begun(self, before: _Before) -> None:
        """What was heard of a file until now may have been before or after the look at it, so that
        is done again, and what comes next comes after it. Blocks."""
        with known_changes.turn:
            for path in self.watch.changed():
                name = os.fsencode(below(self.root, path) or "")
                if name in before.kept:
                    held = before.kept[name] = hold(self.root, [name], {})[name]
                    self.watch.begin(path, Told(held.version, held.data))

    async def changes(self, seconds: float = 0.0) -> Outcome:
        """What changed since `begin`, and is not known to be another's doing; found in so many
        seconds (0: as many as there usually are), or not at all."""
        seconds = seconds or LATE
        if self._before is None:
            return Outcome(note=_uncovered(self._problem))
        try:
            async with asyncio.timeout(seconds):
                found = await self._found(self._before)
        except ToolError as error:
            return Outcome(note=_uncovered(error.message))
        except TimeoutError:
            return Outcome(note=_uncovered(_slow(seconds)))
        changes, blobs = _changes(self.root, found.pairs)
        note = "\n".join(f"[{line}.]" for line in _lines(found, self._before.listing.inner))
        return Outcome(tuple(changes), blobs, note)

    async def _found(self, before: _Before) -> _Found:
        repository = await self.trees.commits.repository(self.root)
        if repository is None:
            raise ToolError("it is no longer a git work tree")
        before.index.repository = repository
        after = await before.index.listing()
        found = _Found()
        names = await asyncio.to_thread(self._candidates, before, after)
        names = {name for name in names | self._told() if not spare(name)}
        odd = {name for name in names if not plain(name)}
        found.odd = len(odd)
        names = await self._not_checked_out(before, repository, names - odd, found)
        if len(names) > MOST:
            found.problems = dict.fromkeys(sorted(names), f"more than {MOST} files")
            return found
        await self._compare(before, after, sorted(names), found)
        return found

    def _candidates(self, before: _Before, after: Listing) -> set[bytes]:
        """What may have changed: what was kept and has another stamp, what did not differ from the
        index and now does, what git did not know of."""
        at = stamps(self.root, before.kept)
        names = {
            name for name, held in before.kept.items() if held.stamp != at[name] or not held.sure
        }
        names |= after.differ.keys() - before.kept.keys()
        new = after.unknown - before.kept.keys()
        # one that was ignored until now has been there
        since = before.began - _BEFORE
        names |= {n for n, at in stamps(self.root, new).items() if at and at[-1] >= since}
        return names

    def _told(self) -> set[bytes]:
        """What others changed, the command may have made as it was before, or removed."""
        paths = self.watch.changed()
        return {os.fsencode(name) for path in paths if (name := below(self.root, path))}

    async def _not_checked_out(
        self, before: _Before, repository: Repository, names: set[bytes], found: _Found
    ) -> set[bytes]:
        """Without the names whose files are as the commit has them that HEAD moved to."""
        head = await self.trees.commits.head(self.root)
        if head is None or head == before.head or not names:
            return names
        changed, tree = await worktree_git.as_committed(repository, head)
        there = await asyncio.to_thread(stamps, self.root, names)
        same = {n for n in names - changed if there[n] is None or n in tree}
        lost = {
            name: held.data
            for name in same
            if (held := before.kept.get(name)) and held.version != NO_FILE
        }
        if lost:
            known = await worktree_git.has(repository, lost, head)
            same -= lost.keys() - known
        found.checked_out = len(same)
        return names - same

    async def _compare(
        self, before: _Before, after: Listing, names: list[bytes], found: _Found
    ) -> None:
        was = await self._first(before, after, names)
        with suppress(TimeoutError):  # a change may wait for a person
            async with asyncio.timeout(CHANGES):
                for name in was:
                    async with busy(self._path(name)):
                        pass
                await self.changing([self._path(name) for name in was])
        room, until = ALL, time.monotonic() + WAIT
        async with self.trees.judging:
            for name in sorted(was):
                pair = await self._settled(name, was[name], room, until)
                problem = pair[0].problem or pair[1].problem
                if not problem and pair[0].version == pair[1].version:
                    continue
                self._not_loaded(name, *pair)
                room -= len(pair[0].data) + len(pair[1].data)
                if problem or room < 0:
                    found.problems[name] = problem or f"more than {ALL // 1_000_000} MB in all"
                else:
                    found.pairs[name] = pair

    async def _first(
        self, before: _Before, after: Listing, names: list[bytes]
    ) -> dict[bytes, Held]:
        """What they were when the command began. What is ignored is left out."""
        there = await asyncio.to_thread(stamps, self.root, names)
        clean = {name: after.differ[name] for name in names if name in after.differ}
        told = [name for name in self._told() if name not in clean]
        clean |= await before.index.entries(told) if told else {}
        known = {name: entry for name, entry in clean.items() if name not in before.kept}
        held = {**before.kept, **(await before.index.held(known) if known else {})}
        new = {n: ABSENT if n in after.unknown else _UNKNOWN for n in names if n not in held}
        seen = {n: one for n, one in new.items() if n in after.unknown or there[n] is None}
        return seen | {n: held[n] for n in names if n in held}

    async def _settled(self, name: bytes, was: Held, room: int, until: float) -> tuple[Held, Held]:
        """Once the editor has said what it has just written, or is still writing."""
        path = self._path(name)
        silent: Told | None = None
        while True:
            waits = self.editor.buffer(path) is not None and time.monotonic() < until
            found = await asyncio.to_thread(self._pair, name, was, room, waits, silent)
            if not isinstance(found, Told):
                return found
            # An editor that writes a file begins with an empty one.
            if await self.editor.caught_up():
                silent = found
            elif known_changes.age(path) < (SAYS if found.data else EMPTY):
                await asyncio.sleep(AGAIN)
            else:
                silent = found

    def _pair(
        self, name: bytes, was: Held, room: int, waits: bool, silent: Told | None
    ) -> tuple[Held, Held] | Told:
        """What the file would be without the command, and what it is; from now on, the difference
        is known to those who watch another command. If it `waits`: what stands there, if nobody has
        told who made it; but for what is there while the editor says nothing of it (`silent`).
        Blocks."""
        path = self._path(name)
        with known_changes.turn:
            now = hold(self.root, [name], {}, room)[name]
            last, heard = Told(now.version, now.data), self.watch.heard(path)
            first = attribution.known_first(heard) if was.problem else Told(was.version, was.data)
            if now.problem:
                return was, now
            if first and waits and last != silent and not attribution.told_of(first, heard, last):
                return last
            claimed = known_changes.claim(path, last, self.watch)
        if first is None:
            return was, now
        without = attribution.without_command(first, heard, last)
        if without.version != now.version:
            claimed.was = without
        return Held(without.version, without.data), now

    def _not_loaded(self, name: bytes, was: Held, now: Held) -> None:
        """What the editor still shows of before the command has nothing of the person's in it."""
        path = self._path(name)
        buffer = self.editor.buffer(path)
        if buffer is None or was.problem or now.problem:
            return
        text = Told(was.version, was.data).text
        if text is not None and plain_text(text) == plain_text(buffer.text):
            same(path, buffer.text)

    def _path(self, name: bytes) -> str:
        return os.path.join(self.root, os.fsdecode(name))


class Worktrees:
    """The work trees of a process."""

    def __init__(self, processes: Processes) -> None:
        self.commits = Commits(processes)
        self._kept: dict[str, dict[bytes, Held]] = {}
        self._slow: dict[str, tuple[float, float]] = {}
        """Until when a work tree is left alone, and how many seconds were not enough for it."""
        self.judging = asyncio.Lock()
        """Held while it is found out whose changes are whose: of two commands, one has them."""

    @asynccontextmanager
    async def around(
        self, root: str, editor: Editor = NO_EDITOR, changing: Changing = _alone
    ) -> AsyncIterator[Around]:
        """For a command that runs inside the block. `root` is the workspace root. `changing` keeps
        others from changing files until it is in the log what of them is the command's."""
        async with temporary() as folder:
            with known_changes.watching(root, look, editor) as told:
                one = Around(self, root, folder, told, editor, changing)
                await one.begin()
                yield one

    async def before(self, root: str, folder: str) -> _Before:
        """How it is now. Raises ToolError: why nothing is covered."""
        until, seconds = self._slow.get(root, (0.0, 0.0))
        if time.monotonic() < until:
            raise ToolError(_slow(seconds))
        repository = await self.commits.repository(root)
        if repository is None:
            raise ToolError("there is no readable git work tree here")
        index = Index(repository, folder)
        began = time.time_ns()
        head = await self.commits.head(root)
        await index.copy()
        listing = await index.listing()
        if len(listing.unknown) > UNKNOWN:
            raise ToolError(f"more than {UNKNOWN:,} files are neither known to git nor ignored")
        names = filter(plain, {*listing.differ, *listing.unknown})
        kept = await asyncio.to_thread(hold, root, names, self._kept.get(root, {}))
        self._kept[root] = kept
        return _Before(repository, index, listing, kept, head, began)

    def too_slow(self, root: str, seconds: float) -> str:
        """Leaves it alone for a while."""
        self._slow[root] = (time.monotonic() + PAUSE, seconds)
        return _slow(seconds)


def _patience() -> float:
    """Seconds to look at a work tree before a command. Where more runs than there are processors,
    a small one takes long, too, and is not to lose its reviews for that."""
    try:
        busy = os.getloadavg()[0] / (os.cpu_count() or 1)
    except OSError:  # not known here
        busy = 1.0
    return min(SECONDS * max(1.0, busy), max(SECONDS, LATE))


def _slow(seconds: float) -> str:
    return f"scanning this work tree takes longer than {seconds:.0f} s"


def _changes(
    root: str, pairs: Mapping[bytes, tuple[Held, Held]]
) -> tuple[list[FileChange], dict[Hash, bytes]]:
    """What became of a file that is gone is told where its very bytes are new."""
    gone = {
        was.version: name
        for name, (was, now) in pairs.items()
        if now.version == NO_FILE and was.data
    }
    changes: list[FileChange] = []
    blobs: dict[Hash, bytes] = {}
    for name, (was, now) in pairs.items():
        old = gone.pop(now.version, None) if was.version == NO_FILE else None
        changes.append(
            FileChange(
                path=os.path.join(root, name.decode()),
                before=was.version.hash,
                after=now.version.hash,
                via="command",
                was=was.version.kind,
                now=now.version.kind,
                moved_from=os.path.join(root, old.decode()) if old is not None else "",
                mode=(was if was.version.hash else now).version.mode,
            )
        )
        blobs |= {one.version.hash: one.data for one in (was, now) if one.version.hash}
    return changes, blobs


# --- what the person is told --------------------------------------------------------------------


def _uncovered(why: str) -> str:
    return f"[Files that this command may have changed are not under review: {why}.]"


def _lines(found: _Found, inner: bool) -> Iterator[str]:
    left_out = "ignored files" + (" and repositories inside this one" if inner else "")
    if found.pairs:
        names = listed(list(found.pairs), NAMED)
        yield (
            f"{_files(len(found.pairs))} changed during this command ({left_out} are not "
            f"scanned): {names}"
        )
    if found.checked_out:
        were = "is" if found.checked_out == 1 else "are"
        yield (
            f"{_files(found.checked_out)} {were} now as in the commit that was checked out; "
            "not under review"
        )
    if found.problems:
        yield f"Changed, but not under review: {_why(found.problems)}"
    if found.odd:
        text = f"{_files(found.odd)} with line breaks or strange bytes in the name"
        yield f"Changed, but not under review: {text}"


def _why(problems: Mapping[bytes, str]) -> str:
    first = list(problems)[:NAMED]
    if len(problems) > MOST:
        return f"{len(problems):,} files, more than {MOST}: {listed(list(problems), NAMED)}"
    text = ", ".join(f"{listed([name])} ({problems[name]})" for name in first)
    more = len(problems) - len(first)
    return f"{text} and {more} more" if more else text


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count:,} files"
