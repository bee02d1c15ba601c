"""Which providers there are, which model is chosen, what is known of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from magy_server.core.errors import ProviderError
from magy_server.core.ports import Message, ModelFacts, ModelList, ModelRequest, Price
from magy_server.core.settings import ModelSettings, ProviderSettings
from magy_server.core.values import Text
from magy_server.llm import catalogue
from magy_server.llm.openai import ChatProvider
from magy_server.providers import (
    LISTING,
    WINDOW,
    Providers,
    is_local,
    key_variables,
    known,
    settled,
)
from tests.loopback import AnthropicServer, ChatServer, Fault, text
from tests.patience import PATIENCE, pass_time

SHUT = "http://127.0.0.1:1/v1"
LOCAL = ("ollama", "llamacpp", "vllm", "lmstudio")


def entry(name: str, kind: str = "openai-chat", **more: Any) -> ProviderSettings:
    return ProviderSettings.model_validate({"name": name, "kind": kind, **more})


def made(
    *configured: ProviderSettings, keys: Mapping[str, str] | None = None, default: str = ""
) -> Providers:
    """With no model server on this machine but those in `configured`."""
    names = {one.name for one in configured}
    shut = [entry(name, base_url=SHUT) for name in LOCAL if name not in names]
    return Providers([*configured, *shut], keys or {}, ModelSettings(default=default))


def test_a_key_of_another_name_stays_with_the_vendor() -> None:
    """A gateway that the environment names is for the key that it names, and no other."""
    given = [
        entry("work", "anthropic", api_key_env="WORK_KEY"),
        entry("twin", "anthropic"),
        entry("mine", "anthropic", base_url="http://mine"),
    ]
    found = settled(given, {"ANTHROPIC_BASE_URL": "http://gateway", "OPENAI_BASE_URL": " "})
    urls = {name: found[name].base_url for name in ("anthropic", "work", "twin", "mine", "openai")}
    assert urls == {
        "anthropic": "http://gateway", "work": None, "twin": "http://gateway",
        "mine": "http://mine", "openai": None,
    }  # fmt: skip
    assert (
        made(given[1], keys={"ANTHROPIC_BASE_URL": "http://gateway"})
        .facts("twin/claude-sonnet-5-5")
        .price
        is None
    ), "a gateway has prices of its own"


# --- which model is chosen -----------------------------------------------------------------------

ANTHROPIC, OPENAI = (f"{name}/{catalogue.DEFAULTS[name]}" for name in ("anthropic", "openai"))


@pytest.mark.parametrize(
    ("keys", "chosen"),
    [
        ({"ANTHROPIC_API_KEY": "a"}, ANTHROPIC),
        ({"OPENAI_API_KEY": "o"}, OPENAI),
        ({"OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "a"}, ANTHROPIC),
        ({"OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": " \n"}, OPENAI),
        ({"MISTRAL_API_KEY": "m", "DEEPSEEK_API_KEY": "d"}, "deepseek/deepseek-flash"),
        ({"GROQ_API_KEY": "g", "MISTRAL_API_KEY": "m"}, "mistral/mistral-large-latest"),
    ],
)
async def test_the_first_key_that_is_set_decides(keys: dict[str, str], chosen: str) -> None:
    assert await made(keys=keys).default() == chosen


async def test_the_configured_model_comes_before_any_key() -> None:
    one = made(keys={"ANTHROPIC_API_KEY": "a"}, default="openai/gpt-x")
    assert await one.default() == "openai/gpt-x"
    assert one.models()[0] == "openai/gpt-x"


@pytest.mark.req("A238")
async def test_the_first_model_that_the_configuration_lists_is_its_providers_default() -> None:
    box = entry("box", base_url="http://box.example/v1", models=["small", "large"])
    assert await made(box).default() == "box/small"
    assert await made(box, keys={"OPENAI_API_KEY": "o"}).default() == OPENAI
    anthropic = entry("anthropic", "anthropic", models=["claude-x"])
    assert await made(anthropic, keys={"ANTHROPIC_API_KEY": "a"}).default() == "anthropic/claude-x"


async def test_a_model_server_on_this_machine_is_found_and_remembered() -> None:
    async with ChatServer(models=["nomic-embed-text", "qwen3", "llama"]) as server:
        one = made(entry("ollama", base_url=server.base_url))
        assert await one.default() == "ollama/qwen3"
        assert await one.default() == "ollama/qwen3"
        assert one.models()[0] == "ollama/qwen3"
        assert [request.path for request in server.requests] == ["/v1/models"]
        await one.close()


async def test_each_provider_that_can_be_used_is_asked_for_its_models() -> None:
    """One that does not answer is named with the reason, and what is known beforehand."""
    async with (
        ChatServer(models=["nomic-embed-text", "new", "known", "a\nb"]) as near,
        ChatServer(models=Fault("500")) as broken,
    ):
        one = made(
            entry("near", base_url=near.base_url, models=["known"]),
            entry("broken", base_url=broken.base_url, models=["b"]),
            entry("gone", base_url=SHUT),
            entry("far", base_url="http://far.example/v1", api_key_env="FAR_KEY"),
        )
        found = {each.provider: each for each in await one.listed()}
        assert found.keys() == {"near", "broken", "gone", "far", *LOCAL}
        assert found["near"] == ModelList("near", ["near/known", "near/new"])
        assert found["broken"].models == ["broken/b"] and "500" in found["broken"].problem
        assert found["gone"].problem == "gone is not running: nothing listens at 127.0.0.1:1."
        assert found["far"].problem.startswith("There is no key for far: set FAR_KEY")
        near.models = ["newer"]
        again = {each.provider: each for each in await one.listed()}
        assert again["near"].models == ["near/known", "near/newer"]
        await one.close()


async def test_a_provider_that_says_nothing_holds_up_nobody() -> None:
    async with ChatServer(models=Fault("silence")) as silent, ChatServer(models=["m"]) as near:
        one = made(entry("silent", base_url=silent.base_url), entry("near", base_url=near.base_url))
        asked = asyncio.create_task(one.listed())
        async with asyncio.timeout(PATIENCE):
            while not (silent.requests and near.requests):
                await asyncio.sleep(0.01)
        # What near is asked later it has answered later: now its first answer is here.
        later = made(entry("near", base_url=near.base_url))
        await later.listed()
        await later.close()
        pass_time(LISTING)
        found = {each.provider: each for each in await asked}
        assert found["silent"].problem == "silent has not said within 5 s which models it has."
        assert found["near"].models == ["near/m"]
        await one.close()


@pytest.mark.parametrize("decided", [{"keys": {"OPENAI_API_KEY": "o"}}, {"default": "ollama/x"}])
async def test_nothing_is_asked_when_something_else_decides(decided: dict[str, Any]) -> None:
    async with ChatServer() as server:
        one = made(entry("ollama", base_url=server.base_url), **decided)
        assert await one.default() != "ollama/test-model"
        assert server.connections == 0


@pytest.mark.parametrize("models", [Fault("html"), Fault("500"), Fault("silence"), []])
async def test_what_is_no_model_server_is_passed_over(models: Any) -> None:
    async with ChatServer(models=models) as other, ChatServer(models=["m"]) as real:
        one = made(entry("ollama", base_url=other.base_url), entry("vllm", base_url=real.base_url))
        assert await one.default() == "vllm/m"
        await one.close()


async def test_with_nothing_at_all_one_sentence_says_what_to_set() -> None:
    with pytest.raises(ProviderError) as caught:
        await made().default()
    said = caught.value.message
    assert caught.value.fault == "no_key" and not caught.value.retryable
    assert "ANTHROPIC_API_KEY" in said and "OPENAI_API_KEY" in said and "Ollama" in said
    assert said.endswith("`magy demo` needs no key.") and said.count(". ") == 0


async def test_a_server_on_this_machine_that_wants_the_key_names_the_variable() -> None:
    async with ChatServer(models=Fault("401", "no key")) as server:
        one = made(entry("proxy", base_url=server.base_url, api_key_env="PROXY_KEY"))
        with pytest.raises(ProviderError) as caught:
            await one.provider("proxy").models()
        await one.close()
        assert (
            "(no key). What to do: set PROXY_KEY, which is not set, where" in caught.value.message
        )
        keyed = made(
            entry("proxy", base_url=server.base_url, api_key_env="PROXY_KEY"),
            keys={"PROXY_KEY": "wrong"},
        )
        with pytest.raises(ProviderError, match="check that the API key is valid"):
            await keyed.provider("proxy").models()
        await keyed.close()


async def test_a_server_that_starts_later_is_found_then() -> None:
    server = ChatServer(models=["late"])
    await server.start()
    url = server.base_url
    await server.stop()
    one = made(entry("ollama", base_url=url))
    with pytest.raises(ProviderError):
        await one.default()
    async with ChatServer(int(url.split(":")[2].split("/")[0]), models=["late"]):
        assert await one.default() == "ollama/late"
    await one.close()


async def test_a_key_without_a_model_to_begin_with_is_said() -> None:
    with pytest.raises(ProviderError) as caught:
        await made(keys={"GROQ_API_KEY": "g"}).default()
    assert caught.value.message.startswith("GROQ_API_KEY is set, but not which model of groq")
    assert 'model.default = "groq/MODEL"' in caught.value.message


# --- providers -----------------------------------------------------------------------------------


def test_each_known_provider_is_complete() -> None:
    names = [one.name for one in known()]
    assert len(set(names)) == len(names)
    for one in known():
        assert is_local(one) != bool(one.api_key_env)
        assert one.base_url is None or one.base_url == one.base_url.rstrip("/")
        assert one.base_url is not None or one.name in ("anthropic", "openai")


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://127.0.0.1:11434/v1", True),
        ("http://127.9.9.9/v1", True),
        ("http://[::1]:8080", True),
        ("http://localhost:8080", True),
        ("http://localhost.example.com", False),
        ("http://127.0.0.1.example.com", False),
        ("http://127.0.0.1@example.com", False),
        ("http://10.0.0.1:11434", False),
        ("http://[", False),
        ("", False),
    ],
)
def test_what_is_on_this_machine(url: str, local: bool) -> None:
    assert is_local(entry("x", base_url=url)) is local


def test_an_entry_changes_what_it_says_and_keeps_the_rest() -> None:
    groq = settled([entry("groq", models=["m"])])["groq"]
    assert groq.models == ["m"]
    assert (groq.api_key_env, groq.base_url) == ("GROQ_API_KEY", "https://api.groq.com/openai/v1")
    other = settled([entry("groq", "anthropic", base_url="http://x")])["groq"]
    assert (other.kind, other.api_key_env, other.base_url) == ("anthropic", "", "http://x")


def test_a_key_goes_only_where_it_was_named_for() -> None:
    all = settled(
        [
            entry("work", "anthropic", base_url="http://gateway.example"),
            entry("mine", "anthropic"),
            entry("third", "openai", base_url="http://x.example", api_key_env="THIRD_KEY"),
        ]
    )
    assert all["work"].api_key_env == ""
    assert all["mine"].api_key_env == "ANTHROPIC_API_KEY"
    assert all["third"].api_key_env == "THIRD_KEY"


async def test_no_other_key_reaches_an_endpoint_of_ones_own() -> None:
    async with AnthropicServer() as server:
        server.reply(text("hello"))
        one = made(
            entry("work", "anthropic", base_url=server.base_url), keys={"ANTHROPIC_API_KEY": "sk-1"}
        )
        provider, name = one.named("work/claude-x")
        asked = Message("user", (Text(text="hello"),))
        request = ModelRequest("1", "s", name, (), (), (asked,), 100)
        async for _ in provider.stream(request):
            pass
        await one.close()
        sent = b"".join(request.raw for request in server.requests)
        headers = [value for request in server.requests for value in request.headers.values()]
        assert server.requests and b"sk-1" not in sent
        assert not [value for value in headers if "sk-1" in value]


def test_no_command_gets_to_see_a_key() -> None:
    names = key_variables([entry("box", base_url="http://x", api_key_env="BOX_PASS")])
    assert {"BOX_PASS", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "MISTRAL_API_KEY"} <= names
    assert "" not in names


@pytest.mark.parametrize(
    ("full", "fault", "said"),
    [
        ("groq/x", "no_key", "set GROQ_API_KEY"),
        ("anthropic/x", "no_key", "set ANTHROPIC_API_KEY"),
        ("nobody/x", "not_found", "the providers are anthropic, openai,"),
        ("claude-opus", "not_found", "`provider/model`"),
        ("anthropic/", "not_found", "`provider/model`"),
        ("", "not_found", "`provider/model`"),
    ],
)
def test_a_model_that_cannot_be_used_says_why(full: str, fault: str, said: str) -> None:
    with pytest.raises(ProviderError) as caught:
        made().named(full)
    assert caught.value.fault == fault
    assert said in caught.value.message


@pytest.mark.parametrize("wrong", ["localhost:80/s3cret", "http://:80", "http://u:s3cret@x:port"])
@pytest.mark.parametrize(
    ("name", "own", "where"),
    [
        ("box", True, "correct its `base_url` in magy.toml."),
        ("twin", False, "correct ANTHROPIC_BASE_URL where Magy is started."),
        ("anthropic", False, "correct ANTHROPIC_BASE_URL where Magy is started."),
        ("work", True, "correct its `base_url` in magy.toml."),
    ],
)
def test_an_address_that_is_none_is_said_where_it_stands(
    wrong: str, name: str, own: bool, where: str
) -> None:
    kind = "openai-chat" if name == "box" else "anthropic"
    configured = [entry(name, kind, base_url=wrong)] if own else [entry("twin", kind)]
    keys = {"ANTHROPIC_API_KEY": "k"} | ({} if own else {"ANTHROPIC_BASE_URL": wrong})
    with pytest.raises(ProviderError) as caught:
        made(*configured, keys=keys).named(f"{name}/x")
    assert caught.value.message.endswith(where) and "s3cret" not in caught.value.message


def test_a_name_with_slashes_is_the_providers_own() -> None:
    one = made(keys={"OPENROUTER_API_KEY": "k"})
    provider, name = one.named("openrouter/openai/gpt-6.1-sol")
    assert name == "openai/gpt-6.1-sol"
    assert one.named("openrouter/other")[0] is provider


def test_what_is_offered() -> None:
    box = entry("box", base_url="http://x", models=["one"])
    offered = made(box, keys={"OPENAI_API_KEY": "o"}).models()
    assert offered[0] == OPENAI
    assert "box/one" in offered and "openai/gpt-6-luna" in offered
    assert not [name for name in offered if name.startswith("anthropic/")]
    assert len(set(offered)) == len(offered)
    assert made().models() == []


# --- facts ---------------------------------------------------------------------------------------

SONNET = catalogue.facts("anthropic", "claude-sonnet-5-5")


def test_documented_figures_hold_at_the_providers_own_endpoint() -> None:
    assert made().facts("anthropic/claude-sonnet-5-5") == SONNET
    assert made(entry("mine", "anthropic")).facts("mine/claude-sonnet-5-5") == SONNET


@pytest.mark.parametrize(
    "full", ["anthropic/claude-new", "openrouter/gpt-6-sol", "nobody/x", "", "anthropic", "groq/"]
)
def test_of_what_is_not_known_nothing_is_said(full: str) -> None:
    assert made().facts(full) == ModelFacts()


def test_a_gateway_has_the_same_models_at_prices_of_its_own() -> None:
    facts = made(entry("anthropic", "anthropic", base_url="https://gate.example")).facts(
        "anthropic/claude-sonnet-5-5"
    )
    assert (facts.window, facts.max_tokens, facts.price) == (1_000_000, 128_000, None)


@pytest.mark.req("G031")
def test_what_runs_on_this_machine_costs_nothing() -> None:
    assert made().facts("ollama/qwen3") == ModelFacts(price=Price(0, 0, 0, 0), local=True)


async def test_imports_are_not_the_servers_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a busy machine it takes longer than a server has to say how large its window is."""
    begun, done, warm = threading.Event(), threading.Event(), ChatProvider.warm

    def slow(provider: ChatProvider) -> None:
        begun.set()
        done.wait(PATIENCE)
        warm(provider)

    monkeypatch.setattr(ChatProvider, "warm", slow)
    async with ChatServer() as server:
        server.places["/v1/models"] = {"data": [{"id": "qwen", "meta": {"n_ctx": 2048}}]}
        providers = made(entry("mine", base_url=server.base_url))
        asked = asyncio.create_task(providers.measured("mine/qwen"))
        await asyncio.to_thread(begun.wait, PATIENCE)
        pass_time(2 * WINDOW)
        done.set()
        assert (await asked).window == 2048
        await providers.close()


