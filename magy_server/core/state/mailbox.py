"""Messages from other sessions that no model reads, and the latest result of each child."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from magy_server.core.events import Mailed

MAIL = 100
"""Messages for machines that are kept, the newest."""


@dataclass(frozen=True, slots=True)
class Reported:
    """A child's result, and where it stands in the log of who got it: the cursor of a wait."""

    seq: int
    mail: Mailed


@dataclass(frozen=True, slots=True)
class Mailbox:
    machine: tuple[Mailed, ...] = ()
    """Data and signals that came, the newest `MAIL`."""
    reports: Mapping[str, Reported] = field(default_factory=dict)
    """The latest result of each child, by its session id."""

    def received(self, event: Mailed) -> Mailbox:
        return replace(self, machine=(*self.machine, event)[-MAIL:])

    def reported(self, event: Mailed, seq: int) -> Mailbox:
        return replace(self, reports={**self.reports, event.sender: Reported(seq, event)})
