from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import guard
from tests.clients.test_emacs import missing
from tests.clients.vscode.driven import Served, chromium, lacking, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def places() -> Iterator[dict[str, str]]:
    """The variables of the home directory in which VS Code runs, and all that it starts."""
    with guard.fresh_home() as variables:
        yield variables


@pytest.fixture(scope="session")
def server(places: dict[str, str]) -> Iterator[Served]:
    """One code-server for all tests of this process, with the extension installed."""
    if why := lacking():
        missing(why)
    with served(places) as one:
        yield one


@pytest.fixture
def browser(server: Served) -> Iterator[Browser]:
    with chromium() as one:
        yield one


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with nothing in it."""
    place = tmp_path / "shop"
    place.mkdir()
    return place.resolve()
