"""Events of the Responses API, from OpenAI and from servers that leave some of them out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.core.events import Replied
from magy_server.core.ports import Delta
from magy_server.core.values import Call, Text, Thinking, Usage
from magy_server.llm.responses_wire import Answer
from magy_server.llm.wire import StreamError

from .conversations import joined, request
from .feeding import fed

Event = dict[str, Any]


def event(kind: str, **fields: Any) -> Event:
    return {"type": kind if kind == "error" else f"response.{kind}", **fields}


def ask(*events: Event) -> tuple[list[Delta], Replied]:
    return fed(Answer(request()), event("created", response={}), *events)


def end(kind: str = "completed", **fields: Any) -> Event:
    return event(kind, response={"status": kind, "output": [], "usage": None} | fields)


def message(text: str, index: int = 0, kind: str = "output_text") -> Iterator[Event]:
    name = {"output_text": "text", "refusal": "refusal"}[kind]
    about = {"item_id": f"msg_{index}", "output_index": index, "content_index": 0}
    item = {"type": "message", "id": f"msg_{index}", "content": []}
    yield event("output_item.added", output_index=index, item=item)
    for piece in text.split():
        yield event(f"{kind}.delta", **about, delta=piece)
    content = [{"type": kind, name: "".join(text.split())}]
    yield event("output_item.done", output_index=index, item=item | {"content": content})


def reasoning(*summaries: str, index: int = 0, proof: str = "cHJvb2Y=") -> Iterator[Event]:
    about = {"item_id": f"rs_{index}", "output_index": index}
    item = {"type": "reasoning", "id": f"rs_{index}", "summary": [], "encrypted_content": "early"}
    yield event("output_item.added", output_index=index, item=item)
    for number, text in enumerate(summaries):
        for at in range(0, len(text), 4):
            piece = text[at : at + 4]
            yield event("reasoning_summary_text.delta", **about, summary_index=number, delta=piece)
    whole = [{"type": "summary_text", "text": text} for text in summaries]
    done = item | {"summary": whole, "encrypted_content": proof}
    yield event("output_item.done", output_index=index, item=done)


def calling(arguments: str, index: int = 0, name: str = "read_file") -> list[Event]:
    about = {"item_id": f"fc_{index}", "output_index": index}
    item = {"type": "function_call", "id": f"fc_{index}", "call_id": f"call_{index}",
            "name": name, "arguments": ""}  # fmt: skip
    pieces = [arguments[at : at + 3] for at in range(0, len(arguments), 3)]
    return [
        event("output_item.added", output_index=index, item=item),
        *(event("function_call_arguments.delta", **about, delta=piece) for piece in pieces),
        event("function_call_arguments.done", **about, arguments=arguments),
        event("output_item.done", output_index=index, item=item | {"arguments": arguments}),
    ]


USAGE = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
    "output_tokens": 9,
}
A, B = '{"path": "ä.py"}', '{"path": "b.py"}'


def test_all_that_a_reply_may_hold() -> None:
    deltas, replied = ask(
        *reasoning("**One**\n\nfirst", "then", proof="c2VjcmV0"),
        *message("I look", 1),
        *calling(A, 2),
        *calling(B, 3),
        end(usage=USAGE),
    )
    assert replied.content == (
        Thinking(text="**One**\n\nfirst\n\nthen", signature="rs_0", data="c2VjcmV0"),
        Text(text="Ilook"),
        Call(id="7.0", name="read_file", arguments={"path": "ä.py"}, provider_id="call_2"),
        Call(id="7.1", name="read_file", arguments={"path": "b.py"}, provider_id="call_3"),
    )
    assert replied.stop == "tool_use"
    assert replied.usage == Usage(input=10, output=9, cache_read=60, cache_write=30)
    assert joined(deltas, "call", 0) == A and joined(deltas, "call", 1) == B
    first_done = deltas.index(Delta("call", "", 0, "read_file", done=True))
    assert deltas[first_done + 1] == Delta("call", "", 1, "read_file")


def test_reasoning_of_which_nothing_is_shown_or_nothing_is_proved() -> None:
    _, replied = ask(*reasoning(), *message("so", 1), end())
    assert replied.content[0] == Thinking(signature="rs_0", data="cHJvb2Y=")
    _, replied = ask(*reasoning(proof=""), *message("so", 1), end())
    assert replied.content == (Text(text="so"),)


def test_reasoning_in_full_of_open_models() -> None:
    item: Event = {"type": "reasoning", "id": "rs_0", "summary": []}
    whole = item | {"content": [{"type": "reasoning_text", "text": "I think"}]}
    about = {"output_index": 0, "item_id": "rs_0", "content_index": 0}
    deltas, replied = ask(
        event("output_item.added", output_index=0, item=item),
        event("reasoning_text.delta", **about, delta="I "),
        event("reasoning_text.delta", **about, delta="think"),
        event("output_item.done", output_index=0, item=whole),
        end(),
    )
    assert replied.content == (Thinking(text="I think", signature="rs_0"),)
    assert joined(deltas, "thinking") == "I think"


@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        (end(), "end_turn"),
        (end("incomplete", incomplete_details={"reason": "max_output_tokens"}), "max_tokens"),
        (end("incomplete", incomplete_details={"reason": "content_filter"}), "refusal"),
        (end("incomplete", incomplete_details={"reason": "news"}), "end_turn"),
        (end(incomplete_details=None, usage=None), "end_turn"),
    ],
)
def test_how_a_reply_ends(ending: Event, expected: str) -> None:
    assert ask(*message("so"), ending)[1].stop == expected


def test_a_refusal() -> None:
    deltas, replied = ask(*message("I won't", kind="refusal"), end())
    assert (replied.content, replied.stop) == ((Text(text="Iwon't"),), "refusal")
    assert joined(deltas, "text") == "Iwon't"


def test_a_call_that_was_cut_off() -> None:
    reason = {"reason": "max_output_tokens"}
    _, replied = ask(*calling('{"path')[:3], end("incomplete", incomplete_details=reason))
    (call,) = replied.content
    assert isinstance(call, Call) and (call.invalid, call.arguments) == ('{"path', {})
    assert replied.stop == "max_tokens"


def kinds(events: list[Event], *left_out: str) -> list[Event]:
    return [e for e in events if not any(e["type"].endswith(kind) for kind in left_out)]


@pytest.mark.parametrize(
    "left_out",
    [
        ("arguments.delta",),
        ("arguments.done",),
        ("item.done",),
        ("arguments.delta", "arguments.done"),
        ("arguments.done", "item.done"),
        ("item.added", "arguments.delta", "arguments.done", "text.delta"),
        ("text.delta",),
    ],
)
def test_events_that_are_left_out(left_out: tuple[str, ...]) -> None:
    events = kinds([*message("so"), *calling(A, 1), *calling("{}", 2)], *left_out)
    deltas, replied = ask(*events, end())
    assert replied.content[0] == Text(text="so")
    arguments = [part.arguments for part in replied.content if isinstance(part, Call)]
    assert arguments == [json.loads(A), {}]
    assert joined(deltas, "call", 0) == A


def test_items_that_come_only_at_the_end() -> None:
    items = [e["item"] for e in [*message("so"), *calling(A, 1)] if e["type"].endswith("m.done")]
    _, replied = ask(end(output=items))
    assert replied.content[0] == Text(text="so") and replied.stop == "tool_use"


def test_items_without_a_place_are_known_by_their_ids() -> None:
    """As llama.cpp sends them: `item_id` of a call is what its item has as `call_id`."""
    events = [{k: v for k, v in e.items() if k != "output_index"}
              for e in [*message("so"), *calling(A, 1), *calling(B, 2)]]  # fmt: skip
    for e in events:
        if (item := e.get("item")) and item["type"] == "function_call":
            e["item"] = {**item, "call_id": item["id"]}
            del e["item"]["id"]
    deltas, replied = ask(*events, end())
    assert replied.content[0] == Text(text="so")
    assert joined(deltas, "call", 0) == A and joined(deltas, "call", 1) == B


def test_pieces_without_a_place_belong_to_the_item_with_their_id() -> None:
    added, *pieces, done = calling(A)
    bare = [{k: v for k, v in e.items() if k != "output_index"} for e in pieces]
    deltas, replied = ask(added, *bare, done, end())
    assert joined(deltas, "call") == A and len(replied.content) == 1


def test_every_item_at_place_0() -> None:
    events = [e | {"output_index": 0} for e in [*message("so"), *calling(A, 1), *calling(B, 2)]]
    deltas, replied = ask(*events, end())
    assert len(replied.content) == 3
    assert joined(deltas, "call", 0) == A and joined(deltas, "call", 1) == B


def test_the_finished_item_is_right_where_it_differs_from_what_streamed() -> None:
    answer = Answer(request())
    *_, done = message("right")
    for e in [*list(message("wrong"))[:-1], done, end()]:
        answer.feed(e)
    assert answer.replied().content == (Text(text="right"),)


def test_events_and_items_that_are_not_known_are_passed_over() -> None:
    search = {"type": "web_search_call", "id": "ws_1"}
    _, replied = ask(
        event("news", x=1),
        event("output_item.added", output_index=0, item=search),
        event("output_item.done", output_index=0, item=search),
        *message("so", 1),
        end(),
    )
    assert replied.content == (Text(text="so"),)


@pytest.mark.parametrize(
    "broken",
    [
        event("failed", response={"error": {"code": "server_error", "message": "no"}}),
        event("failed", response={"error": None}),
        event("error", code="server_error", message="no", param=None),
        event("error", error={"type": "server_error", "message": "no"}),
        {"error": {"message": "no"}},
    ],
)
def test_a_reply_that_fails(broken: Event) -> None:
    answer = Answer(request())
    for e in message("half"):
        answer.feed(e)
    with pytest.raises(StreamError):
        answer.feed(broken)
    assert not (answer.closing or answer.complete)


@pytest.mark.parametrize(
    "event",
    [
        7,
        [],
        {},
        {"type": "response.output_text.delta", "output_index": 9, "delta": "x"},
        {"type": "response.output_item.added", "output_index": 0},
        {"type": "response.output_item.added", "output_index": 0, "item": {}},
        {"type": "response.output_item.done", "output_index": 0,
         "item": {"type": "message", "content": [{"type": "output_text", "text": 7}]}},
        {"type": "response.completed"},
        {"type": "response.completed", "response": None},
    ],
)  # fmt: skip
def test_events_that_cannot_be_read(event: Any) -> None:
    answer = Answer(request())
    with pytest.raises((KeyError, TypeError, ValueError, AttributeError)):
        answer.feed(event)
        answer.replied()


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["type", "item", "text", "summary", "name"]), inner)
    ),
    max_leaves=6,
)


@given(st.lists(st.tuples(st.integers(0, 8), anything), max_size=3))
def test_a_hostile_server_can_only_be_misread(changes: list[tuple[int, Any]]) -> None:
    """Whatever stands in an event, the answer raises one of the errors that it says it raises."""
    events = [*reasoning("hm"), *message("so", 1), *calling(A, 2), end()]
    for at, value in changes:
        key = list(events[at])[at % len(events[at])]
        events[at] = events[at] | {key: value}
    answer = Answer(request())
    try:
        for e in events:
            answer.feed(e)
        answer.replied()
    except (StreamError, KeyError, TypeError, ValueError, AttributeError):
        pass
    else:
        assert answer.complete
