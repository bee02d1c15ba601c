"""`core/specs.py` and the agent files that come with Magy."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magy_server.core.errors import InvalidConfig, NotFound, NotTrusted
from magy_server.core.permit import Rule, Ruleset
from magy_server.core.specs import Agents, AgentSpec, parse_agent, parse_rules
from tests.thorough import examples

FULL = """\
---
# comments are fine
description: "Reviews: a change"
mode: subagent
hidden: yes
temperature: 0.25
model: anthropic/some-model
tools: read_file, bash
permissions:
  read: allow
  edit:
    - "*.md": allow
    - "*": deny
  bash:
    git diff *: allow
    "*": ask
---

You review.

---
Be kind.
"""


def parse(front: str, name: str = "helper") -> AgentSpec:
    return parse_agent(name, f"---\ndescription: x\n{front}\n---\nprompt\n", "helper.md")


def problem(front: str) -> str:
    with pytest.raises(InvalidConfig) as caught:
        parse(front)
    return caught.value.message


def rules(front: str) -> dict[str, list[tuple[str, str, bool]]]:
    keys = parse(front).rules.keys
    return {key: [(r.pattern, r.action, r.bare) for r in some] for key, some in keys.items()}


def from_file(path: Path, text: str) -> AgentSpec:
    path.write_text(text)
    return parse_agent(path.stem, path.read_text(), str(path))


@pytest.mark.req("E103")
def test_a_whole_file(tmp_path: Path) -> None:
    spec = from_file(tmp_path / "review-all.md", FULL)
    assert (spec.name, spec.description) == ("review-all", "Reviews: a change")
    assert (spec.mode, spec.hidden) == ("subagent", True)
    assert spec.tools == ("read_file", "bash")
    assert AgentSpec.model_validate_json(spec.model_dump_json()) == spec


def test_temperature_model_and_prompt(tmp_path: Path) -> None:
    spec = from_file(tmp_path / "a.md", FULL)
    assert (spec.temperature, spec.model) == (0.25, "anthropic/some-model")
    assert spec.prompt == "You review.\n\n---\nBe kind."


@pytest.mark.req("E107", "E096")
def test_permissions_keep_their_order(tmp_path: Path) -> None:
    spec = from_file(tmp_path / "a.md", FULL)
    assert spec.rules == Ruleset(
        source="agent a",
        keys={
            "read": (Rule(pattern="*", action="allow", bare=True),),
            "edit": (Rule(pattern="*.md", action="allow"), Rule(pattern="*", action="deny")),
            "bash": (Rule(pattern="git diff *", action="allow"), Rule(pattern="*", action="ask")),
        },
    )


def test_what_may_be_left_out(tmp_path: Path) -> None:
    spec = from_file(tmp_path / "a.md", "---\ndescription: x\n---\nprompt")
    expected = AgentSpec(
        name="a",
        description="x",
        mode="all",
        rules=Ruleset(source="agent a"),
        prompt="prompt",
        where=str(tmp_path / "a.md"),
    )
    assert spec == expected


@pytest.mark.req("E109")
@pytest.mark.parametrize(
    ("front", "field", "value"),
    [
        ("hidden: true", "hidden", True),
        ("hidden: No", "hidden", False),
        ("temperature: 1", "temperature", 1.0),
        ("temperature: 1e-1", "temperature", None),
        ("temperature: 0.0", "temperature", 0.0),
        ("model: 'a/b'", "model", "a/b"),
        ('model: "a/b:c"', "model", "a/b:c"),
        ("tools: a,b , c", "tools", ("a", "b", "c")),
        ("tools: [a, b]", "tools", ("a", "b")),
        ("tools:\n  - a\n  - b", "tools", ("a", "b")),
        ("tools: ''", "tools", None),
        ("tools: []", "tools", ()),
        ("tools:", "tools", ()),
        ("tools: a, a", "tools", ("a",)),
    ],
)
def test_forms_of_values(front: str, field: str, value: object, tmp_path: Path) -> None:
    text = f"---\ndescription: x\n{front}\n---\nprompt"
    if value is None:
        with pytest.raises(InvalidConfig):
            from_file(tmp_path / "a.md", text)
    else:
        assert getattr(from_file(tmp_path / "a.md", text), field) == value


def test_line_ends_and_a_byte_order_mark_do_not_matter() -> None:
    text = "\ufeff" + FULL.replace("\n", "\r\n")
    assert parse_agent("a", text, "a.md") == parse_agent("a", FULL, "a.md")


@pytest.mark.parametrize(
    "front",
    [
        "permissions:\n  bash: ask\n  read:\n    '*.env': deny\n    '*': allow",
        "permissions:\n  bash: ask\n  read:\n  - '*.env': deny\n  - '*': allow",
        "permissions:\n- bash: ask\n- read:\n    '*.env': deny\n    '*': allow",
        "permissions:\n- bash . ask\n- read *.env deny\n- read * allow",
        "permissions:\n- bash ask\n- read *.env deny\n- read: allow",
        "permissions:\n- bash   .   ask\n- read '*.env': deny\n  read: allow".replace("'", ""),
        "permissions: bash ask, read *.env deny, read allow",
        "permissions: {bash: ask, read: {'*.env': deny, '*': allow}}",
    ],
)
def test_forms_of_permissions(front: str) -> None:
    if "read *.env: deny" in front:
        assert "unknown permission 'read *.env'" in problem(front)
        return
    assert rules(front) == {
        "bash": [("*", "ask", True)],
        "read": [("*.env", "deny", False), ("*", "allow", False)],
    }


def test_keys_that_yaml_would_take_for_values_are_texts() -> None:
    assert rules("permissions:\n  bash:\n    on: allow\n    1: deny\n    ~: ask") == {
        "bash": [("on", "allow", False), ("1", "deny", False), ("~", "ask", False)]
    }


@pytest.mark.parametrize(
    ("front", "line", "words"),
    [
        ("descripton: y", 3, "Did you mean 'description'?"),
        ("zzz: y", 3, "Known are: description, mode"),
        ("description: y", 3, "occurs twice"),
        ("mode: subagnt", 3, "unknown mode 'subagnt'. Did you mean 'subagent'?"),
        ("hidden: maybe", 3, "true or false"),
        ("hidden: [true]", 3, "not a list"),
        ("temperature: hot", 3, "from 0 to 2"),
        ("temperature: 3", 3, "from 0 to 2"),
        ("temperature: true", 3, "from 0 to 2"),
        ("temperature: .nan", 3, "from 0 to 2"),
        ("model: gpt", 3, "provider/model"),
        ("tools: a,,b", 3, "between two commas"),
        ("tools: a b", 3, "not a tool name"),
        ("permissions:\n  bsh: ask", 4, "Did you mean 'bash'?"),
        ("permissions:\n  Read: ask", 4, "Did you mean 'read'?"),
        ("permissions:\n  my-tool: ask", 4, "Known are: read, edit"),
        ("permissions:\n  bash: alow", 4, "Did you mean 'allow'?"),
        ("permissions:\n  bash: yes", 4, "allow, ask or deny"),
        ("permissions:\n  bash:", 4, "allow, ask or deny"),
        ("permissions:\n  bash: []", 4, "no rules here"),
        ("permissions:\n  bash: {}", 4, "no rules here"),
        ("permissions:\n  bash:\n    ls: allow\n    ls: deny", 6, "'ls' occurs twice"),
        ("permissions:\n  bash:\n    '': allow", 5, "one quoted text"),
        ("permissions:\n  bash:\n    ls: {a: b}", 5, "not a list or a mapping"),
        ("permissions:\n  bash:\n    - ls", 5, "`key: value`"),
        ("permissions:\n  - bash", 4, "allow, ask or deny"),
        ("permissions:\n  - [bash, ask]", 4, "allow, ask or deny"),
        ("permissions:\n  read:\n    *.env: deny", 5, "Put quotes around patterns"),
        ("permissions: &a [*a]", 3, "begins an alias"),
        ("mode: [", 3, "not valid YAML"),
        ("hidden: 2001-99-99", 3, "put it in quotes"),
        ("- a", 3, "not valid YAML"),
        ("x" * 5 + ": " + "[" * 500, 3, "nested too deeply"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(front: str, line: int, words: str) -> None:
    message = problem(front)
    assert words in message
    assert message.startswith(f"helper.md:{line}:"), message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "begins with a line `---`"),
        ("You are", "begins with a line `---`"),
        ("---\ndescription: x\n", "does not end"),
        ("---\n---\nprompt", "the description is missing"),
        ("---\nmode: all\n---\nprompt", "the description is missing"),
        ("---\ndescription: ''\n---\nprompt", "expected a text"),
        ("---\ndescription: x\n---\n \n", "system prompt is missing"),
        ("---\n- a\n---\nprompt", "`key: value`"),
        ("---\njust words\n---\nprompt", "`key: value`"),
        ("---\na: \x00\n---\nprompt", "not valid YAML"),
    ],
)
def test_files_that_are_no_agents(text: str, words: str) -> None:
    with pytest.raises(InvalidConfig, match=r"^a\.md:") as caught:
        parse_agent("a", text, "a.md")
    assert words in caught.value.message


@pytest.mark.parametrize("name", ["", "A", "a b", "-a", "../a", "a\n"])
def test_names_are_plain(name: str) -> None:
    with pytest.raises(InvalidConfig, match="not a valid agent name"):
        parse(front="mode: all", name=name)


YAML = [*"ab:-*'\"[]{}&!|>%@,#~\n \t0", "\n- ", ": ", "permissions:\n "]


@settings(max_examples=examples(200), deadline=None, database=None)
@given(st.lists(st.sampled_from(YAML)).map("".join))
def test_no_text_fails_in_another_way(front: str) -> None:
    try:
        parse(front)
    except InvalidConfig as error:
        assert error.message.startswith("helper.md:")


# --- agents that extend others --------------------------------------------------------------------

BASE = parse_agent("base", FULL, "base.md")


def extending(front: str, prompt: str = "") -> AgentSpec:
    text = f"---\nextends: base\n{front}\n---\n{prompt}"
    return parse_agent("own", text, "own.md", {"base": BASE})


def kept(spec: AgentSpec, key: str) -> list[tuple[str, str, bool]]:
    return [(rule.pattern, rule.action, rule.bare) for rule in spec.rules.keys[key]]


def test_what_is_not_said_is_as_in_the_agent_it_extends() -> None:
    spec = extending("model: other/one")
    rules = Ruleset(source="agent own", keys=BASE.rules.keys)
    changed = {"name": "own", "where": "own.md", "model": "other/one", "rules": rules}
    assert spec == BASE.model_copy(update=changed)


def test_what_is_said_counts() -> None:
    front = "description: y\nmode: primary\nhidden: false\ntemperature: 0\ntools: grep"
    spec = extending(front, "Own prompt.")
    assert (spec.description, spec.mode, spec.hidden) == ("y", "primary", False)
    assert (spec.temperature, spec.tools, spec.prompt) == (0.0, ("grep",), "Own prompt.")


@pytest.mark.parametrize(
    ("front", "key", "rules"),
    [
        # first the file's own, then the others
        ("edit: {a.md: ask}", "edit",
         [("a.md", "ask", False), ("*.md", "allow", False), ("*", "deny", False)]),
        # in the place of one with the same pattern
        ("bash: {'*': deny}", "bash", [("*", "deny", False), ("git diff *", "allow", False)]),
        # beside a rule without a pattern, which is then for the rest
        ("read: {'*.env': deny}", "read", [("*.env", "deny", False), ("*", "allow", False)]),
        ("read: {'*': ask}", "read", [("*", "ask", False)]),
        # a rule without a pattern is for everything
        ("bash: deny", "bash", [("*", "deny", True)]),
        ("net: ask", "net", [("*", "ask", True)]),
        ("net: ask", "read", [("*", "allow", True)]),
    ],
)  # fmt: skip
def test_rules_are_joined_key_by_key(
    front: str, key: str, rules: list[tuple[str, str, bool]]
) -> None:
    spec = extending(f"permissions:\n  {front}")
    assert kept(spec, key) == rules
    assert spec.rules.source == "agent own"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("bsae", "unknown built-in agent 'bsae'. Did you mean 'base'?"),
        ("own", "Known are: base"),
        ("[base]", "expected one value"),
        ("", "expected a text"),
    ],
)
def test_a_wrong_base_is_said_with_its_line(value: str, words: str) -> None:
    text = f"---\ndescription: x\nextends: {value}\n---\nprompt"
    with pytest.raises(InvalidConfig) as caught:
        parse_agent("own", text, "own.md", {"base": BASE})
    assert caught.value.message.startswith("own.md:3: ")
    assert words in caught.value.message


def test_rules_alone() -> None:
    rules = parse_rules("house rules", "read:\n  '*.env': deny\nbash: ask\n", "rules.yaml")
    assert rules == Ruleset(
        source="house rules",
        keys={
            "read": (Rule(pattern="*.env", action="deny"),),
            "bash": (Rule(pattern="*", action="ask", bare=True),),
        },
    )
    assert parse_rules("none", "# nothing\n", "rules.yaml").keys == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("read:\n  '*.env': dney\n", "rules.yaml:2: an action must be allow, ask or deny"),
        ("raed: deny\n", "rules.yaml:1: unknown permission 'raed'. Did you mean 'read'?"),
        ("read: [", "rules.yaml:1: not valid YAML"),
        ("\x00", "rules.yaml:1: not valid YAML"),
    ],
)
def test_rules_alone_are_checked(text: str, words: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        parse_rules("none", text, "rules.yaml")
    assert caught.value.message.startswith(words)


def test_agents_are_a_mapping_that_knows_who_is_missing_and_why() -> None:
    agents = Agents({"base": BASE}, {"bad": "bad.md:3: no."}, {"theirs": "/p/theirs.md"})
    assert dict(agents) == {"base": BASE} and len(agents) == 1 and agents.named("base") is BASE
    assert agents.get("bad") is None
    with pytest.raises(InvalidConfig, match=r"bad\.md:3: no\."):
        agents.named("bad")
    with pytest.raises(NotTrusted, match=r"/p/theirs\.md is in a project that is not trusted"):
        agents.named("theirs")
    with pytest.raises(NotFound, match=r"There is no agent 'x'\. Agents are: \."):
        agents.named("x")  # `base` is hidden


CHARACTER = """personality:
  traits: [careful, curious]
  risk_tolerance: 0.3
  collaboration_style: reviewer
  verbosity: concise
