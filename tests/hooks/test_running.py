"""The command of a hook is bounded, whatever it does."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from magy_server.core.hooks import Hook, failed, said, told_name
from magy_server.core.values import HookSaid
from magy_server.hooks.hooks import opinion
from magy_server.hooks.running import MOST, Outcome, run


def hook(command: str = "true", **more: object) -> Hook:
    about = {
        "event": "PreToolUse", "match": "*", "timeout": 20.0, "name": "guard", "where": "here",
        "foreign": False,
    }  # fmt: skip
    return Hook(command=command, **{**about, **more})  # type: ignore[arg-type]


async def ran(command: str, tmp_path: Path, input: bytes = b"{}", **more: object) -> Outcome:
    return await run(hook(command, **more), input, str(tmp_path), {"PATH": os.environ["PATH"]})


async def test_it_gets_its_input_and_its_directory(tmp_path: Path) -> None:
    outcome = await ran("cat; pwd >&2; exit 3", tmp_path, b'{"a": 1}')
    assert outcome == Outcome(3, '{"a": 1}', f"{tmp_path}\n")


async def test_it_need_not_read_what_it_is_told(tmp_path: Path) -> None:
    assert await ran("exit 0", tmp_path, b"x" * 4_000_000) == Outcome(0)


async def test_what_it_floods_is_cut(tmp_path: Path) -> None:
    """What was cut may have been a refusal, so the person is asked, whosever hook it is."""
    outcome = await ran("echo '{\"reason\": \"'; head -c 20000000 /dev/zero | tr '\\0' x", tmp_path)
    assert (outcome.code, len(outcome.output)) == (0, MOST)
    about = opinion(hook(foreign=True), outcome)
    assert about and (about.action, about.reason) == ("ask", "it wrote more than Magy reads")


async def test_what_it_leaves_running_is_ended(tmp_path: Path) -> None:
    """A process that it leaves in the background holds its outputs open, and would never end."""
    outcome = await ran("sleep 1000 & echo $! > left; echo said", tmp_path)
    assert outcome == Outcome(0, "said\n")
    await gone(int((tmp_path / "left").read_text()))


async def test_one_that_runs_for_ever_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    outcome = await ran("(sleep 1000 & echo $! > left; wait)", tmp_path, timeout=0.3)
    assert outcome == Outcome(None, errors="it took longer than 0.3 s")
    await gone(int((tmp_path / "left").read_text()))


async def test_a_daemon_of_its_keeps_nobody_waiting(tmp_path: Path) -> None:
    command = "setsid sh -c 'echo $$ > daemon; exec sleep 1000' & while ! [ -s daemon ]; do :; done"
    assert (await ran(command, tmp_path)).code == 0
    os.kill(int((tmp_path / "daemon").read_text()), 9)


async def test_one_that_cannot_be_started_says_why(tmp_path: Path) -> None:
    outcome = await ran("true", tmp_path / "nowhere")
    assert outcome.code is None
    assert "it cannot be started" in outcome.errors and "nowhere" in outcome.errors


async def gone(process: int) -> None:
    async with asyncio.timeout(30):
        while Path(f"/proc/{process}").exists() and "Z" not in state(process):
            await asyncio.sleep(0.02)


def state(process: int) -> str:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


# --- what it says ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "output", "errors", "action", "reason"),
    [
        (0, "", "", None, ""),
        (0, "All is well.", "noise", None, ""),
        (0, "{}", "", None, ""),
        (2, "", "not on Fridays\n", "deny", "not on Fridays"),
        (2, '{"decision": "approve"}', "", "deny", "it gave no reason"),
        (0, '{"decision": "block", "reason": "no"}', "", "deny", "no"),
        (0, '{"decision": "approve", "reason": "ours"}', "", "allow", "ours"),
        (0, '{"continue": false, "stopReason": "closed"}', "", "deny", "closed"),
        (0, '{"hookSpecificOutput": {"permissionDecision": "ask", '
            '"permissionDecisionReason": "look"}}', "", "ask", "look"),
        (1, "", "Traceback: no", "ask", "it failed: it ended with code 1: Traceback: no"),
        (0, "{broken", "", "ask", "it failed: what it wrote is no JSON: '{broken'"),
        (0, '{"decision": "perhaps"}', "", "ask",
            "it failed: it decided 'perhaps', which is not allow, ask or deny"),
        (0, '{"decision": "block", "reason": "no", "hookSpecificOutput": '
            '{"permissionDecision": "allow"}}', "", "deny", "no"),
        (0, '{"decision": "block", "hookSpecificOutput": {"permissionDecision": null}}', "",
            "deny", "it gave no reason"),
        (0, '{"permissionDecision": "deny"}', "", "deny", "it gave no reason"),
        (0, 'Looking.\n{"decision": "block"}', "", "deny", "it gave no reason"),
        (0, '\ufeff{"decision": "block"}', "", "deny", "it gave no reason"),
        (0, '[{"decision": "block"}]', "", "ask",
            """it failed: what it wrote is no object: '[{"decision": "block"}]'"""),
        (0, '{"decision": ["allow"]}', "", "ask",
            "it failed: it decided ['allow'], which is not allow, ask or deny"),
    ],
)  # fmt: skip
def test_what_its_answer_means(
    code: int, output: str, errors: str, action: str | None, reason: str
) -> None:
    found = said(hook(), code, output, errors)
    expected = HookSaid(hook="guard", action=action, reason=reason) if action else None
    assert found == expected
    foreign = said(hook(foreign=True), code, output, errors)
    assert foreign == (None if reason.startswith("it failed") else expected)
    assert failed(hook(foreign=True), "why") is None


@pytest.mark.parametrize(
    ("match", "foreign", "tool", "key", "is_for"),
    [
        ("*", False, "bash", "bash", True),
        ("", True, "bash", "bash", True),
        ("bash", False, "bash", "bash", True),
        ("edit", False, "apply_patch", "edit", True),
        ("edit | write", False, "write_file", "write", True),
        ("git_*", False, "git_log", "git", True),
        ("Bash", False, "bash", "bash", False),
        ("Bash", True, "bash", "bash", True),
        ("bash", True, "bash", "bash", False),
        ("Edit|Write", True, "write_file", "write", True),
        ("mcp__.*", True, "mcp__a__b", "mcp__a__b", True),
        ("(", True, "bash", "bash", False),
    ],
)  # fmt: skip
def test_which_tools_it_is_for(
    match: str, foreign: bool, tool: str, key: str, is_for: bool
) -> None:
    assert hook(match=match, foreign=foreign).is_for(tool, key) is is_for


def test_one_for_another_program_is_told_the_names_of_that() -> None:
    input = {"tool_name": "bash"}
    assert hook(foreign=True).told(input) == b'{"tool_name": "Bash"}'
    assert hook().told(input) == b'{"tool_name": "bash"}'
    assert hook().told({"a": "\ud800"}) == b'{"a": "\\ud800"}'
    assert told_name("git_log") == "git_log"
