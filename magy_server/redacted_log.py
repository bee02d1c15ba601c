"""This module keeps the keys that Magy knows out of the log that Magy writes about itself."""

from __future__ import annotations

import logging

from magy_server.core.text.secrets import Secrets


class DiscreetFormatter(logging.Formatter):
    """Another formatter's lines, tracebacks included."""

    def __init__(self, inner: logging.Formatter, secrets: Secrets) -> None:
        super().__init__()
        self._inner = inner
        self._secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        return self._secrets.clean(self._inner.format(record))


def log_without(secrets: Secrets) -> None:
    """Keeps these secrets out of all log lines from now on."""
    if secrets:
        for handler in logging.getLogger().handlers:
            inner = handler.formatter or logging.Formatter()
            handler.setFormatter(DiscreetFormatter(inner, secrets))
