"""This module tells whether a server of open models runs on this machine, and which window it gives
a model. OpenAI's API has no field for that, so each server says it elsewhere. Without I/O."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

LISTS = ("/v1/models",)
"""Asked of any server: vLLM says `max_model_len` there, llama.cpp `meta.n_ctx`, Groq and others
`context_window` or `context_length`."""

NEAR = ("/props", "/api/ps", "/api/v0/models")
"""Asked of servers on this machine besides: llama.cpp, Ollama (of the models that are loaded),
LM Studio."""

_FIELDS = (
    "max_model_len", "n_ctx", "loaded_context_length", "context_window", "context_length",
)  # fmt: skip
_NAMES = ("id", "name", "model", "key")


def is_near(base_url: str) -> bool:
    """Returns whether the server runs on this machine."""
    try:
        host = urlsplit(base_url).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def window(answer: Any, model: str) -> int:
    """Tokens of prompt and reply together that an answer from one of these places gives the model;
    0 when it does not say."""
    if not isinstance(answer, Mapping):
        return 0
    settings = answer.get("default_generation_settings")  # llama.cpp serves one model
    if isinstance(settings, Mapping):
        return _tokens(settings)
    named = (one for one in _listed(answer) if model in (one.get(name) for name in _NAMES))
    return next((found for one in named if (found := _tokens(one))), 0)


def _listed(answer: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for place in ("data", "models"):
        several = answer.get(place)
        if isinstance(several, list):
            yield from (one for one in several if isinstance(one, Mapping))


def _tokens(about: Mapping[str, Any]) -> int:
    meta = about.get("meta")
    for fields in (about, meta if isinstance(meta, Mapping) else {}):
        for name in _FIELDS:
            value = fields.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    return 0
