"""This provider speaks Anthropic Messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from magy_server.core.ports import ModelRequest
from magy_server.llm import pictures
from magy_server.llm.anthropic_wire import Answer, body
from magy_server.llm.http_provider import HttpProvider
from magy_server.llm.transports.transport import Vendor

VENDOR = Vendor(
    sdk="anthropic",
    client="AsyncAnthropic",
    base_url="https://api.anthropic.com",
    key_variable="ANTHROPIC_API_KEY",
    custom_headers="ANTHROPIC_CUSTOM_HEADERS",
    headers={"anthropic-version": "2026-10-21"},
    account={},
)


class AnthropicProvider(HttpProvider):
    """`Provider` for the Anthropic API and what speaks the same wire; see `HttpProvider`. All that
    refusals teach is that a model is blind."""

    vendor = VENDOR
    answer = Answer
    speaks = "an Anthropic API"
    path = "/v1/messages"
    models_path = "/v1/models"

    @property
    def _official(self) -> bool:
        return f".{urlsplit(self._base_url).hostname}".endswith(".anthropic.com")

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        return body(request, blind=request.model in self._learned)

    def _learn(
        self, request: ModelRequest, sent: Mapping[str, Any], error: Any, status: int
    ) -> bool:
        if not pictures.is_blind(sent, error):
            return False
        self._learned[request.model] = "blind"
        return True
