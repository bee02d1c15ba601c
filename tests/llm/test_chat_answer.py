"""Chunks of Chat Completions as they came from OpenAI and from those who claim compatibility."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.core.events import Replied
from magy_server.core.ports import Delta, ToolSchema
from magy_server.core.values import Call, Text, Thinking, Usage
from magy_server.llm.chat_answer import Answer
from magy_server.llm.wire import StreamError

from .conversations import READ_FILE, joined, request
from .feeding import fed

TOOLS = (READ_FILE, ToolSchema("list_files", "List files.", {"type": "object"}))
A, B = '{"path": "ä.py"}', '{"path": "b.py"}'


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"object": "chat.completion.chunk", "choices": [choice], "usage": None}


def calls(*pieces: dict[str, Any]) -> dict[str, Any]:
    return chunk(tool_calls=list(pieces))


def piece(index: int | None = None, id: Any = None, **function: Any) -> dict[str, Any]:
    place = {} if index is None else {"index": index}
    return place | ({} if id is None else {"id": id}) | {"function": function}


def ask(*events: Any, **fields: Any) -> tuple[list[Delta], Replied]:
    return fed(Answer(request(tools=TOOLS, **fields)), *events)


def made(replied: Replied) -> list[tuple[str, str, dict[str, Any]]]:
    parts = [part for part in replied.content if isinstance(part, Call)]
    assert replied.stop == ("tool_use" if parts else "end_turn")
    return [(part.provider_id, part.name, part.arguments) for part in parts]


STOP, TOOL_CALLS = chunk("stop"), chunk("tool_calls")
READ_A, READ_B = ("x", "read_file", {"path": "ä.py"}), ("y", "read_file", {"path": "b.py"})


def test_openai() -> None:
    deltas, replied = ask(
        chunk(role="assistant", content="", refusal=None),
        chunk(content="I "),
        chunk(content="look."),
        calls(piece(0, "x", name="read_file", arguments="")),
        calls(piece(0, arguments=A[:7])),
        calls(piece(0, arguments=A[7:])),
        calls(piece(1, "y", name="read_file", arguments="")),
        calls(piece(1, arguments=B)),
        TOOL_CALLS,
        {"choices": [], "usage": {
            "prompt_tokens": 30, "completion_tokens": 9, "total_tokens": 39,
            "prompt_tokens_details": {"cached_tokens": 20},
        }},
        "[DONE]",
    )  # fmt: skip
    assert replied.content[0] == Text(text="I look.")
    assert made(replied) == [READ_A, READ_B]
    assert replied.usage == Usage(input=10, output=9, cache_read=20)
    assert [d.text for d in deltas if d.kind == "text"] == ["I ", "look."]
    assert joined(deltas, "call", 0) == A and joined(deltas, "call", 1) == B
    end = deltas.index(Delta("call", "", 0, "read_file", done=True))
    assert deltas[end + 1] == Delta("call", "", 1, "read_file"), "as soon as the next begins"


WHOLE_A, WHOLE_B = {"name": "read_file", "arguments": A}, {"name": "read_file", "arguments": B}

TWO_CALLS = {
    "index 0 for all (Ollama, Gemini)": [
        calls(piece(0, "x", **WHOLE_A)), calls(piece(0, "y", **WHOLE_B)), STOP
    ],
    "no index": [calls(piece(None, "x", **WHOLE_A)), calls(piece(None, "y", **WHOLE_B)), STOP],
    "no index, in one chunk": [calls(piece(None, "x", **WHOLE_A), piece(None, "y", **WHOLE_B))],
    "no index, in pieces": [
        calls(piece(None, "x", name="read_file", arguments=A[:5])),
        calls(piece(None, None, arguments=A[5:])),
        calls(piece(None, "y", name="read_file", arguments="")),
        calls(piece(None, "y", arguments=B)),
    ],
    "arguments as an object": [
        calls(piece(0, "x", name="read_file", arguments=json.loads(A))),
        calls(piece(1, "y", name="read_file", arguments=json.loads(B))),
    ],
    "the name with every piece": [
        calls(piece(0, "x", name="read_file", arguments=A[:4])),
        calls(piece(0, "x", name="read_file", arguments=A[4:])),
        calls(piece(1, "y", name="read_file", arguments=B[:4])),
        calls(piece(1, "y", name="read_file", arguments=B[4:])),
    ],
    "a new id with every piece (older vLLM)": [
        calls(piece(0, "x", name="read_file")),
        calls(piece(0, "z", arguments=A)),
        calls(piece(1, "y", name="read_file")),
        calls(piece(1, "w", arguments=B)),
    ],
    "the whole call once more at the end": [
        calls(piece(0, "x", name="read_file", arguments=A[:4])),
        calls(piece(0, None, arguments=A[4:])),
        calls(piece(0, "x", **WHOLE_A)),
        calls(piece(1, "y", **WHOLE_B)),
        calls(piece(1, "y", **WHOLE_B)),
    ],
    "id and name once more at the end": [
        calls(piece(0, "x", name="read_file", arguments=A)),
        calls(piece(0, "x", name="read_file", arguments="")),
        calls(piece(1, "y", name="read_file", arguments=B)),
        calls(piece(1, "y", name="read_file")),
        calls(piece(1, "y", name="read_file", arguments=None)),
    ],
    "the name after the id": [
        calls(piece(0, "x")),
        calls(piece(0, arguments=A[:4])),
        calls(piece(0, name="read_file")),
        calls(piece(0, arguments=A[4:])),
        calls(piece(1, "y", **WHOLE_B)),
    ],
    "pieces that take turns": [
        calls(piece(0, "x", name="read_file", arguments=A[:4])),
        calls(piece(1, "y", name="read_file", arguments=B[:4])),
        calls(piece(0, arguments=A[4:]), piece(1, arguments=B[4:])),
    ],
    "a message instead of chunks": [
        {"object": "chat.completion", "choices": [{"finish_reason": "stop", "message": {
            "role": "assistant", "content": None,
            "tool_calls": [piece(None, "x", **WHOLE_A), piece(None, "y", **WHOLE_B)]}}]}
    ],
}  # fmt: skip


@pytest.mark.parametrize("events", TWO_CALLS.values(), ids=TWO_CALLS.keys())
@pytest.mark.parametrize("end", [[STOP], ["[DONE]"], [TOOL_CALLS, "[DONE]"]])
def test_two_calls(events: list[Any], end: list[Any]) -> None:
    deltas, replied = ask(*events, *end)
    assert made(replied) == [READ_A, READ_B]
    for number, expected in enumerate([READ_A, READ_B]):
        assert json.loads(joined(deltas, "call", number)) == expected[2]


@pytest.mark.parametrize("id", ["", None, "same"])
@pytest.mark.parametrize("index", [0, None])
def test_ids_that_are_missing_empty_or_repeated(id: str | None, index: int | None) -> None:
    _, replied = ask(calls(piece(index, id, **WHOLE_A)), calls(piece(index, id, **WHOLE_B)), STOP)
    assert made(replied) == [(id or "", *READ_A[1:]), (id or "", *READ_B[1:])]


@pytest.mark.parametrize("index", [0, None])
@pytest.mark.parametrize("later", ["same", None])
def test_one_id_for_all_calls_which_come_in_pieces(index: int | None, later: str | None) -> None:
    _, replied = ask(
        calls(piece(index, "same", **WHOLE_A)),
        calls(piece(index, "same", name="read_file", arguments="")),
        calls(piece(index, later, arguments=B[:4])),
        calls(piece(index, later, arguments=B[4:])),
        STOP,
    )
    assert made(replied) == [("same", *READ_A[1:]), ("same", *READ_B[1:])]


def test_the_same_arguments_for_another_tool_are_another_call() -> None:
    other = {"name": "list_files", "arguments": A}
    _, replied = ask(calls(piece(None, "x", **WHOLE_A)), calls(piece(None, "x", **other)), STOP)
    assert made(replied) == [READ_A, ("x", "list_files", {"path": "ä.py"})]


def test_what_must_come_back_may_come_with_the_end_of_a_call() -> None:
    end = piece(0, "x", name="read_file", arguments="") | {"extra_content": {"google": 1}}
    _, replied = ask(calls(piece(0, "x", **WHOLE_A)), calls(end), STOP)
    kept, made = replied.content
    assert isinstance(kept, Thinking) and json.loads(kept.data) == {"google": 1}
    assert isinstance(made, Call)


@pytest.mark.parametrize("arguments", [{}, {"arguments": None}, {"arguments": ""}])
def test_arguments_that_are_absent(arguments: dict[str, Any]) -> None:
    first, second = {"name": "list_files"} | arguments, {"name": "read_file"} | arguments
    _, replied = ask(calls(piece(None, None, **first), piece(None, None, **second)), STOP)
    assert made(replied) == [("", "list_files", {}), ("", "read_file", {})]


def test_arguments_that_are_no_object_are_kept_as_they_came() -> None:
    _, replied = ask(calls(piece(0, "x", name="read_file", arguments='{"a')), chunk("length"))
    (call,) = replied.content
    assert isinstance(call, Call) and (call.arguments, call.invalid) == ({}, '{"a')
    assert replied.stop == "max_tokens"


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thinking_in_a_field(field: str) -> None:
    both = {"reasoning_content": "!", "reasoning": "!"}
    deltas, replied = ask(chunk(**{field: "Hm"}), chunk(**both), chunk(content="Yes."), STOP)
    assert replied.content[-1] == Text(text="Yes.")
    assert joined(deltas, "thinking") == "Hm!"
    assert {part.signature for part in replied.content if isinstance(part, Thinking)} == {field}


def test_thinking_in_tags_and_in_parts() -> None:
    _, replied = ask(chunk(content="<thi"), chunk(content="nk>Hm</think>\nYes."), STOP)
    assert replied.content == (Thinking(text="Hm"), Text(text="Yes."))
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]},
             {"type": "text", "text": "Yes."}]  # fmt: skip
    _, replied = ask(chunk(content=parts), STOP)
    assert replied.content == (Thinking(text="Hm"), Text(text="Yes."))


def test_what_must_come_back_with_a_call_is_kept_before_it() -> None:
    beside = {"google": {"thought_signature": "c2ln"}}
    signed = piece(0, "x", **WHOLE_A) | {"extra_content": beside}
    _, replied = ask(calls(signed), calls(piece(0, "y", **WHOLE_B)), STOP)
    kept, *rest = replied.content
    assert isinstance(kept, Thinking) and json.loads(kept.data) == beside
    assert [type(part) for part in rest] == [Call, Call]


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("stop", "end_turn"),
        ("length", "max_tokens"),
        ("content_filter", "refusal"),
        ("tool_calls", "end_turn"),  # without any
        ("a_reason_of_the_future", "end_turn"),
    ],
)
def test_stop_reasons(reason: str, expected: str) -> None:
    assert ask(chunk(content="so"), chunk(reason))[1].stop == expected


def test_a_refusal() -> None:
    _, replied = ask(chunk(refusal="I "), chunk(refusal="won't."), STOP)
    assert (replied.content, replied.stop) == ((Text(text="I won't."),), "refusal")


COUNTED = {"prompt_tokens": 30, "completion_tokens": 9, "total_tokens": 39}
USAGES = [
    ([STOP | {"usage": COUNTED}], Usage(input=30, output=9)),
    ([STOP, {"choices": [], "usage": COUNTED}], Usage(input=30, output=9)),
    ([{"choices": [STOP["choices"][0] | {"usage": COUNTED}]}], Usage(input=30, output=9)),
    ([STOP | {"x_groq": {"usage": COUNTED}}], Usage(input=30, output=9)),
    ([chunk(content="") | {"usage": {"prompt_tokens": 1}}, STOP | {"usage": COUNTED}],
     Usage(input=30, output=9)),
    ([STOP | {"usage": COUNTED | {"prompt_cache_hit_tokens": 25}}],
     Usage(input=5, output=9, cache_read=25)),
    ([STOP | {"usage": COUNTED | {"total_tokens": 139}}], Usage(input=30, output=109)),
    ([STOP | {"usage": {"prompt_tokens": None, "completion_tokens": "9"}}], Usage(unreported=1)),
    ([STOP], Usage(unreported=1)),
]  # fmt: skip


@pytest.mark.parametrize(("events", "expected"), USAGES)
def test_usage_wherever_it_comes(events: list[Any], expected: Usage) -> None:
    assert ask(chunk(content="hi"), *events)[1].usage == expected


def test_a_stream_that_only_says_what_it_cost_is_over() -> None:
    _, replied = ask(chunk(content="hi"), {"choices": [], "usage": COUNTED})
    assert replied.content == (Text(text="hi"),)


COST = {"choices": [], "usage": COUNTED}


@pytest.mark.parametrize(
    "events",
    [
        [chunk(content="hi") | {"usage": COUNTED}],
        [COST],
        [COST, chunk(content="ha")],
        [COST, chunk(role="assistant", content=""), chunk(content="ha")],
        [chunk(content="ha"), COST, chunk(content="lf")],
    ],
)
def test_a_stream_that_just_stops_is_not_whole(events: list[Any]) -> None:
    answer = Answer(request())
    for event in events:
        answer.feed(event)
    assert not (answer.closing or answer.complete)


ERRORS = [
    {"error": {"message": "no", "code": 429}},
    {"error": "no"},
    [{"error": {"message": "no"}}],
    {"object": "error", "message": "no", "code": 400},
    {"detail": "no"},
    chunk("error"),
    chunk("insufficient_system_resource"),
]


@pytest.mark.parametrize("event", ERRORS)
def test_an_error_with_status_200(event: Any) -> None:
    answer = Answer(request())
    answer.feed(chunk(content="half"))
    with pytest.raises(StreamError):
        answer.feed(event)


MALFORMED = [
    7, "x", [], None, {"choices": 7}, {"choices": [7]}, chunk(content=7), chunk(refusal=7),
    chunk(tool_calls=7), calls(7), calls({"function": 7}),  # type: ignore[arg-type]
]  # fmt: skip


@pytest.mark.parametrize("event", MALFORMED)
def test_chunks_that_cannot_be_read(event: Any) -> None:
    with pytest.raises((KeyError, TypeError, ValueError, AttributeError)):
        Answer(request()).feed(event)


# --- calls in the text --------------------------------------------------------------------------


def test_a_call_in_the_text_is_never_shown_as_text() -> None:
    text = f'```json\n{{"name": "read_file", "arguments": {A}}}\n```'
    pieces = [chunk(content=text[at : at + 3]) for at in range(0, len(text), 3)]
    answer = Answer(request(tools=TOOLS))
    assert not [delta for event in pieces for delta in answer.feed(event)]
    deltas, replied = ask(*pieces, STOP)
    assert deltas == [Delta("call", A, 0, "read_file", done=True)]
    assert made(replied) == [("", *READ_A[1:])]


def test_thinking_may_stand_before_a_call_in_the_text() -> None:
    text = f'<think>Hm</think>\n{{"name": "read_file", "arguments": {A}}}'
    _, replied = ask(chunk(content=text), STOP)
    assert replied.content[0] == Thinking(text="Hm") and made(replied) == [("", *READ_A[1:])]


@pytest.mark.parametrize("text", ['{"name": "read_file", "arguments": {}} so', '{"answer": 42}'])
def test_other_json_is_shown(text: str) -> None:
    _, replied = ask(*(chunk(content=piece) for piece in text), STOP)
    assert replied.content == (Text(text=text),)


def test_a_real_call_after_what_looks_like_one_leaves_that_as_text() -> None:
    text = f'{{"name": "read_file", "arguments": {A}}}'
    _, replied = ask(chunk(content=text), calls(piece(0, "y", **WHOLE_B)), TOOL_CALLS)
    assert replied.content[0] == Text(text=text) and made(replied) == [READ_B]


def test_a_call_that_was_cut_off_stays_text() -> None:
    text = '{"name": "read_file", "arguments": {"path": "a'
    _, replied = ask(chunk(content=text), chunk("length"))
    assert (replied.content, replied.stop) == ((Text(text=text),), "max_tokens")


contents = st.fixed_dictionaries({}, optional={
    "content": st.sampled_from(["", "text", "<think>", "</think>", '{"name": "read_file",',
                                ' "arguments": {}}', "```json", None]),
    "reasoning": st.sampled_from(["", "hm"]),
    "tool_calls": st.lists(st.builds(
        piece, st.sampled_from([None, 0, 1]), st.sampled_from([None, "", "x", "y"]),
        name=st.sampled_from(["read_file", "list_files"]),
        arguments=st.sampled_from([A, A[:4], A[4:], "", "}", {"path": "c"}]),
    ), max_size=2),
})  # fmt: skip


@given(st.lists(contents, max_size=6), st.sampled_from(["stop", "length", "tool_calls"]))
def test_whatever_comes_the_deltas_and_the_reply_agree(deltas: list[Any], finish: str) -> None:
    ask(*(chunk(**delta) for delta in deltas), chunk(finish), "[DONE]")
