"""This module estimates how much room the parts of a conversation take (a token is about four
characters), and picks out the words that a compaction keeps."""

from __future__ import annotations

import json
from collections.abc import Iterable

from magy_server.core.agents.mail import Mailed
from magy_server.core.events import Finished, Prompted, Replied
from magy_server.core.ports import Message, ModelRequest, Picture, ToolOutput, ToolSchema
from magy_server.core.prompting.prefix_cache import total
from magy_server.core.reviews.review_events import Noted
from magy_server.core.values import Call, Embedded, Image, Link, Text, Thinking

BYTES = 3
PICTURE = 6_000
"""Characters that a picture counts as: providers charge about 1,500 tokens for a large one."""


def size(item: object) -> int:
    """Returns the number of characters."""
    match item:
        case Prompted() | Mailed() | Replied():
            return sum(_part(part) for part in item.content)
        case Finished():
            return len(item.for_model) + PICTURE * len(item.images)
        case Noted():
            return len(item.text)
    return 0


def least(request: ModelRequest) -> int:
    """Returns the tokens that a prompt has at least: over the length of a prompt, no tokenizer
    takes more than five characters for one. It does not count pictures."""
    return _characters(request) // 5


def about(request: ModelRequest) -> int:
    """Returns roughly the tokens of a prompt."""
    return _characters(request) // 4


def _characters(request: ModelRequest) -> int:
    count = sum(map(len, request.system)) + sum(map(characters, request.tools))
    return count + total(request.so_far, request.messages, "characters", _in_message)


def _in_message(message: Message) -> int:
    return sum(
        len(part.text) if isinstance(part, ToolOutput | Text) else _part(part)
        for part in message.parts
    )


def characters(tool: ToolSchema) -> int:
    """Returns the characters of what the model is told of a tool."""
    return len(tool.name) + len(tool.description) + len(json.dumps(tool.parameters))


def bound(request: ModelRequest) -> int:
    """Returns the tokens that a prompt has at most, in any language: tokenizers nearly always take
    three bytes or more for one."""
    bytes = sum(len(text.encode()) for text in request.system)
    bytes += sum(map(characters, request.tools))
    bytes += total(request.so_far, request.messages, "bytes", _bytes)
    return bytes // BYTES + 1


def _bytes(message: Message) -> int:
    count = 0
    for part in message.parts:
        if isinstance(part, Picture):
            count += PICTURE
        elif isinstance(part, ToolOutput):
            count += len(part.text.encode()) + PICTURE * len(part.pictures)
        else:
            count += len(str(part.model_dump()).encode())
    return count


def _part(part: object) -> int:
    match part:
        case Text() | Embedded():
            return len(part.text)
        case Link():
            return len(part.uri) + len(part.name)
        case Image():
            return PICTURE
        case Thinking():
            return len(part.text) + len(part.signature) + len(part.data)
        case Call():
            return len(part.name) + len(str(part.arguments))
    return 0


def words(prompted: Prompted) -> str:
    """Returns what the person wrote, without what they attached."""
    said = [part.text for part in prompted.content if isinstance(part, Text)]
    named = [
        part.name if isinstance(part, Link | Image) else part.uri
        for part in prompted.content
        if not isinstance(part, Text)
    ]
    attached = f" (attached: {', '.join(filter(None, named))})" if any(named) else ""
    return "\n".join(said) + attached


def refusals(items: Iterable[object]) -> tuple[str, ...]:
    """Returns what the person did not allow, as the model was told: that is a constraint of
    theirs."""
    return tuple(
        " ".join(item.for_model.split())[:300]
        for item in items
        if isinstance(item, Finished) and item.status == "denied"
    )


def decisions(items: Iterable[object]) -> tuple[str, ...]:
    """Returns what the model was told of what the person did with its changes."""
    return tuple(" ".join(item.text.split())[:300] for item in items if isinstance(item, Noted))
