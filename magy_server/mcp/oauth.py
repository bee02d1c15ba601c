"""Who logged in to an MCP server is shown to it by the SDK, which renews what it needs for that.
Nothing here sends anybody to a browser: see `login.py`."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from typing import Any

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
)
from pydantic import AnyUrl, ValidationError

from magy_server.mcp.http_streams import login_wanted
from magy_server.mcp.kept_logins import Kept
from magy_server.mcp.offers import LinkError, Reach


class Storage:
    """What the SDK keeps of a login, as one JSON object. Implements its `TokenStorage`."""

    def __init__(self, kept: Kept) -> None:
        self.kept = kept
        self._all: dict[str, Any] = {}

    async def load(self) -> bool:
        """Returns whether something else is kept now than was there when this last looked."""
        text = await asyncio.to_thread(self.kept.read)
        try:
            found = json.loads(text or "{}")
        except ValueError:
            found = {}
        before, self._all = self._all, found if isinstance(found, dict) else {}
        return self._all != before

    async def _keep(self, **more: Any) -> None:
        self._all = {**self._all, **more}
        await asyncio.to_thread(self.kept.write, json.dumps(self._all))

    async def get_tokens(self) -> OAuthToken | None:
        found = self._all.get("tokens")
        return OAuthToken.model_validate(found) if found else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        ends = time.time() + tokens.expires_in if tokens.expires_in else None
        await self._keep(tokens=tokens.model_dump(mode="json"), ends=ends)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        found = self._all.get("client")
        return OAuthClientInformationFull.model_validate(found) if found else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        await self._keep(client=client_info.model_dump(mode="json"))

    async def set_place(self, place: OAuthMetadata | None) -> None:
        """Keeps where tokens are renewed: the SDK would look for it only in a new login."""
        await self._keep(place=place.model_dump(mode="json") if place else None)

    async def restore(self, provider: OAuthClientProvider) -> None:
        """Gives the SDK what is kept, of which it would ask for a part, and only once."""
        known = provider.context
        known.current_tokens = await self.get_tokens()
        known.client_info = await self.get_client_info()
        known.token_expiry_time = self._all.get("ends")
        if place := self._all.get("place"):
            known.oauth_metadata = OAuthMetadata.model_validate(place)


class KeptLogin(httpx2.Auth):
    """Shows a server the login that is kept, and renews it. Another Magy may have renewed it
    before: what is kept goes before what is known here."""

    def __init__(self, name: str, reach: Reach) -> None:
        self._name = name
        self._storage = Storage(reach.login)
        self._provider = OAuthClientProvider(reach.url, about("http://127.0.0.1"), self._storage)

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Raises LinkError: the login holds no more, or not for this."""
        for _ in range(2):
            flow = self._provider.async_auth_flow(request)
            renewing = AsyncExitStack()
            try:
                if not self._provider.context.is_token_valid():
                    await renewing.enter_async_context(self._storage.kept.alone())
                    await self._look()
                outgoing = await anext(flow)
                while True:
                    if outgoing is request:  # what is renewed is written by now
                        await renewing.aclose()
                    response = yield outgoing
                    if outgoing is request and response.status_code in (401, 403):
                        break
                    outgoing = await flow.asend(response)
            except StopAsyncIteration:
                return
            finally:
                await renewing.aclose()
                await flow.aclose()
            if response.status_code == 403 or not await self._look():
                break
        raise LinkError(login_wanted(self._name, response.status_code, known=True))

    async def _look(self) -> bool:
        """Returns whether there is anything new."""
        new = await self._storage.load()
        if new:
            try:
                await self._storage.restore(self._provider)
            except ValidationError:
                return False
        return new


def auth_for(name: str, reach: Reach) -> httpx2.Auth | None:
    """Returns how a server is shown who we are; None: nobody has logged in there."""
    return KeptLogin(name, reach) if reach.login.read() else None


def about(callback: str) -> OAuthClientMetadata:
    return OAuthClientMetadata(
        client_name="Magy",
        redirect_uris=[AnyUrl(callback)],
        token_endpoint_auth_method="none",
    )
