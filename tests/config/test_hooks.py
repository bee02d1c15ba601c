"""The hooks that people have for Claude Code are read from its settings, whatever else is there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from magy_server.config import hooks
from magy_server.config.run_unasked import asking
from magy_server.core.hooks import Hook
from magy_server.core.mcp.server_settings import McpServer


def read(tmp_path: Path, tree: Any) -> tuple[list[str], list[str]]:
    """The commands that are found, and what is said."""
    path = tmp_path / "settings.json"
    path.write_text(tree if isinstance(tree, str) else json.dumps(tree))
    found, problems = hooks.read([str(path)])
    return [hook.command for hook in found], [one.replace(str(path), "FILE") for one in problems]


def test_what_it_does_not_know_is_said(tmp_path: Path) -> None:
    group = {"hooks": [{"type": "command", "command": "a", "timeout": 5},
                       {"type": "prompt", "prompt": "b"}]}  # fmt: skip
    tree = {"model": "x", "hooks": {"Stop": [group], "SessionEnd": [group]}}
    assert read(tmp_path, tree) == (
        ["a"],
        ["FILE: Magy has no hooks for SessionEnd.",
         "FILE: Stop: Magy runs no hook of type 'prompt'."],
    )  # fmt: skip


STOP = '{"hooks": {"Stop": [{"hooks": [%s]}]}}'


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"hooks": 3}', STOP % 1, STOP % "{}", STOP % '{"command": "a"}, {}', "[" * 10_000],
)
def test_what_is_wrong_stops_nothing(tmp_path: Path, text: str) -> None:
    found, problems = read(tmp_path, text)
    assert not found and len(problems) == 1
    assert problems[0].startswith("FILE: its hooks are not used: ")


def test_no_file_is_no_hook(tmp_path: Path) -> None:
    assert hooks.read([str(tmp_path / "none.json")]) == ([], [])
    assert read(tmp_path, {"hooks": None}) == ([], [])


@pytest.mark.parametrize("timeout", ["NaN", "-1", '"soon"', "1" + "0" * 400, "[5]"])
def test_a_time_out_that_is_none_is_said(tmp_path: Path, timeout: str) -> None:
    path = tmp_path / "settings.json"
    path.write_text(STOP % f'{{"command": "a", "timeout": {timeout}}}')
    (hook,), problems = hooks.read([str(path)])
    if timeout.startswith("10"):
        assert (hook.timeout, problems) == (hooks.LONGEST, [])
    else:
        assert hook.timeout == hooks.TIMEOUT
        assert "the time-out of a hook is a number of seconds above 0" in problems[0]


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("./scripts/guard.sh --fast", ["scripts/guard.sh"]),
        ('"$CLAUDE_PROJECT_DIR"/.hooks/a.py', [".hooks/a.py"]),
        ("cd ${MAGY_PROJECT_DIR} && python tools/a.py | tee log", ["tools/a.py"]),
        ("bash guard.sh", ["guard.sh", "real/guard.sh"]),
        ("make lint; npm run fmt", ["Makefile", "package.json"]),
        ("/usr/bin/jq -r '.tool_response.changed[]' | xargs -r ruff format real", []),
        ("../elsewhere/x.sh", []),
    ],
)
def test_the_files_that_a_hook_runs_are_asked_about(
    tmp_path: Path, command: str, files: list[str]
) -> None:
    (tmp_path / "real").mkdir()
    for name in ("real/guard.sh", "Makefile", "package.json"):
        (tmp_path / name).write_text("")
    (tmp_path / "guard.sh").symlink_to("real/guard.sh")
    hook = Hook("PreToolUse", "", command, 1.0, "n", "w")
    found = asking(str(tmp_path.resolve()), [hook], {})
    assert [rule.pattern for one in found for rule in one.keys["edit"]] == files


def test_so_are_those_that_a_server_runs(tmp_path: Path) -> None:
    server = McpServer(command="node", args=["--require", "./a.js", "--x=lib/b.js"], cwd="web")
    (found,) = asking(str(tmp_path.resolve()), [], {"x": server})
    assert [rule.pattern for rule in found.keys["edit"]] == ["web/a.js", "web/lib/b.js"]
