from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.harness import Magy


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with one file."""
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (project / "app.py").write_text("def greet():\n    return 'hello'\n")
    return project.resolve()


@pytest.fixture
def magy(root: Path, tmp_path: Path) -> Magy:
    return Magy(root, tmp_path / "state")
