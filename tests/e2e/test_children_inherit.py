"""What a child has of the one above it, as the provider gets it and as editors are told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.loopback import AnthropicServer, call, text

from .harness import SESSION, person
from .test_child_tools import children
from .test_prompts import KEY, SETTINGS

WARM = """---
description: Warm
mode: all
temperature: 0.7
model: here/warm-model
---
You work.
"""
PLAIN = """---
description: Plain
mode: all
---
You work, too.
"""


def configured(state: Path, url: str, thinking: int) -> None:
    settings = SETTINGS.format(url=url, key=KEY, search="http://127.0.0.1:9/")
    settings = settings.replace("[model]\n", f"[model]\nthinking_tokens = {thinking}\n")
    (state / "magy.toml").write_text(settings)


@pytest.mark.req("E135", "E094")
async def test_a_child_has_model_and_effort_of_the_one_above_it(root: Path, state: Path) -> None:
    """An agent that says nothing of its model works with that of its parent, and thinks as much."""
    (state / "agent").mkdir(parents=True)
    (state / "agent" / "warm.md").write_text(WARM)
    (state / "agent" / "plain.md").write_text(PLAIN)
    task = {"agent": "plain", "task_name": "Look", "prompt": "Look around"}
    async with AnthropicServer() as model:
        configured(state, model.base_url, 2048)
        async with person(root, state, env={KEY: "test-key"}) as one:
            await one.new()
            await one.request("session/set_config_option", configId="agent", value="warm")
            await one.request("session/set_config_option", configId="bypass", value="on")
            model.reply(call("spawn_agent", task))
            model.reply(text("It runs."), text("It looked."), text("Seen."))
            await one.ask("Delegate")
            await one.end()
            (child,) = await children(one)
            waited = {"sessionIds": [child["sessionId"]], "timeoutMs": 30_000}
            await one.client.request("magy/child/wait", waited)
            (child,) = await children(one)
        assert (child["parentSessionId"], child["depth"]) == (SESSION, 1)
        assert child["sessionId"].startswith(f"{SESSION}/")
        assert (child["agent"], child["name"]) == ("plain", "Look")
        assert child["model"] == "here/warm-model", "inherited"
        (sent,) = [r.body for r in model.asked if "Look around" in first(r.body)]
        assert sent["model"] == "warm-model"
        assert sent["thinking"] == {"type": "enabled", "budget_tokens": 2048}
        assert sent["tools"], "it may do something, too"


def first(body: Any) -> str:
    return json.dumps(body["messages"][0])
