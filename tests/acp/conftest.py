from __future__ import annotations

from pathlib import Path

import pytest

HELLO = "def greet():\n    return 'hello'\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with one file."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "app.py").write_text(HELLO)
    return project.resolve()


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"
