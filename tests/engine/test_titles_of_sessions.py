"""What a session is called in a list."""

from __future__ import annotations

from magy_server.core.events import Entry, Event, Opened, Prompted, Requeued
from magy_server.core.state.fold import fold
from magy_server.core.state.state import State
from magy_server.core.summary import title
from magy_server.core.values import Text


def called(*events: Event) -> str:
    opened = Opened(root="/w", cwd="/w", agent="build", model="")
    entries = [
        Entry(stream="session/s", seq=number, at=1.0, event=event)
        for number, event in enumerate([opened, *events], 1)
    ]
    return title(fold(entries, State("session/s")))


def test_a_prompt_that_was_taken_back_still_says_what_the_session_was_for() -> None:
    first = Prompted(id="p1", content=(Text(text="Mend it\nsoon"),))
    then = Prompted(id="p2", content=(Text(text="Look around"),))
    assert called(first) == "Mend it"
    assert called(first, Requeued(dropped=("p1",))) == "Mend it"
    assert called(first, Requeued(dropped=("p1",)), then) == "Look around"
