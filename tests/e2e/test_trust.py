"""Trust: what a project may say before a person trusts it, and after it changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loopback import AnthropicServer, text

from .harness import Person, RpcError, person
from .test_agents import TALK, agent, calls, listed


async def trust(one: Person, trusted: bool | None = None) -> dict[str, object]:
    params = {"root": str(one.root)} | ({} if trusted is None else {"trusted": trusted})
    found: dict[str, object] = await one.client.request("magy/workspace/trust", params)
    return found


async def test_agents_of_a_project_wait_for_trust(root: Path, state: Path) -> None:
    file = agent(root / ".magy" / "agent", "review")
    agent(root / ".magy" / "agent", "build", "permissions: bash allow")
    async with person(root, state, calls('bash {"command": "touch made"}')) as one:
        shown = await one.client.wait_for("window/showMessage", lambda p: "trusted" in p["message"])
        assert str(file) in shown["message"]
        assert "review" not in await listed(one)
        with pytest.raises(RpcError, match=r"review\.md is in a project that is not trusted") as no:
            await one.new(agent="review")
        assert no.value.reason == "not_trusted"
        await one.new()
        await one.ask("Go")
        question = await one.question()  # by the shipped build
        assert "agent build: bash `*` -> ask" in question["rule"]
        await one.respond(question["interactionId"], False)
        await one.end()
        assert (await trust(one, True))["ignored"] == []
        assert "review" in await listed(one)


async def test_a_changed_project_must_be_trusted_again(root: Path, state: Path) -> None:
    agent(root / ".magy" / "agent", "review")
    async with person(root, state, TALK) as one:
        await trust(one, True)
        await one.new(agent="review")
        await one.turn("Hi")
        widened = agent(root / ".magy" / "agent", "helper", "permissions: bash allow")
        assert (await trust(one))["trusted"] is False
        assert "helper" not in await listed(one)
        await one.ask("Again", "p2")
        ended = await one.update("state_update", lambda u: u.get("stopReason") == "error")
        assert "trust the project" in str(ended)
        assert str(widened) in str((await trust(one))["ignored"])
        await trust(one, True)
        assert "helper" in await listed(one)
        await one.ask("Once more", "p3")
        await one.update("state_update", lambda u: u.get("stopReason") == "end_turn")


async def test_in_a_restricted_window_no_project_is_trusted(root: Path, state: Path) -> None:
    """Nor does it become so there; what was said before holds again in another window."""
    agent(root / ".magy" / "agent", "review")
    async with person(root, state, TALK) as one:
        await trust(one, True)
        assert "review" in await listed(one)
    async with person(root, state, TALK, said={"restricted": True}) as one:
        assert (await trust(one))["trusted"] is False
        assert "review" not in await listed(one)
        with pytest.raises(RpcError, match="in the editor first") as no:
            await trust(one, True)
        assert no.value.reason == "not_trusted"
        assert "review" not in await listed(one)
    async with person(root, state, TALK) as one:
        assert (await trust(one))["trusted"] is True


async def test_plans_and_project_instructions_do_not_touch_trust(root: Path, state: Path) -> None:
    agent(root / ".magy" / "agent", "review")
    script = calls('write_file {"path": ".magy/plan/a.md", "content": "# A"}')
    async with person(root, state, script, settings={"permission": {}}) as one:
        await trust(one, True)
        await one.new(agent="plan")
        await one.turn("Plan")
        (root / "AGENTS.md").write_text("Be brief.")
        assert (root / ".magy/plan/a.md").is_file()
        assert (await trust(one))["trusted"] is True
        assert "review" in await listed(one)
    async with person(root, state, script) as one:
        assert (await trust(one))["trusted"] is True


async def test_a_project_that_loses_trust_loses_its_endpoint(root: Path, state: Path) -> None:
    """At once: not one more request, and no key, goes there."""
    async with AnthropicServer() as its_own, AnthropicServer() as usual:
        its_own.answer(lambda body: [text("I am the project's.")])
        usual.answer(lambda body: [text("I am yours.")])
        state.mkdir(parents=True, exist_ok=True)
        for place, server in ((root, its_own), (state, usual)):
            (place / "magy.toml").write_text(
                '[[provider]]\nname = "anthropic"\nkind = "anthropic"\n'
                f'base_url = "{server.base_url}"\napi_key_env = "ANTHROPIC_API_KEY"\n'
            )
        env = {"ANTHROPIC_API_KEY": "test", "MAGY_MODEL": "anthropic/test"}
        async with person(root, state, env=env) as one:
            await one.new()
            await trust(one, True)
            await one.turn("Who are you?")
            await trust(one, False)
            await one.turn("And now?", "p2")
            assert one.said() == "I am the project's.\nI am yours."
            assert len(its_own.requests) == 1
