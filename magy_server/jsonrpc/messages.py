"""The bytes of one JSON-RPC message become a JSON value, or a note of why they do not."""

from __future__ import annotations

import json
from typing import Any

import orjson

from magy_server.api.wire.codes import PARSE_ERROR
from magy_server.core.text.surrogates import loads
from magy_server.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Malformed:
    """Bytes that hold no message. `code` and `message` are for the JSON-RPC error to answer
    with; `id` is the request's own when it could still be read."""

    code: int
    message: str
    id: int | str | None = None


def decode(body: bytes) -> Any | Malformed:
    """One JSON value. Lone surrogates, which some editors send as escapes, become U+FFFD: they
    have no UTF-8 form, and both count as one unit in UTF-16 positions."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        pass
    try:
        return loads(body.decode())
    except ValueError as error:
        return Malformed(PARSE_ERROR, f"The message is not valid JSON: {error}.")


def encode(message: Any) -> bytes:
    """The body of one frame; bytes are one already. Raises TypeError for what JSON cannot hold."""
    if type(message) is bytes:
        return message
    try:
        return orjson.dumps(message)
    except TypeError:
        # Lone surrogates (undecodable file names) and integers beyond 64 bits end here.
        return json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
