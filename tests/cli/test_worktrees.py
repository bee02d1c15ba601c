"""`magy worktrees`: what is listed, what is removed, and that no work is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from magy_server.core.values import Worktree
from magy_server.tools.worktrees import records
from magy_server.tools.worktrees.records import Record
from tests.tools.repositories import git

from .harness import Magy


def left(magy: Magy, *words: str) -> Any:
    run = magy("worktrees", *words, "--json")
    return json.loads(run.stdout)


@pytest.fixture
def project(root: Path) -> Path:
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "First")
    return root


SESSION = "gone/1.0"


def named(*names: str) -> list[str]:
    return [f"{name}{records.ending(SESSION)}" for name in names]


def made(root: Path, name: str) -> Path:
    """As Magy makes one for a session."""
    path = root / ".worktrees" / named(name)[0]
    git(root, "worktree", "add", "-q", "-b", f"magy/{name}", str(path))
    (root / ".worktrees" / ".gitignore").write_text("*\n")
    recorded(root, path, name, made=True)
    return path


def recorded(root: Path, path: Path, name: str, *, made: bool) -> None:
    tree = Worktree(path=str(path), branch=f"magy/{name}", base="main", directory=str(path.parent))
    record = Record(session=SESSION, root=str(root), place=str(path), worktree=tree, made=made)
    records.keep(str(root / ".git"), record)


@pytest.mark.req("G045")
def test_they_are_listed_with_size_and_only_what_is_merged_goes(project: Path, magy: Magy) -> None:
    assert "No agent has a worktree here." in magy("worktrees").stdout
    made(project, "merged")
    changed = made(project, "changed")
    (changed / "app.py").write_text("x" * 2_000_000)
    ahead = made(project, "ahead")
    git(ahead, "commit", "-q", "--allow-empty", "-m", "More")
    apart = made(project, "apart")
    git(apart, "checkout", "-q", "--detach")
    git(apart, "commit", "-q", "--allow-empty", "-m", "On no branch")
    cut = made(project, "cut")
    (cut / ".git").unlink()
    found = {one["name"]: one for one in left(magy)["worktrees"]}
    names = named("ahead", "apart", "changed", "cut", "merged")
    standings = ["unmerged", "unmerged", "changed", "unknown", "merged"]
    assert list(found) == names
    assert [one["standing"] for one in found.values()] == standings
    assert found[changed.name]["size"] >= 2_000_000
    shown = magy("worktrees", "list").stdout
    assert "has changes that are not committed" in shown and "2.0 MB" in shown
    assert "its .git is gone" in shown
    assert left(magy, "prune", "--dry-run")["removed"] == named("merged")
    assert len(left(magy)["worktrees"]) == 5
    gone = left(magy, "prune")
    assert gone["removed"] == named("merged") and set(gone["kept"]) == set(names[:-1])
    assert not (project / ".worktrees" / names[-1]).exists() and changed.exists()
    refused = magy("worktrees", "prune", ahead.name)
    assert refused.returncode == 1 and f"stays: {ahead.name} (not merged)" in refused.stdout
    removed = left(magy, "prune", "--force", *names[:3])["removed"]
    assert removed == names[:3] and not apart.exists()
    assert git(project, "branch", "--format=%(refname:short)").split() == ["magy/cut", "main"]
    assert git(project, "worktree", "list").count("\n") == 2


def test_a_record_that_somebody_forged_removes_nothing(
    project: Path, magy: Magy, tmp_path: Path
) -> None:
    """An unpacked archive brings its `.git` along."""
    [name] = named("docs")
    away = tmp_path / "away" / name
    (project / "link").mkdir()
    (project / "link" / name).symlink_to(away)
    for path in (away, project / "link" / name, project / "src" / "main"):
        path.mkdir(parents=True, exist_ok=True)
        (path / "precious").write_text("mine")
        recorded(project, path, "docs", made=False)
        assert left(magy, "prune") == {"removed": [], "kept": {}}
        assert (path / "precious").exists()


def test_bad_input(project: Path, magy: Magy, tmp_path: Path) -> None:
    def error(*words: str) -> str:
        run = magy("worktrees", *words)
        assert run.returncode == 2 and "Traceback" not in run.stderr
        return run.stderr

    assert "--force needs the names of worktrees" in error("prune", "--force")
    assert "There is no worktree 'x' here. There are none." in error("prune", "x")
    (project / ".git").rename(tmp_path / "away")
    run = magy("worktrees")
    assert run.returncode == 1 and "is not in a git repository" in run.stderr


def test_a_person_spawns_an_agent_in_a_worktree(project: Path, magy: Magy) -> None:
    settings = magy.state.parent / "magy.toml"
    settings.write_text(settings.read_text().replace('edit = "ask"', 'edit = "allow"'))
    made = json.dumps({"path": "made.txt", "content": "made\n"})
    magy.script(
        "prompt: hello\ntext: Hello.\n\n"
        f"prompt: make it\ncall: write_file {made}\n---\ntext: Made.\n"
    )
    magy("run", "hello")
    (session,) = [one["sessionId"] for one in magy.sessions()]
    done = magy("agents", "spawn", session, "make it", "--agent", "general", "--worktree")
    assert "Merged into main as " in done.stdout + done.stderr, done
    assert (project / "made.txt").read_text() == "made\n"
    assert not (project / ".worktrees").exists()
