"""A call of a tool that the model is not shown is a call of that tool, and goes back to the model
as it wrote it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.core.events import Replied
from magy_server.core.ports import ToolSchema
from magy_server.core.prompting.seldom_tools import rewrapped, unwrapped
from magy_server.core.values import Call, Text
from magy_server.tools.seldom_tools import matching

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
ARGUMENTS = st.dictionaries(st.text(), JSON, max_size=4)
LOG = {"stat": True}


def reply(*calls: Call) -> Replied:
    content = (Text(text="Look."), *calls)
    return Replied(request="4", model="m", content=content, stop="tool_use")


def made(**arguments: Any) -> Call:
    return Call(id="4.0", name="call_tool", arguments=arguments, provider_id="toolu_1")


def inner(call: Call) -> Call:
    (_, found) = unwrapped(reply(call)).content
    assert isinstance(found, Call)
    return found


@given(st.text().filter(lambda name: name != "call_tool"), ARGUMENTS)
def test_what_a_model_wrote_comes_back_to_it(name: str, arguments: dict[str, Any]) -> None:
    call = made(name=name, arguments=arguments)
    found = inner(call)
    assert (found.name, found.arguments, found.wrapped) == (name, arguments, True)
    assert (found.id, found.provider_id) == (call.id, call.provider_id)
    assert rewrapped(found) == call


@given(ARGUMENTS)
def test_nothing_raises_and_other_parts_stay(arguments: dict[str, Any]) -> None:
    inner(made(**arguments))
    plain = Call(id="4.1", name="read_file", arguments=arguments)
    assert unwrapped(reply(plain)) == reply(plain)
    assert rewrapped(plain) is plain


@pytest.mark.parametrize(
    "arguments",
    [
        {"name": "git_log", "arguments": json.dumps(LOG)},
        {"name": "git_log", **LOG},
        {"name": "git_log", "arguments": None, **LOG},
    ],
    ids=["as text", "beside the name", "null"],
)
def test_what_models_make_of_it_is_understood(arguments: dict[str, Any]) -> None:
    found = inner(made(**arguments))
    assert (found.name, found.arguments) == ("git_log", LOG)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"arguments": LOG},
        {"name": 5, "arguments": LOG},
        {"name": "call_tool", "arguments": {"name": "git_log"}},
        {"name": "git_log", "arguments": "{broken"},
        {"name": "git_log", "arguments": [1]},
    ],
    ids=repr,
)
def test_what_names_no_call_stays_one_of_call_tool(arguments: dict[str, Any]) -> None:
    call = made(**arguments)
    assert inner(call) == call


def test_a_call_whose_arguments_are_no_json_stays_as_it_is() -> None:
    call = Call(id="4.0", name="call_tool", arguments={}, invalid='{"name": ')
    assert inner(call) == call


def test_tools_are_found_by_name_else_by_words_best_first() -> None:
    tools = [
        ToolSchema("git_log", "Show commits, newest first.", {}),
        ToolSchema("git_diff", "Show what changed between commits.", {}),
        ToolSchema("web_fetch", "Read a page of the web.", {}),
    ]

    def found(query: str) -> list[str]:
        return [schema.name for schema in matching(tools, query)]

    assert found("git_diff") == ["git_diff"]
    assert found("web_fetch, git_log") == ["git_log", "web_fetch"]
    assert found("what changed in git") == ["git_diff", "git_log"]
    assert found("Web page") == ["web_fetch"]
    assert found("rocket") == found("") == []
