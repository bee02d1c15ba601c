"""This module remembers suggestions, so that who types what was suggested, or comes back to a
place, gets the rest without asking a model again. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from magy_server.api.completions.surroundings import Surroundings

MOST = 200
"""Suggestions that are remembered, of all documents together."""
TELLING = 400
"""Characters before and after a cursor by which its place is known again."""


class Key(NamedTuple):
    """A place where something was suggested. `begins`: `before` is all that stands before it."""

    uri: str
    model: str
    before: str
    after: str
    begins: bool


class KnownSuggestions:
    def __init__(self) -> None:
        self._texts: dict[Key, str] = {}

    def keep(self, uri: str, model: str, place: Surroundings, text: str) -> None:
        """`text`: what was suggested there; "" if that was nothing."""
        key = _key(uri, model, place)
        self._texts.pop(key, None)
        self._texts[key] = text
        if len(self._texts) > MOST:
            del self._texts[next(iter(self._texts))]

    def find(self, uri: str, model: str, place: Surroundings) -> str | None:
        """Returns what was suggested here, or the rest of what was suggested a little further up
        and was typed since; None: nothing is known of this place."""
        exact = self._texts.get(_key(uri, model, place))
        if exact is not None:
            return exact
        after = place.after[:TELLING]
        for key, text in self._latest():
            same = key.uri == uri and key.model == model and key.after == after
            if same and text and (rest := _rest(key, text, place)):
                return rest
        return None

    def forget(self, uri: str) -> None:
        """Of a document that was closed."""
        self._texts = {key: text for key, text in self._texts.items() if key.uri != uri}

    def _latest(self) -> Iterator[tuple[Key, str]]:
        return reversed(self._texts.items())


def _key(uri: str, model: str, place: Surroundings) -> Key:
    begins = place.begins and len(place.before) <= TELLING
    return Key(uri, model, place.before[-TELLING:], place.after[:TELLING], begins)


def _rest(key: Key, text: str, place: Surroundings) -> str:
    """What is left of a suggestion whose beginning was typed; "" if something else was typed."""
    if key.begins:
        typed = len(place.before) - len(key.before) if place.begins else -1
        starts = 0
    else:
        starts = place.before.rfind(key.before, max(0, len(place.before) - len(text) - TELLING))
        typed = len(place.before) - starts - len(key.before) if starts >= 0 else -1
    if not 0 < typed < len(text) or not place.before.startswith(key.before, starts):
        return ""
    return text[typed:] if place.before.endswith(text[:typed]) else ""
