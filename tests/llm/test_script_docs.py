"""docs/reference/script-format.md: every example is run, and does what the page says."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from magy_server.core.errors import InvalidConfig
from magy_server.core.ports import Message
from magy_server.core.values import Call, Text, Thinking
from magy_server.llm.script_format import parse
from magy_server.llm.scripted import ScriptedProvider

from .conversations import ask, assistant, output, request, user

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "script-format.md"
FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def examples(kind: str) -> list[tuple[str, str]]:
    """(script, what the page shows for it)"""
    blocks = FENCED.findall(PAGE.read_text(encoding="utf-8"))
    return [(a[1], b[1]) for a, b in pairwise(blocks) if (a[0], b[0]) == ("script", kind)]


def test_every_script_on_the_page_has_something_to_show() -> None:
    scripts = [b for b in FENCED.findall(PAGE.read_text(encoding="utf-8")) if b[0] == "script"]
    assert len(scripts) == len(examples("transcript")) + len(examples("error")) >= 6


@pytest.mark.parametrize(("script", "transcript"), examples("transcript"))
async def test_a_transcript(script: str, transcript: str) -> None:
    provider = ScriptedProvider(script)
    messages: list[Message] = []
    shown = ""
    for line in transcript.splitlines():
        if line.startswith("> "):
            messages.append(user(line[2:]))
        elif line.startswith("< "):
            calls = [p for p in messages[-1].parts if isinstance(p, Call)]
            messages.append(user(*(output(call, line[2:]) for call in calls)))
        else:
            continue
        _, replied = await ask(provider, request(*messages, id=str(len(messages))))
        messages.append(assistant(*replied.content))
        shown += line + "\n" + "".join(show(part) + "\n" for part in replied.content)
    assert shown == transcript


@pytest.mark.parametrize(("script", "message"), examples("error"))
def test_an_error(script: str, message: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        parse(script)
    assert caught.value.message == message.strip()


def show(part: Text | Thinking | Call) -> str:
    match part:
        case Text():
            return part.text
        case Thinking():
            return f"({part.text})"
        case Call():
            return f"[{part.name} {json.dumps(part.arguments)}]"
