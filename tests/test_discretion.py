"""The log of a process names no key, tracebacks included."""

from __future__ import annotations

import io
import logging

import pytest

from magy_server.core.text.secrets import Secrets
from magy_server.redacted_log import log_without

KEY = "sk-live-0123456789abcdef"


def test_a_key_in_a_message_or_a_traceback_is_not_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    log_without(Secrets([KEY]))
    try:
        raise ValueError(f"no such header: Bearer {KEY}")
    except ValueError:
        logging.getLogger("x").exception("asking with %s failed", KEY)
    said = out.getvalue()
    assert "ERROR asking with [redacted] failed" in said
    assert "Bearer [redacted]" in said and KEY not in said
