"""`config/agents.py` and `projects.py`: which agent files count, and when."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from magy_server.config import agents
from magy_server.config.trust import files_hash
from magy_server.core.errors import InvalidConfig, NotFound, NotTrusted
from magy_server.core.permit import decide, withholds
from magy_server.core.specs import Agents
from magy_server.core.values import Facts, Resource
from magy_server.projects import Project, Projects, Signature
from magy_server.store.memory import MemoryStore
from magy_server.tools.kit import make_tools
from magy_server.tools.shell.processes import Processes

BUILT_IN = [
    "build", "plan", "explore", "general", "architect", "coder", "commit", "compaction",
    "completion", "developer", "devops", "engineering-lead", "magi-balthasar", "magi-casper",
    "magi-melchior", "magi", "orchestrator", "project-manager", "qa", "reviewer", "rewrite",
    "summary", "title",
]  # fmt: skip


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's configuration directory."""
    path = tmp_path / "config"
    (path / "agent").mkdir(parents=True)
    monkeypatch.setenv("MAGY_CONFIG_DIR", str(path))
    for name in ("MAGY_SCRIPT", "MAGY_MODEL", "MAGY_AGENT"):
        monkeypatch.delenv(name, raising=False)
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    for folder in agents.PROJECT:
        path.joinpath(*folder).mkdir(parents=True)
    return path


def agent(directory: Path, name: str, description: str = "x", more: str = "") -> Path:
    file = directory / f"{name}.md"
    file.write_text(f"---\ndescription: {description}\n{more}\n---\nYou help.\n")
    return file


def find(root: Path | None, trusted: bool = True, custom: bool = True) -> Agents:
    return agents.find_agents(str(root) if root else None, trusted=trusted, custom=custom)


def described(found: Agents, name: str) -> str:
    return found.named(name).description


async def test_shipped_agents_name_only_tools_that_there_are() -> None:
    processes = Processes()
    tools = {tool.name: tool.key for tool in make_tools(processes)}
    await processes.close()
    for spec in agents.built_in_agents().values():
        named = {*re.findall(r"`([a-z]+_[a-z]+)`", spec.prompt), *(spec.tools or ())}
        assert named <= set(tools), (spec.name, named - set(tools))
        for tool in named:
            assert spec.tools is None or tool in spec.tools
            assert not withholds([agents.common_rules(), spec.rules], tools[tool])


# --- which file counts ----------------------------------------------------------------------------


def test_the_nearer_file_counts(home: Path, root: Path) -> None:
    for directory, name in ((home / "agent", "user"), (root / ".magent/agent", "magent"),
                            (root / ".magy/agent", "magy")):  # fmt: skip
        for each in ("one", "two", "three")[: {"user": 3, "magent": 2, "magy": 1}[name]]:
            agent(directory, each, name)
    found = find(root)
    assert [described(found, name) for name in ("one", "two", "three")] == [
        "magy", "magent", "user"]  # fmt: skip
    assert found["one"].where == str(root / ".magy/agent/one.md")
    assert list(found)[: len(BUILT_IN)] == BUILT_IN and not found.problems
    assert described(find(None), "one") == "user"


def test_a_built_in_agent_can_be_replaced_and_extended(home: Path, root: Path) -> None:
    agent(root / ".magy/agent", "build", "ours", "extends: build\nmodel: a/b")
    agent(home / "agent", "title", "mine")
    found = find(root)
    shipped = agents.built_in_agents()
    assert (found["build"].model, found["build"].prompt) == ("a/b", "You help.")
    assert found["build"].rules == shipped["build"].rules
    assert found["title"].where == str(home / "agent/title.md")
    assert not found["title"].hidden
    assert list(found) == BUILT_IN


def test_nobody_extends_a_file_of_another(home: Path, root: Path) -> None:
    """Else a project could change what the user's agent means."""
    agent(root / ".magy/agent", "build", "theirs", "permissions: bash allow")
    agent(home / "agent", "mine", "mine", "extends: build")
    agent(home / "agent", "yours", "yours", "extends: mine")
    found = find(root)
    assert found["mine"].rules.keys == agents.built_in_agents()["build"].rules.keys
    with pytest.raises(InvalidConfig, match="unknown built-in agent 'mine'"):
        found.named("yours")


