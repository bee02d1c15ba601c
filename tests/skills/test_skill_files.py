"""What stands in a skill's file, and what is said of one that is wrong."""

from __future__ import annotations

import re

import pytest

from magy_server.config.resources import resource
from magy_server.config.shipped import shipped
from magy_server.core.errors import InvalidConfig
from magy_server.core.skills.skill import Capability, Skill, parse_skill
from magy_server.core.values import digest

WHOLE = """---
name: notes
description: Writes notes.
  Use when a version is tagged.
license: MIT
metadata:
  author: somebody
allowed-tools: Read, Grep Bash(git log *) edit_file
default-prompt: Write the notes of the next version.
capability:
  phrases: [Release Notes, changelog]
  files: ["CHANGELOG*"]
actions:
  write:
    title: Write the notes
    when: always
    prompt: For this.
---
Read the log.
"""


def test_a_skill_is_read_as_other_agents_read_it() -> None:
    skill = parse_skill("notes", WHOLE, "/s/notes/SKILL.md", "user")
    assert skill.description == "Writes notes. Use when a version is tagged."
    assert skill.body == "Read the log."
    assert skill.tools == ("read_file", "grep", "bash", "edit_file", "apply_patch")
    assert skill.capability == Capability(
        phrases=("release notes", "changelog"), files=("CHANGELOG*",)
    )
    assert skill.hash == digest(WHOLE.encode())
    (action,) = skill.actions
    assert (action.id, action.prompt) == ("@notes.write", "@notes For this.")
    alone = skill.content(alone=True)
    assert alone.text == "Read the log.\n\nWrite the notes of the next version."
    assert skill.content().text == "Read the log." and alone.uri == "magy:skill/notes"


@pytest.mark.req("A150")
def test_steps_of_yaml_become_a_skill_like_any_other() -> None:
    text = """name: code-review
description: Reviews a change
tools: [git_diff, read_file]
steps:
  - action: git_diff
  - action: analyze
    prompt: Look for what could break.
  - action: respond
"""
    skill = parse_skill("code-review", text, "/s/code-review.yaml", "project")
    assert isinstance(skill, Skill) and skill.tools == ("git_diff", "read_file")
    assert skill.body.splitlines()[-3:] == [
        "1. `git_diff`.", "2. `analyze`: Look for what could break.", "3. `respond`.",
    ]  # fmt: skip


BEGIN = "---\nname: x\ndescription: y\n"


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("Notes", WHOLE, "/s: 'Notes' is not a valid skill name"),
        ("a--b", WHOLE, "not a valid skill name"),
        ("x" * 65, WHOLE, "at most 64"),
        ("other", WHOLE, "named 'notes', but its folder 'other'"),
        ("x", "Read.", "/s:1: a skill begins with a line `---`"),
        ("x", "---\nname: x\nRead.", "/s:1: the front matter does not end"),
        ("x", "---\nname: x\n---\nRead.", "/s:1: the description is missing"),
        ("x", f"---\ndescription: {'y' * 1025}\n---\nRead.", "/s:2: a description must have at"),
        ("x", f"{BEGIN}---\n \n", "the instructions are missing"),
        ("x", f"{BEGIN}name: z\n---\nRead.", "/s:4: 'name' occurs twice"),
        ("x", f"{BEGIN}a: [b\n---\nRead.", "not valid YAML"),
        ("x", f"{BEGIN}type: wizard\n---\nRead.", "/s:4: unknown type 'wizard'"),
        ("x", f"{BEGIN}allowed-tool: bash\n---\nRead.", "/s:4: unknown part of a skill 'allowed-t"),
        ("x", f"{BEGIN}allowed-tools: rm*;\n---\nRead.", "/s:4: 'rm*;' is not a tool name"),
        ("x", f"{BEGIN}capability:\n  words: [a]\n---\nRead.", "/s:5: unknown part of a capabil"),
        ("x", f"{BEGIN}capability:\n  files: ['a b']\n---\nRead.", "'a b' is not a glob"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_line(name: str, text: str, problem: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        parse_skill(name, text, "/s")
    assert problem in caught.value.message


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ("steps: now", "/s.yaml:2: write the steps as a list"),
        ("steps:\n  - prompt: x", "/s.yaml:3: the step has no action"),
        ("steps:\n  - action: a\n    then: b", "/s.yaml:4: unknown part of a step 'then'"),
        ("", "the instructions are missing; add `steps:`."),
    ],
)
def test_steps_that_are_wrong_are_said_with_their_line(steps: str, problem: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        parse_skill("x", f"description: y\n{steps}\n", "/s.yaml")
    assert problem in caught.value.message


def test_every_bundled_skill_names_only_tools_that_there_are_and_is_short() -> None:
    from magy_server.tools.kit import make_tools
    from magy_server.tools.shell.processes import Processes

    tools = {tool.name for tool in make_tools(Processes())}
    for skill in shipped().skills.values():
        assert set(skill.tools or ()) <= tools, skill.name
        assert len(skill.body) < 4 * 5_000, f"{skill.name} has about 5,000 tokens or more"
        assert len(skill.description) <= 300, skill.name


def test_no_bundled_text_has_work_deleted_or_code_of_the_person_broken() -> None:
    """A turn may be stopped anywhere: what is broken for a moment stays so."""
    for name, text in ((one.name, one.body) for one in shipped().skills.values()):
        for line in text.splitlines():
            assert "for a moment" not in line, name
            assert "--hard" not in line or "Never" in line or "Only when" in text, name
    assert "Never `--hard`" in shipped().skills["finishing-a-development-branch"].body


@pytest.mark.req("D002")
def test_the_files_beside_magi_are_named_in_the_order_in_which_they_are_needed() -> None:
    """First how it goes, then who votes and what they answer; the nodes' own order is that, too."""
    folder = resource("skills", "magi")
    order = re.findall(r"references/\w+\.md", (folder / "SKILL.md").read_text("utf-8"))
    assert order == [
        "references/protocols.md", "references/personas.md", "references/templates.md",
    ]  # fmt: skip
    assert sorted(order) == sorted(f"references/{file.name}" for file in
                                   (folder / "references").iterdir())  # fmt: skip