expertise:
  primary: [PostgreSQL, query plans]
  secondary: Python, Go"""


@pytest.mark.req("A033", "A034", "A038")
def test_what_an_agent_is_like_and_knows_is_told_in_its_prompt() -> None:
    said = parse(CHARACTER).instructions
    assert said.startswith("prompt\n\n# You\n\n- You are careful, curious.\n- Be careful: ")
    assert "- You review: " in said and "- Answer in as few words" in said
    assert "- You know best: PostgreSQL, query plans." in said
    assert "- You also know: Python, Go." in said
    assert parse("mode: all").instructions == "prompt"
    told = {
        parse(f"personality: {{risk_tolerance: {risk}}}").instructions
        for risk in (0, 0.3, 0.6, 1.0)
    }
    assert len(told) == 4


@pytest.mark.parametrize(
    ("front", "said"),
    [
        ("personality:\n  risk_tolerance: 1.5", "helper.md:4: risk_tolerance must be a number"),
        ("personality:\n  collaboration_style: boss", "helper.md:4: unknown style 'boss'"),
        ("personality:\n  trait: x", "Did you mean 'traits'?"),
        ("expertise:\n  tertiary: x", "helper.md:4: unknown setting of expertise"),
        (f"expertise:\n  primary: [{'x' * 81}]", "helper.md:4: at most 20 of them"),
    ],
)
def test_a_character_that_is_wrong_is_said_with_its_line(front: str, said: str) -> None:
    assert said in problem(front)
