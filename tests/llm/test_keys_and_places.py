"""Keys, base URLs and lists of models."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from magy_server.core.errors import ProviderError
from magy_server.core.ports import Provider
from magy_server.llm.anthropic import AnthropicProvider
from magy_server.llm.faults import connection_failure
from magy_server.llm.openai import ChatProvider, ResponsesProvider
from tests.loopback import ChatServer, Fault, ModelServer, text
from tests.loopback.http import Exchange, HttpServer, Request

from .conversations import ask, failure, request
from .talking import ALL, Plain, talking

TOP = Path(__file__).parents[2]


@pytest.mark.parametrize("make", [ResponsesProvider, ChatProvider])
async def test_without_a_key_nothing_is_sent(make: Callable[..., Provider]) -> None:
    for key in ("", " \n"):
        failed = await failure(make(key))
        assert failed.fault == "no_key" and not failed.retryable
        assert "OPENAI_API_KEY" in failed.message
    with pytest.raises(ProviderError, match="OPENAI_API_KEY"):
        await make("").models()


def test_a_host_that_nobody_knows_is_said_without_a_number() -> None:
    unknown = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    assert "(Name or service not known)" in connection_failure("m at u", unknown).message


@pytest.mark.parametrize("make", [AnthropicProvider, ResponsesProvider, ChatProvider])
@pytest.mark.parametrize("key", ["schlüssel", "two\nlines", "tab\tbed"])
async def test_a_key_that_cannot_be_one(make: Callable[..., Provider], key: str) -> None:
    failed = await failure(make(key, "http://127.0.0.1:9"))
    assert failed.fault == "auth" and "copy the key again" in failed.message
    assert key not in failed.message


OTHERS = {
    "OPENAI_API_KEY": "sk-secret",
    "OPENAI_ADMIN_KEY": "sk-secret",
    "OPENAI_ORG_ID": "org-secret",
    "OPENAI_PROJECT_ID": "proj-secret",
    "OPENAI_CUSTOM_HEADERS": "X-Gateway: secret\nAuthorization: Bearer secret",
    "ANTHROPIC_API_KEY": "secret",
    "ANTHROPIC_AUTH_TOKEN": "secret",
    "ANTHROPIC_CUSTOM_HEADERS": "X-Gateway: secret\nAuthorization: Bearer secret",
}


@pytest.mark.parametrize(("serve", "make"), ALL)
@pytest.mark.parametrize("key", ["", "mine"])
async def test_what_belongs_to_a_vendor_is_not_told_to_others(
    serve: type[ModelServer],
    make: Callable[..., Provider],
    key: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in OTHERS.items():
        monkeypatch.setenv(name, value)
    server = serve()
    server.reply(text("ok"))
    async with talking(server, make, key=key) as provider:
        await ask(provider, request())
        await provider.models()
    assert len(server.requests) == 2
    for sent in server.requests:
        assert "secret" not in str(sent.headers)
        assert sent.headers["authorization"] == f"Bearer {key or 'none'}"


class Elsewhere(HttpServer):
    """Sends everybody to `location`."""

    def __init__(self, location: str, status: int = 307) -> None:
        super().__init__()
        self._location, self._status = location, status

    async def respond(self, request: Request, exchange: Exchange) -> None:
        headers = {"location": self._location} if self._location else {}
        await exchange.send(self._status, b"", "text/plain", headers)


@pytest.mark.parametrize("make", [AnthropicProvider, ResponsesProvider, ChatProvider])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(make: Callable[..., Provider], status: int) -> None:
    async with ChatServer() as other:
        there = other.base_url.replace("//", "//user:secret@") + "/messages"
        async with Elsewhere(f"{there}?token=secret", status) as server:
            provider = make("key", server.base_url)
            failed = await failure(provider)
            with pytest.raises(ProviderError, match="points to") as caught:
                await provider.models()
            await provider.close()
    assert not other.requests
    for error in (failed, caught.value):
        assert (error.fault, error.retryable) == ("not_found", False)
        assert f"HTTP {status}, which points to {other.base_url}/messages;" in error.message
        assert "`base_url`" in error.message and "secret" not in error.message


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("/moved", "/moved; nothing"),
        ("", "HTTP 307; nothing"),
        ("http://[", "HTTP 307; nothing"),
        ("http://h:999999/", "points to http://h:999999/;"),
        ("javascript:alert(1)", "HTTP 307; nothing"),
        ("http://h/" + "x" * 5000, "xxx; nothing"),
    ],
)
async def test_redirects_to_odd_places(location: str, words: str) -> None:
    async with Elsewhere(location) as server:
        provider = ChatProvider("key", server.base_url)
        failed = await failure(provider)
        await provider.close()
    assert words in failed.message and failed.fault == "not_found"
    assert len(failed.message) < 1000


@pytest.mark.parametrize(
    ("added", "path"),
    [("", "/v1/models"), ("/", "/models"), ("/v1", "/v1/models"), ("/a/b/", "/a/b/models")],
)
async def test_a_base_url_that_is_only_a_host_gets_the_usual_path(added: str, path: str) -> None:
    async with Plain(b'{"data": []}') as server:
        provider = ChatProvider("", server.base_url + added)
        assert await provider.models() == []
        await provider.close()
    assert server.requests[0].path == path


@pytest.mark.parametrize(("serve", "make"), ALL)
async def test_models_are_listed(serve: type[ModelServer], make: Callable[..., Provider]) -> None:
    server = serve(models=("b", "a"))
    async with talking(server, make) as provider:
        assert await provider.models() == ["b", "a"]
        for name, fault in [("401", "auth"), ("404", "not_found"), ("400", "refused"),
                            ("html", "malformed"), ("drop", "connection")]:  # fmt: skip
            server.models = Fault(name)
            with pytest.raises(ProviderError) as caught:
                await provider.models()
            assert caught.value.fault == fault
            assert "the list of models at http://127.0.0.1" in caught.value.message


async def test_a_list_of_models_in_pages() -> None:
    class Pages(HttpServer):
        async def respond(self, request: Request, exchange: Exchange) -> None:
            last = request.query.partition("after_id=")[2]
            page = {"data": [{"id": last or "a%b"}], "has_more": not last, "last_id": "a%b"}
            await exchange.send(200, json.dumps(page).encode(), "application/json")

    async with Pages() as server:
        provider = AnthropicProvider("k", server.base_url)
        assert await provider.models() == ["a%b", "a%25b"]
        await provider.close()


@pytest.mark.parametrize("body", [b"{}", b"[]", b"7", b'{"data": 7}', b'{"data": [{}]}', b"x", b""])
async def test_what_is_no_list_of_models(body: bytes) -> None:
    async with Plain(body) as server:
        provider = ChatProvider("", server.base_url)
        with pytest.raises(ProviderError, match="not a list of models") as caught:
            await provider.models()
        await provider.close()
    assert (caught.value.fault, caught.value.retryable) == ("malformed", False)
