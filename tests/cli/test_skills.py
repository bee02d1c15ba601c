"""`magy skills`: written, checked, explained, installed from a repository, removed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.harness import Magy


def test_a_skill_is_written_listed_and_checked(magy: Magy) -> None:
    own = magy.state.parent / "skills/my-notes"
    done = magy("skills", "new", "my-notes")
    assert done.returncode == 0 and f"written: {own}/SKILL.md" in done.stdout
    assert magy("skills", "check", str(own)).returncode == 0
    (one,) = [
        skill
        for skill in json.loads(magy("skills", "list", "--json").stdout)["skills"]
        if skill["name"] == "my-notes"
    ]
    assert one["source"] == "user"
    assert one["tools"] == ["read_file", "grep", "edit_file", "apply_patch"]
    again = magy("skills", "new", "my-notes")
    assert again.returncode == 2 and "is there already" in again.stderr
    assert "not a valid skill name" in magy("skills", "new", "My Notes").stderr
    text = (own / "SKILL.md").read_text()
    (own / "SKILL.md").write_text(text.replace("read_file grep", "raed_file mcp__a__b Grep"))
    mistyped = magy("skills", "check")
    assert f"{own}/SKILL.md: Magy has no tool raed_file. If" in mistyped.stdout
    assert mistyped.returncode == 0, "a plugin may bring it"
    (own / "SKILL.md").write_text("---\nname: my-notes\ntype: odd\n---\nx")
    for words in ((), (str(own),), (str(own.parent),)):
        wrong = magy("skills", "check", *words)
        assert wrong.returncode == 1
        assert f"{own}/SKILL.md:3: unknown type 'odd'" in wrong.stderr
    assert "unknown type" in magy("skills", "show", "my-notes").stderr


def test_a_project_has_its_own_once_it_is_trusted(magy: Magy) -> None:
    done = magy("skills", "new", "ours", "--project")
    assert "once you trust the project" in done.stdout
    assert "1 skill of this project not used until you trust it" in magy("skills", "check").stdout
    assert (magy.root / ".magy/skills/ours/SKILL.md").exists()
    assert "1 skill of this project not used until you trust it" in magy("skills").stdout
    magy("config", "trust")
    assert "ours (project)" in magy("skills").stdout


@pytest.mark.req("E082")
def test_what_a_prompt_would_bring_along_is_explained(magy: Magy) -> None:
    magy("skills", "new", "notes")
    file = magy.state.parent / "skills/notes/SKILL.md"
    capability = "capability:\n  phrases: [release notes]\n  files: ['*.md']\n"
    file.write_text(file.read_text().replace("allowed-tools", f"{capability}allowed-tools"))
    (magy.root / "NEWS.md").write_text("x")
    enough = magy("skills", "explain", "Release notes into @NEWS.md, please").stdout
    assert 'notes 1: goes along\n  "release notes", NEWS.md (*.md)' in enough
    less = magy("skills", "explain", "What are release notes?").stdout
    assert 'notes 0.5: does not go along\n  "release notes"' in less
    assert "No skill's words" in magy("skills", "explain", "xyzzy").stdout
    assert magy("skills", "explain", "@notes go").stdout.startswith("notes: you name it")


def repository(folder: Path) -> str:
    for name in ("theirs", "others"):
        place = folder / "skills" / name
        place.mkdir(parents=True)
        (place / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Of {name}.\n---\nDo.\n")
    for words in (["init", "-q"], ["add", "."],
                  ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):  # fmt: skip
        subprocess.run(["git", *words], cwd=folder, check=True)
    return f"file://{folder}"


@pytest.mark.req("G043")
def test_a_skill_of_a_repository_is_shown_installed_pinned_and_removed(
    magy: Magy, tmp_path: Path
) -> None:
    url = repository(tmp_path / "repository")
    many = magy("skills", "install", url)
    assert many.returncode == 2
    assert "skills/others, skills/theirs. Name the one" in many.stderr
    part = ("--part", "skills/theirs")
    unasked = magy("skills", "install", url, *part)
    assert unasked.returncode == 2 and "add --yes" in unasked.stderr
    done = magy("skills", "install", url, *part, "--yes")
    assert "touches nothing: while it is at work" in done.stdout
    file = magy.state.parent / "skills/theirs/SKILL.md"
    assert f"installed in {file.parent}" in done.stdout
    assert f"from    {url}/" in done.stdout and "magy-skills-" not in done.stdout
    assert "theirs (installed)" in magy("skills").stdout
    file.write_text(file.read_text() + "Also this.\n")
    changed = magy("skills", "check")
    assert changed.returncode == 1 and f"since you installed it from {url}" in changed.stderr
    assert "theirs (" not in magy("skills").stdout
    assert "removed" in magy("skills", "remove", "theirs", "--yes").stdout
    assert not file.exists()
    gone = magy("skills", "remove", "theirs", "--yes")
    assert gone.returncode == 2 and "No skill 'theirs' was installed" in gone.stderr
    nowhere = magy("skills", "install", f"{url}-not", "--yes")
    assert nowhere.returncode == 2 and "git could not get" in nowhere.stderr


def test_a_skill_at_the_top_of_a_repository_is_installed_and_no_password_kept(
    magy: Magy, tmp_path: Path
) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: theirs\ndescription: Of theirs.\n---\nDo.\n")
    done = magy("skills", "install", repository(folder), "--yes")
    assert done.returncode == 0, done.stderr
    assert "theirs (installed)" in magy("skills").stdout
    secret = magy("skills", "install", "https://bob:secret@127.0.0.1:9/x.git", "--yes")
    assert secret.returncode == 2 and "secret" not in secret.stderr
