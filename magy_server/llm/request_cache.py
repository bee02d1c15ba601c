"""This cache keeps the JSON that was written of a conversation for one request, for the next. All
wires share this code, without I/O."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import orjson

from magy_server.core.ports import Message, ModelRequest, Picture, ToolOutput
from magy_server.core.prompting.prefix_cache import Grown, grown
from magy_server.core.values import Call, Text
from magy_server.dataclass import dataclass
from magy_server.llm import pictures

Block = dict[str, Any]
Write = Callable[[Sequence[Message], Mapping[str, str]], Iterable[Block]]
"""(messages, the wire's ids of calls) -> what stands for them on a wire. Only neighbours of one
role, with what is empty between them, may become one."""

_MARKED = 2
"""So many user messages at the end are written anew each time: a wire may mark the last ones."""


@dataclass(frozen=True, slots=True)
class Form:
    """How a conversation is written. `valid` and `make`: which ids of calls the wire takes, and how
    others are made of ours. `name` stands in the place of the `hidden` oldest pictures."""

    write: Write
    valid: re.Pattern[str]
    make: Callable[[str], str]
    variant: object = None
    """What else `write` depends on."""
    hidden: int = 0
    name: str = ""

    @property
    def key(self) -> tuple[object, ...]:
        return (self.valid, self.variant, self.hidden, self.name)


def written(
    request: ModelRequest, wire: str, form: Form
) -> tuple[list[orjson.Fragment], list[Block]]:
    """Returns the conversation on a wire: its beginning as JSON, which will never change, and the
    rest."""
    made, others = grown(
        request.so_far,
        request.messages,
        wire,
        lambda: _Written(form),
        lambda made: made.form.key == form.key,
    )
    return made.chunks, made.rest(others)


class _Written(Grown):
    """Settled messages: all but the last are JSON."""

    def __init__(self, form: Form) -> None:
        super().__init__()
        self.form = form
        self.chunks: list[orjson.Fragment] = []
        self._open: list[Message] = []
        self._hidden = form.hidden
        self._ids = _Ids(form)

    def take(self, messages: Sequence[Message]) -> None:
        shown = self._shown(messages)
        self._hidden = max(0, self._hidden - sum(map(pictures.in_message, messages)))
        self._ids.take(shown)
        self._open += shown
        begins = [place for place in range(1, len(self._open)) if self._parted(place)]
        if len(begins) >= _MARKED:
            end = begins[-_MARKED]
            if items := list(self.form.write(self._open[:end], self._ids.found)):
                self.chunks.append(orjson.Fragment(b",".join(map(as_json, items))))
            self._open = self._open[end:]

    def rest(self, others: Sequence[Message]) -> list[Block]:
        others = self._shown(others)
        ids = self._ids.found
        if any(isinstance(part, Call) for message in others for part in message.parts):
            more = self._ids.copy()
            more.take(others)
            ids = more.found
        return list(self.form.write([*self._open, *others], ids))

    def _shown(self, messages: Sequence[Message]) -> Sequence[Message]:
        return pictures.hidden(messages, self._hidden, self.form.name)

    def _parted(self, place: int) -> bool:
        """Whether a user message begins here that is certainly none with what is before it."""
        before, here = self._open[place - 1 : place + 1]
        roles = (before.role, here.role)
        return roles == ("assistant", "user") and _says(before) and _says(here)


def _says(message: Message) -> bool:
    """Whether a message has something that no wire leaves out."""
    return any(
        bool(part.text.strip()) if isinstance(part, Text) else isinstance(part, _KEPT)
        for part in message.parts
    )


_KEPT = Call | ToolOutput | Picture


class _Ids:
    """`found`: Call.id -> the id on the wire: the provider's own where it is valid and unique
    (calls made by another provider may have none, or repeat them), else one made of ours."""

    def __init__(self, form: Form) -> None:
        self._form = form
        self.found: dict[str, str] = {}
        self._used: set[str] = set()

    def take(self, messages: Iterable[Message]) -> None:
        for call in (part for m in messages for part in m.parts if isinstance(part, Call)):
            id = call.provider_id
            if id in self._used or not self._form.valid.fullmatch(id):
                id = self._form.make(call.id)
            self.found[call.id] = id
            self._used.add(id)

    def copy(self) -> _Ids:
        other = _Ids(self._form)
        other.found, other._used = dict(self.found), set(self._used)
        return other


def as_json(value: Any) -> bytes:
    """Returns a value as JSON, the same for each part of it alone. Numbers that orjson has no room
    for are written by the standard library: a model may have written any."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        match value:
            case dict():
                members = (as_json(name) + b":" + as_json(one) for name, one in value.items())
                return b"{" + b",".join(members) + b"}"
            case list():
                return b"[" + b",".join(map(as_json, value)) + b"]"
        return json.dumps(value, ensure_ascii=False).encode()
