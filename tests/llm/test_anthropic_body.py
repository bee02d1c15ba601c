"""The request body: what the API is sent for a conversation. Pure, so no server is needed."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.core.ports import Message, Picture
from magy_server.core.values import Call, Thinking
from magy_server.llm.anthropic_wire import body
from tests.loopback.anthropic_checks import problems
from tests.tools.pictures import png

from .conversations import assistant, calling, output, request, user
from .growing import PNG

CACHED = {"cache_control": {"type": "ephemeral"}}


def test_a_round_of_tools() -> None:
    one, two = calling("3.0", "toolu_a", path="a.py"), calling("3.1", "toolu_b", path="b.py")
    thought = Thinking(text="Both.", signature="c2ln")
    sent = request(
        "Compare a and b",
        assistant(thought, "I read both.", one, two),
        user("Be quick", output(one, "A"), output(two, "no such file", error=True)),
    )
    assert body(sent) == {
        "model": "test-model",
        "max_tokens": 1000,
        "system": [{"type": "text", "text": "You are Magy."} | CACHED],
        "tools": [
            {
                "name": "read_file",
                "description": "Read a text file.",
                "input_schema": {"type": "object", "properties": {}},
            }
            | CACHED
        ],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Compare a and b"} | CACHED]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Both.", "signature": "c2ln"},
                    {"type": "text", "text": "I read both."},
                    {"type": "tool_use", "id": "toolu_a", "name": "read_file",
                     "input": {"path": "a.py"}},
                    {"type": "tool_use", "id": "toolu_b", "name": "read_file",
                     "input": {"path": "b.py"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_a", "content": "A"},
                    {"type": "tool_result", "tool_use_id": "toolu_b",
                     "content": "no such file", "is_error": True},
                    {"type": "text", "text": "Be quick"} | CACHED,
                ],
            },
        ],
    }  # fmt: skip


def test_thinking_takes_its_budget_from_max_tokens_and_excludes_a_temperature() -> None:
    sent = body(request(thinking_tokens=4000, max_tokens=1000, temperature=0.3))
    assert sent["thinking"] == {"type": "enabled", "budget_tokens": 4000}
    assert sent["max_tokens"] == 5000
    assert "temperature" not in sent
    assert body(request(thinking_tokens=4000, max_tokens=16000))["max_tokens"] == 16000
    assert body(request(thinking_tokens=1))["thinking"]["budget_tokens"] == 1024
    assert body(request(temperature=0.0))["temperature"] == 0.0


def test_redacted_thinking_goes_back_and_unsigned_thinking_does_not() -> None:
    parts = (Thinking(data="x8=="), Thinking(text="unsigned"), Thinking(signature="only"), "ok")
    sent = body(request("a", assistant(*parts), "b"))
    assert sent["messages"][1]["content"] == [
        {"type": "redacted_thinking", "data": "x8=="},
        {"type": "thinking", "thinking": "", "signature": "only"},
        {"type": "text", "text": "ok"},
    ]


@pytest.mark.parametrize("text", ["", " \n"])
@pytest.mark.parametrize("thought", [Thinking(text="t", signature="s"), Thinking(data="x8==")])
def test_thinking_that_nothing_was_said_after_does_not_go_back(
    thought: Thinking, text: str
) -> None:
    """A reply cut short in its thinking must not spoil the session."""
    sent = body(request("a", assistant(thought, thought, text), "b"))
    assert [(m["role"], [b["text"] for b in m["content"]]) for m in sent["messages"]] == [
        ("user", ["a", "b"])
    ]
    later = body(request("a", assistant(thought, "c", thought), assistant(thought), "b"))
    kinds = [block["type"] for block in later["messages"][1]["content"]]
    assert kinds[1:] == ["text"] and len(later["messages"]) == 3
    assert not problems(sent) and not problems(later)


def test_messages_of_one_role_become_one_and_empty_ones_vanish() -> None:
    sent = body(
        request("a", assistant(" \n"), user("", "b"), "c", system=("", "S", "  "), tools=())
    )
    texts = [[b["text"] for b in message["content"]] for message in sent["messages"]]
    assert texts == [["a", "b", "c"]]
    assert [block["text"] for block in sent["system"]] == ["S"]
    assert "tools" not in sent and "system" not in body(request(system=("",)))


def test_empty_tool_output_is_left_out_but_an_error_says_something() -> None:
    one, two = calling("3.0", "toolu_a"), calling("3.1", "toolu_b")
    results = user(output(one, ""), output(two, "", error=True))
    blocks = body(request("a", assistant(one, two), results))["messages"][2]["content"]
    assert "content" not in blocks[0]
    assert blocks[1]["content"] and blocks[1]["is_error"] is True


@pytest.mark.parametrize("theirs", ["", "has space", "x" * 65, "toolu_twice"])
def test_ids_of_another_provider_are_replaced_where_the_api_would_refuse_them(theirs: str) -> None:
    one, two = calling("3.0", "toolu_twice"), calling("12.0", theirs)
    sent = body(request("a", assistant(one), user(output(one)), assistant(two), user(output(two))))
    assert not problems(sent)
    assert sent["messages"][1]["content"][0]["id"] == "toolu_twice"
    assert sent["messages"][4]["content"][0]["tool_use_id"] == "call_12_0"


def test_the_model_sees_the_arguments_it_garbled() -> None:
    call = Call(id="3.0", name="read_file", arguments={}, invalid='{"path": "a')
    sent = body(request("a", assistant(call), user(output(call, "not JSON", error=True))))
    assert sent["messages"][1]["content"][0]["input"] == {"INVALID_JSON": '{"path": "a'}


def test_names_that_the_api_would_refuse() -> None:
    call = Call(id="3.0", name="functions.read file", arguments={})
    sent = body(request("a", assistant(call), user(output(call))))
    assert sent["messages"][1]["content"][0]["name"] == "functions_read_file"


def test_pictures_of_people_and_of_tools() -> None:
    call = calling("3.0", "toolu_a")
    shown = replace(output(call, "a picture"), pictures=(PNG,))
    silent = replace(output(call, " "), pictures=(PNG,))
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgoAAAAAAAAAAA=="},
    }
    for result, content in (
        (shown, [{"type": "text", "text": "a picture"}, image]),
        (silent, [image]),
    ):
        sent = body(request(user("Look", PNG), assistant(call), user(result, "See?")))
        assert sent["messages"][0]["content"][1] == image | CACHED
        assert sent["messages"][2]["content"][0]["content"] == content
        assert not problems(sent)


def test_an_error_holds_no_pictures_but_says_that_there_were_some() -> None:
    call = calling("3.0", "toolu_a")
    for text, said in (("it broke", "it broke"), ("", "(failed without output)")):
        failed = replace(output(call, text, error=True), pictures=(PNG,))
        sent = body(request("a", assistant(call), user(failed)))
        assert not problems(sent)
        (block,) = sent["messages"][2]["content"]
        assert block["is_error"] and block["content"].startswith(f"{said}\n(with a picture")


def images(sent: dict[str, Any]) -> tuple[int, int]:
    """How many are shown, and how many only named."""
    return str(sent).count("'base64'"), str(sent).count("(a picture shown earlier)")


def test_of_many_pictures_the_newest_are_shown() -> None:
    """A large one is taken only among few. Old ones leave by tens: the rest of the time a longer
    conversation extends what was cached."""
    call = calling("3.0", "toolu_a")
    large = Picture("image/png", png(3000, 2000))
    two = replace(output(call, "two"), pictures=(large, large))
    seen, changes, before = [], 0, []
    messages = [user("begin"), assistant(call), user(two)]
    for number in range(2, 45):
        sent = body(request(*messages))
        assert not problems(sent)
        seen.append((number, *images(sent)))
        now = blocks(sent)
        changes += now[: len(before)] != before
        before = now
        messages += [assistant("so"), user(f"next {number}", large)]
    assert changes == 3
    assert {shown + named == number for number, shown, named in seen} == {True}
    assert seen[18:20] == [(20, 20, 0), (21, 11, 10)] and seen[28:30] == [
        (30, 20, 10),
        (31, 11, 20),
    ]


def test_a_blind_model_is_told_that_there_were_pictures() -> None:
    call = calling("3.0", "toolu_a")
    found = replace(output(call, "found"), pictures=(PNG, PNG))
    sent = body(request(user("Look", PNG), assistant(call), user(found)), blind=True)
    unseen = "(a picture; this model cannot see pictures)"
    assert [block["text"] for block in sent["messages"][0]["content"]] == ["Look", unseen]
    assert sent["messages"][2]["content"][0]["content"] == f"found\n{unseen}\n{unseen}"


def test_a_reply_that_is_not_limited_has_a_usual_limit() -> None:
    assert body(request(max_tokens=0))["max_tokens"] == 32_000
    assert body(request(max_tokens=0, thinking_tokens=40_000))["max_tokens"] == 72_000


def test_a_part_without_a_place_on_this_wire_is_an_error() -> None:
    with pytest.raises(TypeError, match="int"):
        body(request(Message("user", (3,))))


# --- growing conversations ----------------------------------------------------------------------

texts = st.sampled_from(["", " ", "one", "two words", "ünïcode\n"])
thoughts = st.builds(Thinking, text=texts, signature=st.sampled_from(["", "sig"]))
provider_ids = st.sampled_from(["", "a b", "call_0", "toolu_1"])
rounds = st.lists(
    st.tuples(
        st.lists(texts, min_size=1, max_size=2),  # what the user says, after the tool results
        st.lists(thoughts, max_size=2),
        texts,
        st.lists(provider_ids, max_size=3),  # calls
    ),
    min_size=1,
    max_size=6,
)


def growing(rounds: list[Any]) -> Iterator[list[Message]]:
    """The conversation at each request, as the engine makes them."""
    messages: list[Message] = [user("begin")]
    calls: list[Call] = []
    for number, (said, thought, text, ids) in enumerate(rounds):
        messages.append(user(*said, *(output(call, text) for call in calls)))
        yield list(messages)
        calls = [calling(f"{number}.{n}", id) for n, id in enumerate(ids)]
        messages.append(assistant(*thought, text, *calls))


def blocks(sent: dict[str, Any]) -> list[tuple[str, Any]]:
    """The conversation on the wire, cache marks aside."""
    bare = copy.deepcopy(sent["messages"])
    for block in (block for message in bare for block in message["content"]):
        block.pop("cache_control", None)
    return [(message["role"], block) for message in bare for block in message["content"]]


@given(rounds)
def test_a_growing_conversation_extends_what_was_sent(rounds: list[Any]) -> None:
    before: list[tuple[str, Any]] = []
    for messages in growing(rounds):
        sent = body(request(*messages))
        assert body(request(*messages)) == sent
        assert not problems(sent)
        now = blocks(sent)
        assert now[: len(before)] == before
        before = now


@given(rounds)
def test_messages_extend_whole_when_none_is_empty(rounds: list[Any]) -> None:
    spoken = [(["asked"], thought, "said", ids) for _, thought, _, ids in rounds]
    before: list[Any] = []
    for messages in growing(spoken):
        sent = copy.deepcopy(body(request(*messages))["messages"])
        for block in (block for message in sent for block in message["content"]):
            block.pop("cache_control", None)
        assert sent[: len(before)] == before
        before = sent
