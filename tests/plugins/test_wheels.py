"""A plugin with a skill is packed into a wheel, installed into a clean environment, switched on,
used, updated and removed. The package is the example of docs/howto/plugins.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.harness import SESSION, person, served
from tests.loopback import ChatServer, call, text

from .conftest import Magy
from .packing import Environment, documented


@pytest.mark.long
@pytest.mark.req("A157", "G043")
async def test_a_plugin_and_a_skill_of_a_wheel_are_installed_used_updated_and_removed(
    environment: Environment, magy: Magy, tmp_path: Path
) -> None:
    files = documented()
    environment.install(files)
    assert magy.plugins()["words"]["state"] == "off"
    on = magy("plugins", "enable", "words", "--yes")
    assert on.returncode == 0 and "with your rights" in on.stdout, on.stderr
    assert "count_words (read)" in on.stdout and "plugin_words" in on.stdout
    assert "short-texts (installed)" in magy("skills").stdout
    await _used(magy, tmp_path)
    assert magy("plugins", "run", "sessions").stdout == f"{SESSION}\n"

    newer = files["pyproject.toml"].replace('"0.1"', '"0.2"')
    code = files["magy_words/__init__.py"].replace("{count} words", "{count} words, said newer")
    environment.install({**files, "pyproject.toml": newer, "magy_words/__init__.py": code})
    changed = magy("plugins")
    assert "(not used)" in changed.stdout
    assert "has changed since you switched it on (it was 0.1 then)" in " ".join(
        changed.stdout.split()
    )
    assert "(installed)" not in magy("skills").stdout
    assert magy("plugins", "enable", "words", "--yes").returncode == 0
    assert magy.plugins()["words"]["version"] == "0.2"

    assert magy("plugins", "disable", "words").returncode == 0
    assert magy.plugins()["words"]["state"] == "off"
    assert magy("plugins", "enable", "words", "--yes").returncode == 0
    environment.pip("uninstall", "--yes", "magy-words")
    gone = magy("plugins")
    assert "switched on and not installed any more" in " ".join(gone.stdout.split())
    assert magy("plugins", "disable", "words").returncode == 0
    assert "No installed package has a plugin" in magy("plugins").stdout


async def _used(magy: Magy, home: Path) -> None:
    """A session in which the model calls the tool and reads the skill; the person is asked."""
    state = Path(magy.env["MAGY_STATE_DIR"])
    async with (
        ChatServer() as server,
        person(
            magy.root, state, settings=served(server), command=(*magy.command, "lsp"),
            env={"HOME": str(home)},
        ) as one,
    ):  # fmt: skip
        await one.new()
        server.reply(call("count_words", {"text": "one two three"}, id="c1"))
        server.reply(call("count_words", {"text": " "}, id="c2"))
        server.reply(call("skill_invoke", {"name": "short-texts"}, id="c3"))
        server.reply(text("Three."))
        await one.ask("Count")
        question = await one.question()
        assert question["title"] == 'count_words of the plugin words: {"text": "one two three"}'
        await one.respond(question["interactionId"], scope="session")
        await one.end()
        first, *_, last = (request.body for request in server.asked)
        assert "Sentences have at most 20 words." in str(first["messages"][0])
        assert "count_words" in {tool["function"]["name"] for tool in first["tools"]}
        said = {m["tool_call_id"]: m["content"] for m in last["messages"] if m["role"] == "tool"}
        assert said["c1"] == "3"
        assert said["c2"] == "text is empty; give a text."
        assert "Leave out what the reader knows." in said["c3"]
        assert "3 words" in one.outputs()
    assert (home / "turns.log").read_text() == f"{SESSION} end_turn\n"
