"""This module makes a prompt of the words on the command line and of what is piped in."""

from __future__ import annotations

import os
import sys

from magy_server.core.errors import InvalidRequest
from magy_server.core.values import Content, Embedded, Text

MOST_INPUT = 1_000_000
"""Bytes of standard input that are attached to a prompt: more fills any model's window."""


def prompt_of(given: str) -> list[Content]:
    """Returns the prompt, and what is piped in. Raises InvalidRequest."""
    piped = standard_input()
    if given == "-":
        if piped is None:
            raise InvalidRequest(
                "`-` reads the prompt from standard input, but standard input is empty."
            )
        return [Text(text=piped)]
    text = given.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if not text.strip():
        raise InvalidRequest("The prompt is empty: say what to do.")
    attached = [Embedded(uri="stdin:", text=piped)] if piped else []
    return [Text(text=text), *attached]


def standard_input() -> str | None:
    """Returns what is piped in; None when nothing is, or it is empty. Raises InvalidRequest."""
    if sys.stdin is None or os.isatty(sys.stdin.fileno()):
        return None
    data = bytearray()
    try:
        while piece := os.read(sys.stdin.fileno(), 65536):
            data += piece
            if len(data) > MOST_INPUT:
                raise InvalidRequest(
                    f"Standard input is longer than {MOST_INPUT:,} bytes. Put it into a file, and "
                    "name the file in the prompt: the agent reads what it needs of it."
                )
    except OSError as error:
        raise InvalidRequest(f"Standard input cannot be read: {error.strerror}.") from None
    if b"\0" in data:
        raise InvalidRequest(
            "Standard input is not text; put it into a file, and name the file in the prompt."
        )
    text = data.decode("utf-8", "replace")
    return text if text.strip() else None
