"""The adapter and its server, for every test here."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from magy_server.llm.anthropic import AnthropicProvider
from tests.loopback import (
    AnthropicServer,
)

TOP = Path(__file__).parents[2]


@pytest.fixture
async def server() -> AsyncIterator[AnthropicServer]:
    async with AnthropicServer() as server:
        yield server


@pytest.fixture
async def provider(server: AnthropicServer) -> AsyncIterator[AnthropicProvider]:
    provider = AnthropicProvider("test-key", server.base_url)
    yield provider
    await provider.close()
