"""`magy mcp`: servers are added, listed, tried, removed; those of other agents are taken."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

import pytest

from magy_server.config.mcp_file import added, removed
from tests.cli.harness import Magy
from tests.mcp.test_servers import HERE

RUDE = str(HERE / "rude_server.py")


@pytest.mark.req("G040")
def test_a_server_is_added_tried_and_removed(magy: Magy) -> None:
    assert "No MCP server is configured here." in magy("mcp").stdout
    done = magy("mcp", "add", "rude", sys.executable, "--env", "TOKEN=${NONE:-s3cret}", "--", RUDE)
    assert done.stdout.startswith("added rude to your settings"), done
    assert "s3cret" not in magy("mcp", "list").stdout + magy("config").stdout
    (listed,) = json.loads(magy("mcp", "list", "--json").stdout)["servers"]
    assert (listed["name"], listed["starts"]) == ("rude", f"{sys.executable} {RUDE}")
    tried = magy("mcp", "test", "rude")
    assert tried.returncode == 0 and "rude: rude 0, 13 tools" in tried.stdout
    assert "mcp__rude__hang" in tried.stdout and "Does this: hang." in tried.stdout
    assert "connected to rude 0: 13 tools" in magy("mcp", "logs", "rude").stdout
    again = magy("mcp", "add", "rude", "other")
    assert again.returncode == 2 and "has a server 'rude' already" in again.stderr
    assert "removed rude" in magy("mcp", "remove", "rude").stdout
    gone = magy("mcp", "remove", "rude")
    assert gone.returncode == 2 and "There is no [mcp.rude] in " in gone.stderr


def test_a_server_that_does_not_start_is_a_failure_with_its_reason(magy: Magy) -> None:
    magy("mcp", "add", "odd", sys.executable, "--", RUDE, "exit")
    tried = magy("mcp", "test")
    assert tried.returncode == 1 and "there is no configuration" in tried.stdout
    wrong = magy("mcp", "test", "none")
    assert wrong.returncode == 2 and "There is no MCP server 'none'" in wrong.stderr
    for words in (
        ("add", "a__b", "x"),
        ("add", "a", "http://x", "y"),
        ("add", "a", "x", "--env", "b"),
    ):
        assert magy("mcp", *words).returncode == 2
    assert magy("mcp", "logs", "never").returncode == 2


def test_servers_of_other_agents_are_taken_and_it_is_said_from_where(
    magy: Magy, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    env = {"HOME": str(home)}
    (home / ".codex").mkdir(parents=True)
    (home / ".codex/config.toml").write_text(
        '[mcp_servers.codex]\ncommand = "c"\nargs = ["1"]\nstartup_timeout_sec = 9\n'
        '[mcp_servers.web]\nurl = "https://x.org/mcp"\nbearer_token_env_var = "X_TOKEN"\n'
    )
    own = {"mcpServers": {"mine": {"command": "m"}}}
    (home / ".claude.json").write_text(json.dumps({**own, "projects": {str(magy.root): own}}))
    folder = magy.root / ".vscode"
    folder.mkdir()
    code = {"code": {"command": "v", "env": {"A": "${env:B}"}}, "mine": {"command": "x"}}
    code["asks"] = {"command": "a", "env": {"A": "${input:key}"}}
    (folder / "mcp.json").write_text(json.dumps({"servers": code}))
    refused = magy("mcp", "import", env=env)
    assert refused.returncode == 2 and "give --yes" in refused.stderr
    done = magy("mcp", "import", "--yes", env=env)
    assert "MCP server 'asks' wants values that are typed in" in " ".join(done.stdout.split())
    assert "codex of Codex" in done.stdout and "you have one of this name" in done.stdout
    listed = json.loads(magy("mcp", "list", "--json").stdout)["servers"]
    assert {one["name"] for one in listed} == {"codex", "web", "mine", "code"}
    assert "There is nothing new to take." in magy("mcp", "import", "--yes", env=env).stdout


def test_a_file_keeps_all_else_that_is_in_it() -> None:
    text = (
        '# mine\n[mcp.a]\ncommand = "a"\n[mcp.a.env]\nX = "1"\n\n[model] # and this\nretries = 1\n'
    )
    more = added(text, "b", {"command": "b", "args": ["é\x7f\n\"'"], "env": {"A b": "c"}})
    assert more.startswith(text)
    values = tomllib.loads(more)["mcp"]["b"]
    assert values == {"command": "b", "args": ["é\x7f\n\"'"], "env": {"A b": "c"}}
    assert removed(more, "b").rstrip() == text.rstrip()
    assert tomllib.loads(removed(text, "a")) == {"model": {"retries": 1}}
    assert removed(text, "a").startswith("# mine\n[model] # and this")
