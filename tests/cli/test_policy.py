"""Guardrails and `magy policy` in a terminal."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.harness import Magy


@pytest.mark.req("A116")
def test_a_pattern_that_cannot_be_read_stops_the_start(magy: Magy) -> None:
    magy.script("text: Hello.\n")
    (magy.root / "magy.toml").write_text('[[guardrail]]\naction = "block"\npattern = "rm ("\n')
    done = magy("run", "hello")
    assert done.returncode == 2 and "Hello." not in done.stdout
    assert f"{magy.root}/magy.toml: guardrail 1 (*, block): the pattern 'rm ('" in done.stderr
    assert magy("config", "check").returncode == 2


RAILS = """
[permission]
bash = { "git push *" = "deny" }
[[guardrail]]
tool = "bash"
action = "flag"
pattern = "touch"
message = "Make no files."
"""


def tried(magy: Magy, *words: str) -> dict[str, Any]:
    done = magy("policy", "test", *words, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_call_that_nobody_makes_is_judged_as_one_that_is_made(magy: Magy) -> None:
    (magy.root / "magy.toml").write_text(RAILS)
    shown = magy("policy", "test", "bash", "touch made").stdout.splitlines()
    source = f"{magy.root}/magy.toml (not trusted)"
    asked = f"{source}: guardrail bash `touch` -> flag: Make no files."
    assert shown[:2] == ["Run touch made", f"ask (each time, by a person)  {asked}"]
    assert f"  ask   {asked}" in shown and "  -     common rules: says nothing of it" in shown
    assert "A lasting yes would remember nothing." in shown[-1]
    magy.script('call: bash {"command": "touch made"}\n---\ntext: Done.\n')
    updates, _ = magy.run_json("touch")
    rules = [one["open"]["rule"] for one in updates if "open" in one]
    assert rules == [asked] and not (magy.root / "made").exists()


@pytest.mark.parametrize(
    ("words", "decision", "rule"),
    [
        (["bash", "git -C . push"], "deny", "bash `git push *` -> deny"),
        (["bash", "ls -la"], "allow", "agent build: bash `ls *` -> allow"),
        (["bash", "ls -la", "--agent", "explore"], "allow", "agent explore: bash `ls *` -> allow"),
        (["bash", "make", "--agent", "plan"], "deny", "agent plan: bash `*` -> deny"),
        (["read", "config/.env"], "deny", "common rules: read `*.env` -> deny"),
        (["edit", "src/new.py"], "allow", "agent build: edit -> allow"),
        (["net", "https://example.org"], "ask", "agent build: net -> ask"),
    ],
)
def test_the_rule_that_decides_is_named(
    magy: Magy, words: list[str], decision: str, rule: str
) -> None:
    (magy.root / "magy.toml").write_text(RAILS)
    (magy.state.parent / "magy.toml").write_text("")
    found = tried(magy, *words)
    assert found["decision"] == decision and found["rule"].endswith(rule)
    said = {one["source"]: one["decision"] for one in found["sources"]}
    assert said["common rules"] == ("deny" if ".env" in words[-1] else None)


@pytest.mark.parametrize(
    ("arguments", "subject"),
    [
        ({"agent": "explore", "prompt": "look", "task_name": "x"}, "agent `spawn *` -> ask"),
        ({"agent": "nobody", "prompt": "look", "task_name": "x"}, ""),
    ],
)
def test_spawning_can_be_tried(magy: Magy, arguments: dict[str, str], subject: str) -> None:
    done = magy("policy", "test", "spawn_agent", "--arguments", json.dumps(arguments))
    assert (done.returncode == 0) == bool(subject)
    assert subject in done.stdout if subject else "nobody" in done.stderr
    assert magy.sessions() == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nope", "x"], "There is no tool 'nope'. Tools are: "),
        (["bash"], "command: Field required"),
        (["bash", "--arguments", "["], "--arguments is not JSON"),
        (["bash", "--arguments", "[]"], "must be a JSON object"),
        (["read", "/etc/passwd"], "outside the workspace: /etc/passwd"),
        (["bash", "ls", "--agent", "nobody"], "There is no agent 'nobody'"),
    ],
)
def test_a_call_that_cannot_be_made_is_said(magy: Magy, words: list[str], said: str) -> None:
    done = magy("policy", "test", *words)
    assert done.returncode == 2 and said in done.stderr


def test_all_rules_are_listed_by_source(magy: Magy) -> None:
    (magy.root / "magy.toml").write_text(RAILS)
    shown = magy("policy").stdout
    assert shown.startswith("agent build\n")
    assert f"{magy.root}/magy.toml (not trusted)\n  deny  bash git push *\n" in shown
    assert "  guardrail bash `touch` -> flag  # Make no files.\n" in shown
    sources = json.loads(magy("policy", "list", "--json").stdout)["sources"]
    assert sources[-1]["guardrails"][0]["message"] == "Make no files."


# --- the audit ------------------------------------------------------------------------------------


def test_the_audit_is_verified_and_a_change_in_it_is_named(magy: Magy) -> None:
    done = magy("audit", "verify")
    assert "There is no audit" in done.stdout and done.returncode == 1, "a script must not go on"
    magy.script('call: bash {"command": "ls"}\n---\ntext: Done.\n')
    magy("run", "look")
    magy("run", "look again")
    (file,) = (magy.state / "audit").glob("*.jsonl")
    count = len(file.read_text().splitlines())
    done = magy("audit", "verify")
    assert f"The audit holds: {count} lines of 1 file in {magy.state}/audit." in done.stdout
    head = done.stdout.split("hash ")[1].strip()
    assert magy("audit", "verify", "--expect", head).returncode == 0
    lines = file.read_text().splitlines(keepends=True)
    assert {"judged", "started", "finished"} <= {json.loads(line)["event"] for line in lines}
    file.write_text("".join(lines[:-1]))
    cut = magy("audit", "verify", "--expect", head)
    assert cut.returncode == 1 and "lines were taken away" in cut.stdout
    changed = [line.replace('"allow"', '"deny"') for line in lines]
    assert changed != lines
    file.write_text("".join(changed))
    broken = magy("audit", "verify")
    assert broken.returncode == 1 and f"BROKEN: {file}:" in broken.stdout
    assert json.loads(magy("audit", "verify", "--json").stdout)["broken"].startswith(str(file))


def test_where_changes_are_only_proposed_a_command_that_makes_one_is_asked_about(
    magy: Magy,
) -> None:
    settings = magy.state.parent / "magy.toml"
    settings.write_text(f'{settings.read_text()}\n[edits]\nreview = "propose"\n')
    settings.write_text(settings.read_text().replace('edit = "ask"', 'read = "allow"'))
    magy.script('call: bash {"command": "cat a > b; echo hi > made"}\n---\ntext: Done.\n')
    updates, _ = magy.run_json("write")
    rules = [one["open"]["rule"] for one in updates if "open" in one]
    assert rules == ["edits.review = propose: write -> ask"] and not (magy.root / "made").exists()
    assert tried(magy, "bash", "echo hi > made")["decision"] == "ask"
    assert tried(magy, "bash", "echo hi")["decision"] == "allow"


@pytest.mark.parametrize("agent", ["build", "coder"])
def test_a_redirection_is_a_change_of_its_file(magy: Magy, agent: str) -> None:
    found = tried(magy, "bash", "echo hi > made", "--agent", agent)
    assert found["decision"] == "ask" and found["rule"].endswith("magy.toml: edit -> ask")
    assert tried(magy, "bash", "echo hi", "--agent", agent)["decision"] == "allow"
