"""What a client announces under `initializationOptions.magy`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

Way = Literal["document", "message", "none"]
WAYS: Sequence[Way] = ("document", "message", "none")


class ClientOptions:
    def __init__(self, options: Any) -> None:
        magy = options.get("magy") if isinstance(options, dict) else None
        magy = magy if isinstance(magy, dict) else {}
        offers = magy.get("capabilities")
        offers = offers if isinstance(offers, dict) else {}
        client = magy.get("client")
        editor = offers.get("editor")
        settings = magy.get("settings")
        self.client = str(client.get("name", "editor")) if isinstance(client, dict) else "editor"
        self.interactions = bool(offers.get("interactions"))
        self.review = bool(offers.get("review"))
        """It draws hunks itself, and wants to hear `magy/review/changed`."""
        usual: Way = "none" if self.interactions else "document"
        wanted = [way for way in WAYS if way == offers.get("answers")]
        self.answers: Way = wanted[0] if wanted else usual
        """How it is shown what came of a command. A client that shows transcripts needs nothing."""
        self.lenses = bool(offers.get("lenses", not self.review))
        self.editor = _offered(editor) if isinstance(editor, dict) else []
        self.settings: Mapping[str, Any] = settings if isinstance(settings, dict) else {}


def _offered(editor: Mapping[str, Any]) -> list[str]:
    """What the editor can be asked. Code to evaluate can only be in a language that Magy has a tool
    for."""
    return [name for name, on in editor.items() if on and (name != "eval" or on == "elisp")]
