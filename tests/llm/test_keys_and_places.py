"""Keys, base URLs and lists of models, with the real SDKs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from magy_server.core.errors import ProviderError
from magy_server.core.ports import Provider
from magy_server.llm.anthropic import AnthropicProvider
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


@pytest.mark.parametrize("make", [AnthropicProvider, ResponsesProvider, ChatProvider])
@pytest.mark.parametrize("key", ["schlüssel", "two\nlines", "tab\tbed"])
async def test_a_key_that_cannot_be_one(make: Callable[..., Provider], key: str) -> None:
    failed = await failure(make(key, "http://127.0.0.1:9"))
    assert failed.fault == "auth" and "copy the key again" in failed.message
    assert key not in failed.message


async def test_what_belongs_to_openai_is_not_told_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-secret")
    server = ChatServer()
    server.reply(text("ok"))
    async with talking(server, ChatProvider, key="") as provider:
        await ask(provider, request())
    assert "secret" not in str(server.requests[0].headers)


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
        with pytest.raises(ProviderError, match="no list of models") as caught:
            await provider.models()
        await provider.close()
    assert (caught.value.fault, caught.value.retryable) == ("malformed", False)


@pytest.mark.parametrize(
    ("module", "name", "sdk"),
    [("openai", "ChatProvider", "openai"), ("anthropic", "AnthropicProvider", "anthropic")],
)
def test_a_warm_provider_imports_nothing_more_for_a_request(
    module: str, name: str, sdk: str
) -> None:
    code = f"""
import asyncio, sys
from magy_server.core.errors import ProviderError
from magy_server.llm.{module} import {name}
assert {sdk!r} not in sys.modules
provider = {name}("key", "http://127.0.0.1:9/v1")
provider.warm()
warm = {{name for name in sys.modules if name.partition(".")[0] == {sdk!r}}}
try:
    asyncio.run(provider.models())
except ProviderError as error:
    assert error.fault == "connection", error
else:
    raise SystemExit("something listens there")
print(*({{name for name in sys.modules if name.partition(".")[0] == {sdk!r}}} - warm))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, cwd=TOP, capture_output=True, text=True
    )
    assert not done.stdout.split()
