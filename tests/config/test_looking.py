"""Whether what is read for a root has changed is found out without looking through its folders."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from magy_server.projects import Project, Projects, signature_of
from magy_server.store.memory import MemoryStore

FOLDERS = (
    "config/agent", "config/skills", "config/skills/mine", "config/magent-skills",
    ".claude/agents", ".claude/commands", ".claude/commands/more", ".claude/skills",
    ".claude/skills/theirs", ".agents/skills", "root/.magy", "root/.magy/agent",
    "root/.magy/skills/ours", "root/.claude/agents/deep", "root/magent-skills/one",
)  # fmt: skip
TEXTS = {"": "pin", ".toml": "# no settings", ".json": "{}", ".yaml": "read: allow", ".md": "text"}
FILES = ("a.md", "common.yaml", "actions.yaml", "SKILL.md", "b.yaml", "magy.toml", ".magy-pin")
HOME = ("config/magy.toml", ".claude/settings.json", "root/magy.toml", "root/.mcp.json")

_listings: list[str] = []
_counting = False


def _heard(event: str, arguments: tuple[object, ...]) -> None:
    if _counting and event in ("os.scandir", "os.listdir"):
        _listings.append(str(arguments[0]))


sys.addaudithook(_heard)


@contextmanager
def listings() -> Iterator[list[str]]:
    """The folders that are listed meanwhile."""
    global _counting
    _listings.clear()
    _counting = True
    try:
        yield _listings
    finally:
        _counting = False


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MAGY_CONFIG_DIR", str(tmp_path / "config"))
    (tmp_path / "root").mkdir()
    (tmp_path / "config").mkdir()
    return tmp_path


_ages = count()


def settle(home: Path) -> None:
    """As if nothing had changed for a while."""
    then = time.time_ns() - 10_000_000_000 - next(_ages) * 1_000_000
    for place, folders, names in os.walk(home):
        for name in [".", *folders, *names]:
            os.utime(os.path.join(place, name), ns=(then, then), follow_symlinks=False)


def looked(projects: Projects, home: Path) -> Project:
    projects.of(None)
    return projects.of(str(home / "root"))


def test_what_has_not_changed_is_not_looked_through_again(home: Path) -> None:
    for folder in FOLDERS:
        (home / folder).mkdir(parents=True, exist_ok=True)
        for name in FILES:
            (home / folder / name).write_text(TEXTS[Path(name).suffix])
    settle(home)
    projects = Projects({}, MemoryStore())
    known = looked(projects, home)
    with listings() as listed:
        assert looked(projects, home) is known
    assert listed == []


def test_folders_that_have_just_changed_are_looked_through_again(home: Path) -> None:
    settle(home)
    projects = Projects({}, MemoryStore())
    agents = home / "config/agent"
    agents.mkdir()
    assert "a" not in projects.agents(None)
    with listings() as listed:
        projects.of(None)
    assert str(agents) in listed
    (agents / "a.md").write_text("---\ndescription: one\nmode: primary\n---\nText.\n")
    now = os.stat(agents).st_mtime_ns  # the clock of the file system may not have moved on
    os.utime(agents, ns=(now, now))
    assert "a" in projects.agents(None)


Step = tuple[str, str, str]
steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from(FOLDERS), st.sampled_from(FILES)),
        st.tuples(
            st.sampled_from(("remove", "link")), st.sampled_from(FOLDERS), st.sampled_from(FILES)
        ),
        st.tuples(st.sampled_from(("make", "drop", "move")), st.sampled_from(FOLDERS), st.just("")),
        st.tuples(st.just("write"), st.just("."), st.sampled_from(HOME)),
        st.tuples(st.just("rest"), st.just(""), st.just("")),
    ),
    min_size=1, max_size=12,
)  # fmt: skip


def perform(home: Path, step: Step, number: int) -> None:
    what, folder, name = step
    place = home / folder
    match what:
        case "write":
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            if (place / name).is_symlink():
                (place / name).unlink()
            (place / name).write_text(TEXTS[Path(name).suffix] + " " * number)
        case "remove":
            (place / name).unlink(missing_ok=True)
        case "link":
            place.mkdir(parents=True, exist_ok=True)
            (place / name).unlink(missing_ok=True)
            (place / name).symlink_to(home / "config/magy.toml")
        case "make":
            (place / f"new{number}").mkdir(parents=True, exist_ok=True)
        case "drop":
            shutil.rmtree(place, ignore_errors=True)
        case "move" if place.is_dir():
            place.rename(place.with_name(f"{place.name}-{number}"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(steps)
def test_each_change_is_noticed(home: Path, changes: list[Step]) -> None:
    for path in home.iterdir():
        shutil.rmtree(path)
    (home / "root").mkdir()
    (home / "config").mkdir()
    settle(home)
    kept = Projects({}, MemoryStore())
    looked(kept, home)
    for number, step in enumerate(changes):
        if step[0] == "rest":
            settle(home)
        else:
            perform(home, step, number)
        assert looked(kept, home).signature == signature_of(str(home / "root")), step


async def test_what_is_asked_for_at_one_moment_is_as_it_was_then(home: Path) -> None:
    """Whoever asks after the loop has waited is told what is there now."""
    projects = Projects({}, MemoryStore())
    file = home / "config" / "skills" / "mine" / "SKILL.md"
    assert "mine" not in projects.skills(None)
    await asyncio.sleep(0)
    file.parent.mkdir(parents=True)
    for word in ("First", "Later", "Again"):
        file.write_text(f"---\nname: mine\ndescription: {word}.\n---\nDo.\n")
        assert projects.skills(None)["mine"].description == f"{word}."
        file.write_text(f"---\nname: mine\ndescription: Then {word}.\n---\nDo.\n")
        assert projects.skills(None)["mine"].description == f"{word}."
        told = await asyncio.to_thread(projects.skills, None)
        assert told["mine"].description == f"Then {word}.", "a thread looks for itself"
        assert projects.skills(None)["mine"].description == f"Then {word}."
        await asyncio.sleep(0)
