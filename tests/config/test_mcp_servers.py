"""MCP servers come from several files; what a project says counts only when it is trusted."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from magy_server.config import layers
from magy_server.config.trust import files_hash
from magy_server.core.errors import InvalidConfig, NotTrusted
from magy_server.projects import mcp_servers


def user(text: str) -> str:
    file = layers.config_dir() / "magy.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return str(file)


def shared(root: Path, **servers: object) -> str:
    file = root / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    return str(file)


@pytest.mark.req("G040")
def test_a_project_adds_servers_and_says_when_two_have_one_name(tmp_path: Path) -> None:
    mine = user('[mcp.a]\ncommand = "a"\ncall_timeout = 5\n[mcp.b]\ncommand = "b"\n')
    theirs = shared(tmp_path, b={"command": "other"}, c={"command": "c"})
    (tmp_path / "magy.toml").write_text("[mcp.a]\nenabled = false\n[mcp.c]\ncall_timeout = 9\n")
    loaded = layers.load(str(tmp_path), trusted=True, options={})
    servers, problems = mcp_servers(loaded, {})
    assert {name: one.command for name, one in servers.items()} == {"b": "other", "c": "c"}
    assert servers["c"].call_timeout == 9
    assert not problems
    (doubled,) = loaded.problems
    assert "'b'" in doubled and mine in doubled and theirs in doubled


def test_a_server_that_cannot_be_used_is_named_and_others_are_used(tmp_path: Path) -> None:
    file = user('[mcp.a]\ncommand = "${NOT_THERE}"\n[mcp.b]\ncommand = "b"\n[mcp.c]\n')
    servers, problems = mcp_servers(layers.load(None, trusted=False, options={}), {})
    assert set(servers) == {"b"}
    assert [problem.partition(": MCP server ")[0] for problem in problems] == [file, file]
    assert "NOT_THERE" in problems[0] and "neither a command nor a url" in problems[1]


def test_a_wrong_key_is_told_what_was_meant(tmp_path: Path) -> None:
    user('[mcp.a]\ncomand = "a"\n')
    with pytest.raises(InvalidConfig, match=r"mcp\.a\.comand.*did you mean 'command'"):
        layers.load(None, trusted=False, options={})


def test_an_untrusted_project_can_only_switch_servers_off(tmp_path: Path) -> None:
    user('[mcp.a]\ncommand = "a"\n[mcp.b]\ncommand = "b"\n')
    file = shared(tmp_path, evil={"command": "rm"})
    (tmp_path / "magy.toml").write_text(
        '[mcp.a]\nenabled = false\n[mcp.b]\ncommand = "evil"\n[mcp.c]\ncommand = "c"\n'
    )
    loaded = layers.load(str(tmp_path), trusted=False, options={})
    servers, _ = mcp_servers(loaded, {})
    assert {name: one.command for name, one in servers.items()} == {"b": "b"}
    toml = str(tmp_path / "magy.toml")
    assert set(loaded.ignored) == {file, f"{toml}: mcp.b", f"{toml}: mcp.c"}


@pytest.mark.parametrize("text", ["{", "\0", '{"mcpServers": {"a": {"command": 1}}}'])
def test_a_broken_mcp_json_breaks_nothing_else(tmp_path: Path, text: str) -> None:
    user("")
    (tmp_path / ".mcp.json").write_text(text)
    loaded = layers.load(str(tmp_path), trusted=True, options={})
    assert not loaded.settings.mcp and str(tmp_path) in loaded.problems[0]


def test_trust_is_for_the_files_of_other_agents_too_but_not_for_what_they_write(
    tmp_path: Path,
) -> None:
    root = str(tmp_path)
    hash = files_hash(root)
    for name in (".mcp.json", ".claude/settings.json", ".agents/skills/a/SKILL.md"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
        assert files_hash(root) != hash, name
        hash = files_hash(root)
    local = tmp_path / ".claude/settings.local.json"
    local.write_text('{"hooks": {}}')
    hash = files_hash(root)
    local.write_text('{"permissions": {"allow": ["Bash(ls)"]}, "hooks": {}}')
    assert files_hash(root) == hash
    local.write_text('{"hooks": {"PreToolUse": []}}')
    assert files_hash(root) != hash
    hash = files_hash(root)
    for name in (".claude/worktrees/x/a", ".claude/todos/1.json"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
        assert files_hash(root) == hash, name


def test_a_link_to_what_is_vouched_for_itself_can_be_trusted(tmp_path: Path) -> None:
    root = str(tmp_path)
    (tmp_path / ".agents/skills/a").mkdir(parents=True)
    skill = tmp_path / ".agents/skills/a/SKILL.md"
    skill.write_text("one")
    (tmp_path / ".claude/skills").mkdir(parents=True)
    link = tmp_path / ".claude/skills/a"
    link.symlink_to("../../.agents/skills/a")
    hash = files_hash(root)
    skill.write_text("two")
    assert files_hash(root) != hash
    for elsewhere in ("../../src", "../worktrees", "..", os.devnull, "../../.agents/none"):
        (tmp_path / "src").mkdir(exist_ok=True)
        (tmp_path / "src/a.md").write_text("x")
        (tmp_path / ".claude/worktrees").mkdir(exist_ok=True)
        (tmp_path / ".claude/worktrees/a.md").write_text("x")
        link.unlink()
        link.symlink_to(elsewhere)
        with pytest.raises(NotTrusted, match="symbolic link"):
            files_hash(root)
