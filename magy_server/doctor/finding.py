"""Each check of the doctor returns findings: a status, a sentence, and what to do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Literal

from magy_server.dataclass import dataclass

Status = Literal["ok", "note", "warning", "problem"]
"""`note`: worth knowing. `warning`: something will not work, or not well, when it is needed.
`problem`: Magy cannot do its work before this is fixed."""


@dataclass(frozen=True, slots=True)
class Finding:
    """`what` is a sentence about what is there; `mend` one about what to do, in all but `ok`.
    `topic` is that of the check: who runs the check puts it in."""

    topic: str
    status: Status
    what: str
    mend: str = ""


def ok(what: str) -> Finding:
    return Finding("", "ok", what)


def note(what: str, mend: str) -> Finding:
    return Finding("", "note", what, mend)


def warning(what: str, mend: str) -> Finding:
    return Finding("", "warning", what, mend)


def problem(what: str, mend: str) -> Finding:
    return Finding("", "problem", what, mend)


@dataclass(frozen=True, slots=True)
class Around:
    """What the doctor examines: the project (canonical path), in this environment."""

    root: str
    environ: Mapping[str, str]


Say = Callable[[str, str], Finding]
"""`note`, `warning` or `problem`."""
Look = Callable[[Around], list[Finding]]
Run = Callable[[Around], Awaitable[list[Finding]]]


def in_thread(look: Look) -> Run:
    """A check that waits for the disk, beside the others."""

    async def run(around: Around) -> list[Finding]:
        return await asyncio.to_thread(look, around)

    return run


@dataclass(frozen=True, slots=True)
class Check:
    """One check; `seconds` is how long it may take: so long that it hangs, and is not only slow on
    a busy machine. It imports what it needs when it runs, so that it reports a broken installation
    instead of failing with it."""

    topic: str
    run: Run
    seconds: float = 90.0
