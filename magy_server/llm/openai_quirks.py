"""Servers that speak OpenAI's wires differ from each other: this module knows how, without I/O,
from a server's address and model names, and learns from its refusals."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from magy_server.core.ports import ModelRequest
from magy_server.dataclass import dataclass
from magy_server.llm import pictures
from magy_server.llm.faults import Words, is_too_long, words
from magy_server.llm.local_servers import is_near
from magy_server.llm.request_cache import Form, Write
from magy_server.llm.wire import WIRE_ID, own_id
from magy_server.regex import regex

LOW, MEDIUM = 4_000, 16_000
"""Thinking tokens up to which the effort asked for is low, medium; above, it is high."""

LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")

_OPTIONAL = (
    "stream_options",
    "return_progress",
    "prompt_cache_key",
    "temperature",
    "reasoning_effort",
    "reasoning.summary",
    "reasoning.effort",
    "reasoning",
    "include",
    "store",
)
"""A request can do without these where the server does not take them."""
_REASONS = regex(r"(?:.*/)?(o\d|gpt-([5-9]|\d\d)|codex)(?!.*-chat).*")
_MISTRAL = regex(r"(.*/)?(mistral|ministral|magistral|codestral|devstral|pixtral).*")
_MISTRAL_ID = regex(r"[a-zA-Z0-9]{9}")
_SIZE = regex(r"too (large|big|high)|at most|exceed|less than|maximum", re.IGNORECASE)
_UNTHOUGHT = regex(r"missing\b.*\breasoning|\breasoning.*\b(missing|passed back)", re.IGNORECASE)
_PICTURES = regex(r"input_image|function_call_output|output of tool call", re.IGNORECASE)
_BEFORE_NAMES = "supplied|parameters?|arguments?|property|fields?|model"
_OF_A_MESSAGE = regex(r"\b(messages|input|contents?)[\[.]\W?\d")
"""A refusal that says where in the conversation something is wrong, and may quote it."""


@dataclass(frozen=True, slots=True)
class Quirks:
    """What is special about a model on a server. `refused`: parameters that it does not take."""

    refused: frozenset[str] = frozenset()
    official: bool = False
    """The server is OpenAI's own API, or Azure's copy of it."""
    mistral: bool = False
    """Ids of calls have nine letters and digits, and no user message follows a tool's result."""
    gemini: bool = False
    """The server wants a signature with each call."""
    wants_thinking: bool = False
    """The server wants each call back with the thinking before it (Chat Completions)."""
    pictures_apart: bool = False
    """A tool's result has no room for pictures (Responses)."""
    blind: bool = False
    """The model, or its server, takes no pictures."""
    near: bool = False
    """The server runs on this machine."""

    @property
    def valid_id(self) -> re.Pattern[str]:
        return _MISTRAL_ID if self.mistral else WIRE_ID

    def make_id(self, call: str) -> str:
        return hashlib.sha256(call.encode()).hexdigest()[:9] if self.mistral else own_id(call)[:40]

    def form(self, write: Write) -> Form:
        """How a conversation is written by `write`, which knows these quirks."""
        hidden = pictures.ALL if self.blind else 0
        return Form(write, self.valid_id, self.make_id, self, hidden, pictures.UNSEEN)

    def limit(self) -> str | None:
        """What a limit of the reply is called on Chat Completions. Many servers pass over the newer
        name in silence, while OpenAI's reasoning models refuse the older one."""
        names = ("max_completion_tokens", "max_tokens") if self.official else LIMITS[:2]
        return next((name for name in names if name not in self.refused), None)


def known(base_url: str, model: str) -> Quirks:
    """Returns what is known of a model on a server before the first request."""
    host = urlsplit(base_url).hostname or ""
    name = model.lower()
    return Quirks(
        official=host == "api.openai.com" or host.endswith((".openai.com", ".openai.azure.com")),
        mistral=host.endswith("mistral.ai") or _MISTRAL.fullmatch(name) is not None,
        gemini=host.endswith("googleapis.com"),
        near=is_near(base_url),
        wants_thinking="deepseek" in host or "moonshot" in host,
    )


