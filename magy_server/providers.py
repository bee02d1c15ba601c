"""This module makes the providers, chooses the default model, and tells what is known of a model.

Beside `app.py` in the composition layer: it knows the configuration and the adapters.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from magy_server.core.errors import ProviderError
from magy_server.core.ports import ModelFacts, ModelList, Price, Provider
from magy_server.core.settings import AboutModel, ModelSettings, ProviderSettings
from magy_server.core.text.secrets import Secrets
from magy_server.llm import catalogue
from magy_server.llm.local_servers import is_near
from magy_server.llm.redacting import Redacting

if TYPE_CHECKING:
    from magy_server.llm.http_provider import HttpProvider

PROBE = 3.0
"""Seconds that a model server on this machine has for the list of its models."""
LISTING = 5.0
"""Seconds that a provider has for the list of its models while a person waits to choose one."""
MOST = 1000
"""The most models of a provider that are offered."""
PATIENCE = 900.0
"""Seconds until a reply of a model on this machine must have begun, unless the person says
otherwise: without a graphics card it reads a long prompt for minutes."""
WINDOW = 10.0
"""Seconds that a server has to say how large the window of a model is. One that reads a prompt on
every processor of the machine is slow to say it."""
AGAIN = 60.0
"""Seconds until it is asked again."""
_KNOCK = 1.0
"""Seconds for a connection to a port of this machine: it is there at once, or not at all."""
_FREE = Price(0, 0, 0, 0)
_PRICES = ("input", "output", "cache_read", "cache_write")
_VENDORS = {"anthropic": "anthropic", "openai": "openai", "openai-chat": "openai"}
"""By kind: whose endpoint is used where no other is named."""

_GATEWAYS = {"anthropic": "ANTHROPIC_BASE_URL", "openai": "OPENAI_BASE_URL"}
"""By vendor: the environment variable that puts another endpoint in the place of the usual one."""


@cache
def known() -> tuple[ProviderSettings, ...]:
    """The providers that need no configuration, in the order in which they are looked through.
    Where each is described: docs/reference/models.md."""
    chat = "openai-chat"
    return (
        _known("anthropic", "anthropic", "ANTHROPIC_API_KEY"),
        _known("openai", "openai", "OPENAI_API_KEY"),
        _known("deepseek", chat, "DEEPSEEK_API_KEY", "https://api.deepseek.com"),
        _known("mistral", chat, "MISTRAL_API_KEY", "https://api.mistral.ai/v1"),
        _known(
            "gemini",
            chat,
            "GEMINI_API_KEY",
            "https://generativelanguage.googleapis.com/v1beta/openai",
        ),
        _known("groq", chat, "GROQ_API_KEY", "https://api.groq.com/openai/v1"),
        _known("moonshot", chat, "MOONSHOT_API_KEY", "https://api.moonshot.ai/v1"),
        _known("openrouter", chat, "OPENROUTER_API_KEY", "https://openrouter.ai/api/v1"),
        _known("ollama", chat, "", "http://127.0.0.1:11434/v1"),
        _known("llamacpp", chat, "", "http://127.0.0.1:8080/v1"),
        _known("vllm", chat, "", "http://127.0.0.1:8000/v1"),
        _known("lmstudio", chat, "", "http://127.0.0.1:1234/v1"),
    )


def _known(name: str, kind: str, key: str, base_url: str | None = None) -> ProviderSettings:
    values = {"name": name, "kind": kind, "api_key_env": key, "base_url": base_url}
    return ProviderSettings.model_validate(values)


def settled(
    configured: Sequence[ProviderSettings], environ: Mapping[str, str] = MappingProxyType({})
) -> dict[str, ProviderSettings]:
    """All providers by name. What a configured one leaves out is as in the known one of that name
    and kind. A key is never sent to an endpoint that it was not named for: an entry with a name of
    its own and a `base_url` has the key it names, or none."""
    all = {one.name: one for one in known()}
    for one in configured:
        usual = all.get(one.name)
        if usual is not None and usual.kind == one.kind:
            given = {field: getattr(one, field) for field in one.model_fields_set}
            all[one.name] = usual.model_copy(update=given)
        elif one.base_url is None and not one.api_key_env and one.kind in _VENDORS:
            key = all[_VENDORS[one.kind]].api_key_env
            all[one.name] = one.model_copy(update={"api_key_env": key})
        else:
            all[one.name] = one
    return {name: _through_gateway(one, all, environ) for name, one in all.items()}


def _through_gateway(
    one: ProviderSettings, all: Mapping[str, ProviderSettings], environ: Mapping[str, str]
) -> ProviderSettings:
    """With the endpoint that the environment names, if its entry names none. The variable is meant
    for the vendor's usual key: a key of another name stays with the vendor."""
    vendor = _VENDORS.get(one.kind, "")
    if one.base_url is not None or not vendor or one.api_key_env != all[vendor].api_key_env:
        return one
    url = environ.get(_GATEWAYS[vendor], "").strip()
    return one.model_copy(update={"base_url": url}) if url else one


