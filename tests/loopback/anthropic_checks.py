"""What the Anthropic API refuses with 400, as far as Magy could get it wrong."""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Iterator
from itertools import chain
from typing import Any

from .images import MAGIC


def problems(body: dict[str, Any]) -> list[str]:
    return list(_problems(body))


def _problems(body: dict[str, Any]) -> Iterator[str]:
    for name in ("model", "max_tokens", "messages"):
        if not body.get(name):
            yield f"{name}: Field required"
            return
    messages = [_blocks(m["content"]) for m in body["messages"]]
    system = _blocks(body.get("system", []))
    if body["messages"][0]["role"] != "user":
        yield "messages: first message must use the user role"
    blocks = [*system, *chain.from_iterable(messages)]
    marks = sum("cache_control" in block for block in [*blocks, *body.get("tools", [])])
    if marks > 4:
        yield f"A maximum of 4 blocks with cache_control may be provided. Found {marks}."
    thinking = body.get("thinking", {}).get("budget_tokens", 0)
    if thinking:
        if thinking < 1024:
            yield "thinking.budget_tokens: Input should be greater than or equal to 1024"
        if body["max_tokens"] <= thinking:
            yield "`max_tokens` must be greater than `thinking.budget_tokens`"
        if body.get("temperature", 1) != 1:
            yield "`temperature` may only be set to 1 when thinking is enabled"
    for index, message in enumerate(body["messages"]):
        if message["role"] == "assistant" and messages[index]:
            last = messages[index][-1]["type"]
            if last in ("thinking", "redacted_thinking"):
                yield (
                    f"messages.{index}: The final block in an assistant message cannot be `{last}`."
                )
    results = [b["content"] for b in blocks if isinstance(b.get("content"), list)]
    yield from _many([*blocks, *chain.from_iterable(results)])
    for block in [*blocks, *chain.from_iterable(results)]:
        if block["type"] == "image":
            yield from _image(block)
        if block["type"] == "text" and not block["text"].strip():
            yield "messages: text content blocks must contain non-whitespace text"
        if block["type"] == "thinking" and not block.get("signature"):
            yield "messages: Invalid `signature` in `thinking` block"
        if block.get("is_error") and not block.get("content"):
            yield "messages: content cannot be empty if `is_error` is true"
        elif block.get("is_error") and any(b["type"] != "text" for b in _blocks(block["content"])):
            yield "messages: all content must be type `text` if `is_error` is true"
    yield from _tool_rounds(body["messages"], messages)


def _many(blocks: list[dict[str, Any]]) -> Iterator[str]:
    """More than 20 pictures must be smaller; here only PNG is measured."""
    images = [block for block in blocks if block["type"] == "image" and not list(_image(block))]
    heads = [base64.b64decode(image["source"]["data"][:32]) for image in images]
    whole = [head for head in heads if len(head) == 24 and head.startswith(MAGIC["image/png"])]
    sides = [struct.unpack(">II", head[16:]) for head in whole]
    if len(images) > 20 and any(max(pair) > 2000 for pair in sides):
        yield (
            "messages: At least one of the image dimensions exceed max allowed size for "
            "many-image requests: 2000 pixels"
        )


def _tool_rounds(messages: list[dict[str, Any]], contents: list[list[Any]]) -> Iterator[str]:
    """Every call is answered in the next message, results before anything else; ids are unique."""
    seen: set[str] = set()
    open_calls: set[str] = set()
    for index, (message, blocks) in enumerate(zip(messages, contents, strict=True)):
        if not blocks:
            yield f"messages.{index}: all messages must have non-empty content"
        results = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        if any(b["type"] != "tool_result" for b in blocks[: len(results)]):
            yield f"messages.{index}: `tool_result` blocks must come first"
        if set(results) != open_calls or len(results) != len(open_calls):
            yield (
                f"messages.{index}: `tool_use` ids were found without `tool_result` blocks "
                f"immediately after, or the other way round: {sorted(open_calls ^ set(results))}"
            )
        calls = [b["id"] for b in blocks if b["type"] == "tool_use"]
        if calls and message["role"] != "assistant":
            yield f"messages.{index}: `tool_use` blocks can only be in `assistant` messages"
        if seen & set(calls) or len(set(calls)) < len(calls):
            yield f"messages.{index}: `tool_use` ids must be unique"
        seen |= set(calls)
        open_calls = set(calls)


def _image(block: dict[str, Any]) -> Iterator[str]:
    source = block.get("source", {})
    if source.get("type") != "base64" or source.get("media_type") not in MAGIC:
        yield "messages: image.source: Input should be base64 of 'image/jpeg', 'image/png', ..."
        return
    try:
        data = base64.b64decode(source["data"], validate=True)
    except (KeyError, binascii.Error):
        yield "messages: image.source.base64: invalid base64 data"
        return
    if not data.startswith(MAGIC[source["media_type"]]):
        yield "messages: Could not process image"


def _blocks(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
