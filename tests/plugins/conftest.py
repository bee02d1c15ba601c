from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from magy_server.plugins import switches
from magy_server.plugins.loading import Plugins, load
from magy_server.plugins.switches import chosen
from tests.patience import PATIENCE

from .packing import Environment, wheel


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(tmp_path / "environment")


class Magy:
    """The `magy` command of an environment, in a project."""

    def __init__(self, environment: Environment, root: Path, config: Path) -> None:
        self.command = (str(environment.python), "-m", "magy_server")
        self.root = root
        self.env = {"MAGY_CONFIG_DIR": str(config), "MAGY_STATE_DIR": str(config)}

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.command, *words], cwd=self.root, env={**os.environ, **self.env},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip

    def plugins(self) -> dict[str, Any]:
        """By name, as `magy plugins --json` has them."""
        found = json.loads(self("plugins", "--json").stdout)
        return {one["name"]: one for one in found["plugins"]}


@pytest.fixture
def magy(environment: Environment, tmp_path: Path) -> Magy:
    root = tmp_path / "project"
    root.mkdir()
    config = tmp_path / "state"
    config.mkdir()
    return Magy(environment, root.resolve(), config)


Loading = Callable[..., Any]


@pytest.fixture
def loading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Loading:
    """async (files of packages, seconds) -> the plugins, once all were installed into a directory
    on the path of this process, and switched on."""

    async def loaded(*packages: Mapping[str, str], seconds: float = PATIENCE) -> Plugins:
        config, place = str(tmp_path / "config"), tmp_path / "packages"
        monkeypatch.syspath_prepend(str(place))
        for files in packages:
            unpack(files, place)
            name = files["pyproject.toml"].partition('plugins"]\n')[2].partition(" ")[0]
            switches.enable(name, config)
        return await load(chosen(config), {"read_file"}, seconds)

    return loaded


def unpack(files: Mapping[str, str], place: Path) -> None:
    """What pip does with a wheel, for tests that need no environment."""
    import zipfile

    place.mkdir(exist_ok=True)
    with zipfile.ZipFile(wheel(files, place)) as archive:
        archive.extractall(place)
