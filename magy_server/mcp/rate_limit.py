"""This limit leaves out what an MCP server says unasked and too often, and cuts off one that
floods, over whatever transport."""

from __future__ import annotations

import time

import mcp_types as types
from mcp.shared.message import SessionMessage

LARGEST = 32 << 20
"""Bytes of one message."""
RATE = 200
"""Messages a second that a server may send unasked; more are left out..."""
FLOOD = 20_000
"""...and so many more are a flood."""


class CutOff(Exception):
    """Why a server is not listened to any more, in a sentence."""


class RateLimit:
    """Leaves out what a server says unasked and too often."""

    def __init__(self) -> None:
        self._at = time.monotonic()
        self._over = 0.0
        """Messages beyond those that it might have sent by now."""

    def lets_in(self, message: SessionMessage) -> bool:
        """Raises CutOff when it floods."""
        if not isinstance(message.message, types.JSONRPCNotification | types.JSONRPCRequest):
            return True
        now = time.monotonic()
        self._over = max(0.0, self._over - RATE * (now - self._at)) + 1
        self._at = now
        if self._over > FLOOD:
            raise CutOff(f"it flooded: more than {FLOOD:,} messages came one upon the other")
        return self._over <= RATE
