"""All transports say the same: requests go out over connections of our own, through the HTTP
library or through the vendor's SDK, and the other side cannot tell them apart but by what they call
themselves and how an answer may be packed."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from magy_server.core.errors import ProviderError
from magy_server.core.ports import Delta, ModelRequest, Provider
from magy_server.core.settings import ProviderSettings
from magy_server.core.values import Thinking
from magy_server.llm.anthropic import AnthropicProvider
from magy_server.llm.openai import ChatProvider, ResponsesProvider
from magy_server.providers import Providers
from tests.loopback import ChatServer, ModelServer, call, cut, text
from tests.loopback.http import Exchange, HttpServer, Request

from .conversations import ask, assistant, calling, failure, output, request, user
from .growing import PNG
from .talking import ALL, TRANSPORTS, WAYS, WIRES, Plain, made, talking

TOP = Path(__file__).parents[2]
CERTIFICATE = TOP / "tests/loopback/self_signed.pem"
READ = calling("3.0", "toolu_1", path="ä.py", line=7)
CONVERSATIONS: Sequence[ModelRequest] = (
    request("Hello"),
    request(
        user("Read it", PNG),
        assistant(Thinking(text="hm", signature="s", data=""), "I look.", READ),
        user(output(READ, "né\u2028w\x00\\"), "go on"),
        thinking_tokens=2000,
        temperature=0.5,
    ),
    request("once more", tools=(), system=(), max_tokens=0),
)


@pytest.mark.parametrize("wire", WIRES)
async def test_the_same_conversations_go_out(wire: str) -> None:
    """To the byte, with the same headers; and the same comes back."""
    serve, make = WIRES[wire]
    sent: list[list[tuple[Any, ...]]] = []
    got: list[list[tuple[list[Delta], tuple[Any, ...]]]] = []
    async with serve() as server:
        server.answer(lambda body: [text("Yes."), call("read_file", {"path": "a"})])
        for way in WAYS:
            provider = made(make, way, "test-key", server.base_url)
            begun = len(server.requests)
            replies = [await ask(provider, one) for one in CONVERSATIONS]
            await provider.models()
            await provider.window("m")
            await provider.close()
            sent.append([told(one) for one in server.requests[begun:]])
            got.append([(deltas, shape(reply)) for deltas, reply in replies])
    assert sent[0] == sent[1] == sent[2]
    assert got[0] == got[1] == got[2]
    assert json.loads(sent[0][1][3])["stream"] is True


def shape(reply: Any) -> tuple[Any, ...]:
    """A reply without the ids that the server counts."""
    parts = [part.model_dump(exclude={"provider_id", "data"}) for part in reply.content]
    return (reply.stop, reply.usage, parts)


def told(one: Request) -> tuple[Any, ...]:
    """What went over the wire, but for how the sender introduces itself and what it unpacks."""
    own = ("user-agent", "x-stainless", "accept-encoding")
    headers = {name: value for name, value in one.headers.items() if not name.startswith(own)}
    return one.method, one.path, one.query, one.raw, headers


STATUSES = (307, 400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 503, 529)
BODIES = (
    b'{"error": {"type": "rate_limit_error", "message": "slow down"}}',
    b'{"message": "no", "code": "insufficient_quota"}',
    b"[]",
    b"plain words\n",
    b"<html>proxy</html>",
    b"",
    b"\xff\xfe",
)
HEADERS = ({}, {"retry-after": "7"}, {"retry-after-ms": "1500"}, {"x-should-retry": "true"})


class Refusing(HttpServer):
    """Answers the n-th request with the n-th combination."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = [(s, b, h) for s in STATUSES for b in BODIES for h in HEADERS]

    async def respond(self, request: Request, exchange: Exchange) -> None:
        status, body, headers = self.answers[(len(self.requests) - 1) % len(self.answers)]
        await exchange.send(status, body, "application/json", headers)


@pytest.mark.parametrize("wire", WIRES)
async def test_errors_mean_the_same(wire: str) -> None:
    _, make = WIRES[wire]
    found: list[list[tuple[Any, ...]]] = []
    async with Refusing() as server:
        for way in WAYS:
            provider = made(make, way, "test-key", server.base_url)
            failures = [await failure(provider) for _ in server.answers]
            found.append([(e.message, e.fault, e.retryable, e.retry_after) for e in failures])
            await provider.close()
    assert len(server.requests) == 3 * len(server.answers), "each was asked once"
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("wire", WIRES)
async def test_an_error_whose_body_is_cut_off(wire: str, way: str) -> None:
    """The SDKs do not say which error it was."""

    class CutOff(HttpServer):
        async def respond(self, request: Request, exchange: Exchange) -> None:
            await exchange.send(500, b"", "text/plain", {"content-length": "9"})
            exchange.cut()

    async with CutOff() as server:
        provider = made(WIRES[wire][1], way, "test-key", server.base_url)
        failed = await failure(provider)
        await provider.close()
    assert (failed.fault, failed.retryable) == ("connection" if way == "sdk" else "server", True)


