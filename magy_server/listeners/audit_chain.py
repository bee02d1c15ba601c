"""The lines of the audit form a chain: each carries its number and the hash of the line before it,
across its daily files and all processes that write them. So nobody can change, move or take out a
line in the middle without that being found.

What it cannot show by itself: that lines at the very end were changed or taken away, or that
somebody who can write the directory wrote all of it anew. Who keeps the hash of a line elsewhere
can show that, too.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from magy_server.dataclass import dataclass

TRIES, PAUSE = 40, 0.001
"""How often, and after how many seconds, the lock is asked for: who holds it writes a few lines.
One that was stopped meanwhile must not stop all others."""
_BLOCK = 1 << 16
_ENCODE = json.JSONEncoder(ensure_ascii=False).encode
NONE = ""
"""What the first line of all has in the place of a hash."""


def digest(line: bytes) -> str:
    """Returns the hash of a line, which comes without its end."""
    return hashlib.sha256(line).hexdigest()


class Chain:
    """Appends lines to `audit-YYYYMMDD.jsonl` (mode 0600) in `directory` (mode 0700)."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._lock: int | None = None
        """The directory, which is locked while lines are written."""
        self._file: int | None = None
        self._day = ""
        self._end = -1
        """Where the file ended when this process had written to it..."""
        self._last: tuple[int, str] = (0, NONE)
        """...and number and hash of its last line."""

    def append(self, day: str, lines: Sequence[Mapping[str, Any]]) -> None:
        """Raises OSError, and then has written nothing."""
        self._take()
        try:
            self._open(day)
            self._write(lines)
        finally:
            assert self._lock is not None
            fcntl.flock(self._lock, fcntl.LOCK_UN)

    def close(self) -> None:
        for descriptor in (self._file, self._lock):
            if descriptor is not None:
                os.close(descriptor)
        self._file = self._lock = None

    def _take(self) -> None:
        if self._lock is None:
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
            self._lock = os.open(self._directory, os.O_RDONLY | os.O_CLOEXEC)
        for left in reversed(range(TRIES)):
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if not left:
                    raise
                time.sleep(PAUSE)

    def _open(self, day: str) -> None:
        """The newest file is written to, even if the clock went back meanwhile."""
        newest = max(_days(self._directory), default="")
        day = max(day, newest)
        if self._file is None or day != self._day or not self._is_there():
            if self._file is not None:
                os.close(self._file)
                self._file = None
            before = self._read_last()
            os.makedirs(self._directory, mode=0o700, exist_ok=True)  # somebody may have removed it
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            self._file = os.open(_path(self._directory, day), flags, 0o600)
            self._day, self._last, self._end = day, before, os.fstat(self._file).st_size
        elif os.fstat(self._file).st_size != self._end:
            self._last = self._read_last()

    def _is_there(self) -> bool:
        """Whether the file that is open is still the one in the directory."""
        assert self._file is not None
        try:
            there = os.stat(_path(self._directory, self._day))
        except FileNotFoundError:
            return False
        own = os.fstat(self._file)
        return (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino)

    def _read_last(self) -> tuple[int, str]:
        """Number and hash of the last line of all; what was cut off counts as a line."""
        for day in reversed(_days(self._directory)):
            with open(_path(self._directory, day), "rb") as file:
                lines = _from_end(file.fileno())
                raw = next(lines, b"")
                if not raw:
                    continue
                number = _number(raw)
                for line in lines if number is None else ():
                    if (number := _number(line)) is not None:
                        break
                return number or 0, digest(raw)
        return 0, NONE

    def _write(self, lines: Sequence[Mapping[str, Any]]) -> None:
        assert self._file is not None
        size = os.fstat(self._file).st_size
        # A process that was killed, or a disk that was full, left a line without its end.
        data = b"\n" if size and os.pread(self._file, 1, size - 1) != b"\n" else b""
        number, previous = self._last
        for line in lines:
            number += 1
            whole = {**line, "number": number, "previous": previous}
            raw = _ENCODE(whole).encode("utf-8", "replace")
            data, previous = data + raw + b"\n", digest(raw)
        written = os.write(self._file, data)
        if written != len(data):
            os.ftruncate(self._file, size)
            raise OSError(28, "there is no room for the whole line")
        self._last, self._end = (number, previous), size + written


