"""What is told of children beside text that streams."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from magy_server.cli.screen.printers import Lines
from magy_server.cli.screen.terminal import Output, Screen
from magy_server.cli.screen.text import UNICODE
from magy_server.cli.screen.updates_view import View
from magy_server.core.agents.child import ChildInfo

CHILD = ChildInfo("s/a", "s", "Look", "explore", "m", "running", 1)
TOLD = "  ▸ explore (Look) · running\n"


class Pipe:
    """Lines on a pipe, and what can be read at its other end."""

    def __init__(self) -> None:
        self._end, into = os.pipe()
        self._ends = (self._end, into)
        os.set_blocking(self._end, False)
        self.lines = Lines(Screen(Output(into, "utf-8")), View(UNICODE, wraps=False))

    def read(self) -> str:
        try:
            return os.read(self._end, 1 << 16).decode()
        except BlockingIOError:
            return ""

    def close(self) -> None:
        for end in self._ends:
            os.close(end)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    made.close()


def piece(text: str) -> dict[str, Any]:
    content = {"type": "text", "text": text}
    return {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": content}


def whole(text: str) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return {"sessionUpdate": "agent_message", "messageId": "m", "content": content}


async def test_a_sentence_is_not_torn_by_news_of_a_child(pipe: Pipe) -> None:
    await pipe.lines.show([piece("I")])
    await pipe.lines.below([CHILD], [CHILD])
    await pipe.lines.show([piece(" do not wait.")])
    assert pipe.read() == "I do not wait."
    await pipe.lines.show([whole("I do not wait.")])
    assert pipe.read() == f"\n{TOLD}"
    await pipe.lines.below([CHILD], [CHILD])
    assert pipe.read() == TOLD, "at once, where nothing streams"


async def test_what_waits_of_children_stands_above_a_question(pipe: Pipe) -> None:
    await pipe.lines.show([piece("I")])
    await pipe.lines.below([CHILD], [CHILD])
    asked = {"interactionId": "q", "toolCallId": "c", "sessionId": "s/a", "title": "Run ls?"}
    await pipe.lines.question({**asked, "kind": "permission", "rule": "ask", "remember": []})
    shown = pipe.read()
    assert shown.startswith(f"I\n{TOLD}") and "Run ls?" in shown
