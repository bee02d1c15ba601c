"""The rejection of a rename, interrupted: the file is at one of its two places, and what is not
decided yet is under review there."""

from __future__ import annotations

import signal
import sys
from asyncio.subprocess import create_subprocess_exec
from pathlib import Path

import pytest

from magy_server.core.errors import ToolError
from magy_server.core.ports import Found
from magy_server.core.values import FileChange, Version
from magy_server.reviews.views import Outcome, Which, Wish
from magy_server.tools.files.workspace import WorkspaceFiles

from .reviewing import Place, digest, process

OLD = "one\ntwo\nthree\n"
NEW = "one\nTWO\nthree\n"


async def moved(place: Place) -> None:
    """An agent has renamed old.py to a.py, and changed a line."""
    agent = await place.agent()
    (place.root / "old.py").unlink()
    (place.root / "a.py").write_text(NEW)
    before, after = digest(OLD.encode()), digest(NEW.encode())
    old, new = place.path("old.py"), place.path("a.py")
    await agent.changes(
        FileChange(path=new, before=None, after=after, moved_from=old),
        FileChange(path=old, before=before, after=None),
        blobs={before: OLD.encode(), after: NEW.encode()},
    )


async def rename(place: Place) -> Outcome:
    """Rejects that the file has another name, and nothing else."""
    file = await place.reviews.get(place.path("a.py"), False)
    assert [hunk.kind for hunk in file.hunks] == ["rename", "change"]
    wish = Wish("reject", Which(ids=(file.hunks[0].id,)), key="key")
    return await place.reviews.resolve(place.path("a.py"), wish, False)


def names(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir())


@pytest.mark.parametrize("when", ["append 1", "put 1", "put 2", "append 2", "append 3"])
async def test_killed_while_a_file_goes_back(tmp_path: Path, when: str) -> None:
    root, state = tmp_path.resolve() / "work", tmp_path / "state"
    root.mkdir()
    (root / "old.py").write_text(OLD)
    async with process(root, state) as place:
        await moved(place)
    child = await create_subprocess_exec(
        sys.executable, "-m", "tests.engine.dying_review", str(root), str(state), "reject", when
    )
    assert await child.wait() == -signal.SIGKILL
    async with process(root, state) as place:
        listed = await place.reviews.list(str(root))
        if when == "append 1":  # nothing was done: it is still to be decided
            assert names(root) == ["a.py"] and [one.pending for one in listed] == [2]
            await rename(place)
        assert names(root) == ["old.py"] and place.text("old.py") == NEW
        assert await place.hunks("old.py") == [("two\n", "TWO\n")]


async def stuck(
    self: WorkspaceFiles, root: str, was: Found, now: Version, data: bytes, label: str
) -> Found:
    """a.py cannot be removed, which shows only when it is tried."""
    if was.path.endswith("a.py") and now.hash is None:
        raise ToolError("a.py cannot be removed: the disk says no.")
    return await PUT(self, root, was, now, data, label)


PUT = WorkspaceFiles.put


async def test_a_file_that_cannot_go_is_at_one_place_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path.resolve() / "work"
    root.mkdir()
    (root / "old.py").write_text(OLD)
    async with process(root, tmp_path / "state") as place:
        await moved(place)
        monkeypatch.setattr(WorkspaceFiles, "put", stuck)
        with pytest.raises(ToolError, match="the disk says no"):
            await rename(place)
        assert names(root) == ["a.py"] and place.text("a.py") == NEW
        monkeypatch.undo()
        await rename(place)
        assert names(root) == ["old.py"]
