"""The loopback server as other tests use it: by script, and as a process with a log."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from magy_server.core.errors import ProviderError
from magy_server.core.values import Call, Text, Thinking
from magy_server.llm.anthropic import AnthropicProvider
from tests.loopback import AnthropicServer, anthropic_answers, text

from .conversations import ask, assistant, output, request, user

TOP = Path(__file__).parents[2]
SCRIPT = """
prompt: work
think: hm
text: I look.
call: read_file {"path": "ä.py"}
usage: input=120 output=8
---
text: It says {{last}}.
stop: max_tokens

prompt: fail
error: rate_limit retry_after=0.5
text: half
error: overloaded
error: connection
error: malformed
text: whole
"""


@pytest.fixture
async def provider() -> AsyncIterator[AnthropicProvider]:
    async with AnthropicServer() as server:
        server.answer(anthropic_answers(SCRIPT))
        provider = AnthropicProvider("test-key", server.base_url)
        yield provider
        await provider.close()


async def test_a_script_over_the_wire(provider: AnthropicProvider) -> None:
    _, first = await ask(provider, request("work", id="3"))
    thought, said, call = first.content
    assert isinstance(thought, Thinking) and thought.signature
    assert said == Text(text="I look.")
    assert isinstance(call, Call) and call.arguments == {"path": "ä.py"}
    assert (first.stop, first.usage.input, first.usage.output) == ("tool_use", 120, 8)
    so_far = [*request("work").messages, assistant(*first.content), user(output(call, "hello"))]
    _, second = await ask(provider, request(*so_far))
    assert second.content == (Text(text="It says hello."),)
    assert second.stop == "max_tokens"


async def test_faults_of_a_script_over_the_wire(provider: AnthropicProvider) -> None:
    faults = []
    for _ in range(4):
        with pytest.raises(ProviderError) as caught:
            await ask(provider, request("fail"))
        faults.append((caught.value.fault, caught.value.retry_after))
    assert faults == [
        ("rate_limit", 0.5), ("overloaded", None), ("connection", None), ("malformed", None)
    ]  # fmt: skip
    _, replied = await ask(provider, request("fail"))
    assert [part.text for part in replied.content if isinstance(part, Text)] == ["half", "\nwhole"]


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ((user("a"), assistant("b", Call(id="1.0", name="x", arguments={})), user("c")), "tool_u"),
        ((assistant("b"), user("c")), "first message"),
        ((user("a"), user(output(Call(id="1.0", name="x", arguments={})))), "tool_result"),
    ],
)
async def test_what_the_real_api_refuses_is_refused(
    provider: AnthropicProvider, messages: tuple[object, ...], words: str
) -> None:
    with pytest.raises(ProviderError, match=words) as caught:
        await ask(provider, request(*messages))  # type: ignore[arg-type]
    assert caught.value.fault == "refused"


async def test_replies_come_in_turn_and_then_by_function() -> None:
    async with AnthropicServer() as server:
        server.reply(text("first"))
        server.fault("500")
        server.answer(lambda body: [text(f"{len(body['messages'])} so far")])
        provider = AnthropicProvider("test-key", server.base_url)
        _, first = await ask(provider, request())
        with pytest.raises(ProviderError):
            await ask(provider, request())
        _, third = await ask(provider, request("a", assistant("b"), "c"))
        await provider.close()
    assert [first.content, third.content] == [(Text(text="first"),), (Text(text="3 so far"),)]


async def test_the_process_logs_a_request_before_it_answers(tmp_path: Path) -> None:
    script, log = tmp_path / "a.script", tmp_path / "requests.log"
    script.write_text(
        "prompt: slow\ntext: on\ndelay: 30\ntext: and on\nprompt: quick\ntext: done\n"
    )
    command = [sys.executable, "-m", "tests.loopback", "--port", "0", "--script", str(script),
               "--log", str(log)]  # fmt: skip
    with subprocess.Popen(command, cwd=TOP, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        provider = AnthropicProvider("test-key", process.stdout.readline().strip())
        stream = provider.stream(request("slow"))
        await anext(stream)
        assert len(log.read_text().splitlines()) == 1
        await stream.aclose()  # type: ignore[attr-defined]
        await ask(provider, request("quick"))
        await provider.close()
        process.terminate()
        assert process.wait(10) == 0
    first, second = map(json.loads, log.read_text().splitlines())
    assert first["path"] == "/v1/messages" and first["body"]["model"] == "test-model"
    assert second["body"]["messages"][0]["content"][0]["text"] == "quick"
    assert "test-key" not in log.read_text()
