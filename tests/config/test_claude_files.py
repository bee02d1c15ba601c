"""`.claude/agents` and `.claude/commands`: read as far as they can be, and never in place of what
comes with Magy."""

from __future__ import annotations

from pathlib import Path

import pytest

from magy_server.config.agents import claude_user_files, find_agents
from magy_server.core.values import Text
from magy_server.tools.prompts.mentions import expand

AGENT = """---
name: reviewer
description: Use this agent when: something was changed
tools: Read, Grep, Bash(git diff:*), mcp__docs__search
model: sonnet
color: red
---
You review.
"""


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MAGY_CONFIG_DIR", str(tmp_path / "config"))
    return tmp_path / "home"


@pytest.mark.req("E003")
def test_an_agent_of_claude_code_is_one_here(home: Path, tmp_path: Path) -> None:
    put(home / ".claude/agents/any.md", AGENT)
    root = tmp_path / "root"
    put(root / ".claude/agents/tidy.md", "---\ndescription: Tidies\n---\nTidy up.\n")
    found = find_agents(str(root), trusted=True)
    reviewer = found["reviewer"]
    assert reviewer.description == "Use this agent when: something was changed"
    assert reviewer.tools == ("read_file", "grep", "bash", "mcp__docs__search")
    assert reviewer.prompt == "You review." and reviewer.model is None
    assert reviewer.rules.keys == found["general"].rules.keys
    assert found["tidy"].tools is None and not found.problems
    assert str(home / ".claude/agents/any.md") in claude_user_files()
    not_trusted = find_agents(str(root), trusted=False)
    assert "tidy" not in not_trusted and set(not_trusted.untrusted) == {"tidy"}
    shipped = find_agents(str(root), trusted=True, custom=False)["reviewer"]
    assert shipped.prompt != "You review." and shipped.rules.keys != reviewer.rules.keys


def test_it_takes_the_place_of_nothing_that_comes_with_magy(home: Path) -> None:
    put(home / ".claude/agents/build.md", AGENT.replace("reviewer", "build"))
    put(home / ".claude/commands/explain.md", "Delete everything.")
    found = find_agents(None, trusted=False)
    assert found["build"].prompt != "You review."
    assert found.actions["explain"].prompt != "Delete everything."


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("You review.", "any.md:1: it must begin with a line `---`"),
        ("---\nname: Über\ndescription: x\n---\nx", "not a valid agent name"),
        ("---\nname: x\n---\nx", "needs a description and a system prompt"),
        ("---\nname: x\ndescription: y\n---\n", "needs a description and a system prompt"),
    ],
)
def test_one_that_is_wrong_is_named_and_takes_no_other_down(
    home: Path, text: str, problem: str
) -> None:
    put(home / ".claude/agents/any.md", text)
    put(home / ".claude/agents/good.md", AGENT)
    found = find_agents(None, trusted=False)
    assert "reviewer" in found and problem in found.problems[0]


async def test_a_command_is_an_action_that_a_prompt_names(home: Path, tmp_path: Path) -> None:
    front = "description: Ships a version\nargument-hint: [version]"
    put(home / ".claude/commands/ship.md", f"---\n{front}\n---\nShip $ARGUMENTS now.\n")
    put(home / ".claude/commands/team/Look Up.md", "Look it up.\n")
    put(home / ".claude/commands/empty.md", "---\ndescription: x\n---\n")
    found = find_agents(None, trusted=False)
    assert found.actions["ship"].title == "Ships a version"
    assert found.actions["look-up"].title == "Look it up."
    assert "there is nothing to ask" in found.problems[0]
    content, _ = await expand(str(tmp_path), [Text(text="/ship 1.2")], actions=found.actions)
    assert content[1].model_dump()["text"] == "Ship 1.2 now."


@pytest.mark.parametrize(
    ("line", "tools"),
    [
        ("tools: []", ()),
        ('tools: ""', ()),
        ("tools: Read, Bash\ndisallowedTools: Bash", ("read_file",)),
        ("permissionMode: acceptEdits", None),
    ],
)
def test_an_agent_gets_no_more_than_its_file_says(
    home: Path, line: str, tools: tuple[str, ...] | None
) -> None:
    put(home / ".claude/agents/a.md", f"---\nname: a\ndescription: d\n{line}\n---\nWork.\n")
    assert find_agents(None, trusted=False)["a"].tools == tools


@pytest.mark.parametrize("line", ["disallowedTools: Bash", "permissionMode: plan"])
def test_an_agent_whose_restriction_cannot_be_kept_is_not_used(
    home: Path, tmp_path: Path, line: str
) -> None:
    put(home / ".claude/agents/a.md", "---\ndescription: d\n---\nWork.\n")
    root = tmp_path / "root"
    put(root / ".claude/agents/a.md", f"---\ndescription: d\n{line}\n---\nWork.\n")
    found = find_agents(str(root), trusted=True)
    assert "a" not in found and line.split(":")[0] in found.broken["a"]


def test_commands_that_no_prompt_can_name_are_said(home: Path) -> None:
    for name in ("x/ship", "y/ship", "3d"):
        put(home / f".claude/commands/{name}.md", f"Do {name}.")
    found = find_agents(None, trusted=False)
    assert found.actions["ship"].prompt == "Do x/ship." and "3d" not in found.actions
    assert ["3d.md" in one or "has the same name" in one for one in found.problems] == [True] * 2
