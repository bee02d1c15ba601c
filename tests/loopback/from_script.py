"""Answers from a script of the scripted provider (docs/reference/script-format.md)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from magy_server.llm import script_format
from magy_server.llm.scripted import load

from . import parts
from .anthropic import AnthropicServer
from .server import Answer, ModelServer


def anthropic_answers(source: str | Path) -> Callable[[Any], Answer]:
    return answers(source, AnthropicServer)


def answers(source: str | Path, wire: type[ModelServer]) -> Callable[[Any], Answer]:
    """For `answer` of a server of that kind. A fault before the first delta is an HTTP status, a
    later one an event in the stream."""
    loaded = load(source)
    failed: Counter[int] = Counter()

    def answer(body: Any) -> Answer:
        messages = wire.conversation(body)
        reply = loaded.next_reply(messages)
        last = script_format.last_output(messages)
        result: list[parts.Part] = [parts.Counted(reply.usage)]
        if reply.stop:
            result.append(parts.Stopped(wire.stops[reply.stop]))
        said = False
        for step in reply.steps:
            match step:
                case script_format.Fail():
                    failed[step.line] += 1
                    if failed[step.line] <= step.times:
                        return [*result, _broken(step, wire)] if said else _fault(step, wire)
                case script_format.Pause():
                    result.append(parts.Pause(step.seconds))
                case script_format.Say():
                    said = True
                    signature = "sig-script" if step.kind == "thinking" else ""
                    text = step.text.replace("{{last}}", last)
                    result.append(parts.Said(step.kind, text, signature, step.speed))
                case script_format.Use():
                    said = True
                    arguments = json.dumps(dict(step.arguments), ensure_ascii=False)
                    result.append(parts.Called(step.name, arguments, None, 20, step.speed))
        return result

    return answer


def _fault(step: script_format.Fail, wire: type[ModelServer]) -> parts.Fault:
    name, type = wire.faults[step.fault]
    headers = {} if step.retry_after is None else {"retry-after": str(step.retry_after)}
    return parts.Fault(name, "the script says so", type, headers)


def _broken(step: script_format.Fail, wire: type[ModelServer]) -> parts.Part:
    if step.fault == "connection":
        return parts.Cut()
    if step.fault == "malformed":
        return parts.Raw(b"data: {broken\n\n")
    return parts.ErrorEvent(wire.faults[step.fault][1], "the script says so")
