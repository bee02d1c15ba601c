"""What all rows share: repetition, processor time, and what a row is.

Machines are noisy and unequal, so a row is a ratio: the two sides are measured in turn, in changing
order, and their medians compared.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

TOP = Path(__file__).parents[1]
Size = Literal["quick", "usual", "full"]
MORE_IS_BETTER = ("count", "rate")


class Failed(RuntimeError):
    """A row could not be measured; the message says why."""


@dataclass(frozen=True, slots=True)
class Row:
    """`ours` and `floor` are seconds, bytes, counts, counts per second or modules, as `unit` says.
    `target` is the ratio that should hold: at most that, or for counts and rates at least; None
    only informs."""

    name: str
    unit: Literal["seconds", "bytes", "count", "rate", "modules"]
    ours: float
    floor: float
    target: float | None

    @property
    def ratio(self) -> float:
        return self.ours / self.floor

    @property
    def verdict(self) -> str:
        if self.target is None:
            return ""
        more = self.unit in MORE_IS_BETTER
        held = self.ratio >= self.target if more else self.ratio <= self.target
        return "ok" if held else "over"


@dataclass(frozen=True, slots=True)
class Run:
    """`directory` is private to the run, and on a real disk where there is one."""

    size: Size
    directory: Path

    def choose(self, quick: int, usual: int, full: int | None = None) -> int:
        return {"quick": quick, "usual": usual, "full": full or usual}[self.size]

    def fresh(self, name: str) -> Path:
        """A new empty directory."""
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.directory))


def in_turn(times: int, *measures: Callable[[], float], warm: int = 1) -> list[float]:
    """The median of each measure over `times` rounds, after `warm` rounds that do not count. Who
    begins changes from round to round."""
    found: list[list[float]] = [[] for _ in measures]
    for turn in range(-warm, times):
        order = list(enumerate(measures))
        for index, measure in order if turn % 2 else reversed(order):
            value = measure()
            if turn >= 0:
                found[index].append(value)
    return [statistics.median(values) for values in found]


def stopwatch(work: Callable[[], object]) -> float:
    """Seconds by the wall clock."""
    before = time.perf_counter()
    work()
    return time.perf_counter() - before


def processor_time(pid: int) -> float:
    """Seconds of processor time that a process has used, in user and kernel mode, all its threads
    included; not its children."""
    if sys.platform == "linux":
        # The kernel's clock of that process (clock_getcpuclockid): nanoseconds, where /proc has
        # ticks of ten milliseconds.
        return time.clock_gettime((~pid << 3) | 2)
    import psutil

    used = psutil.Process(pid).cpu_times()
    return float(used.user + used.system)


def resident(pid: int) -> float:
    """Bytes of memory that a process holds now."""
    import psutil

    return float(psutil.Process(pid).memory_info().rss)


@contextmanager
def workplace(size: Size, given: str | None) -> Iterator[Run]:
    """A directory for the run, removed at its end. Syncing to a file system in memory costs
    nothing, and durable appends would seem expensive beside it: rather the checkout's disk."""
    parent = given or tempfile.gettempdir()
    if given is None and _in_memory(parent):
        parent = str(TOP)
    with tempfile.TemporaryDirectory(
        prefix=".bench-", dir=parent, ignore_cleanup_errors=True
    ) as path:
        yield Run(size, Path(path).resolve())


def _in_memory(path: str) -> bool:
    import psutil

    real = os.path.realpath(path)
    mounts = [
        part
        for part in psutil.disk_partitions(all=True)
        if os.path.commonpath([part.mountpoint, real]) == part.mountpoint
    ]
    nearest = max(mounts, key=lambda part: len(part.mountpoint), default=None)
    return nearest is not None and nearest.fstype in ("tmpfs", "ramfs")


def table(rows: Sequence[Row]) -> str:
    lines = [("what", "measured", "floor", "ratio", "target", "")]
    for row in rows:
        sign = "≥" if row.unit in MORE_IS_BETTER else "≤"
        target = f"{sign} {row.target:g}" if row.target is not None else ""
        measured, floor = shown(row.ours, row.unit), shown(row.floor, row.unit)
        lines.append((row.name, measured, floor, f"{row.ratio:.2f}", target, row.verdict))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, tuple("-" * width for width in widths))  # type: ignore[arg-type]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if 0 < at < 5 else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def shown(value: float, unit: str) -> str:
    if unit == "rate":
        return f"{value:,.0f}/s"
    if unit in ("count", "modules"):
        return f"{value:,.0f}"
    if unit == "bytes":
        return f"{value / 1e6:.1f} MB" if value >= 1e5 else f"{value / 1e3:.1f} kB"
    for scale, name in ((1.0, "s"), (1e-3, "ms")):
        if value >= scale:
            return f"{value / scale:.2f} {name}"
    return f"{value / 1e-6:.2f} µs"
