"""The OpenAI adapters against servers on loopback that speak the two wires."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from magy_server.core.events import Replied
from magy_server.core.ports import Delta, ModelRequest, Picture, Provider
from magy_server.core.values import Call, Text, Thinking, Usage
from magy_server.llm import chat_wire, responses_wire
from magy_server.llm.anthropic import AnthropicProvider
from magy_server.llm.openai import ChatProvider, ResponsesProvider
from magy_server.llm.openai_quirks import Quirks as Known
from tests.loopback import (
    AnthropicServer,
    ChatServer,
    Fault,
    ModelServer,
    Quirks,
    ResponsesServer,
    call,
    hang,
    ping,
    raw,
    redacted,
    stop,
    summaries,
    text,
    thinking,
    usage,
)
from tests.loopback.images import PNG
from tests.patience import PATIENCE

from .conversations import ask, assistant, failure, joined, output, request, user
from .feeding import agree
from .talking import ALL, Plain, talking

Body = Callable[[ModelRequest, Known], dict[str, Any]]
WIRES = [
    pytest.param(ResponsesServer, ResponsesProvider, responses_wire.body, id="responses"),
    pytest.param(ChatServer, ChatProvider, chat_wire.body, id="chat"),
]


@pytest.mark.parametrize(("serve", "make", "body"), WIRES)
async def test_a_reply_streams_piece_by_piece(
    serve: type[ModelServer], make: Callable[..., Provider], body: Body
) -> None:
    server = serve()
    server.reply(
        text("I read it."),
        call("read_file", {"path": "ä.py", "lines": [1, 2]}, id="call_1"),
        call("list_files", "", id="call_2"),
        usage(input=30, output=12, cache_read=200),
    )
    sent = request("Hello", temperature=0.5)
    async with talking(server, make) as provider:
        deltas, replied = await ask(provider, sent)
    agree(deltas, replied)
    assert replied.content == (
        Text(text="I read it."),
        Call(
            id="7.0",
            name="read_file",
            arguments={"path": "ä.py", "lines": [1, 2]},
            provider_id="call_1",
        ),
        Call(id="7.1", name="list_files", arguments={}, provider_id="call_2"),
    )
    assert (replied.model, replied.stop) == ("test-model", "tool_use")
    assert replied.usage == Usage(input=30, output=12, cache_read=200)
    assert [d.text for d in deltas if d.kind == "text"] == ["I ", "read ", "it."]
    (received,) = server.requests
    assert received.body == body(sent, Known(near=make is ChatProvider)) | {"stream": True}
    assert received.headers["authorization"] == "Bearer test-key"


async def test_reasoning_comes_encrypted_and_goes_back_as_it_came() -> None:
    server = ResponsesServer()
    server.reply(
        summaries("**Plan**\n\nfirst", "then", signature="c2VjcmV0"),
        redacted("aGlkZGVu"),
        call("read_file", {"path": "a"}),
    )
    server.reply(text("Done."))
    first = request("Look", model="gpt-5", thinking_tokens=2000)
    async with talking(server, ResponsesProvider) as provider:
        deltas, replied = await ask(provider, first)
        shown, hidden, made = replied.content
        assert isinstance(shown, Thinking) and shown.data == "c2VjcmV0"
        assert joined(deltas, "thinking") == shown.text == "**Plan**\n\nfirst\n\nthen"
        assert isinstance(hidden, Thinking) and (hidden.text, hidden.data) == ("", "aGlkZGVu")
        assert isinstance(made, Call)
        # Through the log: what goes back is what was stored.
        stored = Replied.model_validate_json(replied.model_dump_json())
        again = [*first.messages, assistant(*stored.content), user(output(made))]
        _, last = await ask(provider, request(*again, model="gpt-5", thinking_tokens=2000))
    assert last.content == (Text(text="Done."),), "the server checks what it has made"
    echoed = server.asked[1].body["input"][1:3]
    assert [item["encrypted_content"] for item in echoed] == ["c2VjcmV0", "aGlkZGVu"]


# --- servers that are not OpenAI ----------------------------------------------------------------

SERVERS = {
    "ids missing": Quirks(ids="missing"),
    "ids repeated": Quirks(ids="repeated"),
    "no usage": Quirks(usage=False),
    "usage with content": Quirks(usage_with_content=True),
    "no stream_options": Quirks(stream_options=False),
    "no DONE": Quirks(done=False),
    "arguments as object": Quirks(arguments_as_object=True),
    "whole calls": Quirks(whole_calls=True),
    "no index": Quirks(index=False),
    "stop with calls": Quirks(stop_with_calls=True),
    "no finish reason": Quirks(null_finish=True),
    "no finish reason, no usage": Quirks(null_finish=True, usage=False),
    "no finish reason, no DONE": Quirks(null_finish=True, done=False),
    "hermes": Quirks(text_calls="hermes", ids="missing"),
    "fenced": Quirks(text_calls="fenced", ids="missing"),
    "bare": Quirks(text_calls="bare", ids="missing"),
    "thinking": Quirks(reasoning="reasoning_content", echo="refused"),
    "thinking wanted back": Quirks(reasoning="reasoning_content", echo="required"),
    "thinking wanted back elsewhere": Quirks(reasoning="reasoning", echo="required"),
    "a plain old server": Quirks(
        ids="missing", index=False, usage=False, done=False, stop_with_calls=True,
        stream_options=False, max_completion_tokens=False,
    ),
}  # fmt: skip


@pytest.mark.req("G031")
@pytest.mark.parametrize("quirks", SERVERS.values(), ids=SERVERS.keys())
async def test_a_round_of_tools_with_a_server_that_claims_compatibility(quirks: Quirks) -> None:
    """By base URL alone: nothing else is configured."""
    server = ChatServer(quirks=quirks)
    calls = [call("read_file", {"path": "ä"})] * (1 if quirks.text_calls else 2)
    server.reply(*([thinking("hm")] if quirks.reasoning else []), *calls)
    server.reply(text("Both are the same."))
    async with server:
        provider = ChatProvider("", server.base_url.removesuffix("/v1"))
        first = request("Compare")
        deltas, replied = await ask(provider, first)
        agree(deltas, replied)
        made = [part for part in replied.content if isinstance(part, Call)]
        assert [part.arguments for part in made] == [{"path": "ä"}] * len(calls)
        assert replied.stop == "tool_use" and not joined(deltas, "text")
        assert joined(deltas, "thinking") == ("hm" if quirks.reasoning else "")
        stored = Replied.model_validate_json(replied.model_dump_json())
        results = user(*(output(part) for part in made))
        _, last = await ask(provider, request("Compare", assistant(*stored.content), results))
        await provider.close()
    assert last.content == (Text(text="Both are the same."),)


async def test_what_a_server_refuses_is_asked_for_once_for_each_model() -> None:
    server = ChatServer(quirks=Quirks(stream_options=False))
    server.answer(lambda body: [text("hi")])
    async with talking(server, ChatProvider) as provider:
        for model in ("one", "one", "two"):
            await ask(provider, request(model=model))
    asked = [(r.body["model"], "stream_options" in r.body) for r in server.asked]
    assert asked == [
        ("one", True), ("one", False), ("one", False), ("two", True), ("two", False)
    ]  # fmt: skip


REFUSED_PICTURES = [
    ("400", "unknown variant `image_url`, expected `text` at line 1 column 6"),
    ("404", "No endpoints found that support image input"),
    ("422", "Image inputs are not supported by this model"),
    ("500", "image input is not supported - hint: you may need to provide the mmproj"),
]


@pytest.mark.parametrize(("serve", "make"), ALL)
@pytest.mark.parametrize(("status", "words"), REFUSED_PICTURES)
async def test_a_picture_does_not_end_the_session_with_a_model_that_cannot_see(
    serve: type[ModelServer], make: Callable[..., Provider], status: str, words: str
) -> None:
    server = serve()
    server.answer(
        lambda body: Fault(status, words) if "base64" in str(body) else [text("I cannot see.")]
    )
    picture = Picture("image/png", PNG)
    async with talking(server, make) as provider:
        for _ in range(2):
            _, replied = await ask(provider, request(user("Look", picture)))
            assert replied.content == (Text(text="I cannot see."),)
    assert len(server.asked) == 3, "asked again at once, and never again with it"
    assert "this model cannot see pictures" in str(server.asked[-1].body)


@pytest.mark.parametrize(("serve", "make"), ALL)
async def test_a_reply_that_was_cut_short_in_its_thinking_does_not_end_the_session(
    serve: type[ModelServer], make: Callable[..., Provider]
) -> None:
    server = serve()
    server.reply(thinking("hm"), stop(serve.stops["max_tokens"]))
    server.reply(text("Hello."))
    fields = {"model": "m", "thinking_tokens": 2000}
    async with talking(server, make) as provider:
        _, replied = await ask(provider, request("a", **fields))
        assert replied.stop == "max_tokens" and not any(
            isinstance(part, Text) for part in replied.content
        )
        _, last = await ask(provider, request("a", assistant(*replied.content), "b", **fields))
    assert last.content == (Text(text="Hello."),), "the server checks what it is sent"


async def test_requests_side_by_side_learn_the_same() -> None:
    server = ChatServer(quirks=Quirks(stream_options=False))
    server.answer(lambda body: [text("hi")])
    async with talking(server, ChatProvider) as provider:
        replies = await asyncio.gather(*(ask(provider, request()) for _ in range(5)))
    assert all(replied.content == (Text(text="hi"),) for _, replied in replies)


async def test_the_limit_by_its_other_name_and_no_temperature() -> None:
    server = ChatServer()
    server.answer(lambda body: [text("hi")])
    async with talking(server, ChatProvider) as provider:
        await ask(provider, request(model="o3", temperature=0.2))
    *refused, taken = [r.body for r in server.asked]
    assert len(refused) == 2 and taken["max_completion_tokens"] == 1000
    assert "max_tokens" not in taken and "temperature" not in taken


@pytest.mark.parametrize(("serve", "make", "body"), WIRES)
async def test_a_refusal_that_teaches_nothing_is_final(
    serve: type[ModelServer], make: Callable[..., Provider], body: Body
) -> None:
    server = serve()
    server.fault("400", message="Invalid schema for function 'x'")
    async with talking(server, make) as provider:
        failed = await failure(provider)
    assert failed.fault == "refused" and "Invalid schema" in failed.message
    assert len(server.requests) == 1


COMPLETION = {
    "object": "chat.completion",
    "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "whole"}}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 1},
}
DONE = b'data: {"choices": [{"delta": {"content": "whole"}, "finish_reason": "stop"}]}\n\n'


@pytest.mark.parametrize(
    "server",
    [
        Plain(json.dumps(COMPLETION).encode()),
        Plain(json.dumps(COMPLETION, indent=1).encode(), "application/json; charset=utf-8"),
        Plain(DONE, "text/plain"),
        Plain(DONE, "application/octet-stream"),
    ],
)
async def test_a_server_that_does_not_stream_or_calls_it_something_else(server: Plain) -> None:
    async with server:
        provider = ChatProvider("", server.base_url)
        _, replied = await ask(provider, request())
        await provider.close()
    assert replied.content == (Text(text="whole"),)


PLAIN_FAULTS = [
    (b'{"error": {"message": "no such model", "code": 404}}', 200, "not_found", "no such model"),
    (b'{"error": "model requires more memory"}', 500, "server", "requires more memory"),
    (b'[{"error": {"code": 400, "message": "API key not valid."}}]', 400, "auth", "not valid"),
    (b'{"detail": "Not Found"}', 404, "not_found", "Not Found"),
    (b'{"detail": "Not Found"}', 200, "server", "Not Found"),
    (b'{"error": {"message": "quota", "code": "insufficient_quota"}}', 429, "refused", "quota"),
    (b'{"error": {"message": "x", "code": "tool_use_failed"}}', 400, "malformed", "tool call"),
    (b'{"error": {"type": "exceed_context_size_error", "message": "big"}}', 400, "too_long", "big"),
    (b"[]", 200, "malformed", "cannot be read"),
    (b"not JSON", 200, "malformed", "not JSON"),
    (b"", 200, "malformed", "the answer was empty"),
    (b'{"error": "image input is not supported"}', 500, "refused", "image input"),
    (b"upstream failed", 502, "server", "upstream failed"),
    (b"\xff\xfe", 400, "refused", "HTTP 400"),
]


@pytest.mark.parametrize(("body", "status", "fault", "words"), PLAIN_FAULTS)
async def test_errors_in_every_shape(body: bytes, status: int, fault: str, words: str) -> None:
    async with Plain(body, status=status) as server:
        provider = ChatProvider("k", server.base_url)
        failed = await failure(provider)
        await provider.close()
    assert failed.fault == fault
    assert words in failed.message and "What to do" in failed.message
    assert len(server.requests) == 1


# --- time ---------------------------------------------------------------------------------------

ENDS = {
    AnthropicServer: b'data: {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}\n\n',
    ChatServer: b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\n',
}


@pytest.mark.parametrize(("serve", "make"), ALL)
async def test_silence_and_signs_of_life(
    serve: type[ModelServer], make: Callable[..., Provider]
) -> None:
    server = serve()
    server.fault("silence")
    server.reply(text("so far"), hang())
    server.reply(text("so far"), ping(), hang())
    async with talking(server, make, connect=0.5, first_byte=1.0, stall=0.5) as provider:
        for words in (
            "no answer started within 1 s",
            "nothing arrived for 0.5 s",
            "nothing arrived for 0.5 s",
        ):
            failed = await failure(provider)
            assert failed.fault == "timeout" and failed.retryable and words in failed.message
        for received in server.requests:
            await asyncio.wait_for(received.disconnected.wait(), PATIENCE)


@pytest.mark.parametrize("serve", [AnthropicServer, ChatServer])
async def test_a_reply_that_is_whole_is_not_lost_by_what_follows_it(
    serve: type[ModelServer],
) -> None:
    """No `[DONE]`, no usage, and the connection stays open."""
    make = AnthropicProvider if serve is AnthropicServer else ChatProvider
    server = serve()
    server.reply(text("whole"), raw(ENDS[serve]), hang())
    async with talking(server, make, stall=0.3) as provider:
        _, replied = await ask(provider, request())
    assert replied.content == (Text(text="whole"),)


@pytest.mark.parametrize(("serve", "make"), ALL)
async def test_closing_ends_the_request_and_connections_are_used_again(
    serve: type[ModelServer], make: Callable[..., Provider]
) -> None:
    server = serve()
    server.answer(lambda body: [text("hi")])
    async with talking(server, make) as provider:
        for _ in range(4):
            await ask(provider, request())
        assert server.connections == 1
        server.reply(text("on and on"), hang())
        stream = provider.stream(request())
        assert isinstance(await anext(stream), Delta)
        await stream.aclose()
        await asyncio.wait_for(server.requests[-1].disconnected.wait(), PATIENCE)
