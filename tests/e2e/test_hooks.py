"""Hooks over the wire: commands of the user's before a call, and after what happened."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from .harness import Person, person
from .test_agents import calls
from .test_trust import trust

ALLOWED = {"permission": {"bash": "allow", "edit": "allow", "write": "allow"}}


def hook(command: str, event: str = "PreToolUse", **more: Any) -> dict[str, Any]:
    return {"event": event, "command": command, **more}


def hooked(*hooks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"settings": {**ALLOWED, "hook": list(hooks), **more}}


async def told(file: Path, count: int = 1) -> list[dict[str, Any]]:
    """What a hook that appends its input to a file was told, once it was told so often."""
    async with asyncio.timeout(60):
        while True:
            lines = file.read_text().splitlines() if file.exists() else []
            if len(lines) >= count:
                return [json.loads(line) for line in lines]
            await asyncio.sleep(0.05)


def refused(one: Person) -> str:
    return str([u for u in one.updates("tool_call_update") if u.get("status") == "failed"])


@pytest.mark.req("G041")
async def test_a_hook_refuses_a_call_and_the_model_hears_why(root: Path, state: Path) -> None:
    guard = "grep -q 'touch made' && echo 'We never touch.' >&2 && exit 2 || exit 0"
    script = calls('bash {"command": "touch made"}', 'bash {"command": "pwd"}')
    async with person(root, state, script, **hooked(hook(guard, match="bash"))) as one:
        await one.new()
        await one.turn("Go")
        assert "We never touch." in refused(one)
        assert str(root) in "".join(one.outputs())
    assert not (root / "made").exists()


@pytest.mark.req("G041")
async def test_what_a_hook_allows_overrides_no_deny(root: Path, state: Path) -> None:
    """It answers an ask, though."""
    allows = hook("""echo '{"decision": "approve", "reason": "ours"}'""")
    rules = {"bash": {"rm *": "deny", "*": "ask"}}
    (root / "kept").write_text("")
    script = calls('bash {"command": "touch made"}', 'bash {"command": "rm kept"}')
    async with person(root, state, script, **hooked(allows, permission=rules)) as one:
        await one.new()
        await one.turn("Go")
        assert "`rm *` -> deny" in refused(one)
    assert (root / "made").exists() and (root / "kept").exists()


@pytest.mark.parametrize("broken", ["exit 1", "echo '{'", "sleep 1000"])
async def test_where_a_hook_fails_the_person_is_asked(root: Path, state: Path, broken: str) -> None:
    one_hook = hook(broken, name="guard", timeout=0.5)
    async with person(
        root, state, calls('bash {"command": "touch made"}'), **hooked(one_hook)
    ) as one:
        await one.new()
        await one.ask("Go")
        question = await one.question()
        assert "hook `guard`: it failed" in question["rule"]
        await one.respond(question["interactionId"], True)
        await one.end()
    assert (root / "made").exists()


async def test_hooks_hear_what_happens(root: Path, state: Path) -> None:
    def heard(event: str, **more: Any) -> dict[str, Any]:
        return hook(f"cat >> '{state}/{event}'; echo >> '{state}/{event}'", event, **more)

    events = ("SessionStart", "UserPromptSubmit", "Stop")
    after = heard("PostToolUse", match="write")
    script = calls('write_file {"path": "a.txt", "content": "A"}', 'bash {"command": "true"}')
    async with person(root, state, script, **hooked(after, *map(heard, events))) as one:
        await one.new()
        await one.turn("Write it")
        (wrote,) = await told(state / "PostToolUse")
        assert (wrote["tool_name"], wrote["tool_input"]["path"]) == ("write_file", "a.txt")
        assert wrote["tool_input"]["file_path"] == str(root / "a.txt")
        assert wrote["tool_response"]["changed"] == [str(root / "a.txt")]
        assert wrote["cwd"] == str(root)
        (prompt,) = await told(state / "UserPromptSubmit")
        assert prompt["prompt"] == "Write it"
        (start,) = await told(state / "SessionStart")
        assert start["source"] == "startup"
        (stop,) = await told(state / "Stop")
        assert stop["stop_reason"] == "end_turn"


async def test_hooks_get_no_keys(root: Path, state: Path) -> None:
    """Nor does anything of them outlive the server."""
    sees = hook(f"env > '{state}/seen'", "UserPromptSubmit")
    async with person(
        root, state, calls(), **hooked(sees), env={"ANTHROPIC_API_KEY": "sk-ant-secret1234567890"}
    ) as one:
        await one.new()
        await one.turn("Hi")
        async with asyncio.timeout(60):
            while not (state / "seen").exists() or "MAGY_PROJECT_DIR" not in (
                seen := (state / "seen").read_text()
            ):
                await asyncio.sleep(0.05)
        assert "sk-ant-secret" not in seen
        assert f"MAGY_PROJECT_DIR={root}" in seen


async def test_hooks_of_a_project_wait_for_trust(root: Path, state: Path) -> None:
    """Those in `magy.toml`, and those that are there for Claude Code. What they run, the agent
    changes only when it may."""
    (root / "magy.toml").write_text(
        f"[[hook]]\nevent = 'PreToolUse'\ncommand = \"touch '{state}/ours'\"\n"
    )
    (root / ".claude").mkdir()
    (root / "scripts").mkdir()
    mark = root / "scripts" / "mark.sh"
    mark.write_text('#!/bin/sh\ncat > "$1"\n')
    mark.chmod(0o700)
    command = {
        "type": "command",
        "command": f'"$CLAUDE_PROJECT_DIR"/scripts/mark.sh "{state}/theirs"',
    }
    tree = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [command]}], "Later": []}}
    (root / ".claude" / "settings.json").write_text(json.dumps(tree))
    true = calls('bash {"command": "true"}')
    change = calls('write_file {"path": "scripts/mark.sh", "content": "exit"}')
    script = f"prompt: Go\n{true}\nprompt: Again\n{true}\nprompt: Change\n{change}"
    async with person(root, state, script, settings=ALLOWED) as one:
        await one.new()
        await one.turn("Go")
        assert not (state / "ours").exists() and not (state / "theirs").exists()
        ignored = str((await trust(one))["ignored"])
        assert "magy.toml: hook" in ignored and ".claude/settings.json" in ignored
        await trust(one, True)
        await one.turn("Again", "p2")
        assert (state / "ours").exists()
        theirs = json.loads((state / "theirs").read_text())
        assert theirs["tool_name"] == "Bash" and theirs["tool_input"] == {"command": "true"}
        await one.ask("Change it", "p3")
        question = await one.question()
        assert "what is run unasked: edit `scripts/mark.sh`" in question["rule"]
        await one.respond(question["interactionId"], False)
        await one.end()
        (root / ".claude" / "settings.json").write_text("{}")
        assert (await trust(one))["trusted"] is False
