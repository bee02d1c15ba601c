"""The body of a Responses request. Pure, so no server is needed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from magy_server.core.ports import Message
from magy_server.core.values import Call, Thinking
from magy_server.llm.openai_quirks import Quirks
from magy_server.llm.responses_wire import body as make_body
from tests.loopback.openai_checks import Memory, response_problems

from .conversations import assistant, calling, output, request, user
from .growing import PNG, growing, rounds

URL = "data:image/png;base64,iVBORw0KGgoAAAAAAAAAAA=="


def body(sent: Any, **quirks: Any) -> dict[str, Any]:
    return make_body(sent, Quirks(**quirks))


def test_a_round_of_tools() -> None:
    one, two = calling("3.0", "call_a", path="ä.py"), calling("3.1", "call_b", path="b.py")
    thought = Thinking(text="Both.", signature="rs_1", data="c2VjcmV0")
    sent = request(
        "Compare a and b",
        assistant(thought, "I read both.", one, two),
        user("Be quick", output(one, "A"), output(two, "no such file", error=True)),
        system=("You are Magy.", " ", "Be kind."),
    )
    assert body(sent) == {
        "model": "test-model",
        "store": False,
        "max_output_tokens": 1000,
        "prompt_cache_key": "session/s1",
        "instructions": "You are Magy.\n\nBe kind.",
        "tools": [
            {
                "type": "function",
                "name": "read_file",
                "description": "Read a text file.",
                "parameters": {"type": "object", "properties": {}},
                "strict": False,
            }
        ],
        "input": [
            {"type": "message", "role": "user",
             "content": [{"type": "input_text", "text": "Compare a and b"}]},
            {"type": "reasoning", "id": "rs_1", "encrypted_content": "c2VjcmV0",
             "summary": [{"type": "summary_text", "text": "Both."}]},
            {"type": "message", "role": "assistant", "content": "I read both."},
            {"type": "function_call", "call_id": "call_a", "name": "read_file",
             "arguments": '{"path":"ä.py"}'},
            {"type": "function_call", "call_id": "call_b", "name": "read_file",
             "arguments": '{"path":"b.py"}'},
            {"type": "function_call_output", "call_id": "call_a", "output": "A"},
            {"type": "function_call_output", "call_id": "call_b", "output": "no such file"},
            {"type": "message", "role": "user",
             "content": [{"type": "input_text", "text": "Be quick"}]},
        ],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("tokens", "effort"),
    [(1, "low"), (4000, "low"), (4001, "medium"), (16000, "medium"), (16001, "high")],
)
def test_a_budget_for_thinking_is_an_effort(tokens: int, effort: str) -> None:
    sent = body(request(thinking_tokens=tokens))
    assert sent["reasoning"] == {"effort": effort, "summary": "auto"}
    assert sent["include"] == ["reasoning.encrypted_content"]


@pytest.mark.parametrize(
    ("model", "thinks"),
    [
        ("gpt-4.1", False),
        ("gpt-4o-mini", False),
        ("gpt-5-chat-latest", False),
        ("qwen3:8b", False),
        ("gpt-oss-20b", False),
        ("o3", True),
        ("o4-mini-2025-04-16", True),
        ("gpt-5", True),
        ("gpt-5.6-sol", True),
        ("gpt-12", True),
        ("openai/gpt-5-mini", True),
        ("codex-mini-latest", True),
    ],
)
def test_models_that_reason_take_no_temperature_and_give_their_reasoning(
    model: str, thinks: bool
) -> None:
    sent = body(request(model=model, temperature=0.3))
    assert ("include" in sent) is thinks
    assert ("temperature" in sent) is not thinks
    assert "reasoning" not in sent, "how much is left to the provider"


def test_the_limit_leaves_room_for_thinking() -> None:
    assert "max_output_tokens" not in body(request(max_tokens=0))
    assert "max_output_tokens" not in body(request(max_tokens=0, thinking_tokens=9000))
    assert body(request(max_tokens=3))["max_output_tokens"] == 16
    both = request(max_tokens=1000, thinking_tokens=4000)
    assert body(both)["max_output_tokens"] == 5000
    assert body(replace(both, max_tokens=9000))["max_output_tokens"] == 9000


def test_pictures_of_people_and_of_tools() -> None:
    call = calling("3.0", "call_a")
    found = replace(output(call, "a picture"), pictures=(PNG,))
    sent = request(user("Look", PNG), assistant(call), user(found, "See?"))
    image = {"type": "input_image", "detail": "auto", "image_url": URL}
    items = body(sent)["input"]
    assert items[0]["content"] == [{"type": "input_text", "text": "Look"}, image]
    assert items[2]["output"] == [{"type": "input_text", "text": "a picture"}, image]
    assert not response_problems(body(sent), Memory())
    apart = body(sent, pictures_apart=True)["input"]
    assert apart[2]["output"] == "a picture"
    assert apart[3]["content"] == [image, {"type": "input_text", "text": "See?"}]


def test_only_reasoning_that_can_be_proved_goes_back_and_only_before_what_followed_it() -> None:
    proved, bare = Thinking(data="x", text="so"), Thinking(text="shown", signature="rs_2")
    items = body(request("a", assistant(bare, proved, "b", proved), "c"))["input"]
    assert [item["type"] for item in items] == ["message", "reasoning", "message", "message"]
    assert items[1] == {
        "type": "reasoning",
        "encrypted_content": "x",
        "summary": [{"type": "summary_text", "text": "so"}],
    }
    assert len(body(request("a", assistant(proved), "c"))["input"]) == 2


def test_what_would_be_empty_is_left_out_or_says_so() -> None:
    one, two = calling("3.0"), calling("3.1")
    results = user(output(one, " "), output(two, "", error=True), "\n")
    items = body(request("a", assistant(" ", one, two), results, system=(" ",)))["input"]
    assert [item.get("output") for item in items[-2:]] == ["(no output)", "(failed without output)"]
    assert len(items) == 5
    assert "tools" not in body(request(tools=())) and "instructions" not in body(request(system=()))


def test_names_and_arguments_that_the_api_would_refuse() -> None:
    call = Call(id="3.0", name="functions.read file", arguments={}, invalid='{"path": "a')
    sent = body(request("a", assistant(call), user(output(call, "not JSON", error=True))))
    assert sent["input"][1]["name"] == "functions_read_file"
    assert sent["input"][1]["arguments"] == '{"INVALID_JSON":"{\\"path\\": \\"a"}'
    assert not response_problems(sent, Memory())


def test_the_cache_key_of_a_deep_session_is_short_enough() -> None:
    key = body(request(session="session/" + "x" * 90 + "/7.1"))["prompt_cache_key"]
    assert len(key) == 64 and key.endswith("x/7.1")


def test_what_the_server_refused_is_left_out() -> None:
    sent = request(thinking_tokens=5000, max_tokens=9000)
    refused = frozenset({"reasoning.summary", "include", "prompt_cache_key", "max_output_tokens"})
    assert body(sent, refused=refused).keys() == {
        "model", "store", "instructions", "tools", "input", "reasoning"
    }  # fmt: skip
    assert body(sent, refused=refused)["reasoning"] == {"effort": "medium"}
    both = frozenset({"reasoning.summary", "reasoning.effort"})
    assert "reasoning" not in body(sent, refused=both)


@pytest.mark.parametrize("message", [Message("user", (3,)), Message("assistant", (PNG,))])
def test_a_part_without_a_place_on_this_wire_is_an_error(message: Message) -> None:
    with pytest.raises(TypeError, match="cannot hold"):
        body(request(message))


@given(rounds)
def test_a_growing_conversation_extends_what_was_sent(rounds: list[Any]) -> None:
    before: list[Any] = []
    for messages in growing(rounds):
        sent = request(*messages)
        assert body(sent) == body(sent)
        proofs = "could not be verified", "Duplicate item"
        wrong = response_problems(body(sent), Memory())
        assert not [words for words in wrong if not any(proof in words for proof in proofs)]
        now = body(sent)["input"]
        assert now[: len(before)] == before
        before = now
