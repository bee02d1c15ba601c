"""These functions say in Magy's words what a failed model request means: they turn an HTTP status,
an error name or an exception into a `ProviderError`. All adapters share them; they know no
library."""

from __future__ import annotations

import os
import re
import ssl
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

from magy_server.core.errors import ProviderError, ProviderFault
from magy_server.dataclass import dataclass
from magy_server.regex import regex

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

_NAMES: Mapping[str, ProviderFault] = {
    "authentication_error": "auth",
    "invalid_api_key": "auth",
    "permission_error": "auth",
    "not_found_error": "not_found",
    "model_not_found": "not_found",
    "request_too_large": "too_long",
    "context_length_exceeded": "too_long",
    "exceed_context_size_error": "too_long",
    "rate_limit_error": "rate_limit",
    "rate_limit_exceeded": "rate_limit",
    "RESOURCE_EXHAUSTED": "rate_limit",
    "overloaded_error": "overloaded",
    "server_is_overloaded": "overloaded",
    "slow_down": "overloaded",
    "UNAVAILABLE": "overloaded",
    "timeout_error": "timeout",
    "invalid_request_error": "refused",
    "invalid_prompt": "refused",
    "billing_error": "refused",
    "billing_hard_limit_reached": "refused",
    "insufficient_quota": "refused",
    "data_residency_mismatch": "refused",
    "content_filter": "refused",
    "tool_use_failed": "malformed",
}
"""What providers call their errors: `code`, `type` or `status` of an error object."""

_TELLING = frozenset(
    {
        "billing_hard_limit_reached",
        "context_length_exceeded",
        "exceed_context_size_error",
        "insufficient_quota",
        "tool_use_failed",
    }
)
"""Names that say more than the HTTP status they come with."""

_REFUSED = regex(r"(.*_policy.*|(invalid|empty|unsupported)?_?image_.*|invalid_base64_image)")
"""With these names the provider refuses the same request again."""

_ADVICE: Mapping[ProviderFault, str] = {
    "no_key": "set the provider's API key",
    "auth": "check that the API key is valid and may use this model",
    "not_found": "check the model's name and the base URL",
    "rate_limit": "wait, or use another model",
    "overloaded": "wait, or use another model",
    "server": "this is a failure on the provider's side; try again later",
    "timeout": "try again; if it persists, check the network, or raise `model.timeout`",
    "connection": "check the network, a proxy in between, and the base URL",
    "malformed": "check that the base URL is this provider's API and not a web page or a proxy",
    "too_long": "compact the session, start a new one, or use a model with a larger context (start "
    "a server on your own machine with 32,000 tokens)",
    "refused": "this request cannot succeed unchanged; the provider's message says why",
}

_TOO_LONG = (
    "prompt is too long",
    "input is too long",
    "context limit",
    "context window",
    "context length",
    "context size",
    "maximum prompt length",
    "maximum number of tokens",
    "model token limit",
    "reduce the length of the messages",
)
_BAD_KEY = regex(r"api key\b.*\b(not valid|invalid|expired)|invalid api key", re.IGNORECASE)
_CANNOT = regex(r"\bimages?\b.*\bnot support|not support.*\bimages?\b", re.IGNORECASE)
"""Some servers report a failure of their own when a model cannot see."""
_GARBLED = "the model garbled a tool call: try again, or use another model"
_NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "UNKNOWN_PROTOCOL")
"""OpenSSL gives these reasons when the other side does not speak TLS at all. It will not the next
time."""
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
    """Returns the error as one sentence: which model and endpoint (`target`) it concerns, what went
    wrong, and what to do."""
    return ProviderError(
        f"{target}: {what}. What to do: {advice or _ADVICE[fault]}.",
        fault=fault,
        retryable=fault in RETRYABLE if retryable is None else retryable,
        retry_after=retry_after,
    )


def target(model: str, base_url: str) -> str:
    """Returns how messages name the other side. They name only the host: a base URL may hold a
    password."""
    parts = urlsplit(base_url)
    port = f":{parts.port}" if parts.port else ""
    return f"{model} at {parts.scheme}://{parts.hostname or ''}{port}"


@dataclass(frozen=True, slots=True)
class Words:
    """What a provider's error object says. `names`: what it calls the error, the most exact first;
    `status`: an HTTP status that it names, or 0; `parameter`: of the request, or ""."""

    text: str
    names: tuple[str, ...] = ()
    status: int = 0
    parameter: str = ""


def words(error: Any, depth: int = 4) -> Words:
    """Reads an error body in any of the usual shapes: text, `{"message", "type", ...}`, the same
    below `error`, lists of those, lists of `{"loc", "msg"}` below `detail`. It looks no deeper than
    `depth`."""
    match error:
        case _ if depth == 0:
            return Words("")
        case [*several] if several:
            read = [words(one, depth - 1) for one in several]
            return Words("; ".join(w.text for w in read), read[0].names, read[0].status)
        case {"error": inner} if inner:
            return words(inner, depth - 1)
        case {"loc": [*where], "msg": str(text)}:
            return Words(f"{'.'.join(map(str, where))}: {text}")
        case {"message": text} | {"detail": text}:
            named = [str(error[key]) for key in ("code", "status", "type") if error.get(key)]
            return Words(
                text if isinstance(text, str) else words(text, depth - 1).text,
                tuple(name for name in named if not name.isdecimal()),
                next((int(name) for name in named if name.isdecimal()), 0),
                error["param"] if isinstance(error.get("param"), str) else "",
            )
        case str():
            return Words(error)
    return Words("")