def test_without_custom_agents_no_file_is_read(home: Path, root: Path) -> None:
    agent(home / "agent", "one")
    agent(root / ".magy/agent", "build", "theirs", "nonsense: 1")
    found = find(root, custom=False)
    assert list(found) == BUILT_IN and not found.problems and not found.broken


def test_a_project_that_is_not_trusted_has_no_agents_of_its_own(home: Path, root: Path) -> None:
    agent(root / ".magy/agent", "one")
    agent(root / ".magent/agent", "build", "theirs")
    agent(root / ".magent/agent", "wrong", "theirs", "nonsense: 1")
    found = find(root, trusted=False)
    assert list(found) == BUILT_IN and not found.problems
    assert described(found, "build") != "theirs"
    with pytest.raises(NotTrusted, match=r"one\.md is in a project that is not trusted"):
        found.named("one")


# --- files that are wrong -------------------------------------------------------------------------


def test_a_wrong_file_stops_nobody_else_and_nobody_stands_in_for_it(home: Path, root: Path) -> None:
    agent(home / "agent", "one", "user")
    agent(home / "agent", "good", "user")
    wrong = agent(root / ".magy/agent", "one", "theirs", "modl: a/b")
    build = agent(root / ".magent/agent", "build", "theirs", "mode: sub")
    found = find(root)
    assert described(found, "good") == "user"
    assert "one" not in found and "build" not in found
    said = f"{wrong}:3: unknown setting 'modl'. Did you mean 'model'?"
    assert said in found.problems and len(found.problems) == 2
    for name in ("one", "build"):
        with pytest.raises(InvalidConfig) as caught:
            found.named(name)
        assert caught.value.message == found.broken[name]
    assert found.broken["one"] == said
    build.unlink()
    agent(root / ".magy/agent", "one", "theirs")
    assert described(find(root), "one") == "theirs" and "build" in find(root)


def a_directory(path: Path) -> None:
    path.mkdir()


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_link_out(path: Path) -> None:
    target = path.parent.parent / "elsewhere.md"
    target.write_text("---\ndescription: x\n---\nYou help.\n")
    path.symlink_to(target)


def a_link_to_nothing(path: Path) -> None:
    path.symlink_to("gone.md")


def a_link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def too_large(path: Path) -> None:
    path.write_text("---\ndescription: x\n---\n" + "a" * agents.MOST_BYTES)


def binary(path: Path) -> None:
    path.write_bytes(b"---\ndescription: \xff\xfe\n---\nYou help.\n")


def empty(path: Path) -> None:
    path.write_text("")


def deep(path: Path) -> None:
    path.write_text("---\n" + "[" * 100_000 + "\n---\nYou help.\n")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (a_directory, "is not a file"),
        (a_pipe, "is not a file"),
        (a_link_out, "is a symbolic link that leads out of"),
        (a_link_to_nothing, "cannot be read: No such file"),
        (a_link_to_itself, "cannot be read: "),
        (too_large, "is larger than 256 KiB"),
        (binary, ":2: not UTF-8 text"),
        (empty, "begins with a line `---`"),
        (deep, "not valid YAML"),
    ],
)  # fmt: skip
def test_what_is_no_agent_file_is_said(
    home: Path, make: Callable[[Path], None], words: str
) -> None:
    make(home / "agent" / "odd.md")
    agent(home / "agent", "good")
    found = find(None)
    assert "good" in found and "odd" not in found
    assert words in found.broken["odd"] and found.broken["odd"].startswith(
        str(home / "agent" / "odd.md")
    )
    assert list(found.problems) == [found.broken["odd"]]


def test_what_lies_beside_agents_is_let_be(home: Path) -> None:
    for name in ("README.md", ".#one.md", ".hidden.md", "notes.txt", "one.md~", "#one.md#"):
        (home / "agent" / name).write_text("not an agent")
    (home / "agent" / "deep").mkdir()
    agent(home / "agent" / "deep", "two")
    found = find(None)
    assert list(found) == BUILT_IN and not found.problems


def test_names_that_are_none_are_said(home: Path) -> None:
    for name in ("Bad", "a b", "ü"):
        agent(home / "agent", name)
    assert len(find(None).problems) == 3
    assert all("is not a valid agent name" in problem for problem in find(None).problems)


