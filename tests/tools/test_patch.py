from __future__ import annotations

import os

import pytest

from magy_server.core.errors import ToolError
from magy_server.tools.files.patch_tool import apply_patch
from magy_server.tools.files.read_tool import read_file

from .conftest import FakeEditor, Workspace

ALL = """\
*** Begin Patch
*** Update File: a.py
@@ def f():
     one = 1
-    two = 3
+    two = 2
*** Add File: new/b.txt
+first
+second
*** Delete File: old.txt
*** Update File: name.py
*** Move to: renamed.py
 kept
-gone
+here
*** End Patch
"""


def files(workspace: Workspace) -> None:
    workspace.file("a.py", "def f():\n    one = 1\n    two = 3\n    three = 3\n")
    workspace.file("old.txt", "old\n")
    os.chmod(workspace.file("name.py", "kept\r\ngone\r\n"), 0o755)


async def test_one_patch_changes_creates_deletes_and_renames(workspace: Workspace) -> None:
    files(workspace)
    result = await workspace.run(apply_patch, patch=ALL)
    root = workspace.root
    assert (root / "a.py").read_text() == "def f():\n    one = 1\n    two = 2\n    three = 3\n"
    assert (root / "new/b.txt").read_text() == "first\nsecond\n"
    assert not (root / "old.txt").exists()
    assert not (root / "name.py").exists()
    assert (root / "renamed.py").read_bytes() == b"kept\r\nhere\r\n"
    assert os.stat(root / "renamed.py").st_mode & 0o111
    by_path = {os.path.relpath(c.path, root): c for c in result.changes}
    assert by_path["old.txt"].after is None
    assert by_path["new/b.txt"].before is None
    assert by_path["renamed.py"].moved_from == str(root / "name.py")
    assert by_path["renamed.py"].now == "executable"
    (evidence,) = workspace.last.evidence
    assert {c.path for c in evidence.changes} == {c.path for c in result.changes}
    for change in result.changes:
        assert all(h in result.blobs for h in (change.before, change.after) if h)


async def test_the_rules_are_asked_about_every_file_of_a_patch(workspace: Workspace) -> None:
    files(workspace)
    facts = await workspace.judge(apply_patch, patch=ALL)
    assert [r.relative for r in facts.resources] == [
        "a.py", "new/b.txt", "old.txt", "name.py", "renamed.py",
    ]  # fmt: skip
    assert all(r.kind == "write" for r in facts.resources)
    assert facts.title == "Patch a.py, new/b.txt, old.txt and 2 more"
    assert facts.preview


async def test_files_that_fit_are_changed_and_the_others_said(workspace: Workspace) -> None:
    files(workspace)
    workspace.file("new/b.txt", "is there\n")
    result = await workspace.run(apply_patch, patch=ALL)
    assert (workspace.root / "new/b.txt").read_text() == "is there\n"
    assert "two = 2" in (workspace.root / "a.py").read_text()
    assert "Do not send these again" in result.for_model
    assert "new/b.txt already exists" in result.for_model


async def test_a_patch_of_which_nothing_fits_changes_nothing(workspace: Workspace) -> None:
    with pytest.raises(ToolError, match=r"a\.py"):
        await workspace.run(apply_patch, patch=ALL.split("*** Add")[0] + "*** End Patch\n")
    assert workspace.last.evidence == []


async def test_a_hunk_that_fails_keeps_the_others_of_its_file_back(workspace: Workspace) -> None:
    file = workspace.file("a.py", "one\ntwo\nthree\n")
    patch = """\
*** Begin Patch
*** Update File: a.py
@@
-one
+1
@@
-nowhere to be found
+2
*** End Patch
"""
    with pytest.raises(ToolError) as caught:
        await workspace.run(apply_patch, patch=patch)
    assert file.read_text() == "one\ntwo\nthree\n"
    assert "Hunk 2 of 2" in caught.value.message
    assert "Hunks that fit: 1" in caught.value.message


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        ("", "Begin Patch"),
        ("*** Begin Patch\n*** End Patch\n", "changes nothing"),
        ("*** Begin Patch\n*** Frobnicate File: x\n*** End Patch\n", "Frobnicate"),
        ("*** Begin Patch\n*** Delete File: ../x\n*** End Patch\n", "outside"),
        ("*** Begin Patch\n*** Delete File: nothing\n*** End Patch\n", "nothing"),
    ],
)
async def test_a_wrong_patch_is_refused_with_what_is_wrong(
    workspace: Workspace, patch: str, said: str
) -> None:
    with pytest.raises(ToolError, match=said):
        await workspace.run(apply_patch, patch=patch)


