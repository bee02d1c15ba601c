"""This module collects what is known of who changed a file: Magy's own changes, and what the editor
shows and saves. Those who make changes tell it, and those who watch a command hear of them.

A command is watched for the files that change while it runs. What another call wrote, or a person
decided, typed or saved, is not the command's doing, however it looks from outside. `attribution`
works out from what was heard which changes are the command's."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from itertools import islice

from magy_server.core.errors import ToolError
from magy_server.core.no_editor import NO_EDITOR
from magy_server.core.ports import Editor, Seen
from magy_server.core.values import Version
from magy_server.dataclass import dataclass
from magy_server.edits.text import plain
from magy_server.tools.files.encodings import text_of

LARGEST = 2_000_000
"""Bytes of a file whose changes are followed."""
INSIDE = 200
"""Files that are looked at in a folder that the person moved."""
SOON = 1.0
"""Seconds after which an editor does not show any more what it has made of a text by saving it."""
WRITING = 5
"""Times that a file is read which changes while it is read."""
UNSURE = 100_000_000
"""Nanoseconds after a change in which another one may leave the same times: file systems count in
ticks of some milliseconds, and the clock of another machine may be a little off."""

Stamp = tuple[int, ...]
Look = Callable[[str, str], tuple[Version, bytes]]


@dataclass(frozen=True, slots=True)
class Told:
    """What a file was; the bytes of it."""

    version: Version = field(default_factory=Version)
    data: bytes = field(default=b"", repr=False)

    @property
    def text(self) -> str | None:
        """Returns the raw text; "" for nothing, None for what is not text."""
        if self.version.hash is None:
            return ""
        return None if self.version.kind == "link" else text_of(self.data)


UNKNOWN = Told()


@dataclass(frozen=True, slots=True)
class Made:
    """`was` was on disk, and somebody made `now` of it on purpose."""

    was: Told
    now: Told


@dataclass(slots=True)
class Claimed:
    """`now` was on disk, and another command has made it of `was`, which never was there if others
    changed the file, too. `was` None: it is not known yet, or that command made nothing."""

    now: Told
    was: Told | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """This was on disk, and nobody had told who made it. `stamp`: that it had then."""

    now: Told
    stamp: Stamp | None = None
    at: float = field(default_factory=time.monotonic, compare=False)


@dataclass(frozen=True, slots=True)
class Shown:
    """The editor showed this raw text. `opened`: from then on; `loaded`: it was on disk, and had
    come there while it was watched; `before`: what it showed just before."""

    text: str
    opened: bool = False
    loaded: bool = False
    before: str | None = None


@dataclass(slots=True)
class Saved:
    """The editor had just saved what it shows, and this was on disk. `shown`: it was what the
    editor showed next, and soon."""

    now: Told
    shown: bool = False
    at: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, slots=True)
class Touched:
    """The person made the file so in the editor, or removed it, without opening it."""

    now: Told


Heard = Made | Claimed | Found | Shown | Saved | Touched

_watches: list[Watch] = []
turn = threading.RLock()
"""Held while a file is replaced and that is told, and while one is looked at, so that all is heard
in its order."""


@dataclass(slots=True)
class _File:
    """`stamp` is of when it was last looked at; `sure`: the same one later proves the same bytes.
    `last` is what was there then; None: nobody has read it. `shown`: what the editor shows."""

    heard: list[Heard] = field(default_factory=list)
    stamp: Stamp | None = None
    sure: bool = False
    last: Told | None = None
    shown: str | None = None


class Watch:
    """What is heard of the files below `root`, in order. `look` says what is at a path now, and
    raises ToolError."""

    def __init__(self, root: str, look: Look, editor: Editor = NO_EDITOR) -> None:
        self._root = root
        self._look = look
        self._files: dict[str, _File] = {}
        self._gone: list[str] = []
        for path in editor.open_paths():
            buffer = editor.buffer(path)
            if buffer and self._mine(path):
                stamp, sure = stamped(path)
                self._files[path] = _File(
                    [Shown(buffer.text, opened=True)], stamp, sure, shown=buffer.text
                )

    def heard(self, path: str) -> Sequence[Heard]:
        """Returns what was heard of this file so far."""
        if path in self._files:
            return tuple(self._files[path].heard)
        removed = any(path.startswith(f"{folder}/") for folder in self._gone)
        return (Touched(UNKNOWN),) if removed else ()

    def changed(self) -> list[str]:
        """The files of which more was heard than that they are open."""
        return [path for path, file in self._files.items() if not all(map(_opened, file.heard))]

    def begin(self, path: str, now: Told) -> None:
        """From now on, only what comes next counts for this file, which is now `now`. Call it while
        `turn` is held."""
        file = self._files[path]
        file.heard = [] if file.shown is None else [Shown(file.shown, opened=True)]
        file.last, file.sure = now, False

    def hear(self, path: str, heard: Made | Claimed) -> None:
        """What was just done on disk."""
        if self._mine(path):
            file = self._files.setdefault(path, _File())
            file.heard.append(heard)
            file.stamp, file.sure = stamped(path)
            file.last = heard.now

    def see(self, seen: Seen) -> None:
        """What an editor says, in its order. Reads the file when it is not as it was."""
        if not self._mine(seen.path):
            return
        with turn:
            if seen.on_disk:
                self._touch(seen.path)
                return
            file = self._files.setdefault(seen.path, _File())
            if seen.saved:
                self._save(seen.path, file)
            elif self._look_at(seen.path, file) and len(seen.text) <= LARGEST:
                loaded = _same(seen.text, file.last)
                _show(file, Shown(seen.text, seen.opened, loaded, file.shown))
                file.shown = seen.text

    def _touch(self, path: str) -> None:
        if os.path.isdir(path) and not os.path.islink(path):
            inside = (os.path.join(at, name) for at, _, names in os.walk(path) for name in names)
            for one in islice(inside, INSIDE):
                self._touch(one)
            return
        if not os.path.lexists(path):
            self._gone.append(path)  # maybe a folder
        file = self._files.setdefault(path, _File())
        file.stamp, file.sure = stamped(path)
        file.last = self._read(path)
        if file.last is not None:
            file.heard.append(Touched(file.last))

    def _save(self, path: str, file: _File) -> None:
        file.stamp, file.sure = stamped(path)
        now = file.last = self._read(path)
        if now is None:
            return
        _not_found(file)
        match file.heard[-3:]:  # of saving again and again, the last time counts
            case [Shown(opened=False, loaded=False) as before, Saved(now=saved), Shown()]:
                if _same(before.text, saved):
                    del file.heard[-3:-1]
        file.heard.append(Saved(now))

    def _look_at(self, path: str, file: _File) -> bool:
        """Whether somebody has written it. False: it cannot be followed."""
        stamp, sure = stamped(path)
        if file.sure and file.stamp == stamp:
            return True
        now = self._read(path)
        for _ in range(WRITING):
            before, (stamp, sure) = stamp, stamped(path)
            if stamp == before:
                break  # else it was just being written, and the stamp has to be of what was read
            now = self._read(path)
        if now is None:
            return False
        file.stamp, file.sure = stamp, sure
        if file.last != now:
            file.last = now
            file.heard.append(Found(now, stamp))
        return True

    def _read(self, path: str) -> Told | None:
        try:
            if os.path.lexists(path) and os.lstat(path).st_size > LARGEST:
                return None
            return Told(*self._look(self._root, path))
        except (OSError, ToolError):
            return None

    def _mine(self, path: str) -> bool:
        return path.startswith(self._root.rstrip("/") + "/")


def _opened(heard: Heard) -> bool:
    return isinstance(heard, Shown) and heard.opened


def _show(file: _File, now: Shown) -> None:
    """Of texts with nothing between them the last one counts, but for what the editor has only
    loaded."""
    told = next((one for one in reversed(file.heard) if not isinstance(one, Found)), None)
    if isinstance(told, Saved):
        told.shown = _same(now.text, told.now) and time.monotonic() - told.at < SOON
    before = file.heard[-1] if file.heard else None
    if isinstance(before, Shown) and (now.opened or not (before.opened or before.loaded)):
        file.heard.pop()
    file.heard.append(now)


def _not_found(file: _File) -> None:
    """What was found on disk was this saving, and word of it came late: if it is there still, or
    the editor showed it when it saved, and has saved again, maybe more than once."""
    shown, later = file.shown or "", len(file.heard)
    for at in range(len(file.heard) - 1, -1, -1):
        one = file.heard[at]
        if isinstance(one, Made | Claimed | Touched):
            return
        if not isinstance(one, Found):
            continue
        there = one.stamp is not None and one.stamp == file.stamp
        soon = time.monotonic() - one.at < SOON  # a person does not load and save so fast
        if there or (soon and _same(shown, one.now) and not _same(shown, file.last)):
            file.heard[at:later] = map(_not_loaded, file.heard[at + 1 : later])
        later = at


def _not_loaded(one: Heard) -> Heard:
    return replace(one, loaded=False) if isinstance(one, Shown) else one


def _same(shown: str, disk: Told | None) -> bool:
    text = disk.text if disk else None
    return text is not None and plain(text) == plain(shown)


def stamped(path: str) -> tuple[Stamp | None, bool]:
    """What can be seen of it without reading, and whether the same later proves the same bytes."""
    now = time.time_ns()
    try:
        found = os.lstat(path)
    except OSError:
        return None, True
    times = (found.st_mtime_ns, found.st_ctime_ns)
    stamp = (found.st_dev, found.st_ino, found.st_mode, found.st_size, *times)
    return stamp, now - found.st_ctime_ns > UNSURE


def age(path: str) -> float:
    """Seconds since it was written."""
    try:
        return (time.time_ns() - os.lstat(path).st_mtime_ns) / 1e9
    except OSError:
        return float("inf")


def tell(path: str, was: Told, now: Told) -> None:
    """`path` (as in `FileChange`) was just made to be `now`, on purpose and on disk; until then it
    was `was`. To be called while `turn` is held; from any thread."""
    for watch in tuple(_watches):
        watch.hear(path, Made(was, now))


def claim(path: str, now: Told, by: Watch) -> Claimed:
    """The command that `by` watches is about to be told what it made of the file until `now`: all
    others hear that at once, and learn from the answer what it was. While `turn` is held."""
    claimed = Claimed(now)
    for watch in tuple(_watches):
        if watch is not by:
            watch.hear(path, claimed)
    return claimed


@contextmanager
def watching(root: str, look: Look, editor: Editor = NO_EDITOR) -> Iterator[Watch]:
    """Hears what is told, and what the editor says, until the end of the block."""
    watch = Watch(root, look, editor)
    stop = editor.follow(watch.see)
    _watches.append(watch)
    try:
        yield watch
    finally:
        _watches.remove(watch)
        stop()
