"""A client announces these options under `initializationOptions.magy`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

Way = Literal["document", "message", "none"]
WAYS: Sequence[Way] = ("document", "message", "none")


class ClientOptions:
    def __init__(self, options: Any) -> None:
        magy = _part(options, "magy")
        offers = _part(magy, "capabilities")
        self.client = str(_part(magy, "client").get("name", "editor"))
        self.interactions = bool(offers.get("interactions"))
        self.review = bool(offers.get("review"))
        """It draws hunks itself, and wants to hear `magy/review/changed`."""
        usual: Way = "none" if self.interactions else "document"
        wanted = [way for way in WAYS if way == offers.get("answers")]
        self.answers: Way = wanted[0] if wanted else usual
        """How it is shown what came of a command. A client that shows transcripts needs nothing."""
        self.lenses = bool(offers.get("lenses", not self.review))
        self.editor = _offered(_part(offers, "editor"))
        self.settings = _part(magy, "settings")
        self.restricted = magy.get("restricted") is True
        self.keys = _keys(_part(magy, "keys"))
        """By provider."""


def _part(whole: Any, name: str) -> Mapping[str, Any]:
    """The object under a name; what is none counts as left out."""
    part = whole.get(name) if isinstance(whole, dict) else None
    return part if isinstance(part, dict) else {}


def _offered(editor: Mapping[str, Any]) -> list[str]:
    """What the editor can be asked. Code to evaluate can only be in a language that Magy has a tool
    for."""
    return [name for name, on in editor.items() if on and (name != "eval" or on == "elisp")]


def _keys(given: Mapping[str, Any]) -> Mapping[str, str]:
    """Without what cannot be a key. White space around one is never part of it."""
    texts = {name: key.strip() for name, key in given.items() if isinstance(key, str)}
    return {name: key for name, key in texts.items() if key and key.isprintable()}
