"""Anthropic Messages through the official SDK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from magy_server.core.ports import ModelRequest
from magy_server.llm import sight
from magy_server.llm.anthropic_wire import Answer, body
from magy_server.llm.sdk import SdkProvider

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic


class AnthropicProvider(SdkProvider):
    """`Provider` for the Anthropic API and what speaks the same wire; see `SdkProvider`. Which
    models turned out to be blind is kept in mind as long as the process lives."""

    default_base_url = "https://api.anthropic.com"
    no_key = (
        "No model is configured: set ANTHROPIC_API_KEY, or choose a model of another provider in "
        "magy.toml; `magy demo` shows Magy without a key."
    )
    speaks = "an Anthropic API"
    path = "/v1/messages"
    models_path = "/v1/models"

    def __init__(
        self,
        api_key: str,
        base_url: str | None = None,
        *,
        connect: float = 10.0,
        first_byte: float = 120.0,
        stall: float = 60.0,
    ) -> None:
        super().__init__(api_key, base_url, connect=connect, first_byte=first_byte, stall=stall)
        self._blind: set[str] = set()

    @property
    def _official(self) -> bool:
        return f".{urlsplit(self._base_url).hostname}".endswith(".anthropic.com")

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
        return body(request, blind=request.model in self._blind)

    def _learn(
        self, request: ModelRequest, sent: Mapping[str, Any], error: Any, status: int
    ) -> bool:
        if not sight.is_blind(sent, error):
            return False
        self._blind.add(request.model)
        return True

    def _answer(self, request: ModelRequest) -> Answer:
        return Answer(request)
