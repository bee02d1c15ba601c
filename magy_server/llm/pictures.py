"""This module leaves pictures out of requests, without I/O: for models that cannot see, and for
APIs that take only so many. It names what it leaves out, so that the model knows of it."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from magy_server.core.ports import Message, ModelRequest, Picture, ToolOutput
from magy_server.core.prompting.prefix_cache import total
from magy_server.core.values import Text
from magy_server.llm.faults import words
from magy_server.regex import regex

UNSEEN = "(a picture; this model cannot see pictures)"
ALL = sys.maxsize
"""So many pictures that there are never more."""
EARLIER = "(a picture shown earlier)"
BESIDE_ERROR = "(with a picture, which cannot stand beside an error)"

STATUSES = (400, 404, 422, 500)
"""Servers answer with these HTTP statuses when a model cannot see."""

_LONGEST = 2000
"""The most characters of a refusal that Magy looks at."""
_KINDS = frozenset({"image", "image_url", "input_image"})
"""What a picture is called in the bodies of the three wires."""

_BLIND = regex(
    r"""unknown\ variant\W+(image|image_url|input_image)\b
      | invalid\ (value|content\ type)\W+(image_url|input_image)\b
      | (image|image_url|input_image|vision)s?\b[^.;]*\b
        (not\ (supported|enabled|allowed|available|accepted|permitted)|unsupported|only\ supported)
      | \b(not|no|cannot|can't|doesn't|don't|isn't|missing|without|unsupported)\b[^.;]*
        \b(image|image_url|input_image|multi-?modal|vision)s?\b
      | at\ most\ 0\ image
      | \bcontent\b[^.;]*\bmust\ be\ a\ string
      | cannot\ unmarshal\ array\b[^;]*\bcontent
    """,
    re.IGNORECASE | re.VERBOSE,
)
_ABOUT_ONE = regex(
    r"\b(formats?|media.type|mime|sizes?|dimensions?|pixels?|bytes|large|big|corrupt|decode|base64"
    r"|download|valid image|process image(?! input)|tool call|function_call_output)",
    re.IGNORECASE,
)
"""A refusal that has such words finds fault with one picture, or with where it stands."""


def is_blind(sent: Mapping[str, Any], error: Any) -> bool:
    """Whether a refusal (`error`: its body) of the body `sent` says that the model, or its server,
    takes no pictures at all."""
    said = words(error).text[:_LONGEST]
    found = _BLIND.search(said) is not None and _ABOUT_ONE.search(said) is None
    return found and shows(sent.get("messages") or sent.get("input"))


def shows(content: Any) -> bool:
    """Returns whether there is a picture in these messages, items or blocks, which may hold
    others."""
    if not isinstance(content, list):
        return False
    return any(
        block.get("type") in _KINDS or shows(block.get("content")) or shows(block.get("output"))
        for block in content
    )


def leaving(request: ModelRequest, most: int, step: int) -> int:
    """Returns how many of the oldest pictures leave, so that at most the `most` newest ones stay.
    They leave `step` at a time: each time changes what the provider has cached, and in between it
    stays a prefix."""
    over = max(0, total(request.so_far, request.messages, "pictures", in_message) - most)
    return -(-over // step) * step


def _pictures(part: Any) -> int:
    if isinstance(part, ToolOutput):
        return len(part.pictures)
    return int(isinstance(part, Picture))


def in_message(message: Message) -> int:
    """Returns how many pictures there are in a message."""
    return sum(map(_pictures, message.parts))


def hidden(messages: Sequence[Message], count: int, name: str) -> Sequence[Message]:
    """Returns the messages with `name` in place of the `count` oldest pictures."""
    if not count:
        return messages
    result: list[Message] = []
    for message in messages:
        parts: list[Any] = []
        for part in message.parts:
            here = min(count, _pictures(part))
            count -= here
            parts.append(_without(part, here, name) if here else part)
        result.append(replace(message, parts=tuple(parts)))
    return result


def _without(part: Picture | ToolOutput, count: int, name: str) -> Text | ToolOutput:
    if isinstance(part, Picture):
        return Text(text=name)
    said = [part.text] if part.text.strip() else []
    text = "\n".join([*said, *[name] * count])
    return replace(part, text=text, pictures=part.pictures[count:])
