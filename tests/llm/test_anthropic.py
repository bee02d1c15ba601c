"""The Anthropic adapter against a server on loopback that speaks the wire."""

from __future__ import annotations

import json
import time
from contextlib import aclosing
from email.utils import formatdate
from pathlib import Path

import pytest

from magy_server.core.errors import ProviderError
from magy_server.core.events import Replied
from magy_server.core.ports import Delta
from magy_server.core.values import Call, Text, Thinking, Usage
from magy_server.llm.anthropic import AnthropicProvider
from magy_server.llm.anthropic_wire import body
from tests.loopback import (
    AnthropicServer,
    Part,
    call,
    cut,
    error,
    hang,
    raw,
    redacted,
    stop,
    text,
    thinking,
    usage,
)

from .conversations import ask, event, failure, joined, request

TOP = Path(__file__).parents[2]


# --- replies ------------------------------------------------------------------------------------


@pytest.mark.req("A011")
async def test_a_reply_streams_piece_by_piece(
    server: AnthropicServer, provider: AnthropicProvider
) -> None:
    server.reply(
        thinking("Let me see.", "c2ln"),
        redacted("x8=="),
        text("I read it."),
        call("read_file", {"path": "ä.py", "lines": [1, 2]}, id="toolu_1"),
        call("list_files", "", id="toolu_2"),
        usage(input=30, output=12, cache_read=200, cache_write=7),
    )
    deltas, replied = await ask(provider, request())
    assert replied.model == "test-model"
    assert replied.content == (
        Thinking(text="Let me see.", signature="c2ln"),
        Thinking(data="x8=="),
        Text(text="I read it."),
        Call(
            id="7.0",
            name="read_file",
            arguments={"path": "ä.py", "lines": [1, 2]},
            provider_id="toolu_1",
        ),
        Call(id="7.1", name="list_files", arguments={}, provider_id="toolu_2"),
    )
    assert replied.stop == "tool_use"
    assert replied.usage == Usage(input=30, output=12, cache_read=200, cache_write=7)
    assert [d.text for d in deltas if d.kind == "text"] == ["I ", "read ", "it."]
    assert joined(deltas, "thinking") == "Let me see."
    assert json.loads(joined(deltas, "call")) == {"path": "ä.py", "lines": [1, 2]}
    assert [d for d in deltas if d.index == 1] == [
        Delta("call", "", 1, "list_files"),
        Delta("call", "", 1, "list_files", done=True),
    ]
    assert [d.index for d in deltas if d.done] == [0, 1]


@pytest.mark.req("A011")
async def test_a_delta_arrives_before_the_reply_is_over(
    server: AnthropicServer, provider: AnthropicProvider
) -> None:
    server.reply(text("now", pieces=("now",)), hang())
    async with aclosing(provider.stream(request())) as stream:  # type: ignore[type-var]
        assert await anext(stream) == Delta("text", "now")


async def test_what_is_sent_is_the_body_and_the_key(
    server: AnthropicServer, provider: AnthropicProvider
) -> None:
    server.reply(text("ok"))
    sent = request("Hello", temperature=0.5)
    await ask(provider, sent)
    (received,) = server.requests
    assert received.body == body(sent) | {"stream": True}
    assert received.headers["authorization"] == "Bearer test-key"


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("end_turn", "end_turn"),
        ("stop_sequence", "end_turn"),
        ("pause_turn", "end_turn"),
        ("max_tokens", "max_tokens"),
        ("model_context_window_exceeded", "max_tokens"),
        ("refusal", "refusal"),
        ("a_reason_of_the_future", "end_turn"),
        ("tool_use", "end_turn"),  # without any call
        (None, "end_turn"),
    ],
)
async def test_stop_reasons(
    server: AnthropicServer, provider: AnthropicProvider, reason: str | None, expected: str
) -> None:
    server.reply(text("so"), stop(reason))
    _, replied = await ask(provider, request())
    assert replied.stop == expected


async def test_a_call_counts_as_tool_use_whatever_the_server_says(
    server: AnthropicServer, provider: AnthropicProvider
) -> None:
    server.reply(call("read_file", {}), stop("end_turn"))
    _, replied = await ask(provider, request())
    assert replied.stop == "tool_use"


