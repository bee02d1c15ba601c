"""A request that goes on from the one before has the very bytes of one that is made anew, and its
beginning is not written again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magy_server.core.ports import Message, ModelRequest, Picture
from magy_server.core.prompting import sizes
from magy_server.core.prompting.prefix_cache import SoFar
from magy_server.core.values import Call, Thinking
from magy_server.llm import anthropic_wire, chat_wire, responses_wire
from magy_server.llm.openai_quirks import Quirks
from magy_server.llm.request_cache import Form, as_json, written
from magy_server.llm.wire import own_id
from tests.thorough import examples

from .conversations import assistant, calling, output, request, user
from .growing import PNG, calls, said, thoughts

Body = Callable[[ModelRequest], dict[str, Any]]
BODIES: Mapping[str, Body] = {
    "anthropic": anthropic_wire.body,
    "anthropic, blind": lambda sent: anthropic_wire.body(sent, blind=True),
    **{
        f"{name}, {quirks}": lambda sent, body=body, quirks=quirks: body(sent, quirks)
        for name, body in (("chat", chat_wire.body), ("responses", responses_wire.body))
        for quirks in (
            Quirks(official=True),
            Quirks(mistral=True, blind=True),
            Quirks(gemini=True, wants_thinking=True),
            Quirks(pictures_apart=True),
        )
    },
}
turns = st.lists(
    st.tuples(
        st.lists(said | st.just(" "), max_size=2),
        st.lists(thoughts, max_size=2),
        said | st.just(""),
        calls,
        st.integers(0, 12),
        st.booleans(),
    ),
    min_size=1,
    max_size=9,
)


def conversation(turns: Sequence[Any]) -> list[tuple[int, tuple[Message, ...]]]:
    """At each request, how many messages are settled, and all of them. Some replies are followed by
    another one, some say nothing that is sent back, some arguments are larger than any integer."""
    settled: list[Message] = []
    made: list[Call] = []
    found: list[tuple[int, tuple[Message, ...]]] = []
    for number, (news, thought, words, called, pictures, silent) in enumerate(turns):
        results = [output(call, words) for call in made]
        shown: list[Picture] = [PNG] * pictures
        told = [] if silent and number else [user(*results, *shown, *news, "go on")]
        found.append((len(settled), (*settled, *told)))
        made = [
            calling(f"{number}.{n}", id, name, odd=odd, big=2 ** (60 + 2 * n), small=1e16)
            for n, (id, name, odd) in enumerate(called)
        ]
        settled += [*told, assistant(*thought, words, *made)]
    return found


@pytest.mark.parametrize("wire", BODIES)
@settings(max_examples=examples(20))  # for each wire; each has up to nine turns
@given(turns=turns)
def test_a_request_that_goes_on_is_one_that_begins_anew(wire: str, turns: Sequence[Any]) -> None:
    body, kept = BODIES[wire], SoFar().kept
    for count, messages in conversation(turns):
        sent = request(*messages, so_far=SoFar(count, kept))
        anew = replace(sent, so_far=SoFar())
        assert as_json(body(sent)) == as_json(body(anew))
        assert as_json(body(sent)) == as_json(body(anew)), "and when it is asked once more"
        assert sizes.about(sent) == sizes.about(anew)
        assert sizes.bound(sent) == sizes.bound(anew)


def rounds(count: int) -> list[tuple[int, tuple[Message, ...]]]:
    return conversation([(["more"], [], "words", [("", "read_file", False)], 0, False)] * count)


def test_the_beginning_is_not_written_again() -> None:
    """How many messages are written for a request does not grow with the conversation."""
    wrote: list[int] = []
    kept = SoFar().kept

    def write(messages: Sequence[Message], ids: Mapping[str, str]) -> list[dict[str, Any]]:
        wrote.append(len(messages))
        return [{"role": message.role} for message in messages]

    form = Form(write, anthropic_wire._ID, own_id)
    for count, messages in rounds(40):
        wrote.clear()
        begun, rest = written(request(*messages, so_far=SoFar(count, kept)), "test", form)
        assert len(begun) + len(rest) <= len(messages)
        assert sum(wrote) <= 8


def test_what_refusals_teach_and_shorter_conversations_begin_anew() -> None:
    kept = SoFar().kept
    (*_, (count, messages)), changed = rounds(9), Quirks(wants_thinking=True)
    for quirks in (Quirks(), changed, Quirks()):
        sent = request(*messages, so_far=SoFar(count, kept))
        anew = replace(sent, so_far=SoFar())
        assert as_json(chat_wire.body(sent, quirks)) == as_json(chat_wire.body(anew, quirks))
    for other in (rounds(9)[-1][1], rounds(5)[-1][1], messages[:3], messages[2:]):
        sent = request(*other, so_far=SoFar(min(count, len(other)), kept))
        anew = replace(sent, so_far=SoFar())
        assert as_json(chat_wire.body(sent, Quirks())) == as_json(chat_wire.body(anew, Quirks()))


def test_each_part_alone_is_json_as_in_the_whole() -> None:
    value = {"a": [2**70, 1e16, {"é": "x\u2028"}, None, True], "b": {"c": 1.0}}
    parts = b'{"a":[' + b",".join(map(as_json, value["a"])) + b'],"b":' + as_json(value["b"]) + b"}"
    assert as_json(value) == parts


def test_thinking_at_the_end_of_a_reply_is_left_out_alike() -> None:
    kept = SoFar().kept
    cut = assistant("so", Thinking(text="hm", signature="s", data=""))
    messages = (user("a"), cut, user("b"), cut, user("c"), cut, user("d"))
    for count in (0, 2, 4, 6):
        sent = request(*messages[: count + 1], so_far=SoFar(count, kept))
        anew = replace(sent, so_far=SoFar())
        assert as_json(anthropic_wire.body(sent)) == as_json(anthropic_wire.body(anew))