def test_a_link_inside_the_directory_is_followed(home: Path) -> None:
    agent(home / "agent", "one")
    (home / "agent" / "two.md").symlink_to("one.md")
    assert not find(None).problems and "two" in find(None)


def test_there_is_a_limit_to_their_number(home: Path) -> None:
    for number in range(agents.MOST_FILES + 5):
        agent(home / "agent", f"a{number:03}")
    found = find(None)
    assert len(found) == len(BUILT_IN) + agents.MOST_FILES
    assert "a199" in found and "a200" not in found
    assert "more than 200 agents; Magy ignores those after a199.md" in found.problems[0]


def test_a_directory_that_is_none_is_said(home: Path) -> None:
    (home / "agent").rmdir()
    assert not find(None).problems
    (home / "agent").write_text("")
    assert find(None).problems == (f"{home / 'agent'} cannot be read: Not a directory.",)


# --- the rules for every agent --------------------------------------------------------------------


def reads(projects: Projects, root: Path, name: str) -> str:
    resource = Resource(kind="read", subject=str(root / name), relative=name)
    sources = [projects.agents(str(root)).named("open").rules, *projects.rules(str(root))]
    return decide(Facts(resources=(resource,)), "read", "read", sources, bypass=True).action


def test_the_common_rules_hold_for_every_agent_until_the_user_has_others(
    home: Path, root: Path
) -> None:
    agent(home / "agent", "open", "x", "permissions: read allow")
    projects = Projects({}, MemoryStore())
    assert reads(projects, root, ".env") == "deny"
    assert reads(projects, root, "talk.key") == "deny"
    assert reads(projects, root, "a.py") == "allow"
    (home / "agent" / "common.yaml").write_text('read:\n  "*.env": deny\n')
    assert reads(projects, root, ".env") == "deny"
    assert reads(projects, root, "talk.key") == "allow"


def test_a_project_cannot_loosen_them(home: Path, root: Path) -> None:
    agent(home / "agent", "open", "x", "permissions: read allow")
    (root / ".magy/agent/common.yaml").write_text("read: allow\n")
    (root / "magy.toml").write_text('[permission]\nread = "allow"\n')
    projects = Projects({}, MemoryStore())
    projects.add(str(root), files_hash(str(root)))
    assert projects.trusted(str(root))
    assert reads(projects, root, ".env") == "deny"


def test_nothing_runs_by_common_rules_that_cannot_be_read(home: Path, root: Path) -> None:
    file = home / "agent" / "common.yaml"
    file.write_text("raed: deny\n")
    with pytest.raises(InvalidConfig, match=r"common\.yaml:1: unknown permission 'raed'"):
        Projects({}, MemoryStore())
    file.unlink()
    projects = Projects({}, MemoryStore())
    assert projects.rules(None)
    file.write_text("raed: deny\n")
    with pytest.raises(InvalidConfig, match=r"common\.yaml:1: unknown permission 'raed'"):
        projects.rules(None)
    assert "build" in projects.agents(None)
    assert projects.problems(None) == [f"{file}:1: unknown permission 'raed'. "
                                       "Did you mean 'read'?"]  # fmt: skip
    file.unlink()
    assert projects.rules(None) and not projects.problems(None)


# --- changes on disk, and trust -------------------------------------------------------------------


def test_changes_are_noticed(home: Path, root: Path) -> None:
    projects = Projects({}, MemoryStore())
    assert "one" not in projects.agents(str(root))
    file = agent(home / "agent", "one", "first")
    assert described(projects.agents(str(root)), "one") == "first"
    agent(home / "agent", "one", "other")
    assert described(projects.agents(None), "one") == "other"
    assert projects.agents(None) is projects.agents(None)
    file.unlink()
    assert "one" not in projects.agents(str(root))
    (home / "magy.toml").write_text("custom_agents = false\n")
    agent(home / "agent", "one")
    assert "one" not in projects.agents(None)


