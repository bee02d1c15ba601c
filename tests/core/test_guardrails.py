"""Guardrails and the examples of rules: what they say to calls, and what is refused when they are
read."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.config import layers
from magy_server.core.errors import InvalidConfig
from magy_server.core.permit import Ruleset, decide, withholds
from magy_server.core.policy.guardrails import Guardrail, said
from magy_server.core.policy.linear_patterns import found_in, replaced
from magy_server.core.policy.rule_tables import ruleset
from magy_server.core.specs import parse_agent
from magy_server.core.values import Decision, Facts, Grant

from .rules import command, facts

RM = Guardrail(tool="shell", action="block", pattern="rm -rf /", message="Delete files one by one.")
PUSH = Guardrail(tool="bash", action="flag", pattern=r"\bgit push\b")
OPEN = ruleset("open", {"*": "allow"})


def source(*rails: Guardrail) -> Ruleset:
    return Ruleset(source="magy.toml", guardrails=rails)


def judged(line: str, *rails: Guardrail, **more: Any) -> Decision:
    call = said("bash", {"command": line})
    return decide(command(line), "bash", "exec", [OPEN, source(*rails)], call=call, **more)


# --- decisions ------------------------------------------------------------------------------------


@pytest.mark.req("A111", "A112")
@pytest.mark.parametrize(
    "line",
    [
        "rm -rf /",
        "cd x && rm   -rf   /home",
        "'rm' \"-rf\" /",
        "r\\m -rf /",
        "newtool -c 'rm -rf /'",
    ],
)
def test_a_block_denies_however_it_is_written(line: str) -> None:
    decision = judged(line, RM, bypass=True)
    assert decision.action == "deny"
    assert decision.rule == (
        "magy.toml: guardrail shell `rm -rf /` -> block: Delete files one by one."
    )


def test_options_of_git_itself_hide_no_command() -> None:
    assert judged("git --no-pager -C x push origin", PUSH).rule.startswith("magy.toml: guardrail")
    assert judged("git --no-pager log --grep=push", PUSH).action == "allow"


@pytest.mark.parametrize("line", ["rm -rf build", "echo rm"])
def test_what_does_not_match_is_left_to_the_rules(line: str) -> None:
    assert judged(line, RM).rule == "open: * -> allow"


def test_what_cannot_be_checked_is_asked_of_a_person() -> None:
    decision = judged("$(echo rm) -rf build", RM, bypass=True)
    assert (decision.action, decision.firm) == ("ask", True)
    assert "Magy cannot tell whether magy.toml: guardrail shell" in decision.rule


def test_neither_bypass_nor_what_is_remembered_answers_a_flag() -> None:
    grant = Grant(id="1", key="bash", pattern="git push *", scope="project")
    decision = judged("git push origin main", PUSH, grants=[grant], bypass=True)
    assert (decision.action, decision.firm) == ("ask", True)
    assert decision.rule == r"magy.toml: guardrail bash `\bgit push\b` -> flag"


def test_the_texts_of_all_arguments_are_watched() -> None:
    rail = Guardrail(action="block", pattern="AKIA[A-Z0-9]{16}")
    for arguments in (
        {"path": "a.py", "content": "key = 'AKIA" + "A" * 16 + "'"},
        {"edits": [{"new": ["AKIA" + "7" * 16]}]},
        {"AKIA" + "B" * 16: 1},
    ):
        call = said("write_file", arguments)
        found = decide(facts("edit", "a.py"), "edit", "write", [OPEN, source(rail)], call=call)
        assert found.action == "deny"
    call = said("write_file", {"path": "a.py", "content": "AKIA"})
    found = decide(facts("edit", "a.py"), "edit", "write", [OPEN, source(rail)], call=call)
    assert found.action == "allow"


def test_paths_and_addresses_are_watched_as_the_judge_found_them() -> None:
    rail = Guardrail(tool="edit", action="flag", pattern=r"^migrations/")
    call = said("edit_file", {"path": "./src/../migrations/1.sql"})
    touched, sources = facts("edit", "migrations/1.sql"), [OPEN, source(rail)]
    found = decide(touched, "edit", "write", sources, call=call)
    assert found.firm and "migrations" in found.rule


@pytest.mark.req("A115")
def test_a_tool_is_taken_away_by_name_or_key() -> None:
    off = source(Guardrail(tool="web_fetch", action="disable"))
    assert withholds([OPEN, off], "net", "web_fetch")
    assert not withholds([OPEN, off], "net", "web_search")
    everything = source(Guardrail(tool="net", action="disable", message="No network here."))
    assert withholds([OPEN, everything], "net", "web_search")
    call = said("web_search", {"query": "x"})
    found = decide(facts("net", "x"), "net", "net", [OPEN, everything], call=call, bypass=True)
    assert found == Decision(
        action="deny", rule="magy.toml: guardrail net -> disable: No network here."
    )


def test_a_problem_stays_the_first_thing_that_is_said() -> None:
    found = decide(Facts(problem="No such file."), "bash", "exec", [source(RM)])
    assert found.rule == "No such file."


@given(st.text(max_size=60), st.sampled_from(["allow", "ask", "deny"]), st.booleans())
def test_a_guardrail_never_makes_anything_looser(line: str, action: Any, bypass: bool) -> None:
    rank = {"allow": 0, "ask": 1, "deny": 2}
    rules = ruleset("r", {"bash": {"*": action}})
    call = said("bash", {"command": line})
    without = decide(command(line), "bash", "exec", [rules], bypass=bypass)
    beside = [rules, source(RM, PUSH)]
    within = decide(command(line), "bash", "exec", beside, bypass=bypass, call=call)
    assert rank[within.action] >= rank[without.action]


# --- patterns -------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", ["(a*)*b", "(a|aa)+$", "(a+)+c", "a*a*a*a*a*a*b", ".*.*.*x"])
def test_no_pattern_takes_for_ever(pattern: str) -> None:
    """Python's own engine would take years for these."""
    began = time.process_time()
    assert not found_in(pattern, "a" * 100_000 + "!")
    assert time.process_time() - began < 5


