"""This transport sends requests through the vendor's official SDK, for those whose configuration
says `transport = "sdk"`.

An error whose body breaks off is a broken connection here: some SDKs do not say which error it was.
The SDK's typed methods, events and streaming helpers are not used: they cost more than all the rest
and look at every part of a long conversation.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from magy_server.llm.transports.httpx_transport import HttpxResponse
from magy_server.llm.transports.transport import Broken, Refused, Response, TimedOut, Transport

_STAY: Mapping[str, Any] = {"follow_redirects": False}
_FROM_ENVIRONMENT = ("organization", "project")
"""What OpenAI's SDK takes from the environment beside headers."""


class SdkTransport(Transport):
    def _sdk(self) -> Any:
        """Imports the SDK, and returns it."""
        return importlib.import_module(self.endpoint.vendor.sdk)

    def _make(self) -> Any:
        sdk, endpoint = self._sdk(), self.endpoint
        client = getattr(sdk, endpoint.vendor.client)(
            api_key=endpoint.api_key or "none",
            base_url=endpoint.base_url,
            max_retries=0,
            # The limits on reading are the provider's: the SDKs know only one for all phases.
            timeout=sdk.Timeout(None, connect=endpoint.connect, write=endpoint.write),
        )
        if not endpoint.official:
            _keep_private(client)
        return client

    async def post(self, path: str, content: bytes) -> Response:
        import httpx2

        client = await self.ready()
        with self._failures():
            response = await client.post(
                path, content=content, cast_to=httpx2.Response, options=_STAY, stream=True
            )
        return HttpxResponse(response)

    async def get(self, place: str, query: Mapping[str, Any]) -> bytes:
        import httpx2

        client = await self.ready()
        with self._failures():
            options = {"params": query, **_STAY}
            response = await client.get(place, cast_to=httpx2.Response, options=options)
            content: bytes = response.content
            return content

    async def _end(self, client: Any) -> None:
        await client.close()

    @contextmanager
    def _failures(self) -> Iterator[None]:
        from httpx2 import HTTPError

        sdk = self._sdk()
        try:
            yield
        except sdk.APIStatusError as error:
            answer = error.response
            raise Refused(error.status_code, str(answer.url), answer.headers, error.body) from error
        except sdk.APITimeoutError as error:
            raise TimedOut from error
        except (sdk.APIConnectionError, HTTPError) as error:
            raise Broken from error


def _keep_private(client: Any) -> None:
    """Takes from the client what the SDK found in the environment (headers that people set for a
    gateway of theirs): it is not for other people's servers. The SDKs know no other way."""
    client._custom_headers = {}
    for name in _FROM_ENVIRONMENT:
        if hasattr(client, name):
            setattr(client, name, None)
