"""Whole journeys through a real VS Code with the real server. The model is scripted; everything
else is what a person has who did what the client's page says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from tests.clients.vscode.driven import Served, window

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def test_a_window_has_a_server_and_gets_another_on_demand(
    browser: Browser, server: Served, folder: Path
) -> None:
    with window(browser, server, folder) as one:

        def running() -> psutil.Process | None:
            return next(iter(server.servers()), None)

        first = one.until(running, "a server")
        assert first and Path(first.cwd()) == folder
        one.command("Magy: Restart Server")
        one.until(lambda: server.servers() and first not in server.servers(), "another server")
        assert not one.abroad