def test_half_characters_are_no_trouble() -> None:
    assert found_in("b", "a\ud800b")
    assert replaced("[0-9]+", "N", "a1b22\ud8003") == "aNbN\ufffdN"
    assert replaced("x*", "N", "abc") == "abc"


# --- files ----------------------------------------------------------------------------------------


def read(tmp_path: Path, text: str, *, trusted: bool = True) -> layers.Loaded:
    (tmp_path / "magy.toml").write_text(text, encoding="utf-8")
    return layers.load(str(tmp_path), trusted=trusted, options={})


@pytest.mark.req("A116")
@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('action = "block"\npattern = "("', "the pattern '(' cannot be read: missing )"),
        ('action = "block"\npattern = "(?=x)"', "has look-ahead"),
        (f'action = "block"\npattern = "{"x" * 2001}"', "has 2001 characters"),
        ('action = "limit"', "say how many"),
        ('action = "limit"\ntokens = 5\npattern = "x"', "leave `tool` and `pattern` out"),
        ('action = "flag"\ntokens = 5', "`tokens` is for"),
        ('action = "disable"', "name the tool"),
        ('action = "disable"\ntool = "bash"\npattern = "x"', "leave it out"),
        ('action = "block"\npattern = "rm"\nexamples = { match = ["ls"] }', "must match 'ls'"),
        ('action = "block"\npattern = "rm"\nexamples = { not_match = ["rm"] }', "must not match"),
        ('action = "block"\nexamples = { match = ["ls"] }', "`examples` tell of a `pattern`"),
        ('action = "deny"', "guardrail 2.action"),
        ('tool = "bash"', "guardrail 2.action"),
        ('action = "flag"\nmesage = "x"', "did you mean 'message'?"),
    ],
)
@pytest.mark.parametrize("trusted", [True, False])
def test_a_wrong_guardrail_names_file_and_place(
    tmp_path: Path, table: str, said: str, trusted: bool
) -> None:
    text = f'[[guardrail]]\naction = "flag"\npattern = "x"\n[[guardrail]]\n{table}\n'
    with pytest.raises(InvalidConfig) as error:
        read(tmp_path, text, trusted=trusted)
    assert said in error.value.message
    assert error.value.message.startswith(str(tmp_path / "magy.toml"))
    assert "guardrail 2" in error.value.message


