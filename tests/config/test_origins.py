"""Where each effective value comes from, and what a wrong key is told."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from magy_server.config import layers
from magy_server.core.errors import InvalidConfig

USER = """
default_agent = "plan"
[model]
default = "ollama/one"
retries = 1
[limits]
requests = 10
[[provider]]
name = "ollama"
kind = "openai-chat"
base_url = "http://127.0.0.1:9/v1"
[permission]
bash = "ask"
"""
PROJECT = """
[model]
retries = 2
[limits]
requests = 50
seconds = 60
[[provider]]
name = "ollama"
kind = "openai-chat"
models = ["two"]
[permission]
bash = { "rm *" = "deny" }
read = "allow"
"""


def loaded(
    root: Path, *, trusted: bool = True, options: Mapping[str, Any] | None = None
) -> layers.Loaded:
    user = layers.config_dir() / "magy.toml"
    user.parent.mkdir(parents=True, exist_ok=True)
    user.write_text(USER, encoding="utf-8")
    (root / "magy.toml").write_text(PROJECT, encoding="utf-8")
    return layers.load(str(root), trusted=trusted, options=options or {})


def test_each_value_names_the_layer_that_set_it(tmp_path: Path) -> None:
    user, project = str(layers.config_dir() / "magy.toml"), str(tmp_path / "magy.toml")
    one = loaded(tmp_path, options={"model": {"max_tokens": 9}})
    assert one.origins == {
        "default_agent": user,
        "model.default": user,
        "model.retries": project,
        "model.max_tokens": "the editor's settings",
        "limits.requests": project,
        "limits.seconds": project,
        "provider.ollama.kind": project,  # the project's entry replaces the user's as a whole
        "provider.ollama.models": project,
        "permission.bash": f"{user}, {project}",
        "permission.read": project,
    }
    assert one.settings.model.retries == 2


def test_the_environment_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAGY_MODEL", "openai/x")
    assert loaded(tmp_path).origins["model.default"] == "the environment"


def test_an_untrusted_project_owns_only_what_it_changes(tmp_path: Path) -> None:
    one = loaded(tmp_path, trusted=False)
    user, project = (
        str(layers.config_dir() / "magy.toml"),
        f"{tmp_path / 'magy.toml'} (not trusted)",
    )
    assert one.settings.limits.requests == 10
    assert one.origins["limits.requests"] == user  # it asked for more, and does not get it
    assert one.settings.limits.seconds == 60
    assert one.origins["limits.seconds"] == project
    assert one.origins["model.retries"] == user
    assert one.origins["permission.bash"] == f"{user}, {project}"
    assert "permission.read" not in one.origins


def test_a_provider_named_like_the_beginning_of_another_is_its_own(tmp_path: Path) -> None:
    user = layers.config_dir() / "magy.toml"
    user.parent.mkdir(parents=True, exist_ok=True)
    kind = 'kind = "openai-chat"\n'
    user.write_text(f'[[provider]]\nname = "a.b"\n{kind}[[provider]]\nname = "a"\n{kind}', "utf-8")
    own = {"provider": [{"name": "a", "kind": "openai-chat"}]}
    one = layers.load(str(tmp_path), trusted=True, options=own)
    assert one.origins == {
        "provider.a.b.kind": str(user),
        "provider.a.kind": "the editor's settings",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("limits = 3", "limits must be"),
        ("provider = 3", "provider must be"),
        ("[[provider]]\nkind = 'openai'\n", "provider 1.name is missing."),
        ("[model]\ndefault = 3\n", "model.default must be text in quotes (it is 3)."),
        ("[model]\ntimeout = -3\n", "model.timeout must be more than 0 (it is -3)."),
        (
            "[permission]\nbash = 'perhaps'\n",
            "magy.toml: permission.bash must be 'allow', 'ask' or 'deny', or a table with one of "
            "these for each pattern (it is 'perhaps').",
        ),
        (
            "[permission.bash]\n'make *' = 'yes'\n",
            "magy.toml: permission.bash.make * must be 'allow', 'ask' or 'deny' (it is 'yes').",
        ),
        (
            "[[provider]]\nname = 'x'\nkind = 'openai'\n[provider.about.'gpt.1']\nwindw = 1\n",
            "unknown key 'provider 1.about.gpt.1.windw'; did you mean 'window'?",
        ),
        (
            "[[provider]]\nname = 'x'\nkind = 'openai'\n[provider.about.window.b]\nc = 1\n",
            "unknown key 'provider 1.about.window.b'; known are window",
        ),
        ("[modle]\n", "unknown key 'modle'; did you mean 'model'?"),
        ("[model]\ndefalt = ''\n[edits]\nreveiw = ''\n", "'default'? unknown key 'edits.reveiw';"),
    ],
)
def test_a_wrong_value_is_named_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "magy.toml").write_text(text, encoding="utf-8")
    for trusted in (True, False):
        with pytest.raises(InvalidConfig) as caught:
            layers.load(str(tmp_path), trusted=trusted, options={})
        assert caught.value.message.startswith(str(tmp_path / "magy.toml"))
        assert said in caught.value.message
