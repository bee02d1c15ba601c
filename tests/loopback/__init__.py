"""HTTP servers on loopback that speak the providers' wires: the adapters are tested against these
with the real SDKs. Start with `server.py`."""

from .anthropic import AnthropicServer
from .from_script import answers, anthropic_answers
from .http import Request
from .openai_chat import ChatServer, Quirks
from .openai_responses import ResponsesServer
from .parts import (
    Fault,
    Part,
    call,
    cut,
    error,
    failed,
    hang,
    pause,
    ping,
    raw,
    redacted,
    refusal,
    stop,
    summaries,
    text,
    thinking,
    usage,
)
from .server import Answer, ModelServer

__all__ = [
    "Answer",
    "AnthropicServer",
    "ChatServer",
    "Fault",
    "ModelServer",
    "Part",
    "Quirks",
    "Request",
    "ResponsesServer",
    "answers",
    "anthropic_answers",
    "call",
    "cut",
    "error",
    "failed",
    "hang",
    "pause",
    "ping",
    "raw",
    "redacted",
    "refusal",
    "stop",
    "summaries",
    "text",
    "thinking",
    "usage",
]  # fmt: skip