def reasons(model: str) -> bool:
    """Returns whether this is one of OpenAI's reasoning models: they take no temperature, and their
    reasoning comes encrypted."""
    return _REASONS.fullmatch(model.lower()) is not None


def effort(request: ModelRequest) -> str | None:
    """Returns the effort for a budget of thinking tokens; None leaves it to the provider."""
    tokens = request.thinking_tokens
    if tokens <= 0:
        return None
    return "low" if tokens <= LOW else "medium" if tokens <= MEDIUM else "high"


def limit(request: ModelRequest) -> int:
    """Tokens of the whole reply, thinking included, 0 for no limit: what is meant for the answer
    is not to be used up by thinking."""
    if 0 < request.max_tokens <= request.thinking_tokens:
        return request.max_tokens + request.thinking_tokens
    return request.max_tokens


def pruned(body: dict[str, Any], quirks: Quirks) -> dict[str, Any]:
    """Returns the body without what the server does not take."""
    for path in quirks.refused:
        outer, _, inner = path.partition(".")
        if not inner:
            body.pop(outer, None)
        elif outer in body:
            body[outer] = {name: value for name, value in body[outer].items() if name != inner}
    if body.get("reasoning") == {}:
        del body["reasoning"]
    return body


def learned(
    quirks: Quirks, sent: Mapping[str, Any], error: Any, status: int = 400
) -> Quirks | None:
    """What a refusal (`error`: its body) of the request `sent` teaches; None when another form of
    the same request would not help. Only of a 400 or 422 is it sure that it is a refusal."""
    if status not in (400, 422):
        blind = not quirks.blind and pictures.is_blind(sent, error)
        return replace(quirks, blind=True) if blind else None
    said = words(error)
    if _UNTHOUGHT.search(said.text) and "messages" in sent and not quirks.wants_thinking:
        return replace(quirks, wants_thinking=True)
    refused = _limits(sent, said) or _parameters(sent, said, quirks)
    if refused - quirks.refused:
        return replace(quirks, refused=quirks.refused | refused)
    if _PICTURES.search(said.text) and not quirks.pictures_apart and _shown_by_tools(sent):
        return replace(quirks, pictures_apart=True)
    if not quirks.blind and pictures.is_blind(sent, error):
        return replace(quirks, blind=True)
    return None


def _shown_by_tools(sent: Mapping[str, Any]) -> bool:
    return any(pictures.shows(item.get("output")) for item in sent.get("input") or ())


def _limits(sent: Mapping[str, Any], said: Words) -> frozenset[str]:
    """Changes the limit of the reply after a refusal. Where the limit is too high for the model,
    the request leaves it out; where its name is wrong, it takes the other name."""
    named = next((name for name in LIMITS if name in sent and _names(said, name)), None)
    if named is None:
        return frozenset()
    if _SIZE.search(said.text):
        return frozenset(LIMITS)
    return frozenset() if is_too_long(said.text) else frozenset({named})


def _parameters(sent: Mapping[str, Any], said: Words, quirks: Quirks) -> frozenset[str]:
    for path in _OPTIONAL:
        if path == "store" and quirks.official:
            continue  # without it OpenAI keeps the conversation
        outer, _, inner = path.partition(".")
        if outer in sent and (not inner or inner in sent[outer]) and _names(said, path):
            if inner and "unsupported_parameter" in said.names:  # the model does not reason at all
                return frozenset({"reasoning", "include"})
            return frozenset({path})
    return frozenset()


def _names(said: Words, parameter: str) -> bool:
    """Whether the refusal is about this parameter: it must be marked as a name, for the words may
    quote what somebody said."""
    if said.parameter:
        return said.parameter.partition("[")[0] == parameter
    if _OF_A_MESSAGE.search(said.text):
        return False
    name = re.escape(parameter)
    marked = rf"['\"`]{name}['\"`]|\.{name}:|^{name}\b|\b({_BEFORE_NAMES}): {name}\b"
    return re.search(marked, said.text) is not None
