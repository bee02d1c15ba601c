"""What a failed model request means, in Magy's words: HTTP status, error name or exception ->
`ProviderError`. Shared by the adapters; knows no SDK."""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from magy_server.core.errors import ProviderError, ProviderFault

RETRYABLE: frozenset[ProviderFault] = frozenset(
    {"rate_limit", "overloaded", "server", "timeout", "connection", "malformed"}
)
"""Faults after which the same request may succeed later, unless the provider says otherwise."""

_STATUS: Mapping[int, ProviderFault] = {
    401: "auth",
    403: "auth",
    404: "not_found",
    408: "timeout",
    409: "server",
    413: "too_long",
    429: "rate_limit",
    503: "overloaded",
    504: "timeout",
    529: "overloaded",
}

_ADVICE: Mapping[ProviderFault, str] = {
    "no_key": "set the provider's API key",
    "auth": "check that the API key is right, not expired, and allowed to use this model",
    "not_found": "check the model's name and the base URL",
    "rate_limit": "wait, or use another model",
    "overloaded": "wait, or use another model",
    "server": "this is a failure on the provider's side; try again later",
    "timeout": "try again; if it persists, check the network",
    "connection": "check the network, a proxy in between, and the base URL",
    "malformed": "check that the base URL is this provider's API and not a web page or a proxy",
    "too_long": "compact the session, start a new one, or use a model with a larger context",
    "refused": "this request will not succeed as it is; the provider's words say why",
}

_TOO_LONG = ("prompt is too long", "context limit", "context window", "context length")
_LONGEST_QUOTE = 500


def failure(
    target: str,
    fault: ProviderFault,
    what: str,
    *,
    advice: str = "",
    retryable: bool | None = None,
    retry_after: float | None = None,
) -> ProviderError:
    """The error, as one sentence: which model and endpoint (`target`), what, and what to do."""
    return ProviderError(
        f"{target}: {what}. What to do: {advice or _ADVICE[fault]}.",
        fault=fault,
        retryable=fault in RETRYABLE if retryable is None else retryable,
        retry_after=retry_after,
    )


def target(model: str, base_url: str) -> str:
    """How messages name the other side. Only the host: a base URL may hold a password."""
    parts = urlsplit(base_url)
    port = f":{parts.port}" if parts.port else ""
    return f"{model} at {parts.scheme}://{parts.hostname or ''}{port}"


def status_failure(
    target: str, status: int, headers: Mapping[str, str], words: str
) -> ProviderError:
    """For an HTTP answer that is not a success. `words` is the provider's own message, or the
    body. The header `x-should-retry` overrules the table."""
    fault = _STATUS.get(status) or ("server" if status >= 500 else "refused")
    if fault == "refused" and is_too_long(words):
        fault = "too_long"
    wish = headers.get("x-should-retry")
    return failure(
        target,
        fault,
        f"the provider answered HTTP {status}{quoted(words)}",
        retryable=None if wish not in ("true", "false") else wish == "true",
        retry_after=retry_after(headers),
    )


def is_too_long(words: str) -> bool:
    return any(sign in words.lower() for sign in _TOO_LONG)


def quoted(words: str) -> str:
    """A provider's words for the middle of a sentence; a web page is not worth quoting."""
    line = " ".join(words.split())
    if not line or line.startswith("<"):
        return ""
    return f" ({line[:_LONGEST_QUOTE].rstrip('.')})"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds, from `retry-after-ms` or `retry-after` (seconds or a date, RFC 9110 §10.2.3)."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "")
    seconds = _number(value)
    if seconds is not None or not value:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None


def connection_failure(target: str, error: BaseException) -> ProviderError:
    """For a connection that could not be made, or broke. The root of the exception chain says why:
    SDK and HTTP library wrap it in general words."""
    chain = [error]
    while (inner := chain[-1].__cause__ or chain[-1].__context__) and inner not in chain:
        chain.append(inner)
    for cause in chain:
        if isinstance(cause, ssl.SSLError):
            reason = getattr(cause, "verify_message", "") or cause.reason or str(cause)
            return failure(
                target,
                "connection",
                f"no secure connection (TLS: {reason})",
                advice="check https against http in the base URL, the computer's date, and whether "
                "a proxy puts its own certificate in between",
            )
    root = next((c for c in reversed(chain) if isinstance(c, OSError) and c.errno), chain[-1])
    errno = getattr(root, "errno", None) or 0
    why = os.strerror(errno) if errno > 0 else str(root) or type(root).__name__
    return failure(target, "connection", f"the connection failed{quoted(why)}")