@pytest.mark.parametrize(
    ("about", "price"),
    [
        ({"input": 3, "output": 9}, Price(3, 9, 3, 3)),
        ({"input": 3, "output": 9, "cache_read": 1}, Price(3, 9, 1, 3)),
        ({"input": 3}, None),
        ({"output": 9}, None),
        ({"cache_read": 0}, None),
        ({"window": 5}, None),
    ],
)
def test_a_persons_own_word_about_an_unknown_model(
    about: dict[str, float], price: Price | None
) -> None:
    one = made(entry("groq", about={"m": about}))
    facts = one.facts("groq/m")
    assert facts.price == price
    assert facts.window == about.get("window", 0)
    assert one.facts("groq/other") == ModelFacts()


def test_a_persons_own_word_is_put_over_the_documented_one() -> None:
    about = {"claude-sonnet-5-5": {"window": 0, "output": 5}, "claude-opus-5": {"input": 1}}
    one = made(entry("anthropic", "anthropic", about=about))
    assert SONNET.price is not None
    facts = one.facts("anthropic/claude-sonnet-5-5")
    assert (facts.window, facts.max_tokens) == (0, 128_000)
    assert facts.price == Price(2, 5, SONNET.price.cache_read, SONNET.price.cache_write)
    assert one.facts("anthropic/claude-opus-5").price == Price(1, 25, 1, 1)
    paid = made(entry("ollama", base_url=SHUT, about={"m": {"input": 1, "output": 2}}))
    assert paid.facts("ollama/m").price == Price(1, 2, 1, 1)


@pytest.mark.parametrize(
    "url",
    ["127.0.0.1:8000/v1", "ftp://example.org", "http://[::1", "http://h:99999", "http://", "/v1"],
)
@pytest.mark.parametrize("kind", ["anthropic", "openai", "openai-chat"])
async def test_a_base_url_that_is_no_address(url: str, kind: str) -> None:
    providers = made(entry("mine", kind, base_url=url), default="mine/m")
    with pytest.raises(ProviderError, match="base URL of mine") as failed:
        providers.named("mine/m")
    assert failed.value.fault == "not_found" and not failed.value.retryable
    assert not (await providers.measured("mine/m")).window


async def test_a_server_at_a_port_that_is_none_is_passed_over() -> None:
    with pytest.raises(ProviderError, match="No model is configured"):
        await made(entry("mine", base_url="http://127.0.0.1:99999")).default()
