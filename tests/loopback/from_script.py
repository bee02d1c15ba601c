"""Answers from a script of the scripted provider (docs/reference/script-format.md)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from magy_server.core.errors import ProviderFault
from magy_server.core.events import Text
from magy_server.core.ports import Message, ToolOutput
from magy_server.llm import script
from magy_server.llm.scripted import load

from . import parts
from .anthropic import ERROR_TYPES, Answer

_STATUS: dict[ProviderFault, str] = {
    "no_key": "401",
    "auth": "401",
    "not_found": "404",
    "rate_limit": "429",
    "overloaded": "529",
    "server": "500",
    "timeout": "408",
    "connection": "drop",
    "malformed": "html",
    "too_long": "413",
    "refused": "400",
}


def anthropic_answers(source: str | Path) -> Callable[[Any], Answer]:
    """For `AnthropicServer.answer`. A fault before the first delta is an HTTP status, a later one
    an event in the stream."""
    loaded = load(source)
    failed: Counter[int] = Counter()

    def answer(body: Any) -> Answer:
        messages = conversation(body)
        reply = loaded.next_reply(messages)
        last = script.last_output(messages)
        result: list[parts.Part] = [parts.Counted(reply.usage)]
        if reply.stop:
            result.append(parts.Stopped(reply.stop))
        said = False
        for step in reply.steps:
            match step:
                case script.Fail():
                    failed[step.line] += 1
                    if failed[step.line] <= step.times:
                        return [*result, _broken(step.fault)] if said else _fault(step)
                case script.Pause():
                    result.append(parts.Pause(step.seconds))
                case script.Say():
                    said = True
                    signature = "sig-script" if step.kind == "thinking" else ""
                    text = step.text.replace("{{last}}", last)
                    result.append(parts.Said(step.kind, text, signature, step.speed))
                case script.Use():
                    said = True
                    arguments = json.dumps(dict(step.arguments), ensure_ascii=False)
                    result.append(parts.Called(step.name, arguments, None, 20, step.speed))
        return result

    return answer


def conversation(body: Any) -> list[Message]:
    """The messages of a request body, as far as a script looks at them."""
    return [Message(m["role"], tuple(_parts(m["content"]))) for m in body["messages"]]


def _parts(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [Text(text=content)]
    result: list[Any] = []
    for block in content:
        if block["type"] == "text":
            result.append(Text(text=block["text"]))
        elif block["type"] == "tool_result":
            output = block.get("content", "")
            text = output if isinstance(output, str) else "".join(b["text"] for b in output)
            result.append(ToolOutput("", block["tool_use_id"], text))
    return result


def _fault(step: script.Fail) -> parts.Fault:
    headers = {} if step.retry_after is None else {"retry-after": str(step.retry_after)}
    return parts.Fault(_STATUS[step.fault], "the script says so", headers=headers)


def _broken(fault: ProviderFault) -> parts.Part:
    if fault == "connection":
        return parts.Cut()
    if fault == "malformed":
        return parts.Raw(b"event: content_block_delta\ndata: {broken\n\n")
    return parts.ErrorEvent(ERROR_TYPES.get(_STATUS[fault], "api_error"), "the script says so")
