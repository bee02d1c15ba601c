"""The sandbox as an editor's user has it: chosen in `magy.toml`, said in questions, held."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.loopback import call, text

from .test_prompts import at_work, said

DEVICES = "tail -n +3 /proc/net/dev | tr -d ' ' | cut -d: -f1"
pytestmark = pytest.mark.needs("bwrap")


def choose(path: Path, **settings: Any) -> None:
    """Adds a `[sandbox]` table to a magy.toml."""
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    before = path.read_text() if path.exists() else ""
    path.write_text("\n".join([before, "[sandbox]", *lines, ""]))


@pytest.mark.req("A103", "A258")
async def test_a_command_writes_in_the_workspace_alone(root: Path, state: Path) -> None:
    """An untrusted project can choose it; the person's yes does not open it."""
    choose(root / "magy.toml", level="standard")
    async with at_work(root, state) as (one, model):
        model.reply(call("bash", {"command": f"touch here; touch {state}/there; ls {state}"}))
        model.reply(text("Done."))
        turn = await one.ask("Do it")
        question = await one.question()
        assert question["rule"].endswith("; it runs in the standard sandbox")
        await one.respond(question["interactionId"])
        await one.end()
        assert turn is not None
        shown = said(model.asked[-1].body)
    assert (root / "here").exists()
    assert not (state / "there").exists()
    assert "magy.db" not in shown
    assert "touch: cannot touch" in shown


@pytest.mark.req("A104")
async def test_strict_asks_although_bypass_is_on(root: Path, state: Path) -> None:
    choose(root / "magy.toml", level="strict")
    async with at_work(root, state) as (one, model):
        await one.request("session/set_config_option", configId="bypass", value="on")
        model.reply(call("bash", {"command": f"pwd; {DEVICES}"}))
        model.reply(text("Done."))
        await one.ask("Do it")
        question = await one.question()
        assert "it runs in the strict sandbox, without network" in question["rule"]
        await one.respond(question["interactionId"])
        await one.end()
        assert said(model.asked[-1].body).endswith(f"{root}\nlo")


@pytest.mark.req("A105")
async def test_isolated_has_no_shell(root: Path, state: Path) -> None:
    choose(root / "magy.toml", level="isolated")
    async with at_work(root, state) as (one, model):
        model.reply(text("Hello."))
        await one.turn("Hello")
        tools = {tool["name"] for tool in model.asked[-1].body["tools"]}
    assert "bash" not in tools
    assert {"read_file", "edit_file"} <= tools


async def test_no_model_is_told_of_the_network_where_nobody_settled_that(
    root: Path, state: Path
) -> None:
    async with at_work(root, state) as (one, model):
        model.reply(text("Hello."))
        await one.turn("Hello", "p0")
        tools = {tool["name"]: tool for tool in model.asked[-1].body["tools"]}
        assert "network" not in tools["bash"]["input_schema"]["properties"]


async def test_commands_alone_need_no_question(root: Path, state: Path) -> None:
    settings = {"sandbox": {"level": "standard", "allow_sandboxed": True}}
    async with at_work(root, state, settings=settings) as (one, model):
        model.reply(call("bash", {"command": "python3 -c 1; echo x > made"}))
        model.reply(call("bash", {"command": "python3 -c 2", "network": True}))
        model.reply(text("Done."))
        await one.ask("Do it")
        question = await one.question()
        assert said(model.asked[1].body).startswith("[exit code 0")
        assert question["rule"].endswith("; it runs in the standard sandbox")
        await one.respond(question["interactionId"], allow=False)
        await one.end()
    assert (root / "made").read_text() == "x\n"
