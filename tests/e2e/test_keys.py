"""The keys that Magy was given stay with it: no command that it runs gets at them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from magy_server.config import layers

from .harness import MAGY, person

KEY = "k-live-0123456789abcdef"
ORDINARY = (sys.executable, str(Path(__file__).with_name("ordinary.py")))
GIVEN = {"ANTHROPIC_API_KEY": KEY, "CORP": KEY, "OPENAI_KEY": KEY, "ACME_HOME": "/acme"}
CORP = {"name": "corp", "kind": "openai-chat", "base_url": "http://127.0.0.1:1/v1"}
ALLOWED = {"permission": {}, "provider": [{**CORP, "api_key_env": "CORP"}]}


def bash(line: str, **more: object) -> str:
    return f"call: bash {json.dumps({'command': line, **more})}\n---\ntext: done\n"


async def said(
    root: Path, state: Path, line: str, command: tuple[str, ...] = MAGY, **tools: object
) -> str:
    """What a command says that a person allowed."""
    settings = {**ALLOWED, "tools": tools}
    async with person(
        root, state, bash(line), env=GIVEN, command=command, settings=settings
    ) as one:
        await one.new()
        await one.ask("Go")
        await one.answer()
        await one.end()
        return "\n".join(one.outputs())


async def test_a_command_sees_neither_environment_nor_memory_of_the_server(
    root: Path, state: Path
) -> None:
    """What stands below /proc of any other process of the user is open to it."""
    line = (
        "sleep 60 & for i in 1 2 3 4; do grep -aq HOME= /proc/$!/environ && break; sleep 1; done;"
        "cat /proc/$!/environ | tr '\\0' '\\n' | grep ^HOME; kill $!;"
        "for f in environ mem maps auxv fd/0 io syscall; do"
        "  head -c 1 /proc/$PPID/$f >/dev/null 2>&1 && echo open: $f; done;"
        "ls /proc/$PPID/fd /proc/$PPID/map_files; cat /proc/$PPID/task/*/environ;"
        "grep -a -o k-live /proc/*/environ; tr '\\0' ' ' < /proc/$PPID/cmdline"
    )
    found = await said(root, state, line, (*ORDINARY, *MAGY))
    assert "HOME=" in found and "magy_server lsp" in found  # it could look
    assert "open:" not in found and "denied" in found
    mine = Path("/proc/self/environ").read_bytes().count(b"k-live")
    assert not mine and "k-live" not in found


async def test_even_for_root_the_environment_is_empty_of_keys(root: Path, state: Path) -> None:
    line = "tr '\\0' '\\n' < /proc/$PPID/environ; ps eww $PPID; env"
    found = await said(root, state, line, ("env", *MAGY))
    assert not re.search(r"^PYTEST_\w+=.", found, re.MULTILINE)  # nor what else tools do not get
    assert "HOME=" in found
    assert "k-live" not in found


async def test_a_person_names_what_commands_get_besides(root: Path, state: Path) -> None:
    line = "echo [$ACME_HOME] [$OPENAI_KEY] [$CORP] [$ANTHROPIC_API_KEY]"
    assert "[] [] [] []" in await said(root, state / "1", line)
    names = ["ACME_*", "OPENAI_KEY", "CORP", "ANTHROPIC_API_KEY"]
    found = await said(root, state / "2", line, environment=names)
    assert "[/acme]" in found and "] [] []" in found


@pytest.mark.needs("bwrap")
async def test_a_sandbox_starts_below_a_server_that_is_closed(root: Path, state: Path) -> None:
    sandbox = "bwrap --unshare-all --ro-bind / / --dev /dev --proc /proc sh -c 'echo in $$'"
    command = [*ORDINARY, shutil.which("bash") or "bash", "-c", sandbox]
    plain = subprocess.run(command, capture_output=True, check=False, text=True)
    found = await said(root, state, sandbox, (*ORDINARY, *MAGY))
    assert (plain.stdout or plain.stderr).strip() in found


def test_an_untrusted_project_adds_no_variable(root: Path) -> None:
    (root / "magy.toml").write_text('[tools]\nenvironment = ["*"]\n')
    loaded = layers.load(str(root), trusted=False, options={})
    assert loaded.settings.tools.environment == []
    assert loaded.ignored == (f"{root}/magy.toml: tools",)