@pytest.mark.parametrize("wire", WIRES)
async def test_a_cut_stream_is_told_alike(wire: str) -> None:
    serve, make = WIRES[wire]
    messages = set()
    async with serve() as server:
        server.answer(lambda body: [text("half"), cut()])
        for way in WAYS:
            provider = made(make, way, "test-key", server.base_url)
            messages.add((await failure(provider)).message)
            await provider.close()
    assert len(messages) == 1


# --- the environment ------------------------------------------------------------------------------


class Proxy(HttpServer):
    """Answers itself what is asked of anybody."""

    async def respond(self, request: Request, exchange: Exchange) -> None:
        await exchange.send(200, b'{"data": [{"id": "m"}]}', "application/json")


OFFICIAL = [
    (AnthropicProvider, "http://api.anthropic.com", "ANTHROPIC_CUSTOM_HEADERS"),
    (ChatProvider, "http://api.openai.com/v1", "OPENAI_CUSTOM_HEADERS"),
    (ResponsesProvider, "http://eu.api.openai.com/v1", "OPENAI_CUSTOM_HEADERS"),
]


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(("make", "url", "variable"), OFFICIAL)
async def test_headers_for_the_vendor_are_told_to_the_vendor(
    make: Callable[..., Provider],
    url: str,
    variable: str,
    transport: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And the request goes through the proxy."""
    monkeypatch.setenv(variable, "X-Gateway: mine\nno header\nX-Colon: a:b")
    monkeypatch.setenv("OPENAI_ORG_ID", "org")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project")
    async with Proxy() as proxy:
        monkeypatch.setenv("http_proxy", proxy.base_url)
        provider = make("key", url, transport=transport)
        assert await provider.models() == ["m"]
        await provider.close()
    (sent,) = proxy.requests
    assert sent.path.startswith(url)
    assert sent.headers["x-gateway"] == "mine" and sent.headers["x-colon"] == "a:b"
    assert sent.headers["authorization"] == "Bearer key"
    account = "org" if "openai" in url else None
    assert sent.headers.get("openai-organization") == account
    assert ("openai-project" in sent.headers) is ("openai" in url)


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_custom_header_takes_the_place_of_the_key(
    transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "Authorization: Bearer gateway's")
    async with Proxy() as proxy:
        monkeypatch.setenv("http_proxy", proxy.base_url)
        provider = AnthropicProvider("key", "http://api.anthropic.com", transport=transport)  # type: ignore[arg-type]
        await provider.models()
        await provider.close()
    assert proxy.requests[0].headers["authorization"] == "Bearer gateway's"


@pytest.mark.parametrize(("serve", "make"), ALL)
async def test_no_proxy_is_asked_where_none_is_wanted(
    serve: type[ModelServer], make: Callable[..., Provider], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve()
    async with Proxy() as proxy, talking(server, make) as direct:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.base_url)
        monkeypatch.setenv("no_proxy", "example.org,127.0.0.1")
        assert await direct.models() == ["test-model"]
        monkeypatch.setenv("no_proxy", "example.org")
        other = make("key", server.base_url)
        assert await other.models() == ["m"]
        await other.close()
    assert len(proxy.requests) == 1


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("wire", WIRES)
async def test_the_environment_names_the_certificates(
    wire: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve, make = WIRES[wire]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    async with serve(tls=context) as server:
        stranger = made(make, way, "key", server.base_url)
        with pytest.raises(ProviderError, match="TLS"):
            await stranger.models()
        await stranger.close()
        monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
        friend = made(make, way, "key", server.base_url)
        assert await friend.models() == ["test-model"]
        await friend.close()


# --- which transport it is -----------------------------------------------------------------------


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_the_configuration_chooses(transport: str) -> None:
    async with Plain(b'{"data": []}') as server:
        entry = {"name": "mine", "kind": "openai-chat", "base_url": server.base_url}
        if transport == "sdk":
            entry["transport"] = "sdk"
        providers = Providers([ProviderSettings.model_validate(entry)], {})
        await providers.provider("mine").models()
        await providers.close()
    sender = server.requests[0].headers["user-agent"]
    assert sender.startswith("magy/") is (transport == "http"), sender


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("anthropic", "AnthropicProvider"),
        ("openai", "ChatProvider"),
        ("openai", "ResponsesProvider"),
    ],
)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_an_sdk_is_imported_where_it_is_wanted_and_before_the_first_request(
    module: str, name: str, transport: str
) -> None:
    code = f"""
import asyncio, sys
from magy_server.core.errors import ProviderError
from magy_server.llm.{module} import {name}
def loaded():
    return {{name for name in sys.modules if name.partition(".")[0] in ("anthropic", "openai")}}
assert not loaded() and "httpx2" not in sys.modules
provider = {name}("key", "http://127.0.0.1:9/v1", transport={transport!r})
assert not loaded() and "httpx2" not in sys.modules
provider.warm(); provider.warm()
warm = loaded()
assert ("httpx2" in sys.modules) is bool(warm)
assert bool(warm) is ({transport!r} == "sdk"), warm
try:
    asyncio.run(provider.models())
except ProviderError as error:
    assert error.fault == "connection", error
else:
    raise SystemExit("something listens there")
print(*(loaded() - warm))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, cwd=TOP, capture_output=True, text=True
    )
    assert not done.stdout.split()


