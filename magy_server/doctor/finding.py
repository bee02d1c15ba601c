"""What a check of the doctor returns: a status, a sentence, and what to do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "note", "warning", "problem"]
"""`note`: worth knowing. `warning`: something will not work, or not well, when it is needed.
`problem`: Magy cannot do its work before this is mended."""


@dataclass(frozen=True, slots=True)
class Finding:
    """`what` is a sentence about what is there; `mend` one about what to do, in all but `ok`."""

    topic: str
    status: Status
    what: str
    mend: str = ""


@dataclass(frozen=True, slots=True)
class Around:
    """What the doctor examines: the project (canonical path), in this environment."""

    root: str
    environ: Mapping[str, str]


Run = Callable[[Around], Awaitable[list[Finding]]]


@dataclass(frozen=True, slots=True)
class Check:
    """One check; `seconds` is how long it may take: so long that it hangs, and is not only slow on
    a busy machine. It imports what it needs when it runs, so that it reports a broken installation
    instead of failing with it."""

    topic: str
    run: Run
    seconds: float = 90.0
