"""Anthropic Messages through the official SDK.

The SDK makes the request (authentication, connection pool, HTTP errors) and splits the answer into
server-sent events; its typed events and its streaming helper are not used: they cost more than all
the rest, and the helper parses the tool arguments again at each delta.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TYPE_CHECKING, Any

import orjson

from magy_server.core.errors import ProviderError, ProviderFault
from magy_server.core.events import Replied
from magy_server.core.ports import Delta, ModelRequest
from magy_server.llm import faults
from magy_server.llm.anthropic_wire import Answer, body

if TYPE_CHECKING:
    from anthropic import APIStatusError, AsyncAnthropic, AsyncStream
    from anthropic._streaming import ServerSentEvent

DEFAULT_BASE_URL = "https://api.anthropic.com"
NO_KEY = (
    "No model is configured: set ANTHROPIC_API_KEY, or choose a model of another provider in "
    "magy.toml; `magy demo` shows Magy without a key."
)

_BROKEN_ADVICE = (
    "try again; if it persists, check that the base URL is an Anthropic API and that no proxy in "
    "between changes the answer"
)

_FAULTS: dict[str, ProviderFault] = {
    "authentication_error": "auth",
    "permission_error": "auth",
    "not_found_error": "not_found",
    "request_too_large": "too_long",
    "rate_limit_error": "rate_limit",
    "overloaded_error": "overloaded",
    "timeout_error": "timeout",
    "invalid_request_error": "refused",
    "billing_error": "refused",
}
"""`error.type` of an error event in the middle of a stream."""

_DRAIN = 0.2
"""Seconds to wait for the end of the body after the last event; then the connection is dropped
instead of used again."""


class AnthropicProvider:
    """`Provider` for the Anthropic API and what speaks the same wire.

    `api_key` may be empty with a `base_url` of one's own (local servers ask for none). Timeouts are
    in seconds: `connect` for the connection, `first_byte` from the request to the first event,
    `stall` between two events (pings count).
    """

    def __init__(
        self,
        api_key: str,
        base_url: str | None = None,
        *,
        connect: float = 10.0,
        first_byte: float = 120.0,
        stall: float = 60.0,
    ) -> None:
        self._api_key = api_key
        self._base_url = base_url or DEFAULT_BASE_URL
        self._keyless = not api_key and base_url is None
        self._connect = connect
        self._first_byte = first_byte
        self._stall = stall
        self._shared: AsyncAnthropic | None = None
        self._making = threading.Lock()

    def warm(self) -> None:
        """Imports the SDK and makes the client. Thread-safe; the second call costs nothing."""
        with self._making:
            if self._shared is None:
                self._shared = self._make_client()

    async def close(self) -> None:
        """Closes idle connections. The provider can be used again."""
        with self._making:
            client, self._shared = self._shared, None
        if client is not None:
            await client.close()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta | Replied, None]:
        """See `Provider`. Closing the iterator closes the connection."""
        if self._keyless:
            raise ProviderError(NO_KEY, fault="no_key")
        client = await self._client()
        from httpx2 import HTTPError

        target = faults.target(request.model, self._base_url)
        answer = Answer(request)
        stream = await self._open(client, request, target)
        try:
            events = stream.raw_events(stream.response)
            limit = self._first_byte
            while not answer.complete:
                async with asyncio.timeout(limit):
                    sse = await anext(events, None)
                if sse is None:
                    break
                delta = self._feed(answer, sse, target)
                if answer.started:
                    limit = self._stall
                if delta is not None:
                    yield delta
            await _drain(events)
        except TimeoutError:
            raise self._silence(answer, target) from None
        except HTTPError as error:
            if not answer.closing:
                raise self._broken(answer, target) from error
        except UnicodeDecodeError as error:
            raise self._unreadable(error.object.decode("utf-8", "replace"), target) from error
        finally:
            await stream.close()
        if not answer.closing and not answer.complete:
            raise self._broken(answer, target)
        yield answer.replied()

    async def _client(self) -> AsyncAnthropic:
        while self._shared is None:
            await asyncio.to_thread(self.warm)
        return self._shared

    def _make_client(self) -> AsyncAnthropic:
        from anthropic import AsyncAnthropic, Timeout

        client = AsyncAnthropic(
            api_key=self._api_key or "none",
            base_url=self._base_url,
            max_retries=0,
            # The limits on reading are ours (`stream`): the SDK knows only one for all phases.
            timeout=Timeout(None, connect=self._connect, write=self._first_byte),
        )
        _ = client.messages  # its modules are imported at first use
        return client

    async def _open(
        self, client: AsyncAnthropic, request: ModelRequest, target: str
    ) -> AsyncStream[Any]:
        """Sends the request and waits for the head of the answer."""
        from anthropic import APIConnectionError, APIStatusError, APITimeoutError

        fields = body(request)
        # Not a parameter of the SDK any more, but part of the wire.
        extra = {"temperature": fields.pop("temperature")} if "temperature" in fields else None
        try:
            async with asyncio.timeout(self._connect + self._first_byte):
                stream: AsyncStream[Any] = await client.messages.create(
                    **fields, stream=True, extra_body=extra
                )
        except APIStatusError as error:
            headers = error.response.headers
            raise faults.status_failure(
                target, error.status_code, headers, _words(error)
            ) from error
        except APITimeoutError as error:
            what = f"no connection within {self._connect:g} s"
            raise faults.failure(target, "timeout", what) from error
        except APIConnectionError as error:
            raise faults.connection_failure(target, error) from error
        except TimeoutError:
            raise self._silence(None, target) from None
        kind = stream.response.headers.get("content-type", "nothing")
        if not kind.startswith("text/event-stream"):
            await stream.close()
            what = f"the answer is not a stream of events but {kind.partition(';')[0]}"
            raise faults.failure(target, "malformed", what, retryable=False)
        return stream

    def _feed(self, answer: Answer, sse: ServerSentEvent, target: str) -> Delta | None:
        if not sse.data:
            return None
        try:
            event = orjson.loads(sse.data)
            if event["type"] == "error":
                raise _stream_failure(event["error"], target)
            return answer.feed(event)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self._unreadable(sse.data, target) from error

    def _unreadable(self, data: str, target: str) -> ProviderError:
        what = f"an event of the stream cannot be read{faults.quoted(data[:120])}"
        return faults.failure(target, "malformed", what, advice=_BROKEN_ADVICE)

    def _silence(self, answer: Answer | None, target: str) -> ProviderError:
        if answer is not None and answer.started:
            what = f"the reply stopped coming: nothing for {self._stall:g} s"
        else:
            what = f"no answer began within {self._first_byte:g} s"
        return faults.failure(target, "timeout", what)

    def _broken(self, answer: Answer, target: str) -> ProviderError:
        if not answer.started:
            what = "the answer was empty"
            return faults.failure(target, "malformed", what, advice=_BROKEN_ADVICE)
        what = "the connection was cut in the middle of the reply"
        return faults.failure(target, "connection", what)


async def _drain(events: AsyncIterator[object]) -> None:
    """Reads on to the end of the body, so that the connection can be used again. The reply is
    whole already: whatever goes wrong now costs only the connection."""
    from httpx2 import HTTPError

    with contextlib.suppress(TimeoutError, HTTPError):
        async with asyncio.timeout(_DRAIN):
            async for _ in events:
                pass


def _words(error: APIStatusError) -> str:
    """The provider's own message, or the text that came in its place."""
    return error.api_message or (error.body if isinstance(error.body, str) else "")


def _stream_failure(error: Any, target: str) -> ProviderError:
    kind, words = str(error.get("type", "")), str(error.get("message", ""))
    fault = _FAULTS.get(kind, "server")
    if fault == "refused" and faults.is_too_long(words):
        fault = "too_long"
    what = f"the provider broke off the reply with {kind or 'an error'}{faults.quoted(words)}"
    return faults.failure(target, fault, what)
