"""`core/permit.py`, and the page that explains it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.core.patterns import literal, matches_command, matches_file
from magy_server.core.permit import Rule, Ruleset, decide, proposals, withholds
from magy_server.core.specs import parse_agent
from magy_server.core.values import Action, Decision, Facts, Grant, Resource

from .rules import EFFECTS, ROOT, facts, file

DOCS = Path(__file__).parents[2] / "docs" / "permissions.md"
HOME = "/home/someone"


def source(permissions: str, name: str = "example") -> Ruleset:
    text = f"---\ndescription: x\npermissions:\n{permissions}\n---\nprompt"
    rules = parse_agent("example", text, "example.md").rules
    return rules.model_copy(update={"source": name}).at_home(HOME)


def judged(key: str, subject: str, *sources: Ruleset, **more: Any) -> Decision:
    return decide(facts(key, subject), key, EFFECTS[key], sources, **more)


def grants(key: str, subject: str) -> list[str]:
    return [f"{grant.key} {grant.pattern}" for grant in proposals(facts(key, subject), key)]


# --- the page -------------------------------------------------------------------------------------


def documented() -> list[tuple[str, str]]:
    """(rules, line) for each example; a block of lines belongs to the rules before it."""
    found, rules = [], ""
    for kind, body in re.findall(r"^```(.+?)\n(.*?)^```$", DOCS.read_text(), re.M | re.S):
        if kind == "yaml rules":
            rules = body
        elif kind == "decisions":
            found += [(rules, line) for line in body.splitlines()]
    return found


@pytest.mark.req("E096", "E097", "E098")
@pytest.mark.parametrize(("rules", "line"), documented())
def test_the_page_is_true(rules: str, line: str) -> None:
    match = re.fullmatch(r"(\w+) +(.+?) +-> (\w+) +(.+)", line)
    assert match, line
    key, subject, outcome, rule = match.groups()
    decision = judged(key, subject, source(re.sub("^", "  ", rules, flags=re.M)))
    assert (decision.action, decision.rule) == ("ask" if outcome == "firm" else outcome, rule)
    assert decision.firm == (outcome == "firm")


def test_the_page_has_examples_of_every_outcome() -> None:
    lines = [line for _, line in documented()]
    assert len(lines) > 40
    for outcome in ("allow", "ask", "deny", "firm"):
        assert any(f"-> {outcome} " in line for line in lines)


def test_the_page_says_what_always_remembers() -> None:
    rows = re.findall(r"^\| `(\w+) (.+?)` \| (.+?) \|$", DOCS.read_text(), re.M)
    assert len(rows) >= 8
    for key, subject, remembered in rows:
        told = ["".join(pair) for pair in re.findall(r"`(\w+)`( )`(.+?)`", remembered)]
        assert grants(key, subject) == told, subject
        assert told or remembered == "nothing"


# --- patterns -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "path", "outcome"),
    [
        ("*.py", "a.py", True), ("*.py", "deep/a.py", True), ("*.py", "a.pyc", False),
        ("a?c", "abc", True), ("a?c", "ac", False), ("src/*", "src/a", True),
        ("src/*", "src/a/b", False), ("src/**", "src/a/b", True), ("src/**", "src", True),
        ("src/**", "srcs/a", False), ("**/a", "a", True), ("**/a", "x/y/a", True),
        ("**/a", "x/ya", False), ("a/**/b", "a/b", True), ("a/**/b", "a/x/y/b", True),
        ("a/**/b", "axb", False), ("a**/b", "ab", False), ("a**/b", "ax/y/b", True),
        ("[ab]", "a", False), ("[ab]", "[ab]", True), ("{a,b}", "a", False),
        ("{a,b}", "{a,b}", True), ("./a/b", "a/b", True), ("/proj/a", "a", True),
        ("/proj/**", "x/y", True), ("/etc/**", "/etc/passwd", True), ("src/*", "/src/a", False),
        ("a/", "a/x/y", True), ("a/", "a", True), ("a/", "ab/x", False), ("a/", "x/a/b", False),
        ("**/a/", "x/a/b", True), ("/etc/", "/etc/passwd", True), ("/", "/etc/passwd", False),
        ("passwd", "/etc/passwd", True), ("*", "a\nb", True), ("a.c", "abc", False),
    ],
)  # fmt: skip
def test_file_patterns(pattern: str, path: str, outcome: bool) -> None:
    resource = file("read", path)
    for exact in (True, False):
        assert matches_file(pattern, resource.subject, resource.relative, exact=exact) == outcome


def test_only_deny_and_ask_patterns_overlook_case_and_unicode_form() -> None:
    for pattern, path in (("*.env", "X.ENV"), ("caf\u00e9", "cafe\u0301"), ("STRASSE", "straße")):
        assert not matches_file(pattern, f"/proj/{path}", path, exact=True)
        assert matches_file(pattern, f"/proj/{path}", path, exact=False)


@pytest.mark.parametrize(
    ("pattern", "text", "outcome"),
    [
        ("git status", "git status", True), ("git status", "git status -s", False),
        ("git status*", "git status -s", True), ("git status*", "git statusx", True),
        ("git status *", "git status", True), ("git status *", "git status -s", True),
        ("git status *", "git statusx", False), ("*", "", True), ("*", "any thing", True),
        ("a*b*c", "a1b2c", True), ("a*b*c", "acb", False), ("a*a", "a", False), ("*x", "yx", True),
        ("a[b]?", "a[b]?", True), ("a[b]?", "ab1", False), (r"a \* b", "a * b", True),
        (r"a \* b", "a x b", False), (r"a\\b", r"a\b", True), (r"\d", r"\d", True), ("", "", True),
        ("git * --x", "git a --x", True), ("git * --x", "git --x", False),
    ],
)  # fmt: skip
def test_command_patterns(pattern: str, text: str, outcome: bool) -> None:
    assert matches_command(pattern, text) == outcome


@given(
    st.text(st.sampled_from("ab *\\"), max_size=8), st.text(st.sampled_from("ab *\\"), max_size=8)
)
def test_a_literal_pattern_matches_only_its_text(text: str, other: str) -> None:
    assert matches_command(literal(text), other) == (text == other)


def test_a_pattern_with_many_stars_is_quick() -> None:
    assert not matches_command("*a" * 200 + "b", "a" * 20_000)


# --- deciding -------------------------------------------------------------------------------------


def test_the_rule_names_source_key_pattern_and_action() -> None:
    agent = source("  bash:\n    'git status *': allow\n  edit: ask", "agent build")
    assert (
        judged("bash", "git status -s", agent).rule == "agent build: bash `git status *` -> allow"
    )
    assert judged("write", "a", agent).rule == "agent build: edit -> ask"


def test_a_problem_is_a_deny_and_says_itself() -> None:
    decision = decide(
        Facts(problem="no such file"), "read", "read", [source("  '*': allow")], (), True
    )
    assert decision == Decision(action="deny", rule="no such file")


def test_write_rules_come_before_edit_rules() -> None:
    both = source("  edit: allow\n  write:\n    '*.md': deny")
    assert judged("write", "a.md", both).action == "deny"
    assert judged("write", "a.py", both).action == "allow"
    assert judged("edit", "a.md", both).action == "allow"


def test_deny_patterns_know_a_program_by_any_of_its_names() -> None:
    rules = source("  bash:\n    'rm *': deny\n    'git push *': ask\n    '*': allow")
    for line in ("rm x", "/bin/rm x", "RM x", "../bin/rm x", "'rm' x", "r\\m x", "timeout 5 rm x",
                 "ls && rm x", "if a; then rm x; fi", "(rm x)", "echo $(rm x)"):  # fmt: skip
        assert judged("bash", line, rules).action == "deny", line
    assert judged("bash", "git --no-pager push", rules).action == "ask"
    assert judged("bash", "rmdir x", rules).action == "allow"


def test_home_is_put_into_patterns_once() -> None:
    rules = source("  read:\n    '~/.ssh/**': deny")
    assert judged("bash", "cat ~/.ssh/id", rules).rule.startswith(
        "example: read `/home/someone/.ssh"
    )
    unplaced = source("  bash: allow").model_copy(
        update={"keys": {"read": (Rule(pattern="~/a", action="deny"),)}}
    )
    assert judged("bash", "cat ~/a", unplaced).action == "ask"
    assert judged("bash", "cat ~/a", unplaced.at_home(HOME)).action == "deny"


def test_a_file_tool_never_leaves_the_workspace() -> None:
    everything = source("  '*': allow")
    for key in ("read", "edit", "write"):
        decision = judged(key, "/etc/passwd", everything, bypass=True)
        assert (decision.action, decision.rule) == ("deny", "outside the workspace: /etc/passwd")


def test_a_file_that_a_command_writes_needs_leave() -> None:
    patterns = source("  bash:\n    'echo *': allow")
    assert judged("bash", "echo a > b", patterns).rule == "nothing matches: ask"
    assert judged("bash", "echo a > b", source("  bash: allow")).action == "allow"
    assert (
        judged("bash", "echo a > .env", source("  bash: allow\n  edit:\n    .env: deny")).action
        == "deny"
    )
    assert judged("bash", "echo a > b", patterns, source("  edit: allow")).action == "allow"
    assert judged("bash", "echo a > /etc/b", source("  bash: allow")).action == "ask"


def test_a_call_that_touches_nothing_is_not_asked_about() -> None:
    def plan(*sources: Ruleset) -> Action:
        return decide(Facts(), "plan", "read", sources).action

    assert plan() == plan(source("  '*': ask")) == plan(source("  bash: deny")) == "allow"
    assert plan(source("  plan: ask")) == "ask"
    assert plan(source("  plan: deny")) == plan(source("  '*': deny")) == "deny"
    assert decide(Facts(), "stop", "exec", [source("  bash: allow")]).action == "ask"
    assert decide(Facts(), "stop", "exec", [source("  stop: allow")]).action == "allow"


# --- what cannot be checked -----------------------------------------------------------------------

HIDDEN = ["echo $(id)", "bash -c id", "sudo id", "A=1 ls", "ls | xargs rm", "python -c 1"]


@pytest.mark.parametrize("line", HIDDEN)
def test_no_pattern_allows_what_cannot_be_checked(line: str) -> None:
    for rules in ("  bash:\n    '*': allow\n    'a*': allow", "  bash:\n    '*': allow"):
        assert judged("bash", line, source(rules)).action == "ask"
    bare = source("  bash: allow")
    assert judged("bash", line, bare).action == "allow"
    assert judged("bash", line, bare, source("  bash:\n    'x': allow")).action == "ask"


@pytest.mark.parametrize("line", HIDDEN)
def test_beside_deny_patterns_only_a_person_answers(line: str) -> None:
    rules = [source("  bash: allow"), source("  bash:\n    'rm *': deny")]
    every = [Grant(id="1", key="bash", pattern="*", scope="session")]
    decision = judged("bash", line, *rules, grants=every, bypass=True)
    assert (decision.action, decision.firm) == ("ask", True)
    assert judged("bash", line, source("  bash: ask"), bypass=True).action == "allow"
    assert judged("bash", line, source("  bash: ask"), grants=every).action == "ask"


# --- answers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "later", "answered"),
    [
        ("git commit -m a", "git commit -m b --amend", True),
        ("git commit -m a", "git commit -m a && git push", False),
        ("git commit -m a", "git config x y", False),
        ("git add a && pytest -q", "pytest -q", True),
        ("git add a && pytest -q", "pytest -q x", False),
        ("npm run build", "npm run build --silent", True), ("npm run build", "npm run evil", False),
        ("make test", "make test -j 4 -k", True), ("make test", "make install", False),
        ("ls '*'", "ls x", False), ("ls '*'", "ls '*'", True),
        ("python x.py", "python x.py y", False),
        ("timeout 9 git fetch", "timeout 9 git fetch", True),
        ("timeout 9 git fetch", "timeout 8 rm x", False),
        ("cat /etc/hosts", "cat /etc/hosts", True), ("cat /etc/hosts", "cat /etc/shadow", False),
        ("echo a > out", "echo a > out", True), ("echo a > out", "echo a > other", False),
        ("git commit -m a", "git commit -m $(id)", False),
        ("git commit -m a", "A=1 git commit", False),
        ("cat <<E\na\nE", "cat <<E\nb\nE", False),
    ],
)  # fmt: skip
def test_what_always_remembers_answers_that_and_little_more(
    first: str, later: str, answered: bool
) -> None:
    remembered = proposals(facts("bash", first), "bash")
    assert remembered
    decision = judged("bash", later, source("  bash: ask"), grants=remembered)
    assert (decision.action == "allow") == answered
    if answered:
        assert decision.rule.startswith("granted for this session: ")


def test_an_edit_grant_is_for_one_file_and_a_write_grant_covers_edits() -> None:
    ask = source("  edit: ask")
    (write,) = proposals(facts("write", "a.py"), "write")
    (edit,) = proposals(facts("edit", "a.py"), "edit")
    assert write.pattern == edit.pattern == f"{ROOT}/a.py"
    assert judged("edit", "a.py", ask, grants=[edit]).action == "allow"
    assert judged("edit", "a.py", ask, grants=[write]).action == "allow"
    assert judged("write", "a.py", ask, grants=[edit]).action == "ask"
    assert judged("edit", "b.py", ask, grants=[edit, write]).action == "ask"


def test_what_cannot_be_remembered_narrowly_is_not_offered() -> None:
    for line in [*HIDDEN, "git add a && echo $(id)"]:
        assert grants("bash", line) == []
    assert grants("edit", "a*b.py") == []
    assert proposals(Facts(problem="x"), "read") == ()
    assert grants("bash", "docker run x") == ["bash docker run x"]
    assert grants("bash", "git rebase main") == ["bash git rebase main"]


def test_the_answer_is_named() -> None:
    rules = source("  bash: ask", "agent build")
    assert (
        judged("bash", "make", rules, bypass=True).rule == "bypass (else agent build: bash -> ask)"
    )
    grant = Grant(id="1", key="bash", pattern="make", scope="project")
    assert judged("bash", "make", rules, grants=[grant]).rule == (
        "granted for this project: bash `make` (else agent build: bash -> ask)"
    )


# --- offering -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "key", "withheld"),
    [
        ("  bash: deny", "bash", True), ("  bash: ask", "bash", False),
        ("  '*': deny", "bash", True),
        ("  '*': deny\n  bash: ask", "bash", False), ("  '*': deny\n  bash: ask", "read", True),
        ("  bash:\n    'rm *': deny", "bash", False),
        ("  bash:\n    'rm *': deny\n    '*': deny", "bash", True),
        ("  bash:\n    '*': deny\n    'ls': allow", "bash", False),
        ("  read:\n    '*': deny\n    'a': allow", "read", True),
        ("  read:\n    'a': allow\n    '*': deny", "read", False),
        ("  edit: deny", "write", True), ("  edit: deny\n  write:\n    a: allow", "write", False),
        ("  edit: deny", "read", False),
    ],
)  # fmt: skip
def test_a_tool_that_can_never_pass_is_withheld(rules: str, key: str, withheld: bool) -> None:
    assert withholds([source("  net: allow"), source(rules)], key) == withheld


def test_a_command_that_touches_a_link_is_judged_by_where_it_leads() -> None:
    rules = source("  bash: allow\n  read:\n    .env: deny")
    seen = Facts(resources=(
        Resource(kind="exec", subject="cat harmless", argv=("cat", "harmless")),
        file("read", ".env"),
    ))  # fmt: skip
    assert decide(seen, "bash", "exec", [rules]).action == "deny"


def test_tools_that_look_at_git_follow_the_rules_for_commands_but_for_their_own() -> None:
    look = facts("git", "git diff HEAD")
    own = Ruleset(source="own", keys={"git": (Rule(pattern="*", action="allow", bare=True),),
                                      "bash": (Rule(pattern="*", action="deny"),)})  # fmt: skip
    shell = Ruleset(source="shell", keys={"bash": (Rule(pattern="git diff *", action="allow"),)})
    never = Ruleset(source="never", keys={"bash": (Rule(pattern="git diff *", action="deny"),)})
    for sources, action in (([own], "allow"), ([shell], "allow"), ([own, shell], "allow"),
                            ([own, never], "deny"), ([], "ask")):  # fmt: skip
        assert decide(look, "git", "read", sources).action == action
        assert withholds(sources, "git") is False
    assert decide(look, "bash", "exec", [own]).action == "deny"
    command = Grant(id="1", key="bash", pattern="git diff HEAD", scope="session")
    assert decide(look, "git", "read", [], [command]).action == "allow"
    seen = Grant(id="2", key="git", pattern="git diff *", scope="session")
    assert decide(look, "bash", "exec", [], [seen]).action == "ask"


@pytest.mark.parametrize(
    ("key", "action", "outcome"),
    [("net", "deny", "deny"), ("http", "deny", "deny"), ("github", "deny", "deny"),
     ("net", "allow", "ask"), ("http", "allow", "ask"), ("github", "allow", "allow")],
)  # fmt: skip
def test_what_is_forbidden_on_a_server_is_so_in_any_case(
    key: str, action: Action, outcome: str
) -> None:
    """What is allowed is so only where the server is known not to tell letters apart."""
    rules = (Rule(pattern="https://a.org/Shop*", action=action), Rule(pattern="*", action="ask"))
    source = Ruleset(source="example", keys={key: rules})
    touched = Facts(resources=(Resource(kind="net", subject="https://a.org/shop"),))
    assert decide(touched, key, "net", [source]).action == outcome