@pytest.mark.parametrize("arguments", ['{"path": "a', '["a"]', "nonsense", '"a"'])
async def test_arguments_that_are_no_object_are_kept_as_they_came(
    server: AnthropicServer, provider: AnthropicProvider, arguments: str
) -> None:
    server.reply(call("read_file", arguments), stop("max_tokens"))
    _, replied = await ask(provider, request())
    (made,) = replied.content
    assert isinstance(made, Call)
    assert (made.arguments, made.invalid) == ({}, arguments)
    assert replied.stop == "max_tokens"


async def test_a_finished_message_without_content_is_a_reply(
    server: AnthropicServer, provider: AnthropicProvider
) -> None:
    """The API says so when the model has nothing to add to a tool's result."""
    server.reply()
    _, replied = await ask(provider, request())
    assert (replied.content, replied.stop) == ((), "end_turn")


async def test_kinds_of_events_and_blocks_that_are_not_known_are_passed_over(
    server: AnthropicServer, provider: AnthropicProvider
) -> None:
    block = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    news = {"type": "input_json_delta", "partial_json": '{"q": 1}'}
    server.reply(
        raw('event: news\ndata: {"type": "news"}\n\n: a comment\n\nevent: nothing\n\n'),
        text("kept"),
        raw(event("content_block_start", index=8, content_block=block)),
        raw(event("content_block_delta", index=8, delta=news)),
        raw(event("content_block_stop", index=8)),
    )
    _, replied = await ask(provider, request())
    assert replied.content == (Text(text="kept"),)


# --- faults -------------------------------------------------------------------------------------

STATUSES = [
    ("400", "refused", False),
    ("401", "auth", False),
    ("402", "refused", False),
    ("403", "auth", False),
    ("404", "not_found", False),
    ("408", "timeout", True),
    ("409", "server", True),
    ("413", "too_long", False),
    ("422", "refused", False),
    ("429", "rate_limit", True),
    ("500", "server", True),
    ("502", "server", True),
    ("503", "overloaded", True),
    ("504", "timeout", True),
    ("529", "overloaded", True),
    ("html", "malformed", False),
    ("empty", "malformed", True),
    ("drop", "connection", True),
    ("reset", "connection", True),
]


@pytest.mark.parametrize(("name", "fault", "retryable"), STATUSES)
async def test_an_answer_that_is_no_reply(
    server: AnthropicServer, provider: AnthropicProvider, name: str, fault: str, retryable: bool
) -> None:
    server.fault(name, message="the provider's words")
    failed = await failure(provider)
    assert (failed.fault, failed.retryable) == (fault, retryable)
    assert "test-model at http://127.0.0.1" in failed.message and "What to do" in failed.message
    if name.isdigit():
        assert f"HTTP {name} (the provider's words)" in failed.message
    assert len(server.requests) == 1, "the engine retries, not the adapter"
    server.reply(text("fine again"))
    await ask(provider, request())


MIDDLES = [
    (cut(), "connection", True, "cut in the middle"),
    (cut(reset=True), "connection", True, "cut in the middle"),
    (error("overloaded_error", "Overloaded"), "overloaded", True, "overloaded_error (Overloaded)"),
    (error("rate_limit_error"), "rate_limit", True, "rate_limit_error"),
    (error("api_error", "Internal"), "server", True, "Internal"),
    (error("authentication_error"), "auth", False, "authentication_error"),
    (error("invalid_request_error", "prompt is too long: 9 > 8"), "too_long", False, "9 > 8"),
    (error("an_error_of_the_future"), "server", True, "an_error_of_the_future"),
    (raw("event: content_block_delta\ndata: {broken\n\n"), "malformed", True, "{broken"),
    (raw("event: content_block_delta\ndata: 7\n\n"), "malformed", True, "7"),
    (raw(b"event: content_block_delta\ndata: \xff\n\n"), "malformed", True, "cannot be read"),
    (raw(event("content_block_delta", index=9, delta={})), "malformed", True, "cannot be read"),
    (raw(event("error", error="text")), "malformed", True, "cannot be read"),
]


