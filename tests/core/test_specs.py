"""`core/specs.py` and the agent files that come with Magy."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magy_server.core.errors import InvalidConfig
from magy_server.core.events import Decision, Facts, Resource
from magy_server.core.permit import Rule, Ruleset, decide, withholds
from magy_server.core.specs import AgentSpec, parse_agent

from .rules import EFFECTS, facts

AGENTS = Path(__file__).parents[2] / "agents"

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


@pytest.mark.req("E102", "E103", "E104")
def test_a_whole_file(tmp_path: Path) -> None:
    spec = from_file(tmp_path / "review-all.md", FULL)
    assert (spec.name, spec.description) == ("review-all", "Reviews: a change")
    assert (spec.mode, spec.hidden) == ("subagent", True)
    assert spec.tools == ("read_file", "bash")
    assert AgentSpec.model_validate_json(spec.model_dump_json()) == spec


@pytest.mark.req("E105", "E106", "E108")
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
        name="a", description="x", mode="all", rules=Ruleset(source="agent a"), prompt="prompt"
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
        ("description: y", 3, "there twice"),
        ("mode: subagnt", 3, "unknown mode 'subagnt'. Did you mean 'subagent'?"),
        ("hidden: maybe", 3, "true or false"),
        ("hidden: [true]", 3, "not a list"),
        ("temperature: hot", 3, "from 0 to 2"),
        ("temperature: 3", 3, "from 0 to 2"),
        ("temperature: true", 3, "from 0 to 2"),
        ("temperature: .nan", 3, "from 0 to 2"),
        ("model: gpt", 3, "provider/model"),
        ("tools: a,,b", 3, "between two commas"),
        ("tools: a b", 3, "no tool name"),
        ("permissions:\n  bsh: ask", 4, "Did you mean 'bash'?"),
        ("permissions:\n  Read: ask", 4, "Did you mean 'read'?"),
        ("permissions:\n  my-tool: ask", 4, "Known are: read, edit"),
        ("permissions:\n  bash: alow", 4, "Did you mean 'allow'?"),
        ("permissions:\n  bash: yes", 4, "allow, ask or deny"),
        ("permissions:\n  bash:", 4, "allow, ask or deny"),
        ("permissions:\n  bash: []", 4, "no rules here"),
        ("permissions:\n  bash: {}", 4, "no rules here"),
        ("permissions:\n  bash:\n    ls: allow\n    ls: deny", 6, "'ls' is there twice"),
        ("permissions:\n  bash:\n    '': allow", 5, "one quoted text"),
        ("permissions:\n  bash:\n    ls: {a: b}", 5, "not a list or a mapping"),
        ("permissions:\n  bash:\n    - ls", 5, "`key: value`"),
        ("permissions:\n  - bash", 4, "allow, ask or deny"),
        ("permissions:\n  - [bash, ask]", 4, "allow, ask or deny"),
        ("permissions:\n  read:\n    *.env: deny", 5, "Put quotes around patterns"),
        ("permissions: &a [*a]", 3, "not a list"),
        ("mode: [", 3, "not valid YAML"),
        ("hidden: 2001-99-99", 3, "put it in quotes"),
        ("- a", 3, "not valid YAML"),
        ("x" * 5 + ": " + "[" * 500, 1, "not valid YAML"),
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
        ("---\ndescription: x\n", "no end"),
        ("---\n---\nprompt", "no description"),
        ("---\nmode: all\n---\nprompt", "no description"),
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
    with pytest.raises(InvalidConfig, match="no agent name"):
        parse(front="mode: all", name=name)


YAML = [*"ab:-*'\"[]{}&!|>%@,#~\n \t0", "\n- ", ": ", "permissions:\n "]


@settings(max_examples=200, deadline=None, database=None)
@given(st.lists(st.sampled_from(YAML)).map("".join))
def test_no_text_fails_in_another_way(front: str) -> None:
    try:
        parse(front)
    except InvalidConfig as error:
        assert error.message.startswith("helper.md:")


# --- the built-in agents --------------------------------------------------------------------------


def built_in(name: str) -> AgentSpec:
    path = AGENTS / f"{name}.md"
    spec = parse_agent(name, path.read_text(), f"agents/{name}.md")
    return spec.model_copy(update={"rules": spec.rules.at_home("/home/someone")})


def judged(key: str, subject: str, bypass: bool = False) -> Decision:
    spec = built_in("build")
    return decide(facts(key, subject), key, EFFECTS[key], [spec.rules], (), bypass)


def test_every_agent_file_can_be_read() -> None:
    names = [path.stem for path in AGENTS.glob("*.md")]
    assert "build" in names
    assert all(built_in(name).prompt for name in names)


@pytest.mark.req("E083")
def test_build_has_every_tool() -> None:
    spec = built_in("build")
    assert (spec.mode, spec.hidden, spec.tools) == ("primary", False, None)
    assert not [key for key in EFFECTS if withholds([spec.rules], key)]


@pytest.mark.parametrize(
    ("key", "action", "subjects"),
    [
        ("read", "allow", ["a.py", ".env.example", "x/prod.env.example", ".git/HEAD", "id_rsa.pub",
                           "environment.py", "keys.py"]),
        ("read", "deny", [".env", ".env.local", "x/.ENV", "prod.env", "tls/server.key", "a.pem",
                          "id_rsa", "id_ed25519", ".netrc", ".envrc", "/etc/hosts"]),
        ("read", "ask", [".git/config"]),
        ("edit", "ask", ["a.py", ".env.example", ".github/x.yml", ".gitignore", "new/file"]),
        ("edit", "deny", [".env", "x/.env.local", ".git/config", ".git/hooks/pre-commit",
                          "sub/.git/config", ".git", "server.KEY"]),
        ("write", "ask", ["a.py"]),
        ("write", "deny", [".env", ".git/config"]),
        ("bash", "allow", [
            "ls", "ls -la src", "pwd", "git status", "git diff HEAD~1 -- a.py", "git log --oneline",
            "git show HEAD", "git --no-pager diff", "cd src && ls", "cat a.py | head -20",
            "find . -name '*.py'", "rg TODO src", "grep foo a.py", "sed -n 1,20p a.py",
            "wc -l a.py && echo done", "timeout 5 git status", "git log 2>/dev/null | head",
            "command -v git", "[ -f a.py ] && echo yes",
        ]),
        ("bash", "ask", [
            "make", "pytest", "git push", "git commit -m x", "git branch x", "git checkout .",
            "rm a.py", "python x.py", "python -c 1", "echo $(id)", "ls $x", "sudo ls", "bash -c ls",
            "echo hi > a.py", "ls > a.py", "find . -delete", "find . -exec id +", "rg --pre id x",
            "rg -uu KEY", "rg x -uu", "grep -r KEY .", "git diff --output=a.py", "git -c a=b diff",
            "git diff --ext-diff", "git show HEAD:a.py", "git --no-pager show HEAD:a.py",
            "sed -i s/a/b/ a.py", "sed -n '1w x' a", "sort -o a.py b", "uniq a b", "tee a.py",
            "PATH=/tmp git status", "timeout 5 rm a.py", "ls && rm a.py", "cat /etc/hosts",
            "cd .. && ls", "curl x.org", "git log | sh", "cat a.py | xargs rm", "env", "date -s x",
            "command rm a.py", "nice rm a.py", "git status; rm a.py", "git status\nrm a.py",
        ]),
        ("bash", "deny", [
            "cat .env", "head -5 prod.env", "cat < .env", "cat a.py .env", "ls && cat .env",
            "echo x > .env", "git log > .git/config", "cat server.key | wc", "timeout 5 cat .env",
            "echo $(cat .env)", "cat ~/.ssh/id_rsa", "cat ~/.aws/credentials", "cat ./x/../.env",
        ]),
    ],
)  # fmt: skip
def test_build_allows_looking_asks_for_doing_and_keeps_secrets(
    key: str, action: str, subjects: list[str]
) -> None:
    for subject in subjects:
        decision = judged(key, subject)
        assert decision.action == action, (subject, decision.rule)
        assert not decision.firm


def test_bypass_answers_every_question_of_build_and_no_deny() -> None:
    for line in ("make", "echo $(id)", "bash -c ls", "git push"):
        assert judged("bash", line, bypass=True).action == "allow"
    for line in ("cat .env", "echo $(cat .env)"):
        assert judged("bash", line, bypass=True).action == "deny"


def test_build_may_stop_what_it_started() -> None:
    stop = Facts(resources=(Resource(kind="exec", subject="7.0"),))
    assert decide(stop, "bash_stop", "exec", [built_in("build").rules]).action == "allow"


def test_the_prompt_of_build_names_its_tools() -> None:
    prompt = built_in("build").prompt
    for tool in ("read_file", "edit_file", "write_file", "bash", "bash_output", "bash_stop",
                 "update_plan"):  # fmt: skip
        assert f"`{tool}`" in prompt