def test_who_read_while_trust_was_withdrawn_does_not_give_it_back(home: Path, root: Path) -> None:
    """Editors' actions are looked for in a thread."""
    reading, go_on = threading.Event(), threading.Event()

    class Slow(Projects):
        def _read(self, root: str | None, signature: Signature) -> Project:
            made = super()._read(root, signature)
            if threading.current_thread() is not threading.main_thread():
                reading.set()
                assert go_on.wait(60)
            return made

    agent(root / ".magy/agent", "one")
    projects = Slow({}, MemoryStore())
    projects.add(str(root), files_hash(str(root)))
    agent(home / "agent", "mine")
    found: list[Agents] = []
    look = threading.Thread(target=lambda: found.append(projects.agents(str(root))))
    look.start()
    assert reading.wait(60)
    projects.add(str(root), None)
    go_on.set()
    look.join()
    assert not projects.trusted(str(root))
    assert all(
        "mine" in each and "one" not in each for each in (found[0], projects.agents(str(root)))
    )


def test_a_project_that_changes_loses_its_trust(home: Path, root: Path) -> None:
    agent(root / ".magy/agent", "one")
    hash = files_hash(str(root))
    projects = Projects({}, MemoryStore())
    projects.add(str(root), hash)
    assert "one" in projects.agents(str(root)) and not projects.ignored(str(root))
    agent(root / ".magy/agent", "two", "x", "permissions: bash allow")
    found = projects.agents(str(root))
    assert "one" not in found and "two" not in found
    assert not projects.trusted(str(root))
    assert list(projects.ignored(str(root))) == [
        str(root / ".magy/agent/one.md"), str(root / ".magy/agent/two.md")]  # fmt: skip
    with pytest.raises(NotTrusted, match="trust the project"):
        found.named("one")
    (root / ".magy/agent/two.md").unlink()  # what the person trusted, again
    assert "one" in projects.agents(str(root)) and projects.trusted(str(root))


def test_plans_and_agents_md_do_not_touch_trust(home: Path, root: Path) -> None:
    agent(root / ".magy/agent", "one")
    hash = files_hash(str(root))
    for path in (".magy/plan/a.md", ".magent/plan/deep/b.md", "AGENTS.md"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("text")
    (root / ".magy/plan/link.md").symlink_to("/etc/hosts")
    assert files_hash(str(root)) == hash
    for path in (".magy/x/plan/a.md", ".magy/plans/a.md"):
        (root / path).parent.mkdir(parents=True)
        (root / path).write_text("text")
        assert files_hash(str(root)) != hash
        hash = files_hash(str(root))


def test_a_linked_directory_is_never_trusted(home: Path, root: Path, tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    agent(tmp_path / "far", "one")
    (root / ".magy/agent").rmdir()
    (root / ".magy/agent").symlink_to(tmp_path / "far")
    with pytest.raises(NotTrusted, match="symbolic link"):
        files_hash(str(root))
    projects = Projects({}, MemoryStore())
    projects.add(str(root), "0" * 64)
    assert "one" not in projects.agents(str(root))


def test_a_configuration_that_breaks_stops_work_but_not_looking(home: Path, root: Path) -> None:
    file = root / "magy.toml"
    file.write_text('default_agent = "plan"\n')
    agent(root / ".magy/agent", "one")
    projects = Projects({}, MemoryStore())
    projects.add(str(root), files_hash(str(root)))
    assert projects.settings(str(root)).default_agent == "plan"
    file.write_text("default_agent = \n")
    with pytest.raises(InvalidConfig, match="not valid TOML"):
        projects.rules(str(root))
    assert not projects.trusted(str(root))
    assert list(projects.agents(str(root))) == BUILT_IN
    assert str(file) in projects.problems(str(root))[0]
    file.write_text('default_agent = "plan"\n')
    assert projects.rules(str(root)) and projects.trusted(str(root))
    assert "one" in projects.agents(str(root)) and not projects.problems(str(root))


def test_problems_of_agents_are_there_for_people(home: Path) -> None:
    agent(home / "agent", "one", "x", "nonsense: 1")
    projects = Projects({}, MemoryStore())
    assert len(projects.problems(None)) == 1
    with pytest.raises(InvalidConfig, match=r"one\.md:3: unknown setting 'nonsense'"):
        projects.agents(None).named("one")
    with pytest.raises(NotFound, match="Agents are: build, plan, explore, general, arch"):
        projects.agents(None).named("two")


def test_home_is_meant_by_a_tilde(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    agent(home / "agent", "one", "x", "permissions: 'read ~/x/** deny'")
    rules = find(None)["one"].rules.keys["read"]
    assert rules[0].pattern == f"{tmp_path}/x/**"
    assert any(r.pattern == f"{tmp_path}/.ssh/**" for r in agents.common_rules().keys["read"])
