"""HTTP servers on loopback that speak the providers' wires: the adapters are tested against these
with the real SDKs. Start with `anthropic.py`."""

from .anthropic import Answer, AnthropicServer
from .from_script import anthropic_answers
from .http import Request
from .parts import (
    Fault,
    Part,
    call,
    cut,
    error,
    hang,
    pause,
    ping,
    raw,
    redacted,
    stop,
    text,
    thinking,
    usage,
)

__all__ = [
    "Answer", "AnthropicServer", "Fault", "Part", "Request", "anthropic_answers", "call", "cut",
    "error", "hang", "pause", "ping", "raw", "redacted", "stop", "text", "thinking", "usage",
]  # fmt: skip
