from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

import pytest

from tests.clients.nvim.embedded import BIN, Neovim, neovim
from tests.clients.shop import PRICES


class Start(Protocol):
    """Starts a Neovim in the shop whose model follows a script."""

    def __call__(
        self, script: str, *words: str, settings: str = "", lines: int = 24
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
def start(shop: Path) -> Start:
    @contextmanager
    def started(script: str, *words: str, settings: str = "", lines: int = 24) -> Iterator[Neovim]:
        with neovim(shop, environment(script, settings), *words, lines=lines) as editor:
            yield editor

    return started