def key_variables(configured: Sequence[ProviderSettings]) -> set[str]:
    """The environment variables that hold keys, whether set or not."""
    return {one.api_key_env for one in settled(configured).values() if one.api_key_env}


def lend(
    keys: Mapping[str, str],
    configured: Sequence[ProviderSettings],
    environ: MutableMapping[str, str],
) -> list[str]:
    """Puts the keys of an editor, by provider, into the environment, where those providers have
    none there: what holds for other keys then holds for these. Returns a sentence for each key
    that no provider can use."""
    all, useless = settled(configured), []
    for name, key in keys.items():
        one = all.get(name)
        if one is None or not one.api_key_env:
            no_variable = "asks for no key (it has no `api_key_env`)"
            why = no_variable if one else f"is not known; known are {', '.join(all)}"
            useless.append(f"The editor has a key for the provider {name!r}, which {why}.")
        elif not environ.get(one.api_key_env, "").strip():
            environ[one.api_key_env] = key
    return useless


_near = cache(is_near)
"""Each request asks it of the same few addresses."""


def is_local(one: ProviderSettings) -> bool:
    """Returns whether the provider's endpoint is on this machine."""
    return _near(one.base_url or "")


class Providers:
    """Makes providers when they are first used: what they import is slow. `environ` is where
    the keys are; `model` are the settings that say which model, and how long to wait for it;
    `hidden` is in no answer of theirs."""

    def __init__(
        self,
        configured: Sequence[ProviderSettings],
        environ: Mapping[str, str],
        model: ModelSettings | None = None,
        hidden: Secrets | None = None,
    ) -> None:
        self._hidden = hidden or Secrets()
        self._all = settled(configured, environ)
        self._own = {one.name for one in configured}
        self._environ = environ
        self._model = model or ModelSettings()
        self._made: dict[str, Provider] = {}
        self._secrets = Secrets(map(self.key, self._all.values()))
        self._found = ""
        self._windows: dict[str, int] = {}
        """What servers said, by `provider/model`."""
        self._asked: dict[str, float] = {}
        """When they were asked last."""
        self._lists: dict[str, list[str]] = {}
        """What providers that are not on this machine said they have."""

    @property
    def all(self) -> Sequence[ProviderSettings]:
        return tuple(self._all.values())

    def models(self) -> list[str]:
        """`provider/model` names to offer: the configured default, and what the configuration and
        the catalogue have for the providers that can be used without further ado."""
        listed = [
            f"{one.name}/{model}"
            for one in self._all.values()
            if self._usable(one)
            for model in _beforehand(one)
        ]
        first = self._model.default or self._found or self._chosen() or ""
        return list(dict.fromkeys(filter(None, [first, *listed])))

    async def listed(self) -> list[ModelList]:
        """Returns the models of the providers that can be used without further ado, which are asked
        for them all at once. Servers on this machine are asked each time: models come and go there.
        Others are asked until they have answered once."""
        found = await asyncio.gather(*map(self._listed, self._all.values()))
        return [one for one in found if one is not None]

    def _usable(self, one: ProviderSettings) -> bool:
        return one.name in self._own or bool(self.key(one))

    async def _listed(self, one: ProviderSettings) -> ModelList | None:
        """None: nobody has configured it, and no model server answers at its usual address."""
        names, problem = self._lists.get(one.name, []), ""
        if not names and (self._usable(one) or is_local(one)):
            names, problem = await self._ask_for_list(one)
        if not self._usable(one) and not names:
            return None
        known = list(dict.fromkeys([*_beforehand(one), *names]))[:MOST]
        return ModelList(one.name, [f"{one.name}/{model}" for model in known], problem)

    async def _ask_for_list(self, one: ProviderSettings) -> tuple[list[str], str]:
        """(its own list, or why there is none)."""
        if is_local(one) and not await listens(one.base_url or ""):
            return [], f"{one.name} is not running: nothing listens at {place(one)}."
        try:
            provider = self.provider(one.name)
            await asyncio.to_thread(provider.warm)  # imports are not the server's time
            async with asyncio.timeout(LISTING):
                said = await provider.models()
        except TimeoutError:
            return [], f"{one.name} has not said within {LISTING:g} s which models it has."
        except ProviderError as error:
            return [], error.message
        names = [name for name in said if name.isprintable() and _converses(name)]
        if not is_local(one):
            self._lists[one.name] = names
        return names, ""

    def named(self, full: str) -> tuple[Provider, str]:
        """`provider/model` -> the provider, and its own name for the model. Raises ProviderError:
        no such provider, or its key is not set."""
        name, slash, model = full.partition("/")
        if name not in self._all or not slash or not model:
            raise ProviderError(
                f"There is no provider for the model {full!r}: a model is named `provider/model`, "
                f"and the providers are {', '.join(self._all)}.",
                fault="not_found",
            )
        return self.provider(name), model

    def provider(self, name: str) -> Provider:
        """By its name, which must be one of `all`. Raises ProviderError: its key is not set."""
        if name not in self._made:
            made = self._make(self._all[name])
            for secrets in filter(None, (self._secrets, self._hidden)):
                made = Redacting(made, secrets)
            self._made[name] = made
        return self._made[name]

    def key(self, one: ProviderSettings) -> str:
        """What the environment holds for it; white space around a key is never part of it."""
        return self._environ.get(one.api_key_env, "").strip() if one.api_key_env else ""

    def needs_key(self, one: ProviderSettings) -> bool:
        """Servers on this machine need none, nor do endpoints for which none is named."""
        named = bool(one.api_key_env) or one.base_url is None
        return named and one.kind != "scripted" and not is_local(one)

    def facts(self, full: str) -> ModelFacts:
        """What is known of `provider/model` beforehand; of one that is not known, nothing. The
        person's own word (`about`) counts first. A price is only known at the provider's own
        endpoint; on this machine it is nothing."""
        name, _, model = full.partition("/")
        one = self._all.get(name)
        if one is None:
            return ModelFacts()
        facts = _documented(one, model)
        about = one.about.get(model, AboutModel())
        window = facts.window or self._windows.get(full, 0)
        return ModelFacts(
            window=window if about.window is None else about.window,
            max_tokens=facts.max_tokens if about.max_tokens is None else about.max_tokens,
            price=_price(about, _FREE if is_local(one) else facts.price),
            local=is_local(one),
        )

    async def measured(self, full: str) -> ModelFacts:
        """The same, once the server of the model was asked for its window, where nobody has said
        it. A server of one's own may be started anew with another, so it is asked now and then."""
        name, _, model = full.partition("/")
        one = self._all.get(name)
        facts = self.facts(full)
        open_ = not facts.window or full in self._windows
        fresh = monotonic() - self._asked.get(full, -AGAIN) < AGAIN
        if one is None or not open_ or fresh:
            return facts
        if one.base_url and one.kind == "openai-chat":
            self._asked[full] = monotonic()
            with contextlib.suppress(ProviderError, TimeoutError):
                provider = self.provider(name)
                await asyncio.to_thread(provider.warm)  # imports are not the server's time
                async with asyncio.timeout(WINDOW):
                    if window := await provider.window(model):
                        self._windows[full] = window
        return self.facts(full)

    async def default(self) -> str:
        """Returns the model for a session that names none, as `provider/model`: the configured one;
        else by the first key that is set; else the first of a model server that runs on this
        machine. Servers are only asked when nothing else decides, and what was found is remembered.
        Raises ProviderError whose sentence says what to set."""
        if decided := self._model.default or self._found or self._chosen():
            return decided
        self._found = await self._running()
        if not self._found:
            raise ProviderError(self._nothing(), fault="no_key")
        return self._found

    async def close(self) -> None:
        for provider in self._made.values():
            await provider.close()

    def _chosen(self) -> str | None:
        """By the first key that is set, or a provider whose models the configuration lists."""
        keyed = [one for one in self._all.values() if self.key(one)]
        listed = [one for one in self._all.values() if one.models and not one.api_key_env]
        for one in [*keyed, *listed]:
            if model := next(iter(one.models), catalogue.DEFAULTS.get(one.name)):
                return f"{one.name}/{model}"
        return None

    async def _running(self) -> str:
        """The first model of the first model server on this machine; "" when there is none.
        Configured ones come first."""
        local = [one for one in self._all.values() if is_local(one)]
        local.sort(key=lambda one: one.name not in self._own)
        answers = await asyncio.gather(*(self._served(one) for one in local))
        return next((f"{name}/{model}" for name, model in answers if model), "")

    async def _served(self, one: ProviderSettings) -> tuple[str, str]:
        """(its name, its first model that can hold a conversation, or "")."""
        if not await listens(one.base_url or ""):
            return one.name, ""
        try:
            provider = self.provider(one.name)
            await asyncio.to_thread(provider.warm)  # imports are not the server's time
            async with asyncio.timeout(PROBE):
                models = await provider.models()
        except (ProviderError, TimeoutError):
            return one.name, ""  # something else lives at this port
        return one.name, next(filter(_converses, models), "")

    def _nothing(self) -> str:
        keys = [one.api_key_env for one in self._all.values() if one.api_key_env]
        if given := [one for one in self._all.values() if self.key(one)]:
            one = given[0]
            return (
                f"{one.api_key_env} is set, but not which model of {one.name} to use: set "
                f'`model.default = "{one.name}/MODEL"` in magy.toml, or MAGY_MODEL.'
            )
        return (
            f"No model is configured: set one of {', '.join(dict.fromkeys(keys))} where Magy is "
            "started, or start Ollama; `magy demo` needs no key."
        )

    def _make(self, one: ProviderSettings) -> Provider:
        key = self.key(one)
        if not key and self.needs_key(one):
            what = f"set {one.api_key_env}" if one.api_key_env else "name its `api_key_env`"
            raise ProviderError(
                f"There is no key for {one.name}: {what} where Magy is started, or choose a model "
                "of another provider; `magy demo` needs no key.",
                fault="no_key",
            )
        _check_address(one, self._environ)
        first_byte = self._model.timeout
        if is_local(one) and "timeout" not in self._model.model_fields_set:
            first_byte = PATIENCE
        if one.kind == "scripted":
            from magy_server.llm.scripted import ScriptedProvider

            return ScriptedProvider(Path(one.script or ""))
        return _adapter(one.kind)(
            key,
            one.base_url,
            first_byte=first_byte,
            unset="" if key else one.api_key_env,
            transport=one.transport,
        )


