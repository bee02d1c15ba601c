"""What the wires share, without I/O: reading an answer event by event, ids and names of tool calls.

Each wire is a pure module: `body(request)` makes the JSON body, and an `Answer` turns the events of
the streamed answer into deltas and one `Replied`.
"""

from __future__ import annotations

import base64
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import orjson

from magy_server.core.events import Call, Part, Replied, Usage
from magy_server.core.ports import Delta, Message, ModelRequest, Picture, ToolOutput

Stop = Literal["end_turn", "tool_use", "max_tokens", "refusal"]

WIRE_ID = re.compile(r"[a-zA-Z0-9_-]{1,40}")
"""Ids of calls that every API takes; the strictest allows 40 characters."""


class StreamError(Exception):
    """The provider broke off its answer with an error of its own: `error` as it came."""

    def __init__(self, error: Any) -> None:
        super().__init__(str(error))
        self.error = error


class Answer(ABC):
    """Collects the events of one streamed answer.

    `feed` raises StreamError when the event says that the provider failed, and KeyError, TypeError,
    ValueError or AttributeError when the event does not have the documented shape; unknown kinds of
    events are ignored.
    """

    def __init__(self, request: ModelRequest) -> None:
        self.request = request
        self.started = False
        """An event of the answer has come."""
        self.complete = False
        """Nothing more is to come."""
        self.ended = False
        """The stream ended with the mark `[DONE]`; only Chat Completions has it."""

    @abstractmethod
    def feed(self, event: Any) -> Sequence[Delta]: ...

    @property
    @abstractmethod
    def closing(self) -> bool:
        """The provider said that this was all: nothing of the content is missing any more."""

    @abstractmethod
    def content(self) -> Sequence[Part]: ...

    @abstractmethod
    def stop(self) -> Stop: ...

    @abstractmethod
    def usage(self) -> Usage: ...

    def finish(self) -> Sequence[Delta]:
        """What was held back, once `closing`. To be called before `replied`."""
        return ()

    def replied(self) -> Replied:
        return Replied(
            request=self.request.id,
            model=self.request.model,
            content=tuple(self.content()),
            stop=self.stop(),
            usage=self.usage(),
        )

    def call(self, number: int, name: str, text: str, provider_id: str = "") -> Call:
        """The `number`-th call (from 0) of the reply, from the text of its arguments."""
        arguments = arguments_in(text)
        return Call(
            id=f"{self.request.id}.{number}",
            name=name,
            arguments=arguments or {},
            provider_id=provider_id,
            invalid=text if arguments is None else None,
        )


def arguments_in(text: str) -> dict[str, Any] | None:
    """The JSON object in `text`; empty text is an empty one. None when it is something else."""
    if not text.strip():
        return {}
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def count(counts: Mapping[str, Any] | None, *path: str) -> int:
    """The number under `path`; 0 when it is missing or no number."""
    value: Any = counts
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return max(0, value) if isinstance(value, int) else 0


# --- requests -----------------------------------------------------------------------------------


def arguments_of(call: Call) -> dict[str, Any]:
    """What the model is shown of the arguments it gave. The wires (or the servers behind them) have
    room for objects only; of what was none it should still see what it wrote."""
    return call.arguments if call.invalid is None else {"INVALID_JSON": call.invalid}


def arguments_text(call: Call) -> str:
    """The same as JSON, always in the same words."""
    return json.dumps(arguments_of(call), ensure_ascii=False, separators=(",", ":"))


def wire_ids(
    messages: Sequence[Message], valid: re.Pattern[str], make: Callable[[str], str]
) -> dict[str, str]:
    """Call.id -> the id on the wire: the provider's own where it is valid and unique (calls made by
    another provider may have none, or repeat them), else one that `make` makes of ours."""
    ids: dict[str, str] = {}
    used: set[str] = set()
    for call in (part for m in messages for part in m.parts if isinstance(part, Call)):
        wire = call.provider_id
        if wire in used or not valid.fullmatch(wire):
            wire = make(call.id)
        ids[call.id] = wire
        used.add(wire)
    return ids


def own_id(call: str) -> str:
    """An id for the wire, made of ours."""
    return "call_" + re.sub(r"[^a-zA-Z0-9_-]", "_", call)


def wire_name(name: str) -> str:
    """A model may call a tool by a name that no API lets stand in a conversation."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64] or "unknown"


def encoded(picture: Picture) -> str:
    return base64.b64encode(picture.data).decode("ascii")


def data_url(picture: Picture) -> str:
    return f"data:{picture.mime};base64,{encoded(picture)}"


def output_text(output: ToolOutput) -> str:
    """A tool's result where it must not be empty."""
    if output.text.strip():
        return output.text
    return "(failed without output)" if output.error else "(no output)"
