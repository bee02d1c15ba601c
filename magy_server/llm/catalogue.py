"""The catalogue knows models beforehand: their sizes, their prices, which one to start with.

A small table with a date. A model that is not in it is not known: nothing is guessed from a name
that looks alike. What people know better they say in `magy.toml` (`[provider.about]`).
"""

from __future__ import annotations

from collections.abc import Mapping

from magy_server.core.ports import ModelFacts, Price
from magy_server.regex import regex

AS_OF = "2026-11-21"
"""The day when somebody last compared the table with the providers' documentation."""


def _claude(
    input: float, output: float, cache_read: float, *, over_100k: Price | None = None
) -> ModelFacts:
    """1M tokens window, 128K reply; a cache write (5 minutes) costs 1.25 times the input."""
    price = Price(input, output, cache_read, input * 1.25, 100_000 if over_100k else 0, over_100k)
    return ModelFacts(window=1_000_000, max_tokens=128_000, price=price)


def _gpt(input: float, output: float, cache_read: float) -> ModelFacts:
    """1.05M tokens window, 128K reply; a cache write costs 1.25 times the input. A request with
    more than 272K tokens of prompt costs double, its reply 1.5 times as much."""
    write = input * 1.25
    long = Price(input * 2, output * 1.5, cache_read * 2, write * 2)
    price = Price(input, output, cache_read, write, 272_000, long)
    return ModelFacts(window=1_050_000, max_tokens=128_000, price=price)


TABLE: Mapping[str, Mapping[str, ModelFacts]] = {
    # https://platform.claude.com/docs/en/models/overview and each model's own page
    # https://platform.claude.com/docs/en/about-claude/pricing
    "anthropic": {
        "claude-fable-5-1": _claude(10, 50, 0.25),
        "claude-fable-5": _claude(10, 50, 1),
        "claude-opus-5-5": _claude(4, 20, 0.20),
        "claude-opus-5": _claude(5, 25, 0.50),
        "claude-sonnet-5-5": _claude(2, 10, 0.10),
        "claude-sonnet-5": _claude(2, 10, 0.20),
        "claude-haiku-5-5": _claude(0.10, 0.50, 0.01, over_100k=Price(0.50, 2.50, 0.05, 0.625)),
        "claude-haiku-4-5": ModelFacts(200_000, 64_000, Price(1, 5, 0.10, 1.25)),
        # Their sizes are not on the pages that give their prices.
        "claude-opus-4-8": ModelFacts(price=Price(5, 25, 0.50, 6.25)),
        "claude-opus-4-7": ModelFacts(price=Price(5, 25, 0.50, 6.25)),
        "claude-opus-4-6": ModelFacts(price=Price(5, 25, 0.50, 6.25)),
        "claude-opus-4-5": ModelFacts(price=Price(5, 25, 0.50, 6.25)),
    },
    # https://developers.openai.com/api/docs/models and each model's own page
    # https://developers.openai.com/api/docs/pricing
    "openai": {
        "gpt-6.2-astra": ModelFacts(window=1_050_000, max_tokens=128_000),
        "gpt-6.2-sol": _gpt(2, 10, 0.10),
        "gpt-6.1-sol": _gpt(2, 10, 0.10),
        "gpt-6.1-terra": _gpt(1, 5, 0.05),
        "gpt-6-astra": _gpt(10, 50, 1),
        "gpt-6-sol": _gpt(2, 10, 0.20),
        "gpt-6-luna": _gpt(0.10, 0.50, 0.01),
    },
    # https://api-docs.deepseek.com/quick_start/pricing: the price depends on the time of day
    "deepseek": {
        "deepseek-flash": ModelFacts(window=1_000_000, max_tokens=384_000),
        "deepseek-v4-pro": ModelFacts(window=1_000_000, max_tokens=384_000),
    },
}
"""The models by provider, and by the provider's own name for each."""

DEFAULTS: Mapping[str, str] = {
    "anthropic": "claude-sonnet-5-5",
    "openai": "gpt-6.2-sol",
    "deepseek": "deepseek-flash",
    "mistral": "mistral-large-latest",
}
"""The model of each provider with which a person begins who names none, as of AS_OF. A provider
that is not here has no obvious one."""

_DATED = regex(r"(?P<name>.+)-(?:20\d{6}|20\d\d-\d\d-\d\d|latest)")
"""Both providers name a fixed state of a model by its date (`claude-opus-4-5-20251101`,
`gpt-5.4-mini-2026-03-17`) and the newest one by `-latest`."""


def facts(provider: str, model: str) -> ModelFacts:
    """Returns what the table has under the model's exact name, else under its name without a date.
    What is unknown is 0 or None."""
    known = TABLE.get(provider, {})
    dated = _DATED.fullmatch(model)
    return known.get(model) or (known.get(dated["name"]) if dated else None) or ModelFacts()
