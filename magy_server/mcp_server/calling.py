"""`Calling` is one call as the tool that is called sees it: what the tool tells meanwhile, and whom
it can ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal, Protocol

from magy_server.dataclass import dataclass

Word = Literal["yes", "no", "nothing"]
"""`nothing`: the person has not said anything, or the client cannot ask."""


@dataclass(frozen=True, slots=True)
class Told:
    """The answer: `text` for a model, `data` the same for programs."""

    text: str
    data: Mapping[str, Any] = field(default_factory=dict)


class Calling(Protocol):
    """One call."""

    state: str
    """What an earlier part of the same call has kept (`keep`); "" at its beginning."""

    @property
    def asks(self) -> bool:
        """Returns whether there is a person whom the client can ask."""

    def keep(self, state: str) -> None:
        """What `state` is when the client comes back to the call, with a person's word."""

    async def ask(self, id: str, text: str) -> Word:
        """Asks the person. In protocols where the client comes back with the word, this raises what
        the door sends it away with."""

    async def progress(self, text: str) -> None:
        """Tells what is done now, if the client wants to hear it."""