def _path(directory: str, day: str) -> str:
    return os.path.join(directory, f"audit-{day}.jsonl")


def _days(directory: str) -> list[str]:
    try:
        with os.scandir(directory) as found:
            names = [one.name for one in found if one.is_file(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    days = [name[6:-6] for name in names if name.startswith("audit-") and name.endswith(".jsonl")]
    return sorted(day for day in days if len(day) == 8 and day.isdigit())


def _number(raw: bytes) -> int | None:
    line = _parsed(raw)
    number = line.get("number") if line else None
    return number if isinstance(number, int) else None


def _parsed(raw: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return line if isinstance(line, dict) else None


def _from_end(fd: int) -> Iterator[bytes]:
    """The lines of a file, the last first, without reading more than is asked for."""
    at = size = os.fstat(fd).st_size
    tail = b""
    while at:
        start = max(0, at - _BLOCK)
        tail = os.pread(fd, at - start, start) + tail
        if at == size:
            tail = tail.removesuffix(b"\n")
        tail, *lines = tail.split(b"\n")
        yield from reversed(lines)
        at = start
    if tail:
        yield tail


# --- verifying ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Verified:
    """What the audit in a directory comes to. `broken`: where it first is not what was written, as
    a sentence; "" if it holds. `head`: the hash of the last line."""

    files: int = 0
    lines: int = 0
    broken: str = ""
    notes: Sequence[str] = field(default_factory=tuple)
    head: str = NONE
    expected: bool = False
    """Whether the line with the hash that was asked for is there."""


class _Reader:
    def __init__(self, expect: str) -> None:
        self._expect = expect
        self.lines = 0
        self.found = False
        self.notes: list[str] = []
        self.last = NONE
        self._number = 0
        self._begun = False
        self._unchained = 0
        self._cut = ""

    def take(self, raw: bytes, place: str) -> str:
        """Takes the next line. Returns what is wrong with it, or ""."""
        self.lines += 1
        line, cut = _parsed(raw), self._cut
        self._cut = ""
        if line is None:
            # Either somebody wrote over it, or it was cut off; the next line tells.
            self._cut = place
        elif "previous" not in line:
            if self._begun:
                return f"{place} carries no hash, and the lines before it do."
            self._unchained += 1
        elif wrong := self._follows(line, place, cut):
            return wrong
        self.last = digest(raw)
        self.found = self.found or self.last == self._expect
        return ""

    def _follows(self, line: Mapping[str, Any], place: str, cut: str) -> str:
        number, previous = line.get("number"), line["previous"]
        alone = not self._begun and not self._unchained and not cut
        if alone and previous != NONE:
            self.notes.append(
                f"{place} is line {number}: the lines before it are gone. Whole files that were "
                "deleted look like this."
            )
        elif previous != self.last:
            if cut:
                return f"{cut} is no line that Magy wrote: {place} follows another one."
            return (
                f"{place} does not follow the line before it: that one was changed, or a line was "
                "moved or taken out."
            )
        elif cut:
            self.notes.append(f"{cut} was cut off, as when a process is killed or a disk is full.")
        if self._begun and number != self._number + 1:
            return f"{place} has the number {number}, and the line before it {self._number}."
        self._begun, self._number = True, number if isinstance(number, int) else 0
        return ""

    def end(self) -> None:
        if self._cut:
            self.notes.append(f"{self._cut}, the last line, is cut off.")
        if self._unchained:
            self.notes.append(
                f"{self._unchained} lines are older than the chain: they carry no hash."
            )


def verify(directory: str, expect: str = "") -> Verified:
    """Reads all of the audit. `expect`: the hash of a line that must be there. Raises OSError."""
    reader, days = _Reader(expect), _days(directory)
    for day in days:
        path = _path(directory, day)
        with open(path, "rb") as file:
            for number, raw in enumerate(file, start=1):
                if wrong := reader.take(raw.rstrip(b"\n"), f"{path}:{number}"):
                    return Verified(len(days), reader.lines, wrong, reader.notes, reader.last)
    reader.end()
    return Verified(len(days), reader.lines, "", reader.notes, reader.last, reader.found)
