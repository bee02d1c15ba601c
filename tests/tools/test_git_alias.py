"""An alias of git is judged as what it stands for, whoever told git of it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from magy_server.core.permit import Rule, Ruleset, decide
from magy_server.core.shell.git_arguments import split
from magy_server.core.values import Facts, Grant
from magy_server.tools.shell.processes import Processes
from magy_server.tools.shell.shell_tools import shell_tools

from .conftest import Workspace
from .repositories import Person

pytestmark = pytest.mark.needs("git")

RULES = [
    Ruleset(source="a", keys={"bash": (
        Rule(pattern="git *", action="allow"), Rule(pattern="cd *", action="allow"),
        Rule(pattern="ls *", action="allow"), Rule(pattern="touch *", action="allow"))}),
    Ruleset(source="b", keys={"edit": (Rule(pattern="*", action="allow", bare=True),)}),
    Ruleset(source="c", keys={"bash": (Rule(pattern="git push *", action="deny"),)}),
]  # fmt: skip
EVERYTHING = [Grant(id="1", key="bash", pattern="*", scope="session")]


@pytest.fixture
def person(workspace: Workspace) -> Person:
    one = Person(workspace.root)
    one.git("init", "-q", "-b", "main")
    one.commit("first", a_py="a\n")
    (one.root / "sub").mkdir()
    return one


async def facts(person: Person, command: str) -> Facts:
    bash = next(tool for tool in shell_tools(Processes()) if tool.name == "bash")
    return await person.judge(bash, command=command)


async def runs(person: Person, command: str) -> list[str]:
    found = (await facts(person, command)).resources
    return [("?" if r.opaque else "") + r.subject for r in found if r.kind == "exec"]


async def outcome(person: Person, command: str) -> str:
    decision = decide(await facts(person, command), "bash", "exec", RULES, EVERYTHING, True)
    return "firm" if decision.firm else decision.action


@pytest.mark.parametrize(
    ("value", "command", "meant"),
    [
        ("push", "git pp", ["git push"]),
        ("push", "git pp origin main", ["git push origin main"]),
        ("push", "git PP origin", ["git push origin"]),
        ("push", "git --no-pager pp", ["git --no-pager push"]),
        ("push", "timeout 5 git pp", ["timeout 5 git pp", "git push"]),
        ("push 'a b' \"c\\\"d\" e\\ f", "git pp x", ["git push 'a b' 'c\"d' 'e f' x"]),
        ("log --format='%h %s'", "git pp", ["git log '--format=%h %s'"]),
        ("status", "git pp", ["git status"]),
        ("!git push", "git pp origin", ["git push origin"]),
        ("!ls && git push", "git pp origin", ["ls", "git push origin"]),
        ("!git push \"$@\"", "git pp", ["?git push \"$@\""]),
        ("!f() { git push; }; f", "git pp", ["?f() { git push; }; f", "git push", "f"]),
        ("-c a.b=c push", "git pp", ["?git -c a.b=c push"]),
        ("!", "git pp", ["?git pp"]),
        ("", "git pp", ["?git pp"]),
        ("push 'a", "git pp", ["?git pp"]),
        ("pp", "git pp", ["?git pp"]),
        ("qq", "git pp", ["?git qq"]),
    ],
)  # fmt: skip
async def test_what_it_stands_for(
    person: Person, value: str, command: str, meant: list[str]
) -> None:
    person.git("config", "alias.pp", value)
    assert await runs(person, command) == meant


async def test_aliases_lead_to_aliases(person: Person) -> None:
    for name, value in {"a": "b x", "b": "!git c y", "c": "push"}.items():
        person.git("config", f"alias.{name}", value)
    assert await runs(person, "git a z") == ["git push y x z"]
    assert await outcome(person, "git a") == "deny"
    person.git("config", "alias.c", "a")
    assert await outcome(person, "git a") == "firm"


def put(person: Person, tmp_path: Path, scope: str, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other.config"
    other.write_text("[alias]\n\tpp = push\n")
    plain = other.read_text()
    match scope:
        case "global":
            monkeypatch.setenv("HOME", str(tmp_path))
            (tmp_path / ".gitconfig").write_text(plain)
        case "xdg":
            monkeypatch.setenv("HOME", str(tmp_path))
            monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "x"))
            (tmp_path / "x/git").mkdir(parents=True)
            (tmp_path / "x/git/config").write_text(plain)
        case "file of the environment":
            monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(other))
        case "system":
            monkeypatch.delenv("GIT_CONFIG_NOSYSTEM", raising=False)
            monkeypatch.setenv("GIT_CONFIG_SYSTEM", str(other))
        case "environment":
            monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
            monkeypatch.setenv("GIT_CONFIG_KEY_0", "alias.pp")
            monkeypatch.setenv("GIT_CONFIG_VALUE_0", "push")
        case "parameters":
            monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'alias.pp=push'")
        case "local":
            person.git("config", "alias.pp", "push")
        case "worktree":
            person.git("config", "extensions.worktreeConfig", "true")
            person.git("config", "--worktree", "alias.pp", "push")
        case "include":
            person.git("config", "include.path", str(other))
        case "include of a file in the project":
            (person.root / "shared.config").write_text(plain)
            person.git("config", "include.path", "../shared.config")
        case "include on a branch":
            person.git("config", "includeIf.onbranch:main.path", str(other))
        case "include in a directory":
            person.git("config", f"includeIf.gitdir:{person.root}/.path", str(other))
        case _:
            raise AssertionError(scope)


@pytest.mark.parametrize(
    "scope",
    ["global", "xdg", "file of the environment", "system", "environment", "parameters", "local",
     "worktree", "include", "include of a file in the project", "include on a branch",
     "include in a directory"],
)  # fmt: skip
async def test_of_any_scope(
    person: Person, tmp_path: Path, scope: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(person, tmp_path, scope, monkeypatch)
    # Commands do not get GIT_CONFIG_PARAMETERS: there the word stands for nothing that is known.
    expected = "firm" if scope == "parameters" else "deny"
    assert await outcome(person, "git pp origin") == expected
    assert await outcome(person, "cd sub && git pp origin") == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("git -c alias.x=push x", "deny"),
        ("git -c alias.x=push x origin", "deny"),
        ("git -c 'alias.x=!git push' x", "deny"),
        ("git -c alias.x=y -c alias.y=push x", "deny"),
        ("git -c include.path=/no/such/file -C sub pp", "deny"),
        ("git -c include.path=shared.config pp", "firm"),
        ("git -C sub pp", "deny"),
        ("git -C . -C sub pp", "deny"),
        ("git --git-dir=.git pp", "deny"),
        ("git --git-dir .git --work-tree . pp", "deny"),
        ("GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0=push git x", "firm"),
        ("git config alias.x push && git x", "firm"),
        ("git config alias.ok push && git ok", "firm"),
        ("git config --add include.path ../f; git ok", "firm"),
        ("git pull && git ok", "firm"),
        ("git ok; git config alias.ok push", "firm"),
        ("for i in 1 2; do git ok; touch shared.config; done", "firm"),
        ("touch .gitconfig && git ok", "firm"),
        ("git psuh origin", "firm"),
        ("git pusj", "firm"),
        ("git p?", "firm"),
        ("git no-such-command", "firm"),
        ("git Push", "firm"),
        ("git ok", "allow"),
        ("git add a.py && git ok", "allow"),
        ("ls && git ok && git log", "allow"),
        ("git rev-list HEAD && git whatchanged", "allow"),
    ],
)
async def test_other_ways(person: Person, command: str, expected: str) -> None:
    person.git("config", "alias.pp", "push")
    person.git("config", "alias.ok", "status")
    person.git("config", "help.autocorrect", "immediate")
    (person.root / "shared.config").write_text("[alias]\n\tpp = push\n")
    assert await outcome(person, command) == expected


async def test_what_is_denied_by_the_name_of_the_alias_stays_denied(person: Person) -> None:
    person.git("config", "alias.ok", "status")
    deny = Ruleset(source="d", keys={"bash": (Rule(pattern="git ok *", action="deny"),)})
    seen = await facts(person, "git -C . ok")
    assert decide(seen, "bash", "exec", [*RULES, deny]).action == "deny"
    assert decide(await facts(person, "git status"), "bash", "exec", [*RULES, deny]).action == (
        "allow"
    )


async def test_the_line_of_an_alias_runs_at_the_top(person: Person) -> None:
    person.git("config", "alias.look", "!cat secret")
    (person.root / "secret").write_text("x")
    seen = await facts(person, "cd sub && git look")
    read = [r.relative for r in seen.resources if r.kind == "read"]
    assert "secret" in read and "sub/secret" not in read


@pytest.mark.parametrize(
    "value", ["push a", "a  b\tc", "'a b' c", 'a"b c"d', "a\\ b", "'a\\'", '"a\\"b"', "", "a\\"]
)
async def test_words_are_those_of_git(person: Person, value: str, tmp_path: Path) -> None:
    """git itself says what it takes an alias for: `rev-parse` shows its words."""
    person.git("config", "alias.w", f"rev-parse --sq-quote {value}")
    run = subprocess.run(
        ["git", "w"], cwd=person.root, capture_output=True, text=True, env={**os.environ}
    )
    words = split(f"rev-parse --sq-quote {value}")
    if words is None:
        assert run.returncode != 0
        return
    quoted = "".join(" '" + word.replace("'", "'\\''") + "'" for word in words[2:])
    assert run.stdout == quoted + "\n"


async def test_a_configuration_that_never_ends_is_not_waited_for(person: Person) -> None:
    os.mkfifo(person.root / "pipe")
    person.git("config", "include.path", "../pipe")
    assert await outcome(person, "git pp; git qq; git rr") == "firm"


async def test_aliases_of_many_aliases_are_looked_at_in_time(person: Person) -> None:
    for number in range(9):
        again = "; ".join([f"git a{number + 1}"] * 50)
        person.git("config", f"alias.a{number}", f"!{again}")
    person.git("config", "alias.a9", "status")
    assert await outcome(person, "git a0") == "firm"
