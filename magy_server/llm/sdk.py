"""`SdkProvider` makes model requests through an official SDK; the adapters for SDKs build on it.

The SDK makes the request (authentication, connection pool, HTTP errors). Its typed methods, events
and streaming helpers are not used: they cost more than all the rest and look at every part of a
long conversation; what goes out and comes in is the business of the pure wire modules.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from time import monotonic
from typing import Any, ClassVar
from urllib.parse import urlsplit

import orjson

from magy_server.core.errors import ProviderError
from magy_server.core.events import Replied
from magy_server.core.ports import Delta, ModelRequest, Reading
from magy_server.core.text.secrets import Secrets
from magy_server.core.text.surrogates import loads
from magy_server.llm import faults, local_servers, pictures, sse
from magy_server.llm.local_servers import is_near
from magy_server.llm.wire import Answer, StreamError

_LATE = 5.0
"""Seconds to wait, when the reply is whole, for what some providers say after it (usage)."""

_PAGES = 20
"""The most pages of a list of models that are read."""

_STAY: Mapping[str, Any] = {"follow_redirects": False}
"""A redirect would carry the conversation, and headers, to where nobody decided to send them."""

_DRAIN = 0.2
"""Seconds to wait for the end of the body after the last event; then the connection is dropped
instead of used again."""


class SdkProvider(ABC):
    """`Provider` over HTTP. `api_key` may be empty with a `base_url` of one's own (local servers
    ask for none); `unset` is the variable that was to hold it then. Timeouts are in seconds:
    `connect` for the connection, `first_byte` from the request until the reply begins, `stall` from
    then on between two signs of life (pings and comments count).
    """

    sdk: ClassVar[str]
    """The SDK's module."""
    client: ClassVar[str]
    """The SDK's name for its asynchronous client."""
    answer: ClassVar[type[Answer]]
    default_base_url: ClassVar[str]
    key_variable: ClassVar[str]
    """The environment variable that usually holds the key."""
    speaks: ClassVar[str]
    """What the other side should speak: "an Anthropic API"."""
    path: ClassVar[str]
    """Where replies are asked for, below the base URL."""
    models_path: ClassVar[str]
    takes_json: ClassVar[bool] = False
    """The answer may also be one JSON object, from a server that does not stream."""

    def __init__(
        self,
        api_key: str,
        base_url: str | None = None,
        *,
        connect: float = 10.0,
        first_byte: float = 120.0,
        stall: float = 60.0,
        unset: str = "",
    ) -> None:
        self._api_key = api_key.strip()
        self._base_url = self._place(base_url) if base_url else self.default_base_url
        self._secrets = Secrets([self._api_key])
        """For what is quoted of an answer: it is cut, and half a key is not known for one."""
        self._keyless = not self._api_key and not base_url
        self._connect = connect
        self._first_byte = first_byte
        self._stall = stall
        self._unset = unset
        self._learned: dict[str, Any] = {}
        """What refusals taught, by model. The process keeps it as long as it lives."""
        self._shared: Any = None
        self._making = threading.Lock()

    # --- an adapter -----------------------------------------------------------------------------

    def _place(self, base_url: str) -> str:
        """Returns the base URL that a person means by one of their own."""
        return base_url

    def _sdk(self) -> Any:
        """Imports the SDK, and returns it."""
        return importlib.import_module(self.sdk)

    def _make_client(self) -> Any:
        sdk = self._sdk()
        return getattr(sdk, self.client)(
            api_key=self._api_key or "none",
            base_url=self._base_url,
            max_retries=0,
            # The limits on reading are ours (`stream`): the SDKs know only one for all phases.
            timeout=sdk.Timeout(None, connect=self._connect, write=self._first_byte),
        )

    @abstractmethod
    def _body(self, request: ModelRequest) -> dict[str, Any]: ...

    @property
    @abstractmethod
    def _official(self) -> bool:
        """Returns whether the base URL is the vendor's own API."""

    def _keep_private(self, client: Any) -> None:
        """Takes from the client what the SDK found in the environment (headers that people set for
        a gateway of theirs): it is not for other people's servers. The SDKs know no other way."""
        client._custom_headers = {}

    def _learn(
        self, request: ModelRequest, sent: Mapping[str, Any], error: Any, status: int
    ) -> bool:
        """Whether to ask once more, `_body` being another one now: the provider said with one of
        `pictures.STATUSES` (`error`: its body) that it does not take the request in this form."""
        return False

    # --- Provider -------------------------------------------------------------------------------

    def warm(self) -> None:
        """Imports the SDK and makes the client. Thread-safe; the second call costs nothing."""
        with self._making:
            if self._shared is None:
                client = self._make_client()
                if not self._official:
                    self._keep_private(client)
                self._shared = client

    async def close(self) -> None:
        """Closes idle connections. The provider can be used again."""
        client, self._shared = self._shared, None  # one that `warm` just makes has none yet
        if client is not None:
            await client.close()

    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[Delta | Reading | Replied, None]:
        """See `Provider`. Closing the iterator closes the connection."""
        client = await self._client()
        from httpx2 import HTTPError

        target = faults.target(request.model, self._base_url)
        answer = self.answer(request)
        latest = monotonic() + self._first_byte
        response = await self._open(client, request, target)
        try:
            events = sse.events(response.aiter_bytes())
            if _kind(response) == "application/json":
                events = _whole(response)
            while not (answer.complete or answer.ended):
                async with asyncio.timeout(self._limit(answer, latest)):
                    data = await anext(events, None)
                if data is None:
                    break
                for delta in self._feed(answer, data, target):
                    yield delta
            await _drain(events)
        except TimeoutError:
            if not answer.closing:
                raise self._silence(answer, target) from None
        except HTTPError as error:
            if not answer.closing:
                raise self._broken(answer, target) from error
        finally:
            await response.aclose()
        if not answer.closing and not answer.complete:
            raise self._broken(answer, target)
        with self._reading(b"", target):
            ending = [*answer.finish(), answer.replied()]
        for item in ending:
            yield item

    def _limit(self, answer: Answer, latest: float) -> float:
        """Seconds to wait for the next event. Until the reply begins, no sign of life puts off the
        moment `latest`: a server may read a prompt for ever."""
        if not answer.started:
            return max(0.0, latest - monotonic())
        return min(self._stall, _LATE) if answer.closing else self._stall

    async def window(self, model: str) -> int:
        """See `Provider`. Servers on this machine are asked in more places than others, which need
        not know what this looks for."""
        try:
            client = await self._client()
        except ProviderError:
            return 0
        places = local_servers.LISTS + (local_servers.NEAR if is_near(self._base_url) else ())
        top = urlsplit(self._base_url)
        for place in places:
            answer = await self._got(client, f"{top.scheme}://{top.netloc}{place}")
            if found := local_servers.window(answer, model):
                return found
        return 0

    async def _got(self, client: Any, url: str) -> Any:
        """Returns the JSON at an address; None for whatever else comes."""
        from httpx2 import HTTPError, Response

        sdk = self._sdk()
        try:
            async with asyncio.timeout(self._connect):
                response = await client.get(url, cast_to=Response, options=_STAY)
                return orjson.loads(response.content)
        except (sdk.APIError, HTTPError, TimeoutError, orjson.JSONDecodeError):
            return None

    async def models(self) -> list[str]:
        """See `Provider`."""
        client = await self._client()
        target = faults.target("the list of models", self._base_url)
        names: list[str] = []
        after: dict[str, Any] = {}
        for _ in range(_PAGES):
            page = await self._listed(client, after, target)
            try:
                names += [str(model["id"]) for model in page["data"]]
            except (KeyError, TypeError) as error:
                what = "the answer is not a list of models"
                raise faults.failure(target, "malformed", what, retryable=False) from error
            if not page.get("has_more") or not page.get("last_id"):
                break
            after = {"limit": 1000, "after_id": page["last_id"]}
        return names

    async def _listed(self, client: Any, query: Mapping[str, Any], target: str) -> Any:
        from httpx2 import HTTPError, Response

        try:
            async with asyncio.timeout(self._connect + self._first_byte):
                with self._failures(target):
                    options = {"params": query, **_STAY}
                    response = await client.get(self.models_path, cast_to=Response, options=options)
            return orjson.loads(response.content)
        except orjson.JSONDecodeError as error:
            said = self._secrets.clean(response.text)[:120]
            what = f"the answer is not a list of models{faults.quoted(said)}"
            raise faults.failure(target, "malformed", what, retryable=False) from error
        except HTTPError as error:
            raise faults.connection_failure(target, error) from error
        except TimeoutError:
            raise self._silence(None, target) from None

    # --- a request ------------------------------------------------------------------------------

    async def _client(self) -> Any:
        """Returns the SDK's client. Raises ProviderError when no request can be made with this
        key."""
        if self._keyless:
            raise ProviderError(
                f"No model is configured: set {self.key_variable}, or choose a model of another "
                "provider in magy.toml; `magy demo` shows Magy without a key.",
                fault="no_key",
            )
        if not (self._api_key.isascii() and self._api_key.isprintable()):
            what = "the API key contains characters that no key has"
            where = faults.target("any model", self._base_url)
            raise faults.failure(where, "auth", what, advice="copy the key again")
        while self._shared is None:
            await asyncio.to_thread(self.warm)
        return self._shared

    async def _open(self, client: Any, request: ModelRequest, target: str) -> Any:
        """Sends the request and waits for the head of the answer."""
        from httpx2 import Response

        while True:
            fields = self._body(request)
            try:
                async with asyncio.timeout(self._connect + self._first_byte):
                    with self._failures(target):
                        response = await client.post(
                            self.path,
                            body=fields | {"stream": True},
                            cast_to=Response,
                            options=_STAY,
                            stream=True,
                        )
            except _Refused as refused:
                # Another request may have learned the same meanwhile.
                changed = self._body(request) != fields
                said = refused.body
                if not changed and not self._learn(request, fields, said, refused.status):
                    raise
            except TimeoutError:
                raise self._silence(None, target) from None
            else:
                return await self._checked(response, target)

    async def _checked(self, response: Any, target: str) -> Any:
        kind = _kind(response)
        if kind == "text/event-stream" or (self.takes_json and "html" not in kind):
            return response
        await response.aclose()
        what = f"the answer is not a stream of events but {kind or 'nothing'}"
        raise faults.failure(target, "malformed", what, retryable=False)

    @contextlib.contextmanager
    def _failures(self, target: str) -> Iterator[None]:
        """Turns the SDK's exceptions into ProviderErrors, or into _Refused where the provider may
        take another body."""
        sdk = self._sdk()
        try:
            yield
        except sdk.APIStatusError as error:
            status, headers = error.status_code, error.response.headers
            if 300 <= status < 400:
                url, location = str(error.response.url), headers.get("location", "")
                raise faults.redirect_failure(target, status, url, location) from error
            body = self._secrets.within(error.body)
            failure = faults.status_failure(target, status, headers, body, self._unset)
            if status in pictures.STATUSES:
                raise _Refused(failure, error.body, status) from error
            raise failure from error
        except sdk.APITimeoutError as error:
            what = f"no connection within {self._connect:g} s"
            raise faults.failure(target, "timeout", what) from error
        except sdk.APIConnectionError as error:
            raise faults.connection_failure(target, error) from error

    # --- an answer ------------------------------------------------------------------------------

    def _feed(self, answer: Answer, data: bytes, target: str) -> Sequence[Delta | Reading]:
        if not data:
            return ()
        if data.strip() == b"[DONE]":
            answer.ended = True
            return ()
        with self._reading(data, target):
            return answer.feed(loads(data, halves=True))

    @contextlib.contextmanager
    def _reading(self, data: bytes, target: str) -> Iterator[None]:
        try:
            yield
        except StreamError as error:
            raise faults.stream_failure(target, self._secrets.within(error.error)) from error
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            text = self._secrets.clean(data.decode("utf-8", "replace"))
            words = faults.quoted(text[:120])
            what = f"an event of the stream cannot be read{words}"
            raise faults.failure(target, "malformed", what, advice=self._advice()) from error

    def _silence(self, answer: Answer | None, target: str) -> ProviderError:
        if answer is not None and answer.started:
            what = f"the reply stopped: nothing arrived for {self._stall:g} s"
            return faults.failure(target, "timeout", what)
        what = f"no answer started within {self._first_byte:g} s"
        advice = "try again, wait longer (`model.timeout`), or use a smaller or nearer model"
        return faults.failure(target, "timeout", what, advice=advice)

    def _broken(self, answer: Answer, target: str) -> ProviderError:
        if not answer.heard:
            what = "the answer was empty"
            return faults.failure(target, "malformed", what, advice=self._advice())
        what = "the connection was cut in the middle of the reply"
        return faults.failure(target, "connection", what)

    def _advice(self) -> str:
        return (
            f"try again; if it persists, check that the base URL is {self.speaks} and that no "
            "proxy in between changes the answer"
        )


class _Refused(ProviderError):
    """The provider refused the request, perhaps because of its form. `body`: what it answered."""

    def __init__(self, failure: ProviderError, body: Any, status: int) -> None:
        super().__init__(
            failure.message,
            fault=failure.fault,
            retryable=failure.retryable,
            retry_after=failure.retry_after,
        )
        self.body = body
        self.status = status


def _kind(response: Any) -> str:
    kind: str = response.headers.get("content-type", "")
    return kind.partition(";")[0].strip().lower()


async def _whole(response: Any) -> AsyncIterator[bytes]:
    yield await response.aread()


async def _drain(events: AsyncIterator[bytes]) -> None:
    """Reads on to the end of the body, so that the connection can be used again. The reply is
    whole already: whatever goes wrong now costs only the connection."""
    from httpx2 import HTTPError

    with contextlib.suppress(TimeoutError, HTTPError):
        async with asyncio.timeout(_DRAIN):
            async for _ in events:
                pass
