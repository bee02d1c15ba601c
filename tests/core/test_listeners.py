"""Who listens is told, in the order of adding, until they were taken away."""

from __future__ import annotations

from magy_server.core.listeners import Listeners


def test_taking_one_away_twice_leaves_another_that_is_equal() -> None:
    heard: list[str] = []
    say = Listeners[str]()
    remove_first = say.add(heard.append)
    say.add(heard.append)
    say("both")
    remove_first()
    remove_first()
    say("one")
    assert heard == ["both", "both", "one"]


def test_who_is_taken_away_meanwhile_hears_what_is_being_told() -> None:
    heard: list[str] = []
    say = Listeners[str]()
    say.add(lambda text: remove())
    remove = say.add(heard.append)
    say("first")
    say("second")
    assert heard == ["first"]
    assert say  # the one that takes away is still there