def status_failure(
    target: str, status: int, headers: Mapping[str, str], body: Any, unset: str = ""
) -> ProviderError:
    """Returns the error for an HTTP answer that is not a success. `body` is its JSON, or text. The
    header `x-should-retry` overrules the table. `unset` names the variable that was to hold the
    key."""
    said = words(body)
    fault = next((_NAMES[n] for n in said.names if n in _TELLING), _of_status(status))
    if fault == "refused" and is_too_long(said.text):
        fault = "too_long"
    elif fault == "refused" and _BAD_KEY.search(said.text):
        fault = "auth"
    elif fault == "server" and _CANNOT.search(said.text):
        fault = "refused"
    advice = _GARBLED if fault == "malformed" else ""
    if fault == "auth" and unset:
        advice = f"set {unset}, which is not set, where Magy is started"
    wish = headers.get("x-should-retry")
    return failure(
        target,
        fault,
        f"the provider answered HTTP {status}{quoted(said.text)}",
        advice=advice,
        retryable=None if wish not in ("true", "false") else wish == "true",
        retry_after=retry_after(headers),
    )


def redirect_failure(target: str, status: int, url: str, location: str) -> ProviderError:
    """Returns the error for an HTTP answer that redirects to `location` (perhaps relative to `url`,
    that of the request). Magy sends nothing there, for nobody chose that place."""
    try:
        parts = urlsplit(urljoin(url, location))
    except ValueError:
        parts = urlsplit("")
    where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"[:_LONGEST_QUOTE]
    points = f", which points to {where}" if location and parts.netloc else ""
    return failure(
        target,
        "not_found",
        f"the provider answered HTTP {status}{points}; nothing was sent there",
        advice="check the base URL; if the API has moved there, set the provider's `base_url` in "
        "magy.toml to it",
    )


def stream_failure(target: str, error: Any) -> ProviderError:
    """Returns the error for an error object in the middle of a stream, or in place of one."""
    said = words(error)
    known = (_NAMES[name] for name in said.names if name in _NAMES)
    fault = next(known, _of_status(said.status))
    if fault == "server" and any(_REFUSED.fullmatch(name) for name in said.names):
        fault = "refused"
    if fault in ("refused", "server") and is_too_long(said.text):
        fault = "too_long"
    name = next(iter(said.names), "an error")
    what = f"the provider broke off the reply with {name}{quoted(said.text)}"
    return failure(target, fault, what, advice=_GARBLED if fault == "malformed" else "")


def _of_status(status: int) -> ProviderFault:
    return _STATUS.get(status) or ("refused" if 400 <= status < 500 else "server")


def is_too_long(words: str) -> bool:
    return any(sign in words.lower() for sign in _TOO_LONG)


def quoted(words: str) -> str:
    """Returns a provider's words for the middle of a sentence; "" for a web page, which is not
    worth quoting."""
    line = " ".join(words.split())
    if not line or line.startswith("<"):
        return ""
    return f" ({line[:_LONGEST_QUOTE].rstrip('.')})"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Returns how many seconds to wait, from `retry-after-ms` or `retry-after` (seconds or a date,
    RFC 9110 §10.2.3)."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "")
    seconds = _number(value)
    if seconds is not None or not value:
        return seconds
    from email.utils import parsedate_to_datetime  # few servers send a date

    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None


def unusable(target: str, error: BaseException) -> ProviderError:
    """Returns the error for connections that cannot even be tried, since something is wrong with
    what the environment says of them; its cause says what."""
    cause = error.__cause__
    why = getattr(cause, "strerror", None) or str(cause)
    return failure(
        target,
        "connection",
        f"no connection can be made{quoted(why)}",
        advice="check what SSL_CERT_FILE, SSL_CERT_DIR and the variables for proxies (HTTPS_PROXY, "
        "ALL_PROXY and the like) name where Magy is started",
        retryable=False,
    )


def connection_failure(target: str, error: BaseException) -> ProviderError:
    """Returns the error for a connection that could not be made, or broke. The root of the
    exception chain says why: SDK and HTTP library wrap it in general words."""
    chain = [error]
    while (inner := chain[-1].__cause__ or chain[-1].__context__) and inner not in chain:
        chain.append(inner)
    for cause in chain:
        if isinstance(cause, ssl.SSLError):
            reason = getattr(cause, "verify_message", "") or cause.reason or str(cause)
            wrong = isinstance(cause, ssl.SSLCertVerificationError) or reason in _NO_TLS
            return failure(
                target,
                "connection",
                f"no secure connection (TLS: {reason})",
                advice="check https against http in the base URL, the computer's date, and whether "
                "a proxy puts its own certificate in between",
                retryable=not wrong,
            )
    root = next((c for c in reversed(chain) if isinstance(c, OSError) and c.errno), chain[-1])
    errno = getattr(root, "errno", None) or 0
    if errno > 0:
        why = os.strerror(errno)
    else:  # a name that no server knows has a number of its own
        why = getattr(root, "strerror", None) or str(root) or type(root).__name__
    return failure(target, "connection", f"the connection failed{quoted(why)}")
