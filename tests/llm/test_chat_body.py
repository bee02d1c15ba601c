"""The body of a Chat Completions request, for OpenAI and for others. Pure: no server is needed."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from magy_server.core.ports import Message
from magy_server.core.values import Call, Thinking
from magy_server.llm.chat_wire import body as make_body
from magy_server.llm.openai_quirks import Quirks, known
from tests.loopback.openai_checks import chat_problems

from .conversations import assistant, calling, output, request, user
from .growing import PNG, growing, rounds

IMAGE = {
    "type": "image_url",
    "image_url": {"url": "data:image/png;base64,iVBORw0KGgoAAAAAAAAAAA=="},
}


def body(sent: Any, **quirks: Any) -> dict[str, Any]:
    return make_body(sent, Quirks(**quirks))


def test_a_round_of_tools() -> None:
    one, two = calling("3.0", "call_a", path="ä.py"), calling("3.1", "call_b", path="b.py")
    sent = request(
        "Compare a and b",
        assistant(Thinking(text="Both."), "I read both.", one, two),
        user("Be quick", output(one, "A"), output(two, "no such file", error=True)),
        system=("You are Magy.", " ", "Be kind."),
    )
    assert body(sent) == {
        "model": "test-model",
        "stream_options": {"include_usage": True},
        "max_tokens": 1000,
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "read_file",
                    "description": "Read a text file.",
                    "parameters": {"type": "object", "properties": {}},
                },
            }
        ],
        "messages": [
            {"role": "system", "content": "You are Magy.\n\nBe kind."},
            {"role": "user", "content": "Compare a and b"},
            {
                "role": "assistant",
                "content": "I read both.",
                "tool_calls": [
                    {"id": "call_a", "type": "function",
                     "function": {"name": "read_file", "arguments": '{"path":"ä.py"}'}},
                    {"id": "call_b", "type": "function",
                     "function": {"name": "read_file", "arguments": '{"path":"b.py"}'}},
                ],
            },
            {"role": "tool", "tool_call_id": "call_a", "content": "A"},
            {"role": "tool", "tool_call_id": "call_b", "content": "no such file"},
            {"role": "user", "content": "Be quick"},
        ],
    }  # fmt: skip


def test_the_limit_has_two_names() -> None:
    assert body(request())["max_tokens"] == 1000
    assert body(request(), official=True)["max_completion_tokens"] == 1000
    newer = body(request(), refused=frozenset({"max_tokens"}))
    assert newer["max_completion_tokens"] == 1000 and "max_tokens" not in newer
    older = body(request(), official=True, refused=frozenset({"max_completion_tokens"}))
    assert older["max_tokens"] == 1000 and "max_completion_tokens" not in older
    none = frozenset({"max_tokens", "max_completion_tokens"})
    for sent in (body(request(max_tokens=0)), body(request(), refused=none)):
        assert not none & sent.keys()
    thinking = request(max_tokens=1000, thinking_tokens=4000)
    assert body(thinking)["max_tokens"] == 5000


def test_parameters_that_only_openai_takes_and_those_that_only_others_do() -> None:
    sent = request(model="gpt-5", temperature=0.2, thinking_tokens=20_000, max_tokens=0)
    there = body(sent, official=True)
    assert there["prompt_cache_key"] == "session/s1"
    assert there["reasoning_effort"] == "high" and "temperature" not in there
    assert not chat_problems(there | {"stream": True})
    elsewhere = body(sent)
    assert elsewhere["temperature"] == 0.2 and "prompt_cache_key" not in elsewhere
    refused = frozenset({"stream_options", "reasoning_effort", "temperature"})
    assert body(sent, refused=refused).keys() == {"model", "tools", "messages"}


def test_pictures_stand_in_messages_of_the_user() -> None:
    call = calling("3.0", "call_a")
    found = replace(output(call, "a picture"), pictures=(PNG,))
    sent = body(request(user("Look", PNG), assistant(call), user(found, "See?"), system=()))
    assert not chat_problems(sent | {"stream": True})
    first, _, result, last = sent["messages"]
    assert first["content"] == [{"type": "text", "text": "Look"}, IMAGE]
    assert result == {"role": "tool", "tool_call_id": "call_a", "content": "a picture"}
    assert last["role"] == "user"
    assert last["content"][1:] == [IMAGE, {"type": "text", "text": "See?"}]


def test_user_and_assistant_take_turns_whatever_is_missing() -> None:
    silent = assistant(Thinking(text="only thought"), " ")
    sent = body(request("a", silent, user(" ", "b"), "c", assistant("d"), assistant("e"), "f"))
    assert [(m["role"], m["content"]) for m in sent["messages"][1:]] == [
        ("user", "a\n\nb\n\nc"), ("assistant", "d\n\ne"), ("user", "f")
    ]  # fmt: skip


def test_empty_results_say_something() -> None:
    one, two = calling("3.0"), calling("3.1")
    results = user(output(one, " "), output(two, "", error=True))
    sent = body(request("a", assistant(one, two), results, system=()))
    assert sent["messages"][1]["content"] is None
    assert [m["content"] for m in sent["messages"][2:]] == [
        "(no output)", "(failed without output)"
    ]  # fmt: skip
    assert "tools" not in body(request(tools=()))


@pytest.mark.parametrize("theirs", ["", "has space", "x" * 41, "call_twice"])
def test_ids_that_would_be_refused_are_replaced(theirs: str) -> None:
    one, two = calling("3.0", "call_twice"), calling("12.0", theirs)
    sent = body(request("a", assistant(one), user(output(one)), assistant(two), user(output(two))))
    assert not chat_problems(sent | {"stream": True})
    assert sent["messages"][2]["tool_calls"][0]["id"] == "call_twice"
    assert sent["messages"][5]["tool_call_id"] == "call_12_0"


def test_names_and_arguments_that_would_be_refused() -> None:
    call = Call(id="3.0", name="functions.read file", arguments={}, invalid='{"path": "a')
    sent = body(request("a", assistant(call), user(output(call, "not JSON", error=True))))
    function = sent["messages"][2]["tool_calls"][0]["function"]
    assert function["name"] == "functions_read_file"
    assert function["arguments"] == '{"INVALID_JSON":"{\\"path\\": \\"a"}'


# --- what others want ---------------------------------------------------------------------------


def test_thinking_goes_back_with_calls_where_it_is_wanted() -> None:
    call = calling("3.0", "call_a")
    thought = Thinking(text="hm", signature="reasoning")
    rounds = assistant(thought, "x", call), user(output(call)), assistant(call), user(output(call))
    sent = request("a", *rounds, assistant(Thinking(text="last"), "bye"), "b")
    there = [m for m in body(sent, wants_thinking=True)["messages"] if m["role"] == "assistant"]
    assert there[0]["reasoning"] == "hm", "in the field it came in"
    assert there[1]["reasoning_content"] == "", "also when there was none"
    assert there[2] == {"role": "assistant", "content": "bye"}
    assert "hm" not in str(body(sent)["messages"])


def test_what_came_with_a_call_goes_back_with_it() -> None:
    beside = Thinking(signature="extra_content", data='{"google":{"thought_signature":"c2ln"}}')
    one, two = calling("3.0", "call_a"), calling("3.1", "call_b")
    sent = request("a", assistant(beside, one, two), user(output(one), output(two)))
    first, second = body(sent)["messages"][2]["tool_calls"]
    assert first["extra_content"] == {"google": {"thought_signature": "c2ln"}}
    assert "extra_content" not in second
    foreign = request("a", assistant(one, two), user(output(one), output(two)))
    first, second = body(foreign, gemini=True)["messages"][2]["tool_calls"]
    assert "skip" in first["extra_content"]["google"]["thought_signature"]
    assert "extra_content" not in second


def test_mistral_has_ids_and_turns_of_its_own() -> None:
    one, two = calling("3.0", "call_a"), calling("4.0", "abcDEF012")
    sent = request("a", assistant(one, two), user(output(one), output(two), "go on"), system=())
    _, made, first, second, between, last = body(sent, mistral=True)["messages"]
    ids = [call["id"] for call in made["tool_calls"]]
    assert all(re.fullmatch("[a-zA-Z0-9]{9}", id) for id in ids) and ids[1] == "abcDEF012"
    assert [first["tool_call_id"], second["tool_call_id"]] == ids
    assert made["content"] == "" and between["role"] == "assistant" and last["content"] == "go on"


@pytest.mark.parametrize(
    ("url", "model", "quirks"),
    [
        ("https://api.openai.com/v1", "gpt-5", Quirks(official=True)),
        ("https://me.openai.azure.com/openai/v1", "gpt-5", Quirks(official=True)),
        ("https://api.deepseek.com", "deepseek-chat", Quirks(wants_thinking=True)),
        ("https://api.moonshot.ai/v1", "kimi-k2", Quirks(wants_thinking=True)),
        ("https://api.mistral.ai/v1", "large", Quirks(mistral=True)),
        ("http://localhost:8000/v1", "mistralai/Devstral-Small", Quirks(mistral=True, near=True)),
        ("http://localhost:8000/v1", "org/Devstral-Small", Quirks(mistral=True, near=True)),
        ("http://localhost:8000/v1", "codestral", Quirks(mistral=True, near=True)),
        (
            "https://generativelanguage.googleapis.com/v1beta/openai/",
            "gemini-3-pro",
            Quirks(gemini=True),
        ),
        ("http://localhost:11434/v1", "qwen3", Quirks(near=True)),
        ("https://not-openai.com.example.org/v1", "x", Quirks()),
    ],
)
def test_what_is_known_of_a_server_beforehand(url: str, model: str, quirks: Quirks) -> None:
    assert known(url, model) == quirks


@pytest.mark.parametrize("message", [Message("user", (3,)), Message("assistant", (PNG,))])
def test_a_part_without_a_place_on_this_wire_is_an_error(message: Message) -> None:
    with pytest.raises(TypeError, match="cannot hold"):
        body(request(message))


@pytest.mark.parametrize("quirks", [Quirks(), Quirks(mistral=True), Quirks(wants_thinking=True)])
@given(rounds=rounds)
def test_a_growing_conversation_extends_what_was_sent(quirks: Quirks, rounds: list[Any]) -> None:
    before: list[Any] = []
    for messages in growing(rounds):
        sent = make_body(request(*messages), quirks)
        assert make_body(request(*messages), quirks) == sent
        if quirks == Quirks():
            assert not chat_problems(sent | {"stream": True})
        assert sent["messages"][: len(before)] == before
        before = sent["messages"]
