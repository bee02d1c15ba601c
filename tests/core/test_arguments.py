"""Whatever a model writes as arguments, the log can be read again."""

from __future__ import annotations

import pytest

from magy_server.core.events import Replied
from magy_server.core.prompting.seldom_tools import unwrapped
from magy_server.core.text.arguments import DEEPEST, arguments_in
from magy_server.core.text.surrogates import loads
from magy_server.core.values import Call


def nested(levels: int, inside: str = "") -> str:
    """An object of so many levels, from 2 on."""
    return '{"y": ' + "[" * (levels - 1) + inside + "]" * (levels - 1) + "}"


def replied(arguments: dict[str, object]) -> Replied:
    call = Call(id="4.0", name="call_tool", arguments=arguments)
    return unwrapped(Replied(request="4", model="m", content=(call,), stop="tool_use"))


def called(reply: Replied) -> str:
    """The tool that its only part calls."""
    (call,) = reply.content
    assert isinstance(call, Call)
    return call.name


@pytest.mark.parametrize("levels", [2, DEEPEST // 2, DEEPEST])
def test_what_is_taken_can_be_stored_and_read_again(levels: int) -> None:
    text = nested(levels)
    given = arguments_in(text)
    assert given is not None
    for reply in (replied({"name": "t", "arguments": given}), replied({"name": "t"} | given)):
        assert Replied.model_validate_json(reply.model_dump_json()) == reply
    assert called(replied({"name": "t", "arguments": text})) == "t"


@pytest.mark.parametrize("levels", [DEEPEST + 1, 220, 300, 900, 5000])
@pytest.mark.parametrize("inside", ["", r'"\ud800"'])
def test_what_is_nested_too_deeply_is_not_taken(levels: int, inside: str) -> None:
    text = nested(levels, inside)
    assert arguments_in(text) is None
    left = replied({"name": "t", "arguments": text})
    assert called(left) == "call_tool"
    assert Replied.model_validate_json(left.model_dump_json()) == left


def test_half_a_pair_far_inside_is_an_error_and_no_crash() -> None:
    with pytest.raises(ValueError):
        loads(nested(100_000, r'"\ud800"'))
