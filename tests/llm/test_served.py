"""What servers of open models say before they reply: their window, and how far they have read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from magy_server.core.errors import ProviderError
from magy_server.core.ports import ModelFacts, Reading
from magy_server.core.values import Text
from magy_server.engine.model import said
from magy_server.llm.openai import ChatProvider
from tests.loopback import ChatServer, Part, hang, pause, ping, raw, text

from .conversations import ask, readings, request
from .talking import talking

WINDOWS = [
    ("/v1/models", {"data": [{"id": "a"}, {"id": "m", "max_model_len": 8192}]}, 8192),  # vLLM
    ("/v1/models", {"data": [{"id": "m", "meta": {"n_ctx": 6144}}]}, 6144),  # llama.cpp
    ("/v1/models", {"data": [{"id": "m", "context_window": 131072}]}, 131072),  # Groq
    ("/props", {"default_generation_settings": {"n_ctx": 4096}}, 4096),  # llama.cpp, older
    ("/api/ps", {"models": [{"name": "m", "model": "m", "context_length": 2048}]}, 2048),  # Ollama
    ("/api/v0/models", {"data": [{"id": "m", "loaded_context_length": 1024}]}, 1024),  # LM Studio
    ("/v1/models", {"data": [{"id": "other", "max_model_len": 8192}]}, 0),
    ("/props", {"default_generation_settings": {"n_ctx": "many"}}, 0),
    ("/props", {"default_generation_settings": {"n_ctx": True}}, 0),
    ("/api/ps", ["m"], 0),
    ("/api/ps", {"models": {"m": 1}}, 0),
]


@pytest.mark.parametrize(("place", "answer", "window"), WINDOWS)
async def test_the_window_is_read_where_a_server_says_it(
    place: str, answer: Any, window: int
) -> None:
    server = ChatServer()
    server.places[place] = answer
    async with talking(server, ChatProvider) as provider:
        assert await provider.window("m") == window


async def test_a_server_that_is_gone_says_no_window() -> None:
    assert await ChatProvider("", "http://127.0.0.1:9/v1", connect=0.2).window("m") == 0


# --- reading ------------------------------------------------------------------------------------


def read(done: int, total: int = 6400, cache: int = 0, ms: int = 0) -> Part:
    """As llama.cpp says it, when it is asked for `return_progress`."""
    progress = {"total": total, "cache": cache, "processed": done, "time_ms": ms}
    chunk = {"id": "c", "choices": [], "prompt_progress": progress}
    return raw(f"data: {json.dumps(chunk)}\n\n")


async def test_how_far_the_prompt_is_read() -> None:
    server = ChatServer()
    server.reply(read(400, cache=400), read(2400, cache=400, ms=50_000), text("Hello."), read(9))
    server.answer(lambda body: [read(9, cache=400), text("Hello."), read(9)])
    async with talking(server, ChatProvider) as provider:
        found = await readings(provider, request())
        _, replied = await ask(provider, request())
    assert server.asked[0].body["return_progress"] is True
    assert found == [Reading(400, 6400, 400), Reading(2400, 6400, 400, 50.0)]
    assert replied.content == (Text(text="Hello."),)


async def test_only_servers_on_this_machine_are_asked_for_it() -> None:
    far = ChatProvider("k", "https://models.example.org/v1")
    assert "return_progress" not in far._body(request())


async def test_no_sign_of_life_puts_off_the_end_of_patience() -> None:
    """`model.timeout` holds while the prompt is read."""
    for sign in (read(1), ping()):
        server = ChatServer()
        server.reply(*[part for _ in range(40) for part in (sign, pause(0.1))], hang())
        async with talking(server, ChatProvider, first_byte=0.5) as provider:
            with pytest.raises(
                ProviderError, match=r"no answer started within 0.5 s.*model\.timeout"
            ):
                await ask(provider, request())


async def test_a_reply_that_has_begun_may_take_longer() -> None:
    server = ChatServer()
    server.reply(*[part for _ in range(8) for part in (text("word "), pause(0.1))])
    async with talking(server, ChatProvider, first_byte=0.4) as provider:
        _, replied = await ask(provider, request())
    assert replied.content == (Text(text="word " * 8),)


NEAR = ModelFacts(local=True)
SAID = [
    (1.0, Reading(0, 6400), NEAR, "the model reads the prompt: 0 of 6,400 tokens"),
    (50.0, Reading(2400, 6400, 400, 50.0), NEAR,
     "the model reads the prompt: 2,400 of 6,400 tokens, 40 a second, about 1 min 40 s left"),
    (9.0, Reading(10, 100, 0, 20.0), NEAR,
     "the model reads the prompt: 10 of 100 tokens, 0.5 a second, about 3 min 0 s left"),
    (9.0, None, NEAR, "waiting for the model for 9 s: it reads about 6,400 tokens"),
    (75.0, None, ModelFacts(), "waiting for the model for 1 min 15 s: it reads about 6,400 tokens"),
]  # fmt: skip


@pytest.mark.parametrize(("passed", "reading", "facts", "words"), SAID)
def test_what_is_said_of_it(
    passed: float, reading: Reading | None, facts: ModelFacts, words: str
) -> None:
    assert said(passed, reading, 6400, facts) == words


def test_after_a_while_it_is_said_what_helps() -> None:
    assert "A shorter prompt (an agent with fewer tools" in said(75.0, None, 6400, NEAR)
