"""A ripgrep that cannot be run does not keep the next one from searching."""

from __future__ import annotations

from pathlib import Path

import pytest

from magy_server.tools.search.ripgrep_queries import Answer, Finder


@pytest.fixture
def broken(tmp_path: Path) -> str:
    """It may be executed, and is no program."""
    path = tmp_path / "bin" / "rg"
    path.parent.mkdir()
    path.write_text("of another machine\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a.txt").write_text("a\n")
    return tree


async def test_a_broken_program_is_passed_over(broken: str, tree: Path) -> None:
    answer = Answer()
    await Finder(broken).files(str(tree), answer)
    assert answer.files == [str(tree / "a.txt")]
