"""A form of an MCP server is filled in at the terminal, one field after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from magy_server.core.errors import InvalidRequest
from magy_server.core.mcp.forms import fitting, in_words, label, of_clients, wanted


class Filling:
    """What was filled in so far of the question `id`."""

    def __init__(self, id: str, form: Mapping[str, Any]) -> None:
        self.id = id
        self.content: dict[str, Any] = {}
        self._left = list(of_clients(form).fields)

    @property
    def done(self) -> bool:
        return not self._left

    def prompts(self) -> Sequence[str]:
        """Returns what to write before the next field, in forms that get shorter."""
        field = self._left[0]
        known = "" if field.default is None else f"Enter: {in_words(field, field.default)}"
        known = known or ("" if field.required else "Enter: leave it out")
        about = "; ".join(filter(None, (wanted(field), known)))
        return f"{label(field)} ({about}): ", f"{label(field)}: ", f"{field.name}: "

    def take(self, line: str) -> str:
        """Takes the next value. Returns what is wrong with it, "" if nothing is."""
        field = self._left[0]
        if line == "" and (field.default is not None or not field.required):
            if field.default is not None:
                self.content[field.name] = field.default
            del self._left[0]
            return ""
        try:
            self.content[field.name] = fitting(field, line)
        except InvalidRequest as error:
            return error.message
        del self._left[0]
        return ""