@pytest.mark.parametrize(("part", "fault", "retryable", "words"), MIDDLES)
async def test_a_stream_that_goes_wrong_in_the_middle(
    server: AnthropicServer,
    provider: AnthropicProvider,
    part: Part,
    fault: str,
    retryable: bool,
    words: str,
) -> None:
    server.reply(text("half of it"), part)
    seen: list[Delta | Replied] = []
    with pytest.raises(ProviderError) as caught:
        async for item in provider.stream(request()):
            seen.append(item)
    assert (caught.value.fault, caught.value.retryable) == (fault, retryable)
    assert words in caught.value.message
    assert "".join(d.text for d in seen if isinstance(d, Delta)) == "half of it"
    assert not any(isinstance(item, Replied) for item in seen)


async def test_a_cut_after_the_last_word_loses_nothing(
    server: AnthropicServer, provider: AnthropicProvider
) -> None:
    closing = event("message_delta", delta={"stop_reason": "end_turn"}, usage={})
    server.reply(text("whole"), raw(closing), cut())
    _, replied = await ask(provider, request())
    assert replied.content == (Text(text="whole"),)


@pytest.mark.parametrize(
    "words",
    [
        "prompt is too long: 205000 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
    ],
)
async def test_a_400_that_means_too_long(
    server: AnthropicServer, provider: AnthropicProvider, words: str
) -> None:
    server.fault("400", message=words)
    failed = await failure(provider)
    assert failed.fault == "too_long"
    assert words.split(":")[0] in failed.message and "compact" in failed.message


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "12"}, 12.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": formatdate(0, usegmt=True)}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({}, None),
    ],
)
async def test_how_long_the_provider_asks_to_wait(
    server: AnthropicServer,
    provider: AnthropicProvider,
    headers: dict[str, str],
    seconds: float | None,
) -> None:
    server.fault("429", headers=headers)
    assert (await failure(provider)).retry_after == seconds


async def test_a_date_to_wait_for(server: AnthropicServer, provider: AnthropicProvider) -> None:
    server.fault("503", retry_after=formatdate(time.time() + 60, usegmt=True))
    wait = (await failure(provider)).retry_after
    assert wait is not None and 50 < wait <= 60


async def test_the_provider_may_overrule_what_is_worth_another_try(
    server: AnthropicServer, provider: AnthropicProvider
) -> None:
    server.fault("429", headers={"x-should-retry": "false"})
    server.fault("400", headers={"x-should-retry": "true"})
    assert not (await failure(provider)).retryable
    assert (await failure(provider)).retryable


async def test_nobody_listens() -> None:
    async with AnthropicServer() as server:
        url = server.base_url
    provider = AnthropicProvider("test-key", url)
    failed = await failure(provider)
    await provider.close()
    assert failed.fault == "connection" and failed.retryable
    assert "Connection refused" in failed.message


async def test_tls_to_a_port_that_speaks_none(server: AnthropicServer) -> None:
    provider = AnthropicProvider("test-key", server.base_url.replace("http:", "https:"))
    failed = await failure(provider)
    await provider.close()
    assert failed.fault == "connection"
    assert "TLS" in failed.message and "https against http" in failed.message


async def test_without_a_key_nothing_is_sent() -> None:
    failed = await failure(AnthropicProvider(""))
    assert failed.fault == "no_key" and not failed.retryable
    assert "ANTHROPIC_API_KEY" in failed.message


async def test_a_server_of_ones_own_may_need_no_key(server: AnthropicServer) -> None:
    server.reply(text("ok"))
    provider = AnthropicProvider("", server.base_url)
    _, replied = await ask(provider, request())
    await provider.close()
    assert replied.content == (Text(text="ok"),)


async def test_a_password_in_the_base_url_is_never_said() -> None:
    async with AnthropicServer() as server:
        url = server.base_url.replace("//", "//me:hunter2@")
    provider = AnthropicProvider("test-key", url)
    failed = await failure(provider)
    await provider.close()
    assert "127.0.0.1" in failed.message and "hunter2" not in failed.message
