"""What people are told to write and type in the guides works: settings, agents, rules, commands,
messages."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from magy_server import providers
from magy_server.cli.parser import build as command_line
from magy_server.config import layers
from magy_server.config.agents import built_in_agents, common_rules
from magy_server.core.actions import parse_actions
from magy_server.core.permit import decide
from magy_server.core.specs import AgentSpec, parse_agent

from .core.rules import EFFECTS, facts
from .e2e.harness import MAGY, Person
from .lsp.client import Client

DOCS = Path(__file__).parents[1] / "docs"
GUIDES = [*sorted((DOCS / "start").glob("*.md")), DOCS / "howto" / "agents.md",
          DOCS / "howto" / "actions.md", DOCS / "permissions.md"]  # fmt: skip
FENCE = re.compile(r"^```(.+?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(kind: str) -> Iterator[tuple[Path, str]]:
    for page in GUIDES:
        yield from (
            (page, body) for found, body in FENCE.findall(page.read_text()) if found == kind
        )


def named(cases: list[tuple[Path, str]]) -> Any:
    return pytest.mark.parametrize(("page", "body"), cases, ids=[page.stem for page, _ in cases])


SETTINGS = list(blocks("toml"))
AGENTS = list(blocks("markdown agent"))
COMMANDS = list(blocks("sh"))


def test_there_are_examples() -> None:
    assert len(SETTINGS) >= 9 and len(AGENTS) >= 2 and len(COMMANDS) >= 6


@named(SETTINGS)
def test_settings(page: Path, body: str, tmp_path: Path) -> None:
    file = tmp_path / "magy.toml"
    file.write_text(body)
    settings = layers.validate(layers.read(file))
    names = providers.settled(settings.provider)
    for model in filter(None, (settings.model.default, settings.model.small)):
        assert model.partition("/")[0] in names, f"{page}: {model}"


@named(COMMANDS)
def test_commands(page: Path, body: str) -> None:
    keys = providers.key_variables([])
    for line in body.splitlines():
        if export := re.match(r"export (\w+)=", line):
            assert export[1] in keys, line
            continue
        command = line.rpartition("| ")[2].partition(" >")[0]
        program, *words = shlex.split(command)
        assert program == "magy", line
        command_line().parse_args(words)


def test_variables_and_addresses_of_providers() -> None:
    known = {one.name: one for one in providers.known()}
    rows = [
        row
        for page in ("local", "compatible")
        for row in re.findall(r"`(\w+)` \| `([^`]+)` \|$",
                              (DOCS / "start" / f"{page}.md").read_text(), re.MULTILINE)
    ]  # fmt: skip
    assert len(rows) == len(known) - 2  # anthropic and openai have pages of their own
    for name, value in rows:
        assert value in (known[name].base_url, known[name].api_key_env)


def test_what_emacs_is_told_exists() -> None:
    sources = "".join(
        file.read_text() for file in (DOCS.parent / "clients" / "emacs").glob("magy*.el")
    )
    page = (DOCS / "start" / "emacs.md").read_text()
    symbols = set(re.findall(r"\bmagy-[a-z-]+", "".join(body for _, body in FENCE.findall(page))))
    assert symbols >= {"magy-command-map", "magy-server-command"}
    for symbol in symbols:
        assert re.search(rf"\((?:defcustom|defvar|defun|defvar-keymap) {symbol}\b", sources), symbol


# --- agents and rules -----------------------------------------------------------------------------


@named(AGENTS)
def test_agents(page: Path, body: str) -> None:
    spec = parse_agent("example", body, str(page), built_in_agents())
    assert spec.description and spec.prompt


def test_every_setting_of_an_agent_is_told() -> None:
    page = (DOCS / "howto" / "agents.md").read_text()
    told = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert told == set(AgentSpec.model_fields) - {"name", "rules", "prompt", "where"} | {
        "permissions", "extends"}  # fmt: skip


def decisions() -> Iterator[tuple[str, str]]:
    """(agent file or name, line); "above" is the nearest agent before it."""
    for page in GUIDES:
        above = ""
        for kind, body in FENCE.findall(page.read_text()):
            if kind == "markdown agent":
                above = body
            elif kind.startswith("decisions of "):
                agent = kind.removeprefix("decisions of ")
                whose = above if agent == "the agent above" else agent
                yield from ((whose, line) for line in body.splitlines())


@pytest.mark.req("E095", "E107")
@pytest.mark.parametrize(("agent", "line"), list(decisions()))
def test_what_agents_may_do(agent: str, line: str) -> None:
    match = re.fullmatch(r"(\w+) +(.+?) +-> (\w+)", line)
    assert match, line
    key, subject, outcome = match.groups()
    shipped = built_in_agents()
    spec = shipped.get(agent) or parse_agent("example", agent, "example.md", shipped)
    sources = [common_rules(), spec.rules]
    assert decide(facts(key, subject), key, EFFECTS[key], sources).action == outcome


@pytest.mark.parametrize(
    "body", [body for _, body in blocks("yaml actions")], ids=lambda body: body.split(":", 1)[0]
)
def test_actions(body: str) -> None:
    assert parse_actions(body, "actions.yaml")


# --- messages -------------------------------------------------------------------------------------


async def test_the_messages_for_any_client(tmp_path: Path) -> None:
    found = dict(FENCE.findall((DOCS / "start" / "lsp.md").read_text()))
    (tmp_path / "project").mkdir()
    (tmp_path / "model.script").write_text("text: It greets people.\n")
    env = {"MAGY_STATE_DIR": str(tmp_path / "state"), "MAGY_CONFIG_DIR": str(tmp_path / "config"),
           "MAGY_SCRIPT": str(tmp_path / "model.script")}  # fmt: skip
    async with Client.spawn(MAGY, cwd=tmp_path, env=env) as client:
        root = tmp_path / "project"
        await client.initialize(root=root, options=json.loads(found["json options"]))
        for line in found["json requests"].splitlines():
            request = json.loads(line.replace("ROOT", str(root)))
            made = await client.request(request["method"], request["params"])
            if request["method"] == "magy/session/new":
                chosen = {o["configId"]: o["currentValue"] for o in made["configOptions"]}
                assert chosen["agent"] == "plan"
        one = Person(client, root)
        example = json.loads(found["json notification"])
        kind = example["params"]["update"]["sessionUpdate"]
        await one.update(kind, session="mine")
        await one.end("mine")
        assert "It greets people." in str(one.updates("agent_message", "mine"))
