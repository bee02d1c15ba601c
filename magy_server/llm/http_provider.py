"""`HttpProvider` sends requests to models over HTTP and reads the answers as they stream; the
adapter of each API builds on it. Retries are for `engine/model.py`.

A `Transport` carries requests (authentication, connections, HTTP errors); what goes out and comes
in is the business of the pure wire modules.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import replace
from time import monotonic
from typing import Any, ClassVar, Literal
from urllib.parse import urlsplit

import orjson

from magy_server.core.errors import ProviderError
from magy_server.core.events import Replied
from magy_server.core.ports import Delta, ModelRequest, Reading
from magy_server.core.prompting.prefix_cache import SoFar
from magy_server.core.text.secrets import Secrets
from magy_server.core.text.surrogates import loads
from magy_server.llm import faults, local_servers, pictures, sse
from magy_server.llm.local_servers import is_near
from magy_server.llm.request_cache import as_json
from magy_server.llm.transports.choosing import transport_of
from magy_server.llm.transports.transport import (
    Broken,
    Cut,
    Endpoint,
    Refused,
    Response,
    TimedOut,
    TransportError,
    Unusable,
    Vendor,
)
from magy_server.llm.wire import Answer, StreamError

_LATE = 5.0
"""Seconds to wait, when the reply is whole, for what some providers say after it (usage)."""

_PAGES = 20
"""The most pages of a list of models that are read."""

_DRAIN = 0.2
"""Seconds to wait for the end of the body after the last event; then the connection is dropped
instead of used again."""


class HttpProvider(ABC):
    """`Provider` over HTTP. `api_key` may be empty with a `base_url` of one's own (local servers
    ask for none); `unset` is the variable that was to hold it then. Timeouts are in seconds:
    `connect` for the connection, `first_byte` from the request until the reply begins, `stall` from
    then on between two signs of life (pings and comments count).
    """

    vendor: ClassVar[Vendor]
    answer: ClassVar[type[Answer]]
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
        transport: Literal["http", "sdk"] = "http",
    ) -> None:
        self._api_key = api_key.strip()
        self._base_url = self._place(base_url) if base_url else self.vendor.base_url
        self._secrets = Secrets([self._api_key])
        """For what is quoted of an answer: it is cut, and half a key is not known for one."""
        self._keyless = not self._api_key and not base_url
        self._connect = connect
        self._first_byte = first_byte
        self._stall = stall
        self._unset = unset
        self._learned: dict[str, Any] = {}
        """What refusals taught, by model. The process keeps it as long as it lives."""
        official = self._official
        self._transport = transport_of(
            transport,
            Endpoint(self.vendor, self._base_url, self._api_key, official, connect, first_byte),
        )

    # --- an adapter -----------------------------------------------------------------------------

    def _place(self, base_url: str) -> str:
        """Returns the base URL that a person means by one of their own."""
        return base_url

    @abstractmethod
    def _body(self, request: ModelRequest) -> dict[str, Any]: ...

    @property
    @abstractmethod
    def _official(self) -> bool:
        """Returns whether the base URL is the vendor's own API."""

    def _learn(
        self, request: ModelRequest, sent: Mapping[str, Any], error: Any, status: int
    ) -> bool:
        """Whether to ask once more, `_body` being another one now: the provider said with one of
        `pictures.STATUSES` (`error`: its body) that it does not take the request in this form."""
        return False

    # --- Provider -------------------------------------------------------------------------------

    def warm(self) -> None:
        """Imports what makes requests. Thread-safe; the second call costs nothing. Raises
        ProviderError."""
        with self._failures(faults.target("any model", self._base_url)):
            self._transport.warm()

    async def close(self) -> None:
        """Closes idle connections. The provider can be used again."""
        await self._transport.close()

    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[Delta | Reading | Replied, None]:
        """See `Provider`. Closing the iterator closes the connection."""
        await self._ready()
        target = faults.target(request.model, self._base_url)
        answer = self.answer(request)
        response, latest = await self._open(request, target)
        events = sse.Whole() if _kind(response) == "application/json" else sse.Events()
        deadline = latest
        try:
            while not answer.over:
                chunk = await response.read(deadline - monotonic())
                found = events.feed(chunk) if chunk else events.finish()
                for data in found:
                    for delta in self._feed(answer, data, target):
                        yield delta
                    if answer.over:
                        break
                if not chunk:
                    break
                if found:
                    deadline = self._deadline(answer, latest)
            await _drain(response)
        except TimeoutError:
            if not answer.closing:
                raise self._silence(answer, target) from None
        except Cut as error:
            if not answer.closing:
                raise self._broken(answer, target) from error
        except ValueError as error:  # of the events
            raise self._malformed(str(error), target) from error
        finally:
            await response.close()
        if not answer.closing and not answer.complete:
            raise self._broken(answer, target)
        with self._reading(b"", target):
            ending = [*answer.finish(), answer.replied()]
        for item in ending:
            yield item

    def _deadline(self, answer: Answer, latest: float) -> float:
        """Returns until when the next event has to come. Until the reply begins, no sign of life
        puts off the moment `latest`: a server may read a prompt for ever."""
        if not answer.started:
            return latest
        return monotonic() + (min(self._stall, _LATE) if answer.closing else self._stall)

    async def window(self, model: str) -> int:
        """See `Provider`. Servers on this machine are asked in more places than others, which need
        not know what this looks for."""
        try:
            await self._ready()
        except ProviderError:
            return 0
        places = local_servers.LISTS + (local_servers.NEAR if is_near(self._base_url) else ())
        top = urlsplit(self._base_url)
        for place in places:
            answer = await self._got(f"{top.scheme}://{top.netloc}{place}")
            if found := local_servers.window(answer, model):
                return found
        return 0

    async def _got(self, url: str) -> Any:
        """Returns the JSON at an address; None for whatever else comes."""
        try:
            async with asyncio.timeout(self._connect):
                return orjson.loads(await self._transport.get(url, {}))
        except (TransportError, TimeoutError, orjson.JSONDecodeError):
            return None

    async def models(self) -> list[str]:
        """See `Provider`."""
        await self._ready()
        target = faults.target("the list of models", self._base_url)
        names: list[str] = []
        after: dict[str, Any] = {}
        for _ in range(_PAGES):
            page = await self._listed(after, target)
            try:
                names += [str(model["id"]) for model in page["data"]]
            except (KeyError, TypeError) as error:
                what = "the answer is not a list of models"
                raise faults.failure(target, "malformed", what, retryable=False) from error
            if not page.get("has_more") or not page.get("last_id"):
                break
            after = {"limit": 1000, "after_id": page["last_id"]}
        return names

    async def _listed(self, query: Mapping[str, Any], target: str) -> Any:
        try:
            async with asyncio.timeout(self._first_byte):
                with self._failures(target):
                    content = await self._transport.get(self.models_path, query)
            return orjson.loads(content)
        except orjson.JSONDecodeError as error:
            said = self._secrets.clean(content.decode("utf-8", "replace"))[:120]
            what = f"the answer is not a list of models{faults.quoted(said)}"
            raise faults.failure(target, "malformed", what, retryable=False) from error
        except TimeoutError:
            raise self._silence(None, target) from None

    # --- a request ------------------------------------------------------------------------------

    async def _ready(self) -> None:
        """Does what is slow before the first request. Raises ProviderError when no request can be
        made with this key."""
        if self._keyless:
            raise ProviderError(
                f"No model is configured: set {self.vendor.key_variable}, or choose a model of "
                "another provider in magy.toml; `magy demo` shows Magy without a key.",
                fault="no_key",
            )
        if not (self._api_key.isascii() and self._api_key.isprintable()):
            what = "the API key contains characters that no key has"
            where = faults.target("any model", self._base_url)
            raise faults.failure(where, "auth", what, advice="copy the key again")
        with self._failures(faults.target("any model", self._base_url)):
            await self._transport.ready()

    async def _open(self, request: ModelRequest, target: str) -> tuple[Response, float]:
        """Sends the request and waits for the head of the answer. Returns also until when the reply
        has to begin."""
        while True:
            content = self._content(request)
            latest = monotonic() + self._first_byte
            try:
                async with asyncio.timeout(self._first_byte):
                    with self._failures(target):
                        response = await self._transport.post(self.path, content)
            except _Unwanted as refused:
                # Another request may have learned the same meanwhile.
                changed = self._content(request) != content
                said, sent = refused.body, self._body(replace(request, so_far=SoFar()))
                if not changed and not self._learn(request, sent, said, refused.status):
                    raise
            except TimeoutError:
                raise self._silence(None, target) from None
            else:
                return await self._checked(response, target), latest

    def _content(self, request: ModelRequest) -> bytes:
        """Returns the body as it is sent."""
        return as_json(self._body(request) | {"stream": True})

    async def _checked(self, response: Response, target: str) -> Response:
        kind = _kind(response)
        if kind == "text/event-stream" or (self.takes_json and "html" not in kind):
            return response
        await response.close()
        what = f"the answer is not a stream of events but {kind or 'nothing'}"
        raise faults.failure(target, "malformed", what, retryable=False)

    @contextlib.contextmanager
    def _failures(self, target: str) -> Iterator[None]:
        """Turns the transport's exceptions into ProviderErrors, or into _Unwanted where the
        provider may take another body."""
        try:
            yield
        except Refused as error:
            status, headers = error.status, error.headers
            if 300 <= status < 400:
                location = headers.get("location", "")
                raise faults.redirect_failure(target, status, error.url, location) from error
            body = self._clean(error.body)
            failure = faults.status_failure(target, status, headers, body, self._unset)
            if status in pictures.STATUSES:
                raise _Unwanted(failure, error.body, status) from error
            raise failure from error
        except TimedOut as error:
            what = f"no connection within {self._connect:g} s"
            raise faults.failure(target, "timeout", what) from error
        except Unusable as error:
            raise faults.unusable(target, error) from error
        except Broken as error:
            raise faults.connection_failure(target, error) from error

    def _clean(self, body: Any) -> Any:
        """Returns what a provider says without keys. What is nested so deeply says nothing."""
        try:
            return self._secrets.within(body)
        except RecursionError:
            return None

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
            raise faults.stream_failure(target, self._clean(error.error)) from error
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            text = self._secrets.clean(data.decode("utf-8", "replace"))
            words = faults.quoted(text[:120])
            what = f"an event of the stream cannot be read{words}"
            raise self._malformed(what, target) from error

    def _silence(self, answer: Answer | None, target: str) -> ProviderError:
        if answer is not None and answer.started:
            what = f"the reply stopped: nothing arrived for {self._stall:g} s"
            return faults.failure(target, "timeout", what)
        what = f"no answer started within {self._first_byte:g} s"
        advice = "try again, wait longer (`model.timeout`), or use a smaller or nearer model"
        return faults.failure(target, "timeout", what, advice=advice)

    def _broken(self, answer: Answer, target: str) -> ProviderError:
        if not answer.heard:
            return self._malformed("the answer was empty", target)
        what = "the connection was cut in the middle of the reply"
        return faults.failure(target, "connection", what)

    def _malformed(self, what: str, target: str) -> ProviderError:
        advice = (
            f"try again; if it persists, check that the base URL is {self.speaks} and that no "
            "proxy in between changes the answer"
        )
        return faults.failure(target, "malformed", what, advice=advice)


class _Unwanted(ProviderError):
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


def _kind(response: Response) -> str:
    kind = response.headers.get("content-type", "")
    return kind.partition(";")[0].strip().lower()


async def _drain(response: Response) -> None:
    """Reads on to the end of the body, so that the connection can be used again. The reply is
    whole already: whatever goes wrong now costs only the connection."""
    with contextlib.suppress(TimeoutError, Cut):
        async with asyncio.timeout(_DRAIN):
            while await response.read():
                pass
