"""What a program puts into the workspace opens nothing for the next one."""

from __future__ import annotations

import os

import pytest

from magy_server.core.errors import ToolError
from magy_server.sandbox import mounts
from tests.sandbox.conftest import SECRET, Machine

pytestmark = pytest.mark.needs("bwrap")


@pytest.mark.parametrize(
    "name",
    [".bashrc", ".vscode", "magy.toml", ".magy", ".mcp.json", ".git/config", ".git/hooks",
     ".git/modules/x/config", "cache", "shown"],
)  # fmt: skip
async def test_a_link_in_the_place_of_what_is_protected_shows_nothing(
    machine: Machine, name: str
) -> None:
    project = machine.project()
    place = project.root / name
    machine.set("standard", writable=[str(place)], shown=[str(project.root / "shown")])
    if place.exists():
        os.rename(place, project.root / "was")
    place.parent.mkdir(parents=True, exist_ok=True)
    for target in (machine.home / ".ssh", machine.home / ".ssh/id_ed25519", machine.home):
        place.unlink(missing_ok=True)
        place.symlink_to(target)
        ran = await project.run(
            "cat ~/.ssh/id_ed25519; touch ~/new; cp -r ~/.ssh stolen; cat stolen/id_ed25519"
        )
        assert SECRET not in ran.said
        assert not (machine.home / "new").exists()


async def test_a_link_in_a_directory_that_is_listed_opens_nothing(machine: Machine) -> None:
    cache = machine.home / "cache"
    cache.mkdir()
    (cache / "inner").symlink_to(machine.home)
    machine.set("standard", writable=["~/cache", "~/cache/inner"])
    ran = await machine.project().run("touch ~/cache/ok; touch ~/new")
    assert (cache / "ok").exists()
    assert ran.code != 0
    assert not (machine.home / "new").exists()


async def test_a_link_in_the_place_of_the_workspace_is_refused(machine: Machine) -> None:
    machine.set("standard")
    project = machine.project()
    os.rename(project.root, machine.place / "away")
    project.root.symlink_to(machine.home)
    with pytest.raises(ToolError, match="put a link in its place"):
        await project.run("true")


async def test_a_workspace_that_is_the_home_directory(machine: Machine) -> None:
    """What is hidden and protected there cannot be moved to where it is not."""
    machine.set("standard")
    project = machine.project()
    project.root = machine.home
    ran = await project.run(
        "touch made; mv ~/.config ~/.moved; mv ~/.ssh ~/ssh; mv ~/.aws ~/aws; cat ~/ssh/* ~/aws/*;"
        "echo evil >> ~/.config/magy/magy.toml; echo evil >> ~/.bashrc"
    )
    assert (machine.home / "made").exists()
    assert SECRET not in ran.said
    assert (machine.config / "magy.toml").read_text() == ""
    assert (machine.home / ".ssh/id_ed25519").exists()
    assert (machine.home / ".bashrc").read_text() == SECRET


async def test_the_repositories_of_submodules_are_kept_whatever_their_names(
    machine: Machine,
) -> None:
    """One is named by its path, and has others in it; what it lacks is not made, either."""
    project = machine.project()
    outer = project.root / ".git/modules/third_party/lib"
    both = (outer, outer / "modules/inner")
    for one in both:
        one.mkdir(parents=True)
        (one / "HEAD").write_text("ref: refs/heads/main\n")
        (one / "config").write_text("[core]\n")
    machine.set("standard")
    evil = "mkdir hooks; for f in config hooks/x config.worktree commondir; do echo evil > $f; done"
    await project.run(f"cd {outer}; {evil}; echo new > objects; cd {both[1]}; {evil}")
    await project.run("echo evil > .git/config.worktree")
    files = [path for path in (project.root / ".git").rglob("*") if path.is_file()]
    assert not [path for path in files if path.read_bytes() == b"evil\n"]
    assert (outer / "objects").read_text() == "new\n"


async def test_more_repositories_than_are_mounted_are_read_only(machine: Machine) -> None:
    project = machine.project()
    for number in range(mounts.MOST + 1):
        one = project.root / f".git/modules/m{number}"
        one.mkdir(parents=True)
        (one / "HEAD").write_text("")
    machine.set("standard")
    ran = await project.run("echo evil > .git/modules/m3/config")
    assert "Read-only" in ran.said
