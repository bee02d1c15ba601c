"""Files that git and ripgrep read by themselves, made such that reading them never ends."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from magy_server.tools.git import hostile_config as git_config
from magy_server.tools.search.endless_files import endless
from magy_server.tools.shell.processes import Processes
from magy_server.tools.shell.shell_tools import shell_tools

from .conftest import Workspace
from .repositories import Person
from .searching import Searcher

pytestmark = pytest.mark.needs("git")
PLACES = [
    ".gitignore", ".ignore", ".rgignore", "sub/.gitignore", ".gitattributes", "sub/.gitattributes",
    ".git", ".git/HEAD", ".git/config", ".git/index", ".git/info/exclude", ".git/packed-refs",
    ".git/refs/heads/main", ".git/commondir", ".git/objects/info/alternates",
]  # fmt: skip


@pytest.fixture
def person(workspace: Workspace) -> Person:
    one = Person(workspace.root)
    one.git("init", "-q", "-b", "main")
    one.commit("first", a_py="a\n")
    (one.root / "sub").mkdir()
    return one


def make(path: Path, kind: str) -> None:
    if path.is_dir():
        path.rename(path.with_name("moved"))
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "link to a pipe":
            os.mkfifo(path.parent / "pipe")
            path.symlink_to("pipe")
        case "device":
            path.symlink_to("/dev/zero")
        case "huge":
            with path.open("wb") as file:
                file.truncate(8 << 30)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", ["pipe", "link to a pipe", "device"])
async def test_a_command_is_judged_all_the_same(person: Person, place: str, kind: str) -> None:
    make(person.root / place, kind)
    begin = time.monotonic()
    bash = next(tool for tool in shell_tools(Processes()) if tool.name == "bash")
    for command in ("git status", "git no-such-alias", "ls -la"):
        assert (await person.judge(bash, command=command)).resources
    assert time.monotonic() - begin < 20
    assert endless(str(person.root)) is not None
    with pytest.raises(git_config.Unclear, match="never ends"):
        git_config.ask(os.environ, str(person.root), "status")


@pytest.mark.parametrize("place", [".gitignore", "sub/.ignore", ".gitattributes", ".git/config"])
def test_what_would_fill_the_memory_counts_too(person: Person, place: str) -> None:
    make(person.root / place, "huge")
    assert endless(str(person.root)) == str(person.root / place)


def test_what_does_end_is_no_matter(person: Person) -> None:
    (person.root / ".gitignore").symlink_to("/dev/null")
    (person.root / ".ignore").symlink_to(".ignore")
    (person.root / ".rgignore").mkdir()
    os.mkfifo(person.root / "other")
    (person.root / "sub/.gitignore").write_text("a\n" * 1000)
    assert endless(str(person.root)) is None


@pytest.mark.parametrize("tool", ["glob", "grep"])
async def test_a_search_is_refused_only_for_what_it_would_read(
    workspace: Workspace, tool: str
) -> None:
    search = Searcher(workspace.root)
    search.file("sub/a.py", "a\n")
    make(search.root / "sub/.gitattributes", "pipe")
    make(search.root / "sub/.gitmodules", "pipe")
    assert "sub/a.py" in (await search.do(tool, pattern="*a*" if tool == "glob" else "a")).for_model
    make(search.root / "sub/.rgignore", "pipe")
    assert "sub/.rgignore is a pipe" in await search.refusal(tool, pattern="a")


def test_a_tree_of_links_to_itself_is_looked_through_once(person: Person) -> None:
    for number in range(12):
        (person.root / f"l{number}").symlink_to(".")
    begin = time.monotonic()
    assert endless(str(person.root)) is None
    assert time.monotonic() - begin < 20
