"""Keys that the editor keeps: they count where nothing else says one, and stay in memory."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from magy_server.tools.search.ripgrep_program import candidates
from tests.loopback import AnthropicServer, text

from .harness import Person, person

KEY = "sk-ant-lent-0123456789abcdef"
OTHER = "sk-ant-own-fedcba9876543210"


async def one_turn(root: Path, state: Path, env: dict[str, str], **said: Any) -> tuple[str, Person]:
    """The key that the model's endpoint got, and who talked to it."""
    async with AnthropicServer() as server:
        server.answer(lambda body: [text("Hello.")])
        given = {"ANTHROPIC_BASE_URL": server.base_url, **env}
        settings = {"model": {"retries": 0}, "audit": {"enabled": True}}
        async with person(root, state, None, env=given, settings=settings, said=said) as one:
            await one.new()
            await one.turn("Hi")
        keys = [seen.headers["authorization"].removeprefix("Bearer ") for seen in server.requests]
        return "".join(dict.fromkeys(keys)), one


async def test_a_lent_key_reaches_its_provider_and_is_written_nowhere(
    root: Path, state: Path
) -> None:
    key, one = await one_turn(root, state, {}, keys={"anthropic": f" {KEY}\n", "openai": 7})
    assert key == KEY
    told = {"the client": json.dumps(one.client.received), "stderr": str(one.client.log)}
    for path in state.rglob("*"):
        if path.is_file():
            told[path.name] = path.read_bytes().decode("latin-1")
    assert not [where for where, said in told.items() if KEY in said]


async def test_a_key_of_the_environment_goes_first(root: Path, state: Path) -> None:
    key, _ = await one_turn(
        root, state, {"ANTHROPIC_API_KEY": OTHER}, keys={"anthropic": KEY, "nobody": KEY}
    )
    assert key == OTHER


async def test_no_command_sees_a_lent_key_and_the_doctor_knows_of_it(
    root: Path, state: Path
) -> None:
    look = "env; tr '\\0' '\\n' < /proc/$PPID/environ; echo looked"
    script = f"call: bash {json.dumps({'command': look})}\n---\ntext: done\n"
    keys = {"anthropic": KEY, "corp": KEY, "ollama": KEY, "nobody": KEY}
    corp = {"name": "corp", "kind": "openai-chat", "base_url": "http://127.0.0.1:1/v1"}
    settings = {"permission": {}, "provider": [{**corp, "api_key_env": "CORP"}]}
    async with person(root, state, script, settings=settings, said={"keys": keys}) as one:
        await one.new()
        await one.ask("Go")
        await one.answer()
        await one.end()
        (found,) = one.outputs()
        assert "looked" in found and KEY not in found and "CORP=" not in found
        report = await one.client.request("magy/doctor/run", {"cwd": str(root)})
        assert "Keys are set in ANTHROPIC_API_KEY." in report["report"]
        assert KEY not in json.dumps(report)
        log = str(one.client.log)
        assert "'nobody', which is not known" in log and "'ollama', which asks for no key" in log


async def test_no_program_is_started_with_a_lent_key(
    root: Path, state: Path, tmp_path: Path
) -> None:
    """Neither shells nor git nor ripgrep, which here write down all that they could read."""
    bin, seen = tmp_path / "bin", tmp_path / "seen"
    for folder in (bin, seen):
        folder.mkdir()
    for name, real in (("git", shutil.which("git")), ("rg", next(candidates("rg")))):
        program = bin / name
        program.write_text(
            f"#!/bin/sh\nenv >> {seen}/{name}\ncat /proc/$PPID/environ >> {seen}/{name}\n"
            f'exec {real} "$@"\n'
        )
        program.chmod(0o755)
    subprocess.run(["git", "init", "-q", root], check=True)
    look = f"env >> {seen}/bash; cat /proc/[0-9]*/environ >> {seen}/bash 2>&1; true"
    calls = [
        ("bash", {"command": look}), ("grep", {"pattern": "line"}), ("git_status", {}),
    ]  # fmt: skip
    script = "".join(f"call: {name} {json.dumps(given)}\n---\n" for name, given in calls)
    env = {"PATH": f"{bin}{os.pathsep}{os.environ['PATH']}"}
    async with person(
        root, state, f"{script}text: done\n", said={"keys": {"anthropic": KEY}}, env=env
    ) as one:
        await one.new()
        await one.request("session/set_config_option", configId="bypass", value="on")
        await one.turn("Go")
    read = {path.name: path.read_bytes() for path in seen.iterdir()}
    assert {name for name, said in read.items() if b"PATH=" in said} == {"bash", "rg", "git"}
    assert not [name for name, said in read.items() if KEY.encode() in said]