async def test_a_rename_onto_a_file_is_refused(workspace: Workspace) -> None:
    files(workspace)
    workspace.file("renamed.py", "mine\n")
    patch = "*** Begin Patch\n*** Update File: name.py\n*** Move to: renamed.py\n*** End Patch\n"
    with pytest.raises(ToolError, match=r"renamed\.py already exists"):
        await workspace.run(apply_patch, patch=patch)
    assert (workspace.root / "renamed.py").read_text() == "mine\n"
    assert (workspace.root / "name.py").exists()


async def test_a_file_with_unsaved_changes_is_not_removed(
    workspace: Workspace, editor: FakeEditor
) -> None:
    file = workspace.file("a.py", "saved\n")
    editor.open(file, "not saved\n")
    patch = "*** Begin Patch\n*** Delete File: a.py\n*** End Patch\n"
    with pytest.raises(ToolError, match="has unsaved changes"):
        await workspace.run(apply_patch, patch=patch)
    assert file.read_text() == "saved\n"


async def test_an_interrupted_patch_says_what_was_done(workspace: Workspace) -> None:
    files(workspace)
    context = await workspace.prepare(apply_patch, patch=ALL)
    await apply_patch.run(context, patch=ALL)
    assert apply_patch.recover is not None
    (evidence,) = context.evidence
    result = await apply_patch.recover(context, evidence, {"patch": ALL})
    assert result is not None
    assert len(result.changes) == 5
    files(workspace)
    (workspace.root / "renamed.py").unlink()
    with pytest.raises(ToolError, match=r"Changed: new/b\.txt.*Not changed: a\.py"):
        await apply_patch.recover(context, evidence, {"patch": ALL})


async def test_proposed_changes_touch_nothing_and_build_on_each_other(
    workspace: Workspace,
) -> None:
    files(workspace)
    workspace.review = "propose"
    result = await workspace.run(apply_patch, patch=ALL)
    assert {c.via for c in result.changes} == {"proposed"}
    assert workspace.last.evidence == []
    assert (workspace.root / "a.py").read_text().count("two = 3") == 1
    assert (workspace.root / "old.txt").exists()
    assert not (workspace.root / "new").exists()
    again = "*** Begin Patch\n*** Update File: a.py\n-    two = 2\n+    two = 22\n*** End Patch\n"
    result = await workspace.run(apply_patch, patch=again)
    assert "Proposed a.py" in result.for_model
    shown = await workspace.run(read_file, path="a.py")
    assert "two = 22" in shown.for_model
    assert "that you proposed" in shown.for_model


