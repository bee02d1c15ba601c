"""Files that are put while the person types: at whatever moment a key is struck, it stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from magy_server.core.errors import EditRefused
from magy_server.core.ports import Buffer
from magy_server.core.values import Version, digest
from magy_server.edits.model import TextChange
from magy_server.tools.files.commits import Commits
from magy_server.tools.files.live_file import ATTEMPTS
from magy_server.tools.files.workspace import WorkspaceFiles
from magy_server.tools.shell.processes import Processes

from .conftest import FakeEditor

TEXT = "one\ntwo\nthree\n"
NEW = "one\nTWO\nthree\n"


class Typist(FakeEditor):
    """Types when the buffer is looked at for the `nth` time, and every time an edit comes, as long
    as `keys` are left."""

    nth = -1
    keys = 0

    def buffer(self, path: str) -> Buffer | None:
        found = super().buffer(path)
        self.nth -= 1
        if self.nth == 0 and found:
            self.type(path, f"{found.text}key\n")
        return found

    async def apply(self, buffer: Buffer, changes: list[TextChange], label: str) -> Buffer:  # type: ignore[override]
        if self.keys:
            self.keys -= 1
            self.type(buffer.path, f"{self.buffers[buffer.path].text}{self.keys}\n")
        return await super().apply(buffer, changes, label)


@pytest.fixture
def editor(tmp_path: Path) -> Typist:
    file = tmp_path / "a.txt"
    file.write_text(TEXT)
    editor = Typist()
    editor.open(file)
    return editor


@pytest.fixture
def files(editor: Typist) -> WorkspaceFiles:
    return WorkspaceFiles(editor, Commits(Processes()))


def version(text: str) -> Version:
    return Version(hash=digest(text.encode()))


@pytest.mark.parametrize("nth", range(1, 12))
async def test_a_key_at_any_moment_stays(
    tmp_path: Path, editor: Typist, files: WorkspaceFiles, nth: int
) -> None:
    path = str(tmp_path / "a.txt")
    was = await files.look(str(tmp_path), path)
    editor.nth = nth
    put = await files.put(str(tmp_path), was, version(NEW), NEW.encode(), "")
    typed = editor.nth <= 0
    assert editor.buffers[path].text == NEW + ("key\n" if typed else "")
    assert put.was.data.replace(b"two", b"TWO") == put.now.data  # to take back is not to lose it
    saved = (tmp_path / "a.txt").read_text()
    assert saved == (NEW if editor.saves else TEXT) and len(editor.applied) == 1


async def test_typing_all_the_time_is_waited_out(
    tmp_path: Path, editor: Typist, files: WorkspaceFiles
) -> None:
    path = str(tmp_path / "a.txt")
    was = await files.look(str(tmp_path), path)
    editor.keys = ATTEMPTS - 1
    put = await files.put(str(tmp_path), was, version(NEW), NEW.encode(), "")
    keys = "".join(f"{n}\n" for n in reversed(range(ATTEMPTS - 1)))
    assert editor.buffers[path].text == NEW + keys and not editor.saves
    assert put.was.data.decode() == TEXT + keys and put.now.data.decode() == NEW + keys


async def test_but_not_for_ever(tmp_path: Path, editor: Typist, files: WorkspaceFiles) -> None:
    path = str(tmp_path / "a.txt")
    was = await files.look(str(tmp_path), path)
    editor.keys = 10 * ATTEMPTS
    with pytest.raises(EditRefused, match=f"each of {ATTEMPTS} attempts"):
        await files.put(str(tmp_path), was, version(NEW), NEW.encode(), "")
    assert "two\n" in editor.buffers[path].text


async def test_what_is_typed_in_the_very_lines_is_not_overwritten(
    tmp_path: Path, editor: Typist, files: WorkspaceFiles
) -> None:
    path = str(tmp_path / "a.txt")
    was = await files.look(str(tmp_path), path)
    editor.type(path, TEXT.replace("two", "two and more"))
    with pytest.raises(EditRefused, match="in the same lines"):
        await files.put(str(tmp_path), was, version(NEW), NEW.encode(), "")
    assert editor.buffers[path].text == TEXT.replace("two", "two and more")


async def test_a_file_that_is_closed_must_be_what_it_was(
    tmp_path: Path, files: WorkspaceFiles, editor: Typist
) -> None:
    file = tmp_path / "b.txt"
    file.write_text(TEXT)
    was = await files.look(str(tmp_path), str(file))
    file.write_text(TEXT + "more\n")
    with pytest.raises(EditRefused, match="changed in the meantime"):
        await files.put(str(tmp_path), was, version(NEW), NEW.encode(), "")


async def test_what_is_typed_before_the_save_is_not_saved(
    tmp_path: Path, files: WorkspaceFiles, editor: Typist
) -> None:
    path = str(tmp_path / "a.txt")
    was = await files.look(str(tmp_path), path)
    editor.typing = lambda text: f"{text}key\n"
    put = await files.put(str(tmp_path), was, version(NEW), NEW.encode(), "")
    assert editor.buffers[path].text == f"{NEW}key\n" and put.now.data.decode() == NEW
    assert not editor.saves and (tmp_path / "a.txt").read_text() == TEXT
