"""`magy config`: what holds, where it comes from, and nothing secret."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest

from magy_server.cli.commands.config import public, toml
from magy_server.core.settings import Settings
from tests.cli.harness import Magy


def write(magy: Magy, where: str, text: str) -> None:
    folder = magy.root if where == "project" else magy.state.parent
    (folder / "magy.toml").write_text(text, encoding="utf-8")


def values(magy: Magy, **env: str) -> dict[str, Any]:
    done = magy("config", "--json", env=env)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_each_value_says_where_it_comes_from(magy: Magy) -> None:
    write(magy, "user", 'default_agent = "plan"\n[limits]\nrequests = 9\n')
    write(magy, "project", "[limits]\nrequests = 7\ntokens = 5\n")
    assert magy("config", "trust").returncode == 0
    found = values(magy, MAGY_MODEL="anthropic/x")["values"]
    assert found["default_agent"] == {
        "value": "plan", "origin": str(magy.state.parent / "magy.toml"),
    }  # fmt: skip
    assert found["limits.requests"] == {"value": 7, "origin": str(magy.root / "magy.toml")}
    assert found["model.default"] == {"value": "anthropic/x", "origin": "the environment"}
    assert found["limits.repeats"]["origin"] == "default"


@pytest.mark.req("A237")
def test_an_installation_has_a_name_and_a_description(magy: Magy) -> None:
    assert values(magy)["values"]["magy.name"] == {"value": "Magy", "origin": "default"}
    write(magy, "user", '[magy]\nname = "Desk"\ndescription = "The one below the window"\n')
    found = values(magy)["values"]
    assert found["magy.name"]["value"] == "Desk"
    assert found["magy.description"]["value"] == "The one below the window"
    write(magy, "user", '[magy]\nnames = "Desk"\n')
    done = magy("config")
    assert done.returncode != 0 and "magy.names" in done.stderr


def test_an_untrusted_project_only_narrows(magy: Magy) -> None:
    write(magy, "project", 'default_agent = "plan"\n[limits]\nrequests = 3\n')
    found = values(magy)
    assert found["trusted"] is False
    assert found["values"]["default_agent"]["value"] == "build"
    assert found["values"]["limits.requests"]["value"] == 3
    assert found["ignored"] == [f"{magy.root / 'magy.toml'}: default_agent"]
    magy("config", "trust")
    assert values(magy)["values"]["default_agent"]["value"] == "plan"
    write(magy, "project", 'default_agent = "explore"\n')
    assert values(magy)["trusted"] is False, "it is another file now"
    magy("config", "trust")
    magy("config", "untrust")
    assert values(magy)["trusted"] is False


def test_it_is_said_which_files_the_trust_is_for(magy: Magy) -> None:
    assert "there are none" in " ".join(magy("config", "trust").stdout.split())
    agents = magy.root / ".magy" / "agents"
    agents.mkdir(parents=True)
    for number in range(30):
        (agents / f"a{number:02}.md").write_text("---\ndescription: x\n---\nDo.\n")
    write(magy, "project", "")
    said = magy("config", "trust").stdout.splitlines()
    assert "  .magy/agents/a00.md" in said and "  and 11 more" in said
    assert len(said) < 30


def test_the_table_is_toml_that_says_the_same(magy: Magy) -> None:
    write(
        magy,
        "user",
        'default_agent = "plan"\n[permission]\nbash = {"git *" = "allow"}\n'
        '[[provider]]\nname = "my own"\nkind = "openai-chat"\nmodels = ["a", "ü\\"b"]\n',
    )
    shown = magy("config").stdout
    table = tomllib.loads(shown)
    assert table["default_agent"] == "plan"
    assert table["permission"] == {"bash": {"git *": "allow"}}
    assert table["provider"]["my own"]["models"] == ["a", 'ü"b']
    line = next(line for line in shown.splitlines() if line.startswith("default_agent"))
    assert line.endswith(f"# {magy.state.parent / 'magy.toml'}")


@pytest.mark.parametrize(
    "value", [True, 1, 0.5, 'a\tb\n"c"', "日本", [], {}, ["a", 1], {"a b": [{"c": True}]}]
)
def test_values_are_written_as_toml(value: Any) -> None:
    assert tomllib.loads(f"x = {toml(value)}") == {"x": value}


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("api_key_env", "OPENAI_API_KEY", "OPENAI_API_KEY"),
        ("api_key_env", "sk-ant-123", "(hidden: this is not the name of a variable)"),
        ("api_key_env", "", ""),
        ("base_url", "http://localhost:1/v1", "http://localhost:1/v1"),
        ("base_url", "https://me:pw@host:1/v1?key=x#y", "https://(hidden)@host:1/v1?(hidden)#y"),
        ("base_url", "http://[broken", "(hidden: this is not an address)"),
        ("name", "sk-ant-123", "sk-ant-123"),
        ("base_url", None, None),
    ],
)
def test_what_is_secret_is_not_printed(key: str, value: Any, shown: Any) -> None:
    assert public(key, value) == shown


def test_check_names_file_and_key(magy: Magy) -> None:
    write(magy, "user", "[limits]\nrequests = 9\n")
    done = magy("config", "check")
    assert done.returncode == 0
    assert done.stdout == (
        f"✓ {magy.state.parent / 'magy.toml'} is right\n"
        f"– {magy.root / 'magy.toml'} does not exist\n"
    )
    write(magy, "project", "[limits]\nrequests = -1\n")
    done = magy("config", "check")
    assert done.returncode == 2
    assert f"✗ {magy.root / 'magy.toml'}: limits.requests must be " in done.stdout


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"modle = 1", "unknown key 'modle'; did you mean 'model'?"),
        (b"= 1", "is not valid TOML"),
        (b"\xff", "is not UTF-8 text (line 1)"),
        (b"default_agent = 3", "default_agent must be text in quotes (it is 3)"),
    ],
)
def test_check_of_a_file(magy: Magy, data: bytes, said: str) -> None:
    (magy.root / "one.toml").write_bytes(data)
    done = magy("config", "check", "one.toml")
    assert done.returncode == 2
    assert said in done.stdout
    assert magy("config", "check", "none.toml").returncode == 2


def test_paths(magy: Magy) -> None:
    lines = magy("config", "path").stdout.splitlines()
    assert lines.pop(0) == "administrator's        /etc/magy/magy.toml  (does not exist)"
    assert [line[23:] for line in lines] == [
        f"{magy.state.parent / 'magy.toml'}",
        f"{magy.root / 'magy.toml'}  (does not exist)",
        f"{magy.state}  (does not exist)",
    ]


def test_the_schema_is_that_of_the_settings(magy: Magy) -> None:
    schema = json.loads(magy("config", "--schema").stdout)
    assert schema.pop("$schema").startswith("https://json-schema.org/")
    assert schema == Settings.model_json_schema()


def test_settings_are_printed_although_the_database_is_damaged(magy: Magy) -> None:
    magy.state.mkdir()
    (magy.state / "magy.db").write_bytes(b"not a database" * 100)
    done = magy("config")
    assert done.returncode == 0
    assert "The project counts as not trusted." in done.stderr


def test_a_wrong_configuration_is_said_before_anything_is_made(magy: Magy) -> None:
    magy.script("text: hello\n")
    write(magy, "user", "modle = 1\n")
    done = magy("run", "hello")
    assert done.returncode == 2
    assert "unknown key 'modle'" in done.stderr
    assert not magy.state.exists()


def test_check_says_what_a_run_would_refuse(magy: Magy) -> None:
    (magy.root / "magy.toml").write_text('locked = ["bypass"]\n')
    done = magy("config", "check")
    assert done.returncode == 2 and "only the administrator's file" in done.stdout
    (magy.root / "magy.toml").write_text('[sandbox]\nhosts = ["https://pypi.org/simple"]\n')
    done = magy("config", "check")
    assert done.returncode == 2 and "sandbox.hosts 1: " in done.stdout
    assert "without scheme and path; write 'pypi.org'" in done.stdout


def test_check_names_what_watches_nothing(magy: Magy) -> None:
    rail = '[[guardrail]]\ntool = "%s"\naction = "block"\npattern = "x"\n'
    hook = '[[hook]]\nevent = "PreToolUse"\nmatch = "%s"\ncommand = "true"\n'
    config = magy.root / "magy.toml"
    config.write_text(rail % "bsh" + hook % "write_file|edit_fil")
    shown = magy("config", "check").stdout
    assert "guardrail 1 watches nothing: there is no tool 'bsh'; did you mean 'bash'?" in shown
    assert "hook `true`, `match`: there is no tool 'edit_fil'; did you mean 'edit_file'?" in shown
    config.write_text(rail % "mcp__git__log" + hook % "write_file|edit*")
    assert f"{config} is right" in magy("config", "check").stdout
