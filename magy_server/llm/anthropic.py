"""Anthropic Messages through the official SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from magy_server.core.ports import ModelRequest
from magy_server.llm.anthropic_wire import Answer, body
from magy_server.llm.sdk import SdkProvider

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic


class AnthropicProvider(SdkProvider):
    """`Provider` for the Anthropic API and what speaks the same wire; see `SdkProvider`."""

    default_base_url = "https://api.anthropic.com"
    no_key = (
        "No model is configured: set ANTHROPIC_API_KEY, or choose a model of another provider in "
        "magy.toml; `magy demo` shows Magy without a key."
    )
    speaks = "an Anthropic API"
    path = "/v1/messages"
    models_path = "/v1/models"

    def _sdk(self) -> Any:
        import anthropic

        return anthropic

    def _make_client(self) -> AsyncAnthropic:
        from anthropic import AsyncAnthropic, Timeout

        return AsyncAnthropic(
            api_key=self._api_key or "none",
            base_url=self._base_url,
            max_retries=0,
            # The limits on reading are ours: the SDK knows only one for all phases.
            timeout=Timeout(None, connect=self._connect, write=self._first_byte),
        )

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        return body(request)

    def _answer(self, request: ModelRequest) -> Answer:
        return Answer(request)
