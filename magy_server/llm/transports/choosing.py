"""This module chooses which of the transports an endpoint gets."""

from __future__ import annotations

from typing import Literal

from magy_server.llm.transports.direct_transport import DirectTransport, is_direct
from magy_server.llm.transports.httpx_transport import HttpxTransport
from magy_server.llm.transports.sdk_transport import SdkTransport
from magy_server.llm.transports.transport import Endpoint, Transport


def transport_of(chosen: Literal["http", "sdk"], endpoint: Endpoint) -> Transport:
    """`chosen`: what the provider's configuration says."""
    if chosen == "sdk":
        return SdkTransport(endpoint)
    if is_direct(endpoint.base_url):
        return DirectTransport(endpoint)
    return HttpxTransport(endpoint)
