"""What people are told of entries of the log."""

from __future__ import annotations

from typing import Literal

import pytest

from magy_server.core.events import CancelAsked, Entry
from magy_server.core.updates import notice, updates


@pytest.mark.parametrize(("why", "said"), [
    ("user", [notice("info", "Stopped", "On request.")]),
    ("closed", [notice("info", "Stopped", "The session is closed.")]),
    ("max_time", []),
])  # fmt: skip
def test_of_what_stops_a_turn_one_line_says_why(
    why: Literal["user", "max_time", "closed"], said: list[object]
) -> None:
    """The end of a turn that a limit stops says so itself."""
    entry = Entry(stream="session/s", seq=1, at=0.0, event=CancelAsked(turn="t", why=why))
    assert updates(entry, {}) == said
