"""A whole turn with each provider: the real server over stdio, and behind it the real adapter on
the provider's own wire."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.loopback import (
    AnthropicServer,
    ChatServer,
    ModelServer,
    Part,
    Quirks,
    ResponsesServer,
    call,
    hang,
    raw,
    summaries,
    text,
    thinking,
    usage,
)
from tests.loopback.images import PNG
from tests.lsp.client import uri_of
from tests.patience import PATIENCE

from .harness import Person, person, served

KEY = "TEST_PROVIDER_API_KEY"
SETTINGS = """
[model]
default = "here/test-model"
thinking_tokens = 2000
retry_delay = 0.05

[[provider]]
name = "here"
kind = "{kind}"
base_url = "{url}"
api_key_env = "{key}"

[provider.about.test-model]
window = 100000
input = 3.0
output = 15.0
cache_read = 0.3
cache_write = 3.75
"""

Blocks = Sequence[Mapping[str, Any]]


def anthropic_blocks(body: Any) -> list[Any]:
    return [block for message in body["messages"] for block in message["content"]]


def chat_parts(body: Any) -> list[Any]:
    contents = [m["content"] for m in body["messages"] if isinstance(m.get("content"), list)]
    return [part for content in contents for part in content]


def anthropic_pictures(body: Any) -> list[bytes]:
    sources = [b["source"] for b in anthropic_blocks(body) if b["type"] == "image"]
    return [base64.b64decode(s["data"]) for s in sources if s["media_type"] == "image/png"]


def responses_pictures(body: Any) -> list[bytes]:
    parts = [p for item in body["input"] if item.get("role") == "user" for p in item["content"]]
    return _decoded(p["image_url"] for p in parts if p["type"] == "input_image")


def chat_pictures(body: Any) -> list[bytes]:
    return _decoded(p["image_url"]["url"] for p in chat_parts(body) if p["type"] == "image_url")


def _decoded(urls: Any) -> list[bytes]:
    return [base64.b64decode(url.removeprefix("data:image/png;base64,")) for url in urls]


def anthropic_thoughts(body: Any) -> list[tuple[str, str]]:
    blocks = [b for b in anthropic_blocks(body) if b["type"] == "thinking"]
    return [(b["thinking"], b["signature"]) for b in blocks]


def responses_thoughts(body: Any) -> list[tuple[str, str]]:
    items = [item for item in body["input"] if item.get("type") == "reasoning"]
    return [
        ("\n\n".join(part["text"] for part in item["summary"]), item["encrypted_content"])
        for item in items
    ]


def chat_thoughts(body: Any) -> list[tuple[str, str]]:
    """This wire has no proof of them."""
    said = [m for m in body["messages"] if m["role"] == "assistant"]
    return [(m["reasoning_content"], "") for m in said if m.get("reasoning_content")]


@dataclass(frozen=True)
class Wire:
    """`pictures` and `thoughts` of a request body: the bytes, and (text, proof)."""

    kind: str
    server: Callable[[], ModelServer]
    pictures: Callable[[Any], list[bytes]]
    thoughts: Callable[[Any], list[tuple[str, str]]]
    proofs: tuple[str, str] = ("proof+1/==", "proof+2/==")


def reasoning_chat() -> ModelServer:
    """As servers of open models do that want their thinking back while a tool round lasts. Magy
    learns it from a refusal."""
    return ChatServer(quirks=Quirks(reasoning="reasoning_content", echo="required"))


WIRES = [
    Wire("anthropic", AnthropicServer, anthropic_pictures, anthropic_thoughts),
    Wire("openai", ResponsesServer, responses_pictures, responses_thoughts),
    Wire("openai-chat", reasoning_chat, chat_pictures, chat_thoughts, ("", "")),
]


@pytest.fixture(params=WIRES, ids=lambda wire: wire.kind)
def wire(request: pytest.FixtureRequest) -> Wire:
    found: Wire = request.param
    return found


@asynccontextmanager
async def at_work(wire: Wire, root: Path, state: Path) -> AsyncIterator[tuple[Person, ModelServer]]:
    async with wire.server() as server:
        state.mkdir()
        settings = SETTINGS.format(kind=wire.kind, url=server.base_url, key=KEY)
        (state / "magy.toml").write_text(settings)
        async with person(root, state, env={KEY: "test-key"}) as one:
            await one.new()
            yield one, server


def replies(server: ModelServer, proofs: Sequence[str]) -> None:
    """Thinks, reads two files at once; thinks, edits; sums up."""
    server.reply(
        summaries("I shall read.", "Both of them.", signature=proofs[0]),
        text("Let me look."),
        call("read_file", {"path": "app.py"}),
        call("read_file", {"path": "notes.txt"}),
        usage(input=1000, output=200),
    )
    server.reply(
        thinking(" odd\n  white  space\t\u00e4 ", proofs[1]),
        call(
            "edit_file", {"path": "app.py", "old_text": "'hello'", "new_text": "'goodbye'"}, size=7
        ),
        usage(input=100, output=100, cache_read=2000),
    )
    server.reply(text("It says goodbye now."), usage(input=10, output=10, cache_read=3000))


THOUGHTS = ("I shall read.\n\nBoth of them.", " odd\n  white  space\t\u00e4 ")
COSTS = (0.006, 0.0024, 0.00108)


@pytest.mark.req("E004", "E124")
async def test_a_whole_turn(wire: Wire, root: Path, state: Path) -> None:
    notes, app = root / "notes.txt", root / "app.py"
    notes.write_text("remember the milk\n")
    async with at_work(wire, root, state) as (one, server):
        replies(server, wire.proofs)
        one.editor.open(app)
        prompt = [
            {"type": "text", "text": "Make it look like this"},
            {"type": "image", "mimeType": "image/png", "data": base64.b64encode(PNG).decode()},
            {"type": "resource_link", "uri": uri_of(notes), "name": "notes.txt"},
        ]
        await one.request("session/prompt", messageId="p1", prompt=prompt)
        await one.answer()
        assert (await one.end())["stopReason"] == "end_turn"
        assert one.editor.text(app) == "def greet():\n    return 'goodbye'\n"
        assert one.said() == "Let me look.\nIt says goodbye now."
        shown_thinking(one)
        shown_cost(await one.request("session/subscribe"), one)
        listed = await one.client.request("magy/model/list", {})
        (here,) = [each for each in listed["providers"] if each["provider"] == "here"]
        assert here == {"provider": "here", "models": ["here/test-model"], "problem": ""}
        seen_by_the_model(wire, [request.body for request in server.taken])


def shown_thinking(one: Person) -> None:
    """It streams, and stays. Of what streams the end may be left out: the whole replaces it."""
    streamed: dict[str, str] = {}
    for update in one.updates("agent_thought_chunk"):
        id = update["messageId"]
        streamed[id] = streamed.get(id, "") + update["content"]["text"]
    whole = {u["messageId"]: "".join(b["text"] for b in u["content"])
             for u in one.updates("agent_thought")}  # fmt: skip
    assert streamed
    assert all(whole[id].startswith(text) for id, text in streamed.items())
    kept = [block["text"] for u in one.updates("agent_thought") for block in u["content"]]
    assert kept == list(THOUGHTS)


def shown_cost(attached: Any, one: Person) -> None:
    costs = [update["_meta"]["magy"]["cost"] for update in one.updates("usage_update")]
    assert costs == pytest.approx(COSTS)
    summary = attached["summary"]
    assert summary["usage"]["totalTokens"] == 1200 + 2200 + 3020
    assert summary["usage"]["cachedReadTokens"] == 5000
    assert summary["cost"]["amount"] == pytest.approx(sum(COSTS))


def seen_by_the_model(wire: Wire, bodies: Sequence[Any]) -> None:
    """The picture and the mention in every request; each file; thinking, byte for byte."""
    assert len(bodies) == 3
    for body in bodies:
        assert wire.pictures(body) == [PNG]
        assert "notes.txt" in json.dumps(body)
    assert "remember the milk" not in json.dumps(bodies[0])
    for words in ("return 'hello'", "remember the milk"):
        assert words in json.dumps(bodies[1])
    thoughts = list(zip(THOUGHTS, wire.proofs, strict=True))
    assert [wire.thoughts(body) for body in bodies] == [[], thoughts[:1], thoughts]


MIDDLES: Mapping[str, tuple[Part, ...]] = {
    "thinking": (thinking("I shall think on and on"), hang()),
    "text": (thinking("I shall"), text("on and on"), hang()),
    "a call": (
        thinking("I shall"),
        text("on and on"),
        call("read_file", {"path": "app.py"}),
        call("bash", {"command": "touch never"}),
        hang(),
    ),
}


@pytest.mark.parametrize("middle", MIDDLES)
async def test_cancel_in_the_middle_of_a_stream(
    wire: Wire, middle: str, root: Path, state: Path
) -> None:
    """The connection is closed at once, and what the log then holds is a valid conversation: the
    server is as strict about the next request as the real one."""
    async with at_work(wire, root, state) as (one, server):
        server.reply(*MIDDLES[middle])
        await one.ask("Go on")
        streaming = "agent_thought_chunk" if middle == "thinking" else "agent_message_chunk"
        await one.update(streaming)
        assert (await one.request("session/cancel"))["cancelled"] is True
        assert (await one.end())["stopReason"] == "cancelled"
        await asyncio.wait_for(server.asked[0].disconnected.wait(), PATIENCE)
        assert not (root / "never").exists()
        server.reply(text("Here I am."))
        assert (await one.turn("Are you there?", "p2"))["stopReason"] == "end_turn"
        assert one.said().endswith("Here I am.")
        assert "Are you there?" in json.dumps(server.asked[1].body)


@pytest.mark.req("A007")
async def test_the_key_goes_to_the_provider_and_nowhere_else(
    wire: Wire, root: Path, state: Path
) -> None:
    async with at_work(wire, root, state) as (one, server):
        server.reply(call("bash", {"command": f"touch a; echo [${KEY}]"}))
        server.reply(text("done"))
        await one.ask("Tell me the key")
        await one.answer()
        await one.end()
        assert server.asked[0].headers["authorization"] == "Bearer test-key"
        assert "[]" in one.outputs()[0]
        assert "test-key" not in json.dumps(server.asked[1].body)
    assert b"test-key" not in b"".join(p.read_bytes() for p in state.rglob("*") if p.is_file())


@pytest.mark.req("G031")
async def test_a_local_server_works_by_its_base_url_alone(root: Path, state: Path) -> None:
    """As small servers are: no key, no ids, a call in one piece, no word on how it ended."""
    quirks = Quirks(ids="missing", whole_calls=True, stop_with_calls=True, usage=False, done=False)
    async with ChatServer(quirks=quirks) as server:
        server.reply(call("read_file", {"path": "app.py"}), call("read_file", {"path": "app.py"}))
        server.reply(text("It greets."))
        provider = {"name": "mine", "kind": "openai-chat", "base_url": server.base_url}
        settings = {"provider": [provider], "model": {"default": "mine/qwen"}}
        async with person(root, state, settings=settings) as one:
            await one.new()
            assert (await one.turn("What does it do?"))["stopReason"] == "end_turn"
            assert one.said() == "It greets."
            [_, last] = one.updates("usage_update")
            assert last["_meta"]["magy"]["usage"]["unreportedRequests"] == 1, "unknown, not 0"
            assert ["2 of 2 lines" in output for output in one.outputs()] == [True, True]


@pytest.mark.parametrize(
    ("server", "vendor", "model"),
    [(AnthropicServer, "anthropic", "claude-sonnet-5-5"), (ResponsesServer, "openai", "gpt-6-sol")],
)
async def test_a_gateway_that_the_environment_names_is_asked(
    server: Callable[[], ModelServer], vendor: str, model: str, root: Path, state: Path
) -> None:
    """With nothing in `magy.toml` but the model; what `magy.toml` names comes first."""
    name = vendor.upper()
    async with server() as gateway, server() as own:
        env = {f"{name}_BASE_URL": f"{gateway.base_url} ", f"{name}_API_KEY": "test-key"}
        chosen = {"model": {"default": f"{vendor}/{model}"}, "titles": False}
        gateway.reply(text("Through the gateway."))
        async with person(root, state, env=env, settings=chosen) as one:
            await one.new()
            await one.turn("Hello")
            assert one.said() == "Through the gateway."
        named = [{"name": vendor, "kind": vendor, "base_url": own.base_url}]
        own.reply(text("As configured."))
        async with person(root, state, env=env, settings={**chosen, "provider": named}) as one:
            await one.new("other")
            await one.request("session/prompt", sessionId="other", messageId="p9",
                              prompt=[{"type": "text", "text": "Hello"}])  # fmt: skip
            await one.end("other")
        assert [len(gateway.asked), len(own.asked)] == [1, 1]


@pytest.mark.parametrize("wire", WIRES)
async def test_half_a_character_in_what_streams_ends_nothing(
    wire: Wire, root: Path, state: Path
) -> None:
    """In a text, between two pieces and in the arguments of a call; what is whole when
    its pieces are put together stays whole."""
    (root / "a\ufffd.txt").write_text("found\n")
    async with at_work(wire, root, state) as (one, server):
        pieces = ("A \ud83d", "\ude00 and \ud83d", " half \udc00", ".")
        escaped = '{"path": "a\\ud83d.txt"}'
        thought = thinking("Half.")
        server.reply(thought, text("".join(pieces), pieces=pieces), call("read_file", escaped))
        server.reply(thought, call("read_file", {"path": "a\udfff.txt"}))
        server.reply(text("Done \ud800"))
        assert (await one.turn("Go"))["stopReason"] == "end_turn"
        assert one.said() == "A \U0001f600 and \ufffd half \ufffd.\nDone \ufffd"
        assert one.outputs() == ["a\ufffd.txt: 1 of 1 lines"] * 2
        # A client that is busy may get the whole of either text and not all of its pieces.
        chunks = [update["content"]["text"] for update in one.updates("agent_message_chunk")]
        streamed = "".join(chunks).partition("D")[0].rstrip()
        assert "A \U0001f600 and \ufffd half \ufffd.".startswith(streamed)


@pytest.mark.req("G031")
async def test_how_far_a_slow_model_has_read_is_shown(root: Path, state: Path) -> None:
    progress = {"total": 6400, "cache": 0, "processed": 1600, "time_ms": 40_000}
    async with ChatServer() as server:
        chunk = json.dumps({"choices": [], "prompt_progress": progress})
        seen = asyncio.Event()
        server.reply(raw(f"data: {chunk}\n\n"), hang(until=seen), text("It greets."))
        async with local(server, root, state) as one:
            await one.ask("What does it do?")
            shown = await one.update("_magy_progress", lambda u: "tokens, " in u["text"])
            assert shown["text"] == (
                "the model reads the prompt: 1,600 of 6,400 tokens, 40 a second, "
                "about 2 min 0 s left"
            )
            seen.set()
            assert (await one.end())["stopReason"] == "end_turn"


async def test_a_prompt_that_cannot_fit_is_not_sent(root: Path, state: Path) -> None:
    """The server says how large its window is; nobody configured it."""
    async with ChatServer() as server:
        server.places["/v1/models"] = {"data": [{"id": "qwen", "meta": {"n_ctx": 2048}}]}
        server.reply(text("never"))
        async with local(server, root, state) as one:
            ended = await one.turn("What does it do?")
            assert ended["stopReason"] == "error"
            said = ended["_meta"]["magy"]["message"]
            assert "the model's window is 2,048, so it was not sent" in said
            assert "start its server with a larger context" in said
            assert server.asked == []


@asynccontextmanager
async def local(server: ChatServer, root: Path, state: Path) -> AsyncIterator[Person]:
    async with person(root, state, settings=served(server)) as one:
        await one.new()
        yield one
