"""Words that the shell replaces by file names, from the model's call to what runs."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.e2e.harness import person


def calling(command: str) -> str:
    return f"call: bash {json.dumps({'command': command})}\n---\ntext: Done.\n"


async def test_links_that_lead_back_hold_nobody_up(root: Path, state: Path) -> None:
    """The question comes, the turn can be cancelled, and the server ends when it is told to."""
    for number in range(12):
        (root / f"l{number}").symlink_to(".")
    since = time.monotonic()
    async with person(root, state, calling("cat */*/*/*/*/*/*/*/*/*/zz")) as one:
        await one.new()
        await one.ask("Go")
        await one.question()
        assert (await one.request("session/cancel"))["cancelled"]
        await one.end()
    assert time.monotonic() - since < 30


@pytest.mark.parametrize(
    ("names", "command"),
    [
        (["in.txt", "s,x,sh p.sh,e;s,a,b,p"], "sed -n s,x,*,p in.txt"),
        (["15", "sh", "x.sh"], "nice -n * ls"),
        (["1", "5", "sh", "x.sh"], "timeout -s * 5 ls"),
    ],
)
async def test_a_name_of_a_file_is_no_command(
    root: Path, state: Path, names: list[str], command: str
) -> None:
    """Nor when the same line makes the file first."""
    (root / "app.py").unlink()
    for name in ("p.sh", "x.sh"):
        (root / name).write_text("touch ../ran\n")
    if "in.txt" in names:
        (root / "x.sh").unlink()
    else:
        (root / "p.sh").unlink()
    made = "".join(f"echo x > '{name}' && " for name in names if name != "x.sh")
    async with person(root, state, calling(made + command)) as one:
        await one.new()
        await one.ask("Go")
        await one.answer(allow=False)
        await one.end()
    assert not (root.parent / "ran").exists()
    async with person(root, state.with_name("again"), calling(made + command)) as one:
        await one.new()
        await one.ask("Go")
        await one.answer()
        await one.end()
    assert (root.parent / "ran").exists(), "it does harm, where a person lets it"