def patch(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch", ""])


@pytest.mark.parametrize(
    "lines",
    [
        ("*** Add File: n", "+x", "*** Update File: n", "-x", "+y"),
        ("*** Add File: n", "+x", "*** Add File: ./n", "+y"),
        ("*** Add File: n", "+x", "*** Delete File: n"),
        ("*** Delete File: a", "*** Delete File: ./a"),
        ("*** Delete File: a", "*** Update File: a", "-one", "+1"),
        ("*** Update File: a", "-one", "+1", "*** Delete File: link"),
        ("*** Update File: a", "-one", "+1", "*** Update File: a", "*** Move to: n"),
        ("*** Update File: a", "*** Move to: n", "*** Update File: n", "-one", "+1"),
        ("*** Update File: a", "*** Move to: n", "*** Update File: b", "*** Move to: n"),
        ("*** Update File: b", "*** Move to: n", "*** Update File: a", "*** Move to: b"),
        ("*** Delete File: b", "*** Update File: a", "*** Move to: b"),
    ],
)
async def test_sections_that_depend_on_each_other_are_refused_whole(
    workspace: Workspace, lines: tuple[str, ...]
) -> None:
    workspace.file("a", "one\ntwo\n")
    workspace.file("b", "bee\n")
    (workspace.root / "sub").mkdir()
    (workspace.root / "sub/up").symlink_to("..")
    named = [line.replace("link", "sub/up/a") for line in lines]
    with pytest.raises(ToolError, match=r"several sections.*nothing was changed"):
        await workspace.run(apply_patch, patch=patch(*named))
    assert (workspace.root / "a").read_text() == "one\ntwo\n"
    assert (workspace.root / "b").read_text() == "bee\n"
    assert not (workspace.root / "n").exists()


async def test_a_file_that_is_deleted_and_added_again_is_rewritten(workspace: Workspace) -> None:
    file = workspace.file("a", "one\r\ntwo\r\n")
    result = await workspace.run(
        apply_patch, patch=patch("*** Delete File: a", "*** Add File: a", "+one", "+2")
    )
    assert file.read_bytes() == b"one\r\n2\r\n"
    assert [c.path for c in result.changes] == [str(file)]


async def test_a_second_section_may_build_on_the_first(workspace: Workspace) -> None:
    workspace.file("a", "one\ntwo\n")
    workspace.file("b", "bee\n")
    text = patch("*** Update File: a", "-one", "+1", "*** Update File: b", "-bee", "+B",
                 "*** Update File: ./a", "-1", "+11")  # fmt: skip
    await workspace.run(apply_patch, patch=text)
    assert (workspace.root / "a").read_text() == "11\ntwo\n"
    assert (workspace.root / "b").read_text() == "B\n"


@pytest.mark.parametrize("mode", [0o600, 0o700, 0o755])
async def test_a_file_that_is_renamed_keeps_its_mode(workspace: Workspace, mode: int) -> None:
    os.chmod(workspace.file("a", "secret\n"), mode)
    await workspace.run(apply_patch, patch=patch("*** Update File: a", "*** Move to: b"))
    assert os.stat(workspace.root / "b").st_mode & 0o777 == mode


async def test_line_ends_that_the_editor_hides_move_along(
    workspace: Workspace, editor: FakeEditor
) -> None:
    editor.open(workspace.file("a", "one\r\ntwo\r\n"), "one\ntwo\n")
    text = patch("*** Update File: a", "*** Move to: b", "-one", "+1")
    await workspace.run(apply_patch, patch=text)
    assert (workspace.root / "b").read_bytes() == b"1\r\ntwo\r\n"


@pytest.mark.parametrize(
    "lines", [("*** Delete File: link",), ("*** Update File: link", "*** Move to: b")]
)
async def test_the_file_behind_a_link_does_not_go_in_its_place(
    workspace: Workspace, lines: tuple[str, ...]
) -> None:
    file = workspace.file("a", "one\n")
    (workspace.root / "link").symlink_to("a")
    with pytest.raises(ToolError, match="symbolic link to a"):
        await workspace.run(apply_patch, patch=patch(*lines))
    assert file.read_text() == "one\n"


async def test_a_file_that_fails_on_the_way_says_what_is_done_and_what_is_left(
    workspace: Workspace,
) -> None:
    for name in "abc":
        workspace.file(name, "one\n")
    text = patch("*** Update File: a", "-one", "+1", "*** Delete File: b",
                 "*** Update File: c", "-one", "+1")  # fmt: skip
    context = await workspace.prepare(apply_patch, patch=text)
    context.on_started = lambda: (workspace.root / "b").write_text("changed just now\n")
    with pytest.raises(ToolError) as caught:
        await apply_patch.run(context, patch=text)
    assert (workspace.root / "b").read_text() == "changed just now\n"
    assert (workspace.root / "c").read_text() == "one\n"
    assert caught.value.message.startswith("Done before that: a; do not send these again. b was")
    assert caught.value.message.endswith("Not tried after that: c.")


async def test_a_file_that_is_only_proposed_can_be_read(workspace: Workspace) -> None:
    workspace.review = "propose"
    await workspace.run(apply_patch, patch=patch("*** Add File: new/n.py", "+first"))
    shown = await workspace.run(read_file, path="new/n.py")
    assert shown.for_model.lstrip().startswith("1\tfirst")
    assert not (workspace.root / "new").exists()


async def test_a_removal_that_is_only_proposed_is_not_said_to_be_a_change(
    workspace: Workspace,
) -> None:
    file = workspace.file("a", "one\n")
    workspace.review = "propose"
    result = await workspace.run(apply_patch, patch=patch("*** Delete File: a"))
    assert "Proposed to remove a." in result.for_model
    assert file.exists()


async def test_a_formatter_that_takes_a_change_back_is_told(
    workspace: Workspace, editor: FakeEditor
) -> None:
    editor.open(workspace.file("a", "one\n"))
    editor.on_save = lambda text: "one\n"
    result = await workspace.run(apply_patch, patch=patch("*** Update File: a", "-one", "+1"))
    assert result.changes == ()
    assert "a has the same text as before" in result.for_model
    assert "On saving, the editor changed the file further" in result.for_model
