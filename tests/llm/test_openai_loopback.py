"""The servers of the two OpenAI wires, with the official SDK alone: that they speak the wire, and
refuse what the real APIs refuse."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.loopback import (
    ChatServer,
    Fault,
    ModelServer,
    Part,
    Quirks,
    ResponsesServer,
    answers,
    call,
    cut,
    error,
    failed,
    hang,
    ping,
    redacted,
    refusal,
    stop,
    summaries,
    text,
    thinking,
    usage,
)
from tests.loopback.images import PNG
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from openai import AsyncOpenAI

TOP = Path(__file__).parents[2]
ENCODED = base64.b64encode(PNG).decode()
READ = {"type": "object", "properties": {"path": {"type": "string"}}}
RESPONSES_TOOL = {"type": "function", "name": "read_file", "parameters": READ, "strict": False}
CHAT_TOOL = {"type": "function", "function": {"name": "read_file", "parameters": READ}}
THINKS = {
    "reasoning": {"effort": "low", "summary": "auto"},
    "include": ["reasoning.encrypted_content"],
    "store": False,
}


@asynccontextmanager
async def client(server: ModelServer) -> AsyncIterator[AsyncOpenAI]:
    from openai import AsyncOpenAI

    async with (
        server,
        AsyncOpenAI(
            api_key="test-key", base_url=server.base_url, max_retries=0, timeout=PATIENCE
        ) as opened,
    ):
        yield opened


async def responded(server: ResponsesServer, *inputs: Any, **fields: Any) -> list[Any]:
    """The events of one request. An input may be a whole item or a prompt."""
    given = [{"role": "user", "content": i} if isinstance(i, str) else i for i in inputs]
    async with client(server) as openai:
        stream: Any = await openai.responses.create(
            **{"model": "test-model", "input": given or "Hello", "stream": True} | fields
        )
        return [event async for event in stream]


async def completed(server: ChatServer, *messages: Any, **fields: Any) -> list[Any]:
    given = [{"role": "user", "content": m} if isinstance(m, str) else m for m in messages]
    body: dict[str, Any] = {
        "model": "test-model",
        "messages": given or [{"role": "user", "content": "Hello"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    async with client(server) as openai:
        stream = await openai.chat.completions.create(**body | fields)
        return [chunk async for chunk in stream]


async def refused(server: ModelServer, body: dict[str, Any]) -> str:
    """The words of the 400 that this body is answered with, sent as it is."""
    from openai import BadRequestError

    async with client(server) as openai:
        with pytest.raises(BadRequestError) as caught:
            await openai.post(server.path, body=body, cast_to=object)
    return caught.value.message


# --- Responses ----------------------------------------------------------------------------------


async def test_a_response_streams_reasoning_text_and_parallel_calls() -> None:
    server = ResponsesServer()
    server.reply(
        summaries("First.", "Then second.", signature="gAAA=="),
        text("I look."),
        call("read_file", {"path": "ä.py"}),
        call("read_file", {"path": "b.py"}, id="call_mine"),
        usage(input=30, output=12, cache_read=200, cache_write=7),
    )
    events = await responded(server, tools=[RESPONSES_TOOL], **THINKS)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [events[0].type, events[1].type] == ["response.created", "response.in_progress"]
    deltas = [e.delta for e in events if e.type == "response.reasoning_summary_text.delta"]
    assert "".join(deltas) == "First.Then second."
    last = events[-1]
    assert last.type == "response.completed"
    thought, said, first, second = last.response.output
    assert [part.text for part in thought.summary] == ["First.", "Then second."]
    assert thought.encrypted_content == "gAAA=="
    assert said.content[0].text == "I look."
    assert json.loads(first.arguments) == {"path": "ä.py"} and first.call_id != first.id
    assert second.call_id == "call_mine"
    assert last.response.usage.input_tokens == 237
    assert last.response.usage.input_tokens_details.cached_tokens == 200
    (early,) = (e.item for e in events if e.type == "response.output_item.added"
                if e.item.type == "reasoning")  # fmt: skip
    assert early.encrypted_content != "gAAA==", "as documented: whole only when done"


async def test_reasoning_is_summed_up_and_proved_only_on_demand() -> None:
    server = ResponsesServer()
    server.reply(thinking("hidden"), text("so"))
    events = await responded(server)
    (thought, _) = events[-1].response.output
    assert thought.summary == [] and thought.encrypted_content is None
    assert not [e for e in events if "summary" in e.type]


@pytest.mark.parametrize(
    ("parts", "last"),
    [
        ((text("half"), stop("max_output_tokens")), "response.incomplete"),
        ((text("half"), stop("content_filter")), "response.incomplete"),
        ((text("half"), failed("server_error", "oh")), "response.failed"),
        ((refusal("I will not."),), "response.completed"),
        ((redacted("gAA"), ping(), text("x")), "response.completed"),
        ((), "response.completed"),
    ],
)
async def test_how_a_response_ends(parts: Sequence[Part], last: str) -> None:
    server = ResponsesServer()
    server.reply(*parts)
    events = await responded(server)
    assert events[-1].type == last
    reason = parts[-1].reason if last == "response.incomplete" else None  # type: ignore[union-attr]
    assert getattr(events[-1].response.incomplete_details, "reason", None) == reason


@pytest.mark.parametrize("wire", [ResponsesServer, ChatServer])
@pytest.mark.parametrize("size", [1, 3, 1000])
async def test_a_stream_may_be_cut_anywhere(wire: type[ModelServer], size: int) -> None:
    """In the middle of an event, of a character."""
    server = wire(cut=size)
    server.reply(text("äöü 漢字 👍"), ping(), call("read_file", {"path": "ß"}))
    if isinstance(server, ResponsesServer):
        events = await responded(server)
        said = "".join(e.delta for e in events if e.type == "response.output_text.delta")
    else:
        assert isinstance(server, ChatServer)
        chunks = await completed(server)
        said = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert said == "äöü 漢字 👍"


def echoed(events: list[Any]) -> list[Any]:
    return [item.model_dump(exclude_none=True) for item in events[-1].response.output]


async def test_reasoning_echoed_unchanged_is_taken_and_changed_is_refused() -> None:
    server = ResponsesServer()
    server.reply(summaries("a", "b"), call("read_file", {}, id="call_1"))
    events = await responded(server, "Look", **THINKS)
    thought, made = echoed(events)
    output = {"type": "function_call_output", "call_id": "call_1", "output": "hello"}
    before = {"role": "user", "content": "Look"}

    def body(*items: Any) -> dict[str, Any]:
        return {"model": "test-model", "input": [before, *items], "stream": True} | THINKS

    server.reply(text("done"))
    assert (await responded(server, before, thought, made, output, **THINKS))[-1].response.output
    for items, words in [
        ((thought | {"encrypted_content": "other"}, made, output), "could not be verified"),
        ((thought | {"summary": []}, made, output), "could not be verified"),
        ((thought | {"id": "rs_other"}, made, output), "could not be verified"),
        (({k: v for k, v in thought.items() if k != "encrypted_content"}, made, output),
         "Items are not persisted"),
        ((thought, before), "required following item"),
        ((made, output), "required 'reasoning' item"),
        ((thought, thought, made, output), "Duplicate item"),
    ]:  # fmt: skip
        assert words in await refused(server, body(*items))


USER = {"role": "user", "content": "Hello"}
CALL = {"type": "function_call", "call_id": "c1", "name": "read_file", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "done"}
CHAT_CALL = {"id": "c1", "type": "function", "function": {"name": "x", "arguments": "{}"}}
CALLS = {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "done"}


def image(url: Any) -> list[Any]:
    return [{"role": "user", "content": [{"type": "input_image", "image_url": url}]}]


def chat_image(url: Any, role: str = "user") -> Any:
    return {"role": role, "content": [{"type": "image_url", "image_url": url}]}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"messages": []}, "Unknown parameter: 'messages'"),
        ({"max_tokens": 100}, "Unknown parameter: 'max_tokens'"),
        ({"model": ""}, "model"),
        ({"input": []}, "'input'"),
        ({"input": [{"role": "tool", "content": "x"}]}, "role"),
        ({"input": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]}, "input_text"),
        ({"input": [{"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}]},
         "output_text"),
        ({"input": [USER | {"tool_calls": []}]}, "Unknown parameter: 'input[0].tool_calls'"),
        ({"input": [USER, {"type": "tool_result"}]}, "input[1].type"),
        ({"input": [USER, CALL]}, "No tool output found"),
        ({"input": [USER, OUTPUT]}, "No tool call found"),
        ({"input": [USER, OUTPUT, CALL]}, "No tool call found"),
        ({"input": [USER, CALL, OUTPUT, OUTPUT]}, "No tool call found"),
        ({"input": [USER, CALL, CALL, OUTPUT]}, "Duplicate 'call_id'"),
        ({"input": [USER, CALL | {"arguments": {}}, OUTPUT]}, "arguments"),
        ({"input": [USER, CALL | {"id": "toolu_1"}, OUTPUT]}, "begins with 'fc'"),
        ({"input": [USER, CALL, OUTPUT | {"output": None}]}, "output"),
        ({"input": image({"url": f"data:image/png;base64,{ENCODED}"})}, "expected a string"),
        ({"input": image(f"data:image/tiff;base64,{ENCODED}")}, "MIME type"),
        ({"input": image(f"data:image/jpeg;base64,{ENCODED}")}, "valid image"),
        ({"input": image("data:image/png;base64,?")}, "invalid base64"),
        ({"tools": [CHAT_TOOL]}, "tools[0].function"),
        ({"tools": [RESPONSES_TOOL, RESPONSES_TOOL]}, "unique"),
        ({"tools": [RESPONSES_TOOL | {"strict": True}]}, "strict"),
        ({"tools": []}, "empty array"),
        ({"max_output_tokens": 1}, "below minimum"),
        ({"include": ["reasoning"]}, "include"),
        ({"model": "gpt-5.5", "temperature": 0.2}, "'temperature' is not supported"),
        ({"prompt_cache_key": "x" * 65}, "prompt_cache_key"),
    ],
)  # fmt: skip
async def test_what_responses_refuses(changed: dict[str, Any], words: str) -> None:
    body = {"model": "test-model", "input": [USER], "stream": True} | changed
    assert words in await refused(ResponsesServer(), body)


async def test_what_responses_takes() -> None:
    server = ResponsesServer()
    server.reply(text("ok"))
    picture = {
        "type": "input_image",
        "image_url": f"data:image/png;base64,{ENCODED}",
        "detail": "auto",
    }
    seen = [{"type": "input_text", "text": "a picture"}, picture]
    await responded(
        server,
        {"role": "developer", "content": "You are Magy."},
        {"role": "user", "content": seen},
        {"role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        CALL,
        OUTPUT | {"output": seen},
        model="gpt-5.5",
        instructions="Be kind.",
        tools=[RESPONSES_TOOL],
        parallel_tool_calls=True,
        max_output_tokens=100,
        prompt_cache_key="s1",
        **THINKS,
    )
    assert server.asked[0].body["input"][0]["role"] == "developer"


# --- Chat Completions ---------------------------------------------------------------------------


def made_calls(chunks: list[Any]) -> list[tuple[str | None, str | None, Any]]:
    """(id, name, arguments) of the calls, put together by index."""
    found: dict[int, list[Any]] = {}
    for chunk in chunks:
        for piece in (chunk.choices and chunk.choices[0].delta.tool_calls) or ():
            held = found.setdefault(piece.index or 0, [None, None, ""])
            held[0] = held[0] or piece.id
            held[1] = held[1] or piece.function.name
            given = piece.function.arguments
            held[2] = held[2] + given if isinstance(given, str) else given
    return [(a, b, c) for a, b, c in found.values()]


TWO = (call("read_file", {"path": "ä"}), call("read_file", {"path": "b"}, id="mine"))


async def test_a_completion_streams_text_and_parallel_calls() -> None:
    server = ChatServer()
    server.reply(thinking("never shown"), text("I look."), *TWO, usage(input=30, cache_read=5))
    chunks = await completed(server, tools=[CHAT_TOOL])
    said = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert said == "I look."
    first, second = made_calls(chunks)
    assert first == ("call_1_0", "read_file", '{"path": "ä"}') and second[0] == "mine"
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "tool_calls"
    assert chunks[-1].choices == [] and chunks[-1].usage.prompt_tokens == 35
    assert chunks[-1].usage.prompt_tokens_details.cached_tokens == 5


async def test_a_refusal_has_a_field_of_its_own() -> None:
    server = ChatServer()
    server.reply(refusal("I will not."))
    chunks = await completed(server)
    assert "".join(c.choices[0].delta.refusal or "" for c in chunks if c.choices) == "I will not."


async def test_quirks_of_calls() -> None:
    async def calls(**quirks: Any) -> list[Any]:
        server = ChatServer(quirks=Quirks(**quirks))
        server.reply(*TWO)
        return await completed(server, tools=[CHAT_TOOL])

    assert [id for id, _, _ in made_calls(await calls(ids="missing"))] == [None, None]
    assert [id for id, _, _ in made_calls(await calls(ids="repeated"))] == ["call_0", "call_1"]
    assert made_calls(await calls(arguments_as_object=True))[0][2] == {"path": "ä"}
    whole = await calls(whole_calls=True)
    assert len([c for c in whole if c.choices and c.choices[0].delta.tool_calls]) == 2
    bare = [c for c in await calls(index=False) if c.choices and c.choices[0].delta.tool_calls]
    assert [c.choices[0].delta.tool_calls[0].index for c in bare] == [None, None]
    assert (await calls(stop_with_calls=True))[-2].choices[0].finish_reason == "stop"
    assert (await calls(null_finish=True))[-2].choices[0].finish_reason is None
    for kind, words in [("hermes", "<tool_call>"), ("fenced", "```json"), ("bare", '{"name"')]:
        chunks = await calls(text_calls=kind)
        said = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
        assert words in said and '"path": "ä"' in said and not made_calls(chunks)


async def test_quirks_of_the_stream() -> None:
    async def chunks(quirks: Quirks, **fields: Any) -> tuple[list[Any], ChatServer]:
        server = ChatServer(quirks=quirks)
        server.reply(thinking("hm so"), text("x"))
        return await completed(server, **fields), server

    plain, _ = await chunks(Quirks(usage=False, done=False))
    assert all(c.usage is None and c.choices for c in plain)
    together, _ = await chunks(Quirks(usage_with_content=True))
    assert together[-1].choices and together[-1].usage.completion_tokens == 5
    thought, _ = await chunks(Quirks(reasoning="reasoning_content"))
    seen = [getattr(c.choices[0].delta, "reasoning_content", "") for c in thought if c.choices]
    assert "".join(seen) == "hm so"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"input": "x"}, "Unknown parameter: 'input'"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "human", "content": "x"}]}, "role"),
        ({"messages": [{"role": "user", "content": None}]}, "got null"),
        ({"messages": [{"role": "user", "content": []}]}, "empty array"),
        ({"messages": [USER | {"id": "1"}]}, "messages[0].id"),
        ({"messages": [USER, {"role": "assistant", "content": "x", "reasoning_content": "y"}]},
         "reasoning_content"),
        ({"messages": [USER, {"role": "assistant", "content": None}]}, "got null"),
        ({"messages": [USER, CALLS]}, "did not have response messages: c1"),
        ({"messages": [USER, CALLS, USER, RESULT]}, "did not have response messages: c1"),
        ({"messages": [USER, RESULT]}, "must be a response"),
        ({"messages": [USER, CALLS, RESULT, RESULT]}, "must be a response"),
        ({"messages": [USER, CALLS | {"tool_calls": [CHAT_CALL, CHAT_CALL]}, RESULT]}, "unique"),
        ({"messages": [USER, CALLS | {"tool_calls": [CHAT_CALL | {"id": ""}]}, RESULT]}, ".id"),
        ({"messages": [USER, CALLS | {"tool_calls": [CHAT_CALL | {"id": "c" * 41}]}, RESULT]},
         "too long"),
        ({"messages": [USER, CALLS | {"tool_calls": []}]}, "empty array"),
        ({"messages": [USER, CALLS | {"tool_calls": [
            CHAT_CALL | {"function": {"name": "x", "arguments": {}}}]}, RESULT]}, "arguments"),
        ({"messages": [chat_image(f"data:image/png;base64,{ENCODED}")]}, "expected an object"),
        ({"messages": [chat_image({"url": f"data:image/gif;base64,{ENCODED}"})]}, "valid image"),
        ({"messages": [USER, CALLS, RESULT | {"content": chat_image({"url": "http://x"})["content"]}
                       ]}, "only allowed for messages with role 'user'"),
        ({"tools": [RESPONSES_TOOL]}, "tools[0].name"),
        ({"tools": [CHAT_TOOL, CHAT_TOOL]}, "unique"),
        ({"model": "o3", "max_tokens": 5}, "max_completion_tokens"),
        ({"model": "gpt-5", "temperature": 0.2}, "temperature"),
        ({"max_completion_tokens": 5, "max_tokens": 5}, "at the same time"),
        ({"stream": False, "stream_options": {"include_usage": True}}, "stream_options"),
    ],
)  # fmt: skip
async def test_what_chat_refuses(changed: dict[str, Any], words: str) -> None:
    body = {"model": "test-model", "messages": [USER], "stream": True} | changed
    assert words in await refused(ChatServer(), body)


async def test_what_a_compatible_server_refuses() -> None:
    body = {"model": "m", "messages": [USER], "stream": True}
    options = {"stream_options": {"include_usage": True}}
    assert "stream_options" in await refused(
        ChatServer(quirks=Quirks(stream_options=False)), body | options
    )
    words = await refused(
        ChatServer(quirks=Quirks(max_completion_tokens=False)), body | {"max_completion_tokens": 9}
    )
    assert "max_completion_tokens" in words
    needs = ChatServer(quirks=Quirks(reasoning="reasoning_content", echo="required"))
    assert "reasoning_content" in await refused(needs, body | {"messages": [USER, CALLS, RESULT]})
    thought = CALLS | {"reasoning_content": "hm"}
    needs = ChatServer(quirks=Quirks(reasoning="reasoning_content", echo="required"))
    needs.reply(text("ok"))
    await completed(needs, USER, thought, RESULT)


async def test_what_chat_takes() -> None:
    server = ChatServer()
    server.reply(text("ok"))
    await completed(
        server,
        {"role": "developer", "content": "You are Magy."},
        {"role": "user", "content": [
            {"type": "text", "text": "a picture"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{ENCODED}"}},
        ]},
        CALLS,
        RESULT,
        model="gpt-5.5",
        tools=[CHAT_TOOL],
        max_completion_tokens=100,
        reasoning_effort="low",
        prompt_cache_key="s1",
    )  # fmt: skip
    assert server.asked[0].body["messages"][0]["role"] == "developer"


# --- both ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("wire", [ResponsesServer, ChatServer])
async def test_models_are_listed(wire: type[ModelServer]) -> None:
    server = wire(models=("b", "a"))
    async with client(server) as openai:
        assert [model.id async for model in openai.models.list()] == ["b", "a"]
        server.models = Fault("401")
        from openai import AuthenticationError

        with pytest.raises(AuthenticationError) as caught:
            await openai.models.list()
    assert caught.value.code == "invalid_api_key"


@pytest.mark.parametrize("wire", [ResponsesServer, ChatServer])
async def test_faults(wire: type[ModelServer]) -> None:
    from openai import APIConnectionError, APIStatusError

    async def ask(server: ModelServer) -> None:
        if isinstance(server, ResponsesServer):
            await responded(server)
        else:
            assert isinstance(server, ChatServer)
            await completed(server)

    for status in ("401", "403", "404", "408", "429", "500", "503", "529"):
        server = wire()
        server.fault(status, message="words", retry_after=3)
        with pytest.raises(APIStatusError) as answered:
            await ask(server)
        assert answered.value.status_code == int(status) and answered.value.code
        assert answered.value.response.headers["retry-after"] == "3"
    for name in ("drop", "reset"):
        server = wire()
        server.fault(name)
        with pytest.raises(APIConnectionError):
            await ask(server)
    server = wire()
    server.reply(text("half"), cut())
    with pytest.raises(APIConnectionError):
        await ask(server)


async def test_an_error_in_the_middle_of_a_stream() -> None:
    from openai import APIError

    chat = ChatServer()
    chat.reply(text("half"), error("server_error", "oh no"))
    with pytest.raises(APIError, match="oh no"):
        await completed(chat)
    responses = ResponsesServer()
    responses.reply(text("half"), error("server_error", "oh no"))
    *_, last = await responded(responses)
    assert (last.type, last.message) == ("error", "oh no")


@pytest.mark.parametrize("wire", [ResponsesServer, ChatServer])
async def test_the_server_sees_a_client_leave(wire: type[ModelServer]) -> None:
    server = wire()
    server.reply(text("on and on"), hang())
    async with client(server) as openai:
        if wire is ResponsesServer:
            stream: Any = await openai.responses.create(model="m", input="Hello", stream=True)
        else:
            stream = await openai.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "Hello"}], stream=True
            )
        await anext(aiter(stream))
        await stream.close()
        await asyncio.wait_for(server.requests[0].disconnected.wait(), PATIENCE)


SCRIPT = """
prompt: work
think: hm
text: I look.
call: read_file {"path": "a.py"}
---
text: It says {{last}}.
stop: max_tokens
"""


async def test_a_script_over_responses() -> None:
    server = ResponsesServer()
    server.answer(answers(SCRIPT, ResponsesServer))
    made = echoed(await responded(server, "work", **THINKS))
    output = {"type": "function_call_output", "call_id": made[-1]["call_id"], "output": "A"}
    *_, last = await responded(server, "work", *made, output, **THINKS)
    assert last.type == "response.incomplete"
    assert last.response.output[0].content[0].text == "It says A."


async def test_a_script_over_chat() -> None:
    server = ChatServer()
    server.answer(answers(SCRIPT, ChatServer))
    assert made_calls(await completed(server, "work"))[0][1] == "read_file"
    chunks = await completed(server, "work", CALLS, RESULT)
    said = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert said == "It says done."
    assert chunks[-2].choices[0].finish_reason == "length"


@pytest.mark.long
@pytest.mark.parametrize(
    ("wire", "path"), [("responses", "responses"), ("chat", "chat/completions")]
)
def test_each_wire_can_be_a_process(wire: str, path: str, tmp_path: Path) -> None:
    script, log = tmp_path / "a.script", tmp_path / "requests.log"
    script.write_text("text: done\n")
    command = [sys.executable, "-m", "tests.loopback", "--wire", wire, "--script", str(script),
               "--log", str(log)]  # fmt: skip
    from openai import OpenAI

    with subprocess.Popen(command, cwd=TOP, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        with OpenAI(api_key="test-key", base_url=url, max_retries=0) as openai:
            if wire == "responses":
                events: Any = openai.responses.create(model="m", input="Hello", stream=True)
            else:
                events = openai.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": "Hello"}], stream=True
                )
            assert "done" in "".join(event.to_json() for event in events)
        process.terminate()
        assert process.wait(10) == 0
    (line,) = map(json.loads, log.read_text().splitlines())
    assert line["path"] == f"/v1/{path}"
    assert "test-key" not in log.read_text()