@pytest.mark.req("A114")
def test_the_least_limit_holds_whatever_a_later_layer_says(tmp_path: Path) -> None:
    user = layers.config_dir() / "magy.toml"
    user.parent.mkdir(parents=True, exist_ok=True)
    user.write_text('[[guardrail]]\naction = "limit"\ntokens = 1000\n')
    try:
        loaded = read(tmp_path, "[limits]\nrun_tokens = 0\nrequests = 9\n")
        assert (loaded.settings.limits.run_tokens, loaded.settings.limits.requests) == (1000, 9)
        assert loaded.origins["limits.run_tokens"] == f"{user}: guardrail"
        limit = '[[guardrail]]\naction = "limit"\ntokens = %d\n'
        assert read(tmp_path, limit % 10, trusted=False).settings.limits.run_tokens == 10
        assert read(tmp_path, limit % 5000).settings.limits.run_tokens == 1000
        assert [source for source, _ in loaded.guardrails] == [str(user)]
    finally:
        user.unlink()


def test_examples_of_rules_are_tried(tmp_path: Path) -> None:
    rules = '[permission]\nbash = { "git *" = "allow", "git push *" = "deny" }\n[examples.bash]\n'
    loaded = read(tmp_path, rules + '"git push -f" = "deny"\n"git log" = "allow"\n"ls" = "ask"\n')
    assert not loaded.settings.examples and loaded.rules
    with pytest.raises(InvalidConfig) as error:
        read(tmp_path, rules + '"git -C x push" = "allow"\n', trusted=False)
    assert error.value.message == (
        f"{tmp_path / 'magy.toml'}: examples: bash 'git -C x push' should come to allow, but comes "
        f"to deny by '{tmp_path / 'magy.toml'}: bash `git push *` -> deny'."
    )


AGENT = """---
description: x
permissions:
  read:
    - "*.env": deny
    - "~/.ssh/**": deny
    - "*": allow
examples:
  read:
    ".env": deny
    "~/.ssh/id_rsa": deny
    src/app.py: EXPECTED
---
prompt"""


def test_examples_in_an_agent_file_name_their_line() -> None:
    assert parse_agent("x", AGENT.replace("EXPECTED", "allow"), "x.md").rules.keys
    with pytest.raises(InvalidConfig) as error:
        parse_agent("x", AGENT.replace("EXPECTED", "ask"), "x.md")
    assert error.value.message == (
        "x.md:12: examples: read 'src/app.py' should come to ask, but comes to allow by "
        "'agent x: read `*` -> allow'."
    )


# --- the page -------------------------------------------------------------------------------------

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "policy.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("text", re.findall(r"^```toml\n(.*?)^```$", PAGE, re.M | re.S))
def test_the_configuration_on_the_page_is_right(tmp_path: Path, text: str) -> None:
    (tmp_path / "magy.toml").write_text("")
    (tmp_path / "above.toml").write_text(text)
    above = tmp_path / "above.toml"
    assert layers.load(str(tmp_path), trusted=True, options={}, above=above).origins


@pytest.mark.parametrize("text", re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.M | re.S))
def test_the_agent_on_the_page_is_right(text: str) -> None:
    assert parse_agent("x", f"---\ndescription: x\n{text}---\nprompt", "x.md").rules.keys
