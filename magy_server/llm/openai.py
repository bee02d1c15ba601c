"""These providers speak OpenAI's two wires, Responses and Chat Completions, with OpenAI itself and
with the many servers that speak one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from magy_server.core.ports import ModelRequest
from magy_server.llm import chat_answer, chat_wire, responses_wire
from magy_server.llm.http_provider import HttpProvider
from magy_server.llm.openai_quirks import Quirks, known, learned
from magy_server.llm.transports.transport import Vendor

VENDOR = Vendor(
    sdk="openai",
    client="AsyncOpenAI",
    base_url="https://api.openai.com/v1",
    key_variable="OPENAI_API_KEY",
    custom_headers="OPENAI_CUSTOM_HEADERS",
    headers={},
    account={"openai-organization": "OPENAI_ORG_ID", "openai-project": "OPENAI_PROJECT_ID"},
)


class _OpenAIProvider(HttpProvider):
    """What the server of a model does not take is found out by its refusals: such a request is
    asked again at once, in a form that it takes. What was learned of a model are its `Quirks`."""

    vendor = VENDOR
    models_path = "/models"

    def _place(self, base_url: str) -> str:
        """Returns the base URL with the path `/v1`, where nearly all servers have this API, if the
        given one is only a host and port. One that ends with a slash stays as it is."""
        return base_url if urlsplit(base_url).path else f"{base_url}/v1"

    @property
    def _official(self) -> bool:
        return known(self._base_url, "").official

    def _quirks(self, request: ModelRequest) -> Quirks:
        found: Quirks | None = self._learned.get(request.model)
        return found or known(self._base_url, request.model)

    def _learn(
        self, request: ModelRequest, sent: Mapping[str, Any], error: Any, status: int
    ) -> bool:
        quirks = learned(self._quirks(request), sent, error, status)
        if quirks is None:
            return False
        self._learned[request.model] = quirks
        return True


class ResponsesProvider(_OpenAIProvider):
    """`Provider` for the Responses API; see `HttpProvider`."""

    speaks = "an OpenAI API with Responses"
    path = "/responses"
    answer = responses_wire.Answer

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        return responses_wire.body(request, self._quirks(request))


class ChatProvider(_OpenAIProvider):
    """`Provider` for the Chat Completions API; see `HttpProvider`."""

    speaks = "an OpenAI API with Chat Completions"
    path = "/chat/completions"
    answer = chat_answer.Answer
    takes_json = True

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        return chat_wire.body(request, self._quirks(request))