@pytest.mark.parametrize(("serve", "make"), ALL)
async def test_a_number_of_any_size_goes_back_as_the_model_wrote_it(
    serve: type[ModelServer], make: Callable[..., Provider]
) -> None:
    huge = calling("3.0", "toolu_1", n=2**70, f=1e300)
    server = serve()
    server.reply(text("ok"))
    async with talking(server, make) as provider:
        await ask(provider, request(user("count"), assistant("so", huge), user(output(huge))))
    assert str(2**70).encode() in server.requests[0].raw


async def test_a_base_url_may_have_a_query() -> None:
    """Some gateways want a version there."""
    async with ChatServer() as server:
        provider = ChatProvider("key", f"{server.base_url}?api-version=2")
        assert await provider.models() == ["test-model"]
        await provider.close()
    assert server.requests[0].query == "api-version=2"


class Odd(HttpServer):
    """Refuses with a header that is none."""

    def __init__(
        self,
        status: int,
        headers: dict[str, str],
        body: bytes = b"{}",
        kind: str = "application/json",
    ) -> None:
        super().__init__()
        self._refusal = (status, body, kind, headers)

    async def respond(self, request: Request, exchange: Exchange) -> None:
        await exchange.send(*self._refusal)


@pytest.mark.parametrize("encoding", ["hex", "undefined", "punycode", "idna"])
async def test_an_encoding_that_is_none_of_text(encoding: str) -> None:
    body, kind = b'{"error": {"message": "no \xc3\xa4"}}', f"application/json; charset={encoding}"
    async with Odd(401, {}, body, kind) as server:
        provider = AnthropicProvider("key", server.base_url)
        failed = await failure(provider)
        await provider.close()
    assert failed.fault == "auth" and "no ä" in failed.message


@pytest.mark.parametrize("after", ["Mon, 01 Jan 2020 00:00:00 +99999999999999999999", "soon"])
async def test_a_time_that_nobody_can_wait_for(after: str) -> None:
    async with Odd(429, {"retry-after": after}) as server:
        provider = AnthropicProvider("key", server.base_url)
        failed = await failure(provider)
        await provider.close()
    assert (failed.fault, failed.retry_after) == ("rate_limit", None)


async def test_a_refusal_that_is_nested_without_end() -> None:
    async with Odd(401, {}, b'{"error": ' + b"[" * 1000 + b"]" * 1000 + b"}") as server:
        provider = AnthropicProvider("key", server.base_url)
        failed = await failure(provider)
        await provider.close()
    assert failed.fault == "auth"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("SSL_CERT_FILE", "/nowhere/at.all", "No such file"),
        ("SSL_CERT_FILE", __file__, ""),
        ("https_proxy", "gopher://127.0.0.1:1", "gopher"),
        ("all_proxy", "http://[::1", ""),
    ],
)
async def test_an_environment_with_which_nothing_can_be_sent(
    name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said at once: another try cannot succeed."""
    monkeypatch.setenv(name, value)
    provider = AnthropicProvider("key", "https://127.0.0.1:1")
    failed = await failure(provider)
    assert (failed.fault, failed.retryable) == ("connection", False)
    assert said in failed.message and name.upper() in failed.message
    with pytest.raises(ProviderError):
        provider.warm()
    await provider.close()
