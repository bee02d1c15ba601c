"""What a program puts into the workspace opens nothing for the next one."""

from __future__ import annotations

import os

import pytest

from magy_server.core.errors import ToolError
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
