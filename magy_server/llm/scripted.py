"""This model says what a script tells it to: for the demo, for tests, and for trying Magy without a
key. docs/reference/script-format.md describes the format."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from pathlib import Path

from magy_server.core.errors import InvalidConfig, ProviderError
from magy_server.core.events import Replied
from magy_server.core.ports import Delta, Message, ModelRequest, Picture, ToolOutput
from magy_server.core.values import Call, Part, Text, Thinking, Usage
from magy_server.llm.faults import RETRYABLE
from magy_server.llm.script_format import Fail, Pause, Reply, Say, Script, Use, last_output, parse

CHARACTERS_PER_TOKEN = 4
"""Rough, for usage the script does not give."""


class ScriptedProvider:
    """`Provider` over a script: a `str` is the script itself, a `Path` the file that holds it.

    Which reply is next depends on the conversation alone; only how often an `error:` was already
    raised is kept in memory, for each session. Raises InvalidConfig when the script cannot be read.
    """

    def __init__(self, script: str | Path) -> None:
        self.script = load(script)
        self._failed: Counter[tuple[str, int]] = Counter()

    def warm(self) -> None:
        """Does nothing: there is nothing slow to import."""

    async def close(self) -> None:
        """Does nothing: there is nothing to close."""

    async def models(self) -> list[str]:
        """Returns one name; a script answers whatever model is asked for."""
        return ["script"]

    async def window(self, model: str) -> int:
        """Returns 0: nothing limits a script."""
        return 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta | Replied, None]:
        """See `Provider`."""
        reply = self.script.next_reply(request.messages)
        output = last_output(request.messages)
        calls = 0
        parts: list[Part] = []
        for step in reply.steps:
            match step:
                case Pause():
                    await asyncio.sleep(step.seconds)
                case Fail():
                    self.fail(step, request.session)
                case Say():
                    text = step.text.replace("{{last}}", output)
                    async for piece in _paced(text, step.speed):
                        yield Delta(step.kind, piece)
                    _add(parts, step, text)
                case Use():
                    yield Delta("call", "", calls, step.name)
                    text = json.dumps(step.arguments, ensure_ascii=False)
                    async for piece in _paced(text, step.speed):
                        yield Delta("call", piece, calls, step.name)
                    yield Delta("call", "", calls, step.name, done=True)
                    parts.append(_call(f"{request.id}.{calls}", step))
                    calls += 1
        yield Replied(
            request=request.id,
            model=request.model,
            content=tuple(parts),
            stop=reply.stop or ("tool_use" if calls else "end_turn"),
            usage=usage(reply, request, parts),
        )

    def fail(self, step: Fail, session: str) -> None:
        """Raises the fault, unless it was raised `times` times in this session already."""
        self._failed[session, step.line] += 1
        if self._failed[session, step.line] <= step.times:
            raise ProviderError(
                f'The script makes this request fail with "{step.fault}" (line {step.line}).',
                fault=step.fault,
                retryable=step.fault in RETRYABLE,
                retry_after=step.retry_after,
            )


def load(script: str | Path) -> Script:
    """Raises InvalidConfig with the file, the line, and what was expected."""
    if isinstance(script, str):
        return parse(script)
    try:
        return parse(script.read_text(encoding="utf-8"), str(script))
    except OSError as error:
        raise InvalidConfig(f"The script {script} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InvalidConfig(f"The script {script} is not UTF-8 text ({error.reason}).") from error


def pieces(text: str) -> Iterator[str]:
    """Words, each with the white space around it that belongs to it; together the whole text."""
    return (match[0] for match in re.finditer(r"\s*\S+[ \t]*|\s+", text))


def usage(reply: Reply, request: ModelRequest, parts: list[Part]) -> Usage:
    """Returns what the script says of usage, and estimates the rest from the length of the
    texts."""
    counts = {
        "input": sum(map(len, request.system)) + sum(map(_length, request.messages)),
        "output": sum(map(_size, parts)),
    }
    estimated = {name: -(-count // CHARACTERS_PER_TOKEN) for name, count in counts.items()}
    return Usage(**(estimated | reply.usage))


async def _paced(text: str, speed: float) -> AsyncIterator[str]:
    for piece in pieces(text):
        await asyncio.sleep(len(piece) / speed if speed else 0)
        yield piece


def _add(parts: list[Part], step: Say, text: str) -> None:
    """Adds a part; neighbours of one kind are one part."""
    kind: type[Text | Thinking] = Text if step.kind == "text" else Thinking
    last = parts[-1] if parts else None
    if isinstance(last, kind):
        parts[-1] = kind(text=last.text + text)
    else:
        parts.append(kind(text=text))


def _call(id: str, step: Use) -> Call:
    name = re.sub(r"[^a-zA-Z0-9_-]", "_", id)
    return Call(id=id, name=step.name, arguments=dict(step.arguments), provider_id=f"call_{name}")


def _length(message: Message) -> int:
    return sum(map(_size, message.parts))


def _size(part: Part | Picture | ToolOutput) -> int:
    """Returns the number of characters; a picture counts as 6,000, which is about what other models
    charge."""
    match part:
        case Call():
            return len(json.dumps(part.arguments))
        case Picture():
            return 6_000
    return len(part.text)
