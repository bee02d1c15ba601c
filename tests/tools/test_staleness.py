"""What others changed since the model read a file: merged, or refused with both versions."""

from __future__ import annotations

import pytest

from magy_server.core.errors import ToolError
from magy_server.tools.files.edit_tools import edit_file, write_file
from magy_server.tools.files.read_tool import read_file

from .conftest import FakeEditor, Workspace

TEXT = "".join(f"line {n}\n" for n in range(1, 21))


async def test_a_change_elsewhere_is_merged_and_told(workspace: Workspace) -> None:
    file = workspace.file("a.txt", TEXT)
    await workspace.run(read_file, path="a.txt")
    file.write_text(TEXT.replace("line 2\n", "line two\nmore\n"))
    result = await workspace.run(edit_file, path="a.txt", old_text="line 15", new_text="LINE 15")
    assert file.read_text() == TEXT.replace("line 2\n", "line two\nmore\n").replace(
        "line 15", "LINE 15"
    )
    assert "had changed since you read it" in result.for_model
    assert "-line 2\n+line two\n+more\n" in result.for_model


@pytest.mark.req("G013")
async def test_the_same_line_changed_meanwhile_is_a_conflict_that_shows_both(
    workspace: Workspace,
) -> None:
    file = workspace.file("a.txt", TEXT)
    await workspace.run(read_file, path="a.txt")
    theirs = TEXT.replace("line 15\n", "line 15, by the user\n")
    file.write_text(theirs)
    with pytest.raises(ToolError) as caught:
        await workspace.run(
            edit_file, path="a.txt", old_text="line 14\nline 15\n", new_text="line 14\nLINE 15\n"
        )
    assert file.read_text() == theirs
    assert "line 15, by the user" in caught.value.message
    assert "The user changed these same lines after they were read" in caught.value.message


async def test_a_block_that_is_gone_is_not_replaced_by_its_twin(workspace: Workspace) -> None:
    twin = "def area(self):\n    return self.width * self.height\n"
    before = f"class A:\n{twin}\nclass B:\n{twin}"
    file = workspace.file("a.py", before)
    await workspace.run(read_file, path="a.py")
    after = f"class B:\n{twin}"
    file.write_text(after)
    with pytest.raises(ToolError):
        await workspace.run(
            edit_file,
            path="a.py",
            old_text=f"class A:\n{twin}",
            new_text="class A:\ndef area(self):\n    return 0\n",
        )
    assert file.read_text() == after


async def test_a_line_in_the_context_that_changed_does_not_stop_an_edit(
    workspace: Workspace, editor: FakeEditor
) -> None:
    file = workspace.file("a.txt", TEXT)
    editor.open(file)
    await workspace.run(read_file, path="a.txt")
    editor.type(str(file), TEXT.replace("line 14\n", "line 14!\n"))
    await workspace.run(
        edit_file,
        path="a.txt",
        old_text="line 14\nline 15\nline 16\n",
        new_text="line 14\nline 15\nLINE 16\n",
    )
    text = editor.buffers[str(file)].text
    assert text == TEXT.replace("line 14\n", "line 14!\n").replace("line 16", "LINE 16")


async def test_a_touched_file_without_another_text_is_no_matter(workspace: Workspace) -> None:
    file = workspace.file("a.txt", TEXT)
    await workspace.run(read_file, path="a.txt")
    file.write_text("something else")
    file.write_text(TEXT)
    result = await workspace.run(edit_file, path="a.txt", old_text="line 15", new_text="LINE 15")
    assert "since you read it" not in result.for_model


async def test_a_text_that_only_the_newer_file_has_is_found_there(workspace: Workspace) -> None:
    file = workspace.file("a.txt", TEXT)
    await workspace.run(read_file, path="a.txt")
    file.write_text(TEXT + "the user told the model of this\n")
    await workspace.run(edit_file, path="a.txt", old_text="told the model of this", new_text="new")
    assert file.read_text() == TEXT + "the user new\n"


async def test_a_whole_write_keeps_what_the_user_changed_meanwhile(workspace: Workspace) -> None:
    file = workspace.file("a.txt", TEXT)
    await workspace.run(read_file, path="a.txt")
    file.write_text(TEXT.replace("line 2\n", "line two\n"))
    result = await workspace.run(
        write_file, path="a.txt", content=TEXT.replace("line 15\n", "LINE 15\n")
    )
    merged = TEXT.replace("line 2\n", "line two\n").replace("line 15\n", "LINE 15\n")
    assert file.read_text() == merged
    assert "line two" in result.for_model


async def test_a_whole_write_over_a_line_the_user_changed_is_refused(workspace: Workspace) -> None:
    file = workspace.file("a.txt", TEXT)
    await workspace.run(read_file, path="a.txt")
    theirs = TEXT.replace("line 2\n", "line two\n")
    file.write_text(theirs)
    with pytest.raises(ToolError, match="line two"):
        await workspace.run(write_file, path="a.txt", content=TEXT.replace("line 2\n", "2\n"))
    assert file.read_text() == theirs


async def test_the_text_is_known_as_it_was_read_with_its_encoding(workspace: Workspace) -> None:
    file = workspace.file("a.txt", "\ufeffzwölf\r\nboxkämpfer\r\n".encode("utf-16-le"))
    result = await workspace.run(read_file, path="a.txt", offset=2)
    (seen,) = result.seen
    assert seen.path == str(file)
    assert result.blobs[seen.hash] == file.read_bytes()


async def test_a_file_that_is_too_large_to_keep_is_read_all_the_same(workspace: Workspace) -> None:
    workspace.file("a.txt", "x" * 99 + "\n" + "y\n" * 1_500_000)
    result = await workspace.run(read_file, path="a.txt", limit=1)
    assert result.seen == ()
    assert "of 1500001;" in result.for_model
