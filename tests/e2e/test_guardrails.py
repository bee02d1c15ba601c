"""Guardrails in a real server: what they block, ask about, take away and limit, whoever wrote
them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.harness import person

RAILS = """
[[guardrail]]
tool = "shell"
action = "block"
pattern = "rm -rf /"
message = "Delete files one by one."
examples = { match = ["rm -rf /etc"], not_match = ["rm -rf build"] }

[[guardrail]]
tool = "bash"
action = "flag"
pattern = "touch flagged"

[[guardrail]]
tool = "web_search"
action = "disable"
"""


def call(command: str) -> str:
    return f"call: bash {json.dumps({'command': command})}\n---\n"


@pytest.mark.req("A263", "A111")
async def test_a_project_that_nobody_trusts_may_block_flag_and_disable(
    root: Path, state: Path
) -> None:
    """Bypass answers none of it, and a lasting yes is not offered."""
    (root / "magy.toml").write_text(RAILS)
    script = call("echo rm -rf / > made") + call("touch flagged") + call("touch plain")
    script += 'call: web_search {"query": "x"}\n---\ntext: Done.\n'
    async with person(root, state, script) as one:
        await one.new()
        await one.request("session/set_config_option", configId="bypass", value="on")
        await one.ask("Go")
        question = await one.question()
        assert not question["remember"]
        assert question["rule"] == (
            f"{root}/magy.toml (not trusted): guardrail bash `touch flagged` -> flag"
        )
        await one.respond(question["interactionId"], True)
        await one.end()
        blocked, *_, gone = one.outputs()
        assert "Delete files one by one." in blocked
        assert "Do it another way, or ask the user." in blocked
        assert f"'web_search' is switched off here ({root}/magy.toml (not trusted))" in gone
    there = {path.name for path in root.iterdir()}
    assert there >= {"flagged", "plain"} and "made" not in there


@pytest.mark.req("A114")
async def test_a_limit_of_tokens_ends_the_run(root: Path, state: Path) -> None:
    settings = {"guardrail": [{"action": "limit", "tokens": 40_000}]}
    replies = (f"usage: input=30000 output=10\n{call(f'touch n{n}')}" for n in range(6))
    script = "".join(replies) + "text: Done.\n"
    async with person(root, state, script, settings=settings) as one:
        await one.new()
        await one.request("session/set_config_option", configId="bypass", value="on")
        ended = await one.turn("Go")
        assert ended["stopReason"] != "end_turn" and "Done." not in one.said()
    assert (root / "n0").exists() and not (root / "n5").exists()