def _adapter(kind: Literal["anthropic", "openai", "openai-chat"]) -> type[HttpProvider]:
    match kind:
        case "anthropic":
            from magy_server.llm.anthropic import AnthropicProvider

            return AnthropicProvider
        case "openai":
            from magy_server.llm.openai import ResponsesProvider

            return ResponsesProvider
        case "openai-chat":
            from magy_server.llm.openai import ChatProvider

            return ChatProvider


def _check_address(one: ProviderSettings, environ: Mapping[str, str]) -> None:
    """Raises ProviderError for a base URL to which nothing can be sent; it may hold a password, so
    the error does not."""
    try:
        parts = urlsplit(one.base_url or "http://usual")
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good:
        gateway = _GATEWAYS.get(_VENDORS.get(one.kind, ""), "")
        given = environ.get(gateway, "").strip() == one.base_url
        where = f"{gateway} where Magy is started" if given else "its `base_url` in magy.toml"
        raise ProviderError(
            f"The base URL of {one.name} is no address such as https://example.org/v1: correct "
            f"{where}.",
            fault="not_found",
        )


def _beforehand(one: ProviderSettings) -> Sequence[str]:
    """Returns the models that nobody has to be asked for."""
    return one.models or list(catalogue.TABLE.get(one.name, {}))


