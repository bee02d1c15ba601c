"""What is known of models: by name and by dated name, and never by a name that looks alike."""

from __future__ import annotations

from datetime import date
from typing import get_args

import pytest

from magy_server.core.ports import ModelFacts, Price
from magy_server.core.values import Usage
from magy_server.llm import catalogue


def names(literal: object) -> set[str]:
    """The names in an SDK's own type of its models."""
    return {name for part in get_args(literal) for name in (get_args(part) or (part,))} - {str}


@pytest.mark.parametrize(
    ("provider", "model", "same_as"),
    [
        ("anthropic", "claude-haiku-4-5", "claude-haiku-4-5"),
        ("anthropic", "claude-haiku-4-5-20251001", "claude-haiku-4-5"),
        ("anthropic", "claude-haiku-4-5-latest", "claude-haiku-4-5"),
        ("openai", "gpt-6.1-sol-2026-09-29", "gpt-6.1-sol"),
    ],
)
def test_a_model_is_found_by_its_name_with_or_without_a_date(
    provider: str, model: str, same_as: str
) -> None:
    assert catalogue.facts(provider, model) == catalogue.TABLE[provider][same_as]


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("anthropic", "claude-haiku-4-6"),
        ("anthropic", "claude-haiku-4-5-thinking"),
        ("anthropic", "claude-haiku-4-5-99991001"),
        ("anthropic", "Claude-Haiku-4-5"),
        ("anthropic", "claude-haiku"),
        ("openai", "gpt-6.1-sol-2026-09"),
        ("openai", "gpt-6.1-sol-fast"),
        ("openai", "claude-haiku-4-5"),
        ("nobody", "gpt-6.1-sol"),
        ("openai", ""),
        ("openai", "-latest"),
    ],
)
def test_what_is_not_in_the_table_is_not_known(provider: str, model: str) -> None:
    assert catalogue.facts(provider, model) == ModelFacts()


def test_every_default_is_a_model_of_its_provider() -> None:
    for provider, model in catalogue.DEFAULTS.items():
        assert provider not in catalogue.TABLE or model in catalogue.TABLE[provider]


def test_the_table_names_models_that_the_sdk_knows() -> None:
    """Its newest names may be missing there, and a misspelt one would be missing, too: so many are
    allowed as the SDK can be behind."""
    from anthropic.types import model
    from openai.types.shared import chat_model

    assert not catalogue.TABLE["anthropic"].keys() - names(model.Model)
    unknown = catalogue.TABLE["openai"].keys() - names(chat_model.ChatModel)
    assert unknown <= {"gpt-6.2-astra", "gpt-6.2-sol"}


def test_the_figures_are_plausible() -> None:
    date.fromisoformat(catalogue.AS_OF)
    for models in catalogue.TABLE.values():
        for facts in models.values():
            assert 0 <= facts.max_tokens <= facts.window
            for price in filter(None, (facts.price, facts.price and facts.price.long)):
                assert 0 < price.cache_read < price.input < price.output
                assert price.input < price.cache_write < price.output


def test_a_long_prompt_is_charged_as_a_whole_at_its_own_price() -> None:
    short, long = Price(1, 2, 0.1, 1.25), Price(10, 20, 1, 12.5)
    price = Price(1, 2, 0.1, 1.25, long_above=100, long=long)
    at_the_limit = Usage(input=40, cache_read=40, cache_write=20, output=1_000)
    above = at_the_limit + Usage(cache_read=1)
    assert price.of(at_the_limit) == short.of(at_the_limit)
    assert price.of(above) == long.of(above)


def test_what_a_request_costs() -> None:
    """The figures of the documentation, multiplied by hand."""
    usage = Usage(input=1_000, cache_read=10_000, cache_write=2_000, output=500)
    sonnet = catalogue.facts("anthropic", "claude-sonnet-5-5").price
    assert sonnet is not None
    assert sonnet.of(usage) == pytest.approx(0.002 + 0.001 + 0.005 + 0.005)
    long = Usage(input=300_000, output=1_000)
    sol = catalogue.facts("openai", "gpt-6-sol").price
    assert sol is not None
    assert sol.of(long) == pytest.approx(1.2 + 0.015)
