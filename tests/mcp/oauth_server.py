"""The sample server behind a login: `python oauth_server.py PORT`. Whoever opens the page of the
login is let in at once. Who renews with what was renewed before ends all logins."""

from __future__ import annotations

import asyncio
import secrets
import sys
import time
from typing import Any

from mcp.server import MCPServer
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl

PORT = int(sys.argv[1])
HERE = f"http://127.0.0.1:{PORT}"


class People:
    """All that the server knows: clients, codes, tokens."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.tokens: dict[str, AccessToken] = {}
        self.renewals: dict[str, RefreshToken] = {}

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        assert client_info.client_id
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: Any) -> str:
        code = AuthorizationCode(
            code=secrets.token_hex(16),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id or "",
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, client: Any, code: str) -> AuthorizationCode | None:
        return self.codes.get(code)

    async def exchange_authorization_code(self, client: Any, code: AuthorizationCode) -> OAuthToken:
        del self.codes[code.code]
        return self._issued(client.client_id, code.scopes)

    async def load_refresh_token(self, client: Any, token: str) -> RefreshToken | None:
        if token not in self.renewals:
            self.tokens.clear()
            self.renewals.clear()
        return self.renewals.get(token)

    async def exchange_refresh_token(
        self, client: Any, token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        del self.renewals[token.token]
        await asyncio.sleep(0.5)  # time for another to ask for the same
        return self._issued(client.client_id, scopes)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.tokens.get(token)

    async def revoke_token(self, token: Any) -> None:
        self.tokens.pop(token.token, None)

    def _issued(self, client: str, scopes: list[str]) -> OAuthToken:
        token, renewal = f"access-{secrets.token_hex(16)}", f"renewal-{secrets.token_hex(16)}"
        self.tokens[token] = AccessToken(token=token, client_id=client, scopes=scopes)
        self.renewals[renewal] = RefreshToken(token=renewal, client_id=client, scopes=scopes)
        return OAuthToken(access_token=token, expires_in=3600, refresh_token=renewal)


server: Any = MCPServer(
    "guarded",
    version="1.0",
    auth_server_provider=People(),
    auth=AuthSettings(
        issuer_url=AnyHttpUrl(HERE),
        resource_server_url=AnyHttpUrl(f"{HERE}/mcp"),
        client_registration_options=ClientRegistrationOptions(enabled=True),
        validate_token_resource=False,
    ),
)


@server.tool()
async def whoami() -> str:
    """Says that you are let in."""
    return "You are let in."


server.run("streamable-http", host="127.0.0.1", port=PORT)