def _converses(model: str) -> bool:
    """Model servers name no other sign of one that can only embed."""
    return "embed" not in model.lower()


def place(one: ProviderSettings) -> str:
    """Returns the host and port of a base URL, which may also hold a password."""
    parts = urlsplit(one.base_url or "")
    return f"{parts.hostname}{f':{parts.port}' if parts.port else ''}"


async def listens(url: str) -> bool:
    """Something accepts connections at the place that a base URL names."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        async with asyncio.timeout(_KNOCK):
            _, writer = await asyncio.open_connection(parts.hostname, port)
    except (OSError, TimeoutError, ValueError):
        return False
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True


def _documented(one: ProviderSettings, model: str) -> ModelFacts:
    """What the catalogue has of a model at this provider. A gateway in front of one (the same wire,
    another endpoint) has the same models, at prices of its own."""
    vendor = one.name if one.name in catalogue.TABLE else _VENDORS.get(one.kind, "")
    if one.kind == "openai-chat" and one.base_url and vendor != one.name:
        return ModelFacts()
    facts = catalogue.facts(vendor, model)
    usual = next((k.base_url for k in known() if k.name == vendor), None)
    own = (one.base_url or "").rstrip("/") == (usual or "").rstrip("/")
    return facts if own else replace(facts, price=None)


def _price(about: AboutModel, usual: Price | None) -> Price | None:
    """With the person's figures put over the usual ones; None while one half is not known."""
    given = about.model_dump(include=set(_PRICES), exclude_none=True)
    if not given:
        return usual
    known = {name: getattr(usual, name) for name in _PRICES} if usual is not None else {}
    if "input" in given:
        known |= {"cache_read": given["input"], "cache_write": given["input"]}
    known |= given
    return Price(**known) if known.keys() >= set(_PRICES) else None
