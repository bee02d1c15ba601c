"""A project can make the sandbox stricter, and no looser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from magy_server.config import layers
from magy_server.core.errors import InvalidConfig
from magy_server.core.settings import SandboxSettings
from magy_server.projects import NO_SHELL, Projects
from magy_server.store.memory import MemoryStore

USER = """
[sandbox]
level = "standard"
writable = ["~/.npm"]
hidden = ["~/a"]
allow_sandboxed = true
limits = { memory_mb = 1000, processes = 0 }
"""


def loaded(root: Path, project: str, *, trusted: bool = True, user: str = USER) -> layers.Loaded:
    own = layers.config_dir() / "magy.toml"
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text(user, encoding="utf-8")
    (root / "magy.toml").write_text(project, encoding="utf-8")
    return layers.load(str(root), trusted=trusted, options={})


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize(
    ("asked", "changed"),
    [
        ('level = "strict"', {"level": "strict"}),
        ('level = "isolated"', {"level": "isolated"}),
        ('level = "off"', {}),
        ('hidden = ["~/b"]', {"hidden": ["~/a", "~/b"]}),
        ("allow_sandboxed = false", {"allow_sandboxed": False}),
        ("limits = { memory_mb = 500 }", {"limits": {"memory_mb": 500}}),
        ("limits = { memory_mb = 5000 }", {}),
        ("limits = { memory_mb = 0 }", {}),
        ("limits = { processes = 9 }", {"limits": {"processes": 9}}),
        ('writable = ["/"]', {}),
        ('hosts = ["*"]', {}),
        ('shown = ["~/.ssh"]', {}),
        ("writable = []", {}),
    ],
)
def test_only_what_is_stricter_holds(
    tmp_path: Path, asked: str, changed: dict[str, Any], trusted: bool
) -> None:
    before = loaded(tmp_path, "", trusted=trusted).settings.sandbox.model_dump()
    found = loaded(tmp_path, f"[sandbox]\n{asked}", trusted=trusted)
    limits = {**before["limits"], **changed.get("limits", {})}
    wanted = {**before, **changed, "limits": limits}
    assert found.settings.sandbox == SandboxSettings.model_validate(wanted)


def test_what_is_left_out_is_named(tmp_path: Path) -> None:
    found = loaded(tmp_path, '[sandbox]\nlevel = "strict"\nhosts = ["x"]\nallow_sandboxed = true')
    path = tmp_path / "magy.toml"
    assert found.ignored == (f"{path}: sandbox.hosts", f"{path}: sandbox.allow_sandboxed")
    assert found.origins["sandbox.level"] == str(path)
    assert found.origins["sandbox.writable"] == str(layers.config_dir() / "magy.toml")


def test_the_project_s_word_holds_against_a_milder_editor(tmp_path: Path) -> None:
    loaded(tmp_path, '[sandbox]\nlevel = "strict"')
    found = layers.load(str(tmp_path), trusted=True, options={"sandbox": {"level": "standard"}})
    assert found.settings.sandbox.level == "strict"


def test_a_wrong_level_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match=r"sandbox\.level"):
        loaded(tmp_path, '[sandbox]\nlevel = "strikt"')


@pytest.mark.req("A105")
def test_the_isolated_sandbox_has_no_shell(tmp_path: Path) -> None:
    loaded(tmp_path, '[sandbox]\nlevel = "isolated"')
    projects = Projects({}, MemoryStore())
    projects.add(str(tmp_path), None)
    assert NO_SHELL in projects.rules(str(tmp_path))
    assert NO_SHELL not in projects.rules(None)
