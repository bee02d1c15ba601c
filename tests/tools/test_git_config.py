"""What a repository names to be run, as a fact for the judge of command lines."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from magy_server.config.agents import built_in_agents, common_rules
from magy_server.core.permit import decide, proposals
from magy_server.core.values import Facts, Grant
from magy_server.tools.shell.processes import Processes
from magy_server.tools.shell.shell_tools import shell_tools

from .conftest import Workspace
from .repositories import Person

pytestmark = pytest.mark.needs("git")


@pytest.fixture
def person(workspace: Workspace) -> Person:
    one = Person(workspace.root)
    one.git("init", "-q", "-b", "main")
    one.commit("first", a_py="a\n")
    return one


async def facts(person: Person, command: str) -> Facts:
    bash = next(tool for tool in shell_tools(Processes()) if tool.name == "bash")
    return await person.judge(bash, command=command)


async def named(person: Person, command: str = "git status") -> str:
    """What is judged beside the command."""
    found = [r.subject for r in (await facts(person, command)).resources if r.kind == "exec"]
    return "; ".join(subject for subject in found if subject.startswith("(the git repository"))


async def action(person: Person, command: str, agent: str = "build", *grants: Grant) -> str:
    sources = [built_in_agents()[agent].rules, common_rules()]
    return decide(await facts(person, command), "bash", "exec", sources, grants).action


async def test_an_ordinary_repository_names_nothing(person: Person, tmp_path: Path) -> None:
    person.git("remote", "add", "origin", "https://example.org/x.git")
    person.git("config", "core.fsmonitor", "touch x;false")  # switched off
    person.git("config", "core.pager", "less")
    assert await named(person) == ""
    for agent in ("build", "plan", "explore"):
        assert await action(person, "git status && git log --oneline", agent) == "allow"
    tree = Person(tmp_path.resolve() / "tree")
    person.git("worktree", "add", "-q", str(tree.root), "-b", "side")
    assert await named(tree) == ""
    empty = Person(tmp_path.resolve() / "empty")
    empty.root.mkdir()
    assert await named(empty) == ""


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("filter.x.clean", "touch ran;cat"),
        ("filter..process", "touch ran"),
        ("diff.external", "touch ran"),
        ("diff.x.textconv", "touch ran;cat"),
        ("diff.a b.command", "touch ran"),
        ("merge.x.driver", "touch ran"),
        ("gpg.program", "./gpg"),
        ("gpg.ssh.program", "./gpg"),
        ("man.x.cmd", "touch ran"),
        ("core.alternaterefscommand", "touch ran"),
        ("trailer.x.command", "touch ran"),
        ("log.showsignature", "true"),
        ("format.pretty", "%h %G?"),
        ("pretty.x", "format:%GK"),
    ],
)
async def test_programs_of_the_repository_are_asked_about(
    person: Person, key: str, value: str
) -> None:
    person.git("config", key, value)
    assert await named(person) == f"(the git repository names what is run here: {key} = {value})"
    assert (await facts(person, "git status")).title.endswith(f"{key} = {value})")
    assert await action(person, "git status") == "ask"
    assert await action(person, "timeout 5 git log", "plan") == "deny"
    assert await action(person, "ls") == "allow"
    grants = proposals(await facts(person, "git log"), "bash")
    assert await action(person, "git status", "build", *grants) == "allow"
    person.git("config", "diff.y.textconv", "touch other")
    assert await action(person, "git status", "build", *grants) == "ask"


async def test_what_is_really_run_is_named(person: Person) -> None:
    """Including by way of a file that the configuration includes, and in a submodule."""
    inner = person.root / "inner"
    subprocess.run(["git", "clone", "-q", str(person.root), str(inner)], check=True)
    person.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", "./inner", "inner")
    person.git("commit", "-qm", "inner")
    assert await named(person) == ""
    ran = person.root / "ran"
    person.file("inner/.git/more", f'[filter "x"]\nclean = "touch {ran};cat"\n')
    person.file("inner/.gitattributes", "* filter=x\n")
    person.file("inner/a.py", "b\n")
    with open(inner / ".git/config", "a") as config:
        config.write("[include]\npath = more\n")
    assert f"filter.x.clean = touch {ran};cat" in await named(person)
    env = Processes().environment(str(person.root), "s", "1")
    subprocess.run(["git", "status"], cwd=person.root, env=env, capture_output=True, check=False)
    assert ran.exists()  # a real trap


@pytest.mark.parametrize("key", ["include.path", "includeIf.onbranch:other.path"])
async def test_configuration_in_the_workspace_may_change_before_it_is_read(
    person: Person, key: str
) -> None:
    person.git("config", key, "more")  # below .git, where nobody may edit
    assert await named(person) == ""
    person.git("config", key, "../.gitconfig")  # is not there yet
    line = "printf '[filter \"x\"]\\nclean=touch ran;cat\\n' > .gitconfig && git status"
    for command in ("git status", line):
        assert "path = ../.gitconfig" in await named(person, command)
        assert await action(person, command) == "ask"
    person.git("config", key, str(person.root / "deep" / "config"))
    assert await action(person, "git status") == "ask"
    person.git("config", key, "~/own.gitconfig")  # is the person's own
    assert await action(person, "git status") == "allow"


async def test_a_hook_that_runs_when_one_looks(person: Person) -> None:
    person.hook("pre-commit", "true")
    assert await named(person) == ""
    person.hook("post-index-change", "true")
    assert "hook = " in await named(person)


async def test_a_partial_clone_fetches_by_what_it_names(person: Person) -> None:
    person.git("config", "core.sshCommand", "touch ran")
    assert await named(person) == ""
    person.git("config", "remote.origin.promisor", "true")
    assert "core.sshcommand" in await named(person)


async def test_another_repository_in_the_place_of_this(person: Person, tmp_path: Path) -> None:
    archive = Person(tmp_path.resolve() / "archive")
    archive.file(".git", f"gitdir: {person.root}/.git\n")
    assert f"repository = {person.root}/.git" in await named(archive)
    person.git("config", "core.worktree", str(tmp_path / "elsewhere"))
    (tmp_path / "elsewhere").mkdir()
    assert "core.worktree = " in await named(person)


async def test_where_a_directory_is_changed_to_counts(person: Person) -> None:
    other = Person(person.root / "other")
    other.root.mkdir()
    other.git("init", "-q")
    other.git("config", "diff.external", "touch ran")
    assert await action(person, "git status") == "allow"
    assert "in other: diff.external" in await named(person, "cd other && git status")
    assert await action(person, "cd other && git status") == "ask"
    (other.root / ".git/config").write_text("[broken")
    assert "cannot be read" in await named(person, "cd other && git status")


async def test_a_long_list_is_told_apart_by_its_end(person: Person) -> None:
    for number in range(20):
        person.git("config", f"diff.d{number}.textconv", "touch ran")
    first = await named(person)
    person.git("config", "diff.d19.textconv", "touch other")
    assert len(first) < 500 and await named(person) != first


@pytest.mark.parametrize("command", ["git log -p", "git log -5p", "git log -L1,1:a.py",
                                     "git log --oneline -wp", "git log --patc", "git log -S x",
                                     "git --no-pager log -U1", "git status -v", "git status -uvv",
                                     "git reflog -p"])  # fmt: skip
async def test_what_shows_changes_is_judged_as_diff_too(person: Person, command: str) -> None:
    found = await facts(person, command)
    assert "git diff" in [r.subject for r in found.resources]
    assert await action(person, command) == "ask"


@pytest.mark.parametrize("command", ["git log", "git log --oneline -20", "git log -n 5 --stat main",
                                     "git log --format=%h --since=yesterday -- a.py",
                                     "git log --graph --all --decorate", "git status -sb",
                                     "git log --author=me -- -p"])  # fmt: skip
async def test_what_lists_is_not(person: Person, command: str) -> None:
    assert await action(person, command) == "allow"


async def test_blame_names_files_that_are_gone(person: Person) -> None:
    person.commit("secret", prod_env="KEY=1\n")
    (person.root / "prod.env").unlink()
    assert await action(person, "git blame HEAD -- prod.env") == "deny"
    assert await action(person, "git commit -m 'Ignore prod.env'") == "ask"
