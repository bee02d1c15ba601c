from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import anew
from tests.loopback.server import STARTED


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with one file."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "app.py").write_text("def greet():\n    return 'hello'\n")
    return project.resolve()


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture(autouse=True)
def sent_as_the_log_says(tmp_path: Path) -> Iterator[None]:
    """See `anew`."""
    STARTED.clear()
    yield
    database = tmp_path / "state" / "magy.db"
    if STARTED and database.exists():
        asyncio.run(anew.check(database.parent, STARTED))
