from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

import pytest

from tests import nursery
from tests.clients.nvim.embedded import BIN, Neovim, neovim
from tests.clients.shop import PRICES


class Start(Protocol):
    """Starts a Neovim in the shop whose model follows a script. `fresh`: its server is a child of
    it, which a test that signals that process needs; otherwise what it starts only stands for a
    server with everything imported."""

    def __call__(
        self, script: str, *words: str, settings: str = "", lines: int = 24, fresh: bool = False
    ) -> AbstractContextManager[Neovim]: ...


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A project with one file, under git, and an old directory."""
    root = tmp_path.resolve() / "shop"
    (root / "build").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / "prices.py").write_text(PRICES)
    return root


def environment(script: str, settings: str = "") -> dict[str, str]:
    """What makes `magy lsp` play the script, with settings of its own."""
    home = Path(os.environ["HOME"])
    state = home / "magy"
    state.mkdir(exist_ok=True)
    (state / "model.script").write_text(script)
    (state / "magy.toml").write_text(f"titles = false\n{settings}")
    return {
        **os.environ,
        "MAGY_STATE_DIR": str(state),
        "MAGY_CONFIG_DIR": str(state),
        "MAGY_SCRIPT": str(state / "model.script"),
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
    }


@pytest.fixture
def born(tmp_path: Path) -> dict[str, str]:
    """What makes `magy` ask the nursery."""
    magy = tmp_path / "born" / "magy"
    nursery.write_program(magy)
    path = os.pathsep.join((str(magy.parent), str(BIN), os.environ["PATH"]))
    return {"PATH": path}


@pytest.fixture
def start(shop: Path, born: dict[str, str]) -> Start:
    @contextmanager
    def started(
        script: str, *words: str, settings: str = "", lines: int = 24, fresh: bool = False
    ) -> Iterator[Neovim]:
        env = environment(script, settings) | ({} if fresh else born)
        with neovim(shop, env, *words, lines=lines) as editor:
            yield editor

    return started
