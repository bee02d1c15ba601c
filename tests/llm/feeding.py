"""Feeds a wire's answer without a server, and checks what holds of every answer."""

from __future__ import annotations

from typing import Any

from magy_server.core.events import Replied
from magy_server.core.ports import Delta
from magy_server.core.values import Call, Text, Thinking
from magy_server.llm.wire import Answer


def fed(answer: Answer, *events: Any) -> tuple[list[Delta], Replied]:
    """`"[DONE]"` is the mark; the answer must be whole in the end."""
    deltas: list[Delta] = []
    for event in events:
        if event == "[DONE]":
            answer.ended = True
        else:
            deltas += answer.feed(event)
    assert answer.started and (answer.closing or answer.complete)
    deltas += answer.finish()
    assert not answer.finish()
    replied = answer.replied()
    agree(deltas, replied)
    return deltas, replied


def agree(deltas: list[Delta], replied: Replied) -> None:
    """What streamed is what was replied, and the end of each call was said once, at its end."""
    calls = [part for part in replied.content if isinstance(part, Call)]
    assert [call.id for call in calls] == [f"{replied.request}.{n}" for n in range(len(calls))]
    for number, call in enumerate(calls):
        of_call = [delta for delta in deltas if delta.kind == "call" and delta.index == number]
        assert [delta.done for delta in of_call] == [False] * (len(of_call) - 1) + [True]
        assert {delta.name for delta in of_call} == {call.name}
    assert all(delta.index < len(calls) for delta in deltas if delta.kind == "call")
    for kind, type in (("text", Text), ("thinking", Thinking)):
        streamed = "".join(delta.text for delta in deltas if delta.kind == kind)
        parts = [part.text for part in replied.content if isinstance(part, type)]
        assert streamed == "".join(parts)
