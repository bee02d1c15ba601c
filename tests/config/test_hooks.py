"""The hooks that people have for Claude Code are read from its settings, whatever else is there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from magy_server.config import hooks


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
