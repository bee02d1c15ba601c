"""An administrator's file: what it gives, caps and locks, and who may have written it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from magy_server.config import administrator, layers
from magy_server.core.errors import InvalidConfig
from tests.patience import PATIENCE

ABOVE = """
locked = ["model.default", "audit", "custom_agents"]
bypass = false
[model]
default = "house/model"
retries = 1
[limits]
requests = 10
run_tokens = 1000
[spawn]
max_depth = 1
[permission]
bash = { "git push *" = "deny" }
[[guardrail]]
action = "block"
pattern = "secret-project"
"""
USER = """
bypass = true
custom_agents = true
[model]
default = "mine/other"
retries = 7
[limits]
requests = 0
run_tokens = 50
seconds = 5
[spawn]
max_depth = 4
[audit]
enabled = false
[permission]
bash = { "git push *" = "allow" }
"""


@pytest.fixture
def above(tmp_path: Path) -> Path:
    path = tmp_path / "etc" / "magy.toml"
    path.parent.mkdir(mode=0o755)
    path.write_text(ABOVE)
    path.chmod(0o644)
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    return path


def load(above: Path, root: Path, project: str = "", **more: Any) -> layers.Loaded:
    (root / "magy.toml").write_text(project)
    options: Mapping[str, Any] = more.pop("options", {})
    return layers.load(str(root), trusted=True, options=options, above=above, **more)


def test_nobody_below_widens_it(above: Path, root: Path) -> None:
    found = load(above, root, USER, options={"limits": {"requests": 99}, "bypass": True})
    settings = found.settings
    assert settings.model.default == "house/model" and settings.model.retries == 7
    assert (settings.limits.requests, settings.limits.run_tokens) == (10, 50)
    assert settings.limits.seconds == 5 and settings.spawn.max_depth == 1
    assert settings.bypass is False and settings.audit.enabled
    assert found.origins["limits.requests"] == found.origins["bypass"] == str(above)
    assert found.overruled == tuple(
        f"{key} of {root / 'magy.toml'}" for key in ("custom_agents", "model.default", "audit")
    )
    assert [source for source, _ in found.rules] == [str(above), str(root / "magy.toml")]
    assert [source for source, _ in found.guardrails] == [str(above)]


def test_the_environment_is_below_it(
    above: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAGY_MODEL", "mine/other")
    found = load(above, root)
    assert found.settings.model.default == "house/model"
    assert found.overruled == ("model.default of the environment",)


def test_one_that_is_not_there_changes_nothing(tmp_path: Path, root: Path) -> None:
    found = load(tmp_path / "none.toml", root, "[limits]\nrequests = 99\n")
    assert found.settings.limits.requests == 99 and found.settings.bypass


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('locked = ["modle.default"]', "there is no setting 'modle.default'. Did you mean 'model"),
        ('locked = ["permission"]', "'permission' cannot be locked"),
        ("requests = 1", "unknown key 'requests'"),
        ('[[guardrail]]\naction = "block"\npattern = "("', "guardrail 1 (*, block)"),
    ],
)
def test_what_is_wrong_in_it_is_said(above: Path, root: Path, text: str, said: str) -> None:
    above.write_text(text)
    with pytest.raises(InvalidConfig) as error:
        load(above, root)
    assert error.value.message.startswith(f"{above}: ") and said in error.value.message


def test_only_the_administrator_locks(above: Path, root: Path) -> None:
    with pytest.raises(InvalidConfig, match="can lock settings"):
        load(above, root, 'locked = ["model.default"]\n')


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
@pytest.mark.parametrize("which", ["file", "directory", "link"])
def test_what_others_can_write_is_not_believed(
    above: Path, root: Path, mode: int, which: str
) -> None:
    path = above
    (above.parent if which == "directory" else above).chmod(mode | 0o111)
    if which == "link":
        path = root / "link.toml"
        path.symlink_to(above)
    with pytest.raises(InvalidConfig, match="others can write it; nothing runs until"):
        load(path, root)


@pytest.mark.needs("bwrap")
def test_a_real_start_reads_it(above: Path, root: Path, tmp_path: Path) -> None:
    """In a mount namespace of the test's own: no variable and no option names another file."""
    etc = [word for name in sorted(os.listdir("/etc")) if name != "magy"
           for word in ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")]  # fmt: skip
    sandbox = [shutil.which("bwrap") or "", "--dev-bind", "/", "/", "--tmpfs", "/etc", *etc,
               "--ro-bind", str(above), str(administrator.FILE)]  # fmt: skip
    (root / "magy.toml").write_text("bypass = true\n")
    env = {**os.environ, "MAGY_CONFIG_DIR": str(tmp_path), "MAGY_STATE_DIR": str(tmp_path / "s"),
           "MAGY_MODEL": "mine/other"}  # fmt: skip

    def magy(*words: str) -> subprocess.CompletedProcess[str]:
        command = [*sandbox, sys.executable, "-m", "magy_server", *words]
        return subprocess.run(
            command, env=env, cwd=root, capture_output=True, text=True, timeout=PATIENCE,
            check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    if "namespace" in (tried := magy("--version")).stderr:
        pytest.skip(f"no user namespaces here: {tried.stderr}")
    shown = magy("config").stdout
    assert 'default = "house/model"' in shown and "bypass = false" in shown
    assert "locked by /etc/magy/magy.toml: model.default of the environment" in shown
    script = tmp_path / "model.script"
    script.write_text("text: Hello.\n")
    env["MAGY_SCRIPT"] = str(script)
    del env["MAGY_MODEL"]
    above.write_text("bypass = false\n")
    refused = magy("run", "--bypass", "hello")
    assert refused.returncode and "Bypass is forbidden here" in refused.stderr
    assert "Hello." in magy("run", "hello").stdout
