"""The edit engine as a request (`magy/edit/*`), and checkpoints through the wire."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .harness import Person, RpcError, person
from .test_review import TEXT, TWO, get, path, review, worked

__all__ = ["path"]

BLOCK = """app.py
<<<<<<< SEARCH
line 3
=======
LINE 3
>>>>>>> REPLACE
"""
PATCH = """--- a/app.py
+++ b/app.py
@@ -2,3 +2,3 @@
 line 2
-line 3
+LINE 3
 line 4
--- a/b.py
+++ b/b.py
@@
-line 5
+LINE 5
"""


async def edit(one: Person, verb: str, **params: Any) -> Any:
    if verb == "apply":
        params = {"requestKey": "k1", **params}
    return await one.client.request(f"magy/edit/{verb}", params)


async def test_a_preview_changes_nothing(root: Path, state: Path, path: Path) -> None:
    async with person(root, state) as one:
        one.editor.open(path, "# unsaved\n" + TEXT)
        found = await edit(one, "preview", text=BLOCK)
        assert found["applied"] is False and found["failures"] == []
        (file,) = found["files"]
        assert (file["path"], file["op"], file["added"], file["removed"]) == (
            "app.py", "update", 1, 1,
        )  # fmt: skip
        assert " # unsaved\n" in file["diff"] and "-line 3\n+LINE 3\n" in file["diff"]
        assert one.editor.edits == [] and path.read_text() == TEXT
        assert (await review(one, "list"))["files"] == []


@pytest.mark.req("F004")
async def test_an_edit_of_live_buffers_is_under_review(root: Path, state: Path, path: Path) -> None:
    other = root / "b.py"
    other.write_bytes(TEXT.replace("\n", "\r\n").encode())
    async with person(root, state) as one:
        one.editor.open(path, "# unsaved\n" + TEXT)
        done = await edit(one, "apply", text=PATCH, label="From a script")
        assert done["applied"] is True, done
        assert one.editor.text(path) == "# unsaved\n" + TEXT.replace("line 3", "LINE 3")
        assert one.editor.edits[0]["label"] == "From a script"
        after = TEXT.replace("line 5", "LINE 5").replace("\n", "\r\n")
        assert other.read_bytes() == after.encode()
        again = await edit(one, "apply", text=PATCH, label="From a script")
        assert again == done and len(one.editor.edits) == 1
        entries = (await review(one, "list"))["files"]
        assert [entry["pending"] for entry in entries] == [1, 1]
        (hunk,) = (await get(one, path))["hunks"]
        assert (hunk["origins"][0]["agent"], hunk["origins"][0]["sessionId"]) == ("test", "")
        params = {"uri": path.as_uri(), "decision": "reject", "all": True, "requestKey": "k2"}
        await review(one, "resolve", **params)
        assert one.editor.text(path) == "# unsaved\n" + TEXT


async def test_all_files_or_none(root: Path, state: Path, path: Path) -> None:
    async with person(root, state) as one:
        found = await edit(one, "apply", text=PATCH)
        assert found["applied"] is False
        (failure,) = found["failures"]
        assert (failure["path"], failure["code"]) == ("b.py", "unknown_file")
        assert [file["path"] for file in found["files"]] == ["app.py"]
        assert path.read_text() == TEXT
        (root / "b.py").write_text(TEXT)
        assert (await edit(one, "apply", text=PATCH))["applied"] is True  # under the same key


async def test_what_was_seen_is_rebased(root: Path, state: Path, path: Path) -> None:
    async with person(root, state) as one:
        one.editor.open(path, TEXT.replace("line 4\n", "typed\n"))
        edits = [{"old_text": "line 3\n", "new_text": "LINE 3\n"}]
        about = {"uri": path.as_uri(), "edits": edits, "seen": TEXT}
        assert (await edit(one, "apply", **about))["applied"] is True
        assert "LINE 3\ntyped\n" in one.editor.text(path)
        conflict = [{"old_text": "line 4\n", "new_text": "LINE 4\n"}]
        found = await edit(one, "preview", **about | {"edits": conflict})
        assert [failure["code"] for failure in found["failures"]] == ["conflict"]
        assert "typed" in found["failures"][0]["message"]


async def test_files_are_made_removed_and_renamed(root: Path, state: Path, path: Path) -> None:
    (root / "old.py").write_text("one\n")
    patch = (
        "*** Begin Patch\n*** Add File: sub/new.py\n+fresh\n*** Delete File: app.py\n"
        "*** Update File: old.py\n*** Move to: moved.py\n@@\n-one\n+two\n*** End Patch\n"
    )
    async with person(root, state) as one:
        done = await edit(one, "apply", text=patch)
        assert done["applied"] is True, done
        assert (root / "sub/new.py").read_text() == "fresh\n"
        assert not path.exists() and not (root / "old.py").exists()
        assert (root / "moved.py").read_text() == "two\n"
        entries = {Path(e["path"]).name: e["status"] for e in (await review(one, "list"))["files"]}
        assert entries["new.py"] == "created" and entries["app.py"] == "deleted"


def patch(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch", ""])


MOVED = ("*** Update File: old.py", "*** Move to: new.py", "@@", "-one", "+two")


async def test_what_stops_half_way_is_brought_back(root: Path, state: Path, path: Path) -> None:
    opened, file = root / "open.py", root / "file"
    for one_path in (root / "old.py", opened, file):
        one_path.write_text("one\n")
    before = {one.name: one.read_text() for one in root.iterdir()}
    text = patch(
        "*** Delete File: app.py",
        "*** Update File: open.py", "@@", "-one", "+two",
        "*** Add File: fresh.py", "+fresh",
        "*** Update File: old.py", "*** Move to: file/new.py", "@@", "-one", "+two",
    )  # fmt: skip
    async with person(root, state) as one:
        one.editor.open(opened)
        done = await edit(one, "apply", text=text)
        assert done["applied"] is False and done["message"] == "", done
        (failure,) = done["failures"]
        assert (failure["path"], failure["code"]) == ("file/new.py", "failed")
        assert "file is a file" in failure["message"]
        assert {one.name: one.read_text() for one in root.iterdir()} == before
        assert one.editor.text(opened) == "one\n"
        assert (await review(one, "list"))["files"] == []
        file.unlink()
        assert (await edit(one, "apply", text=text))["applied"] is True  # under the same key
        assert (root / "file/new.py").read_text() == "two\n" and not path.exists()


async def test_a_text_that_an_encoding_cannot_hold_changes_no_file(
    root: Path, state: Path, path: Path
) -> None:
    (root / "b.py").write_bytes("caf\xe9\nline 5\n".encode("cp1252"))
    async with person(root, state) as one:
        text = PATCH.replace("+LINE 5", "+\u65e5")
        for verb in ("preview", "apply"):
            done = await edit(one, verb, text=text)
            assert done["applied"] is False
            (failure,) = done["failures"]
            assert (failure["path"], failure["code"]) == ("b.py", "failed")
            assert "cp1252" in failure["message"]
        assert path.read_text() == TEXT


async def test_a_repeated_request_is_known_after_a_restart(root: Path, state: Path) -> None:
    file = root / "a.txt"
    file.write_text("one\n")
    text = patch("*** Update File: a.txt", "@@", " one", "+more")
    async with person(root, state) as one:
        done = await edit(one, "apply", text=text)
        assert done["applied"] is True
    async with person(root, state) as one:
        assert await edit(one, "apply", text=text) == done
        assert file.read_text() == "one\nmore\n"
        again = await edit(one, "apply", text=text, requestKey="k2")
        assert again["applied"] is False, "what is there already is not added once more"
        other = patch("*** Update File: a.txt", "@@", " more", "+and more")
        assert (await edit(one, "apply", text=other, requestKey="k3"))["applied"] is True
        assert file.read_text() == "one\nmore\nand more\n"


@pytest.mark.parametrize(
    "lines", [("*** Delete File: link.py",), tuple(x.replace("old", "link") for x in MOVED)]
)
async def test_links_are_not_removed_or_renamed(
    root: Path, state: Path, lines: tuple[str, ...]
) -> None:
    (root / "real.py").write_text("one\n")
    (root / "link.py").symlink_to("real.py")
    async with person(root, state) as one:
        done = await edit(one, "apply", text=patch(*lines))
        assert done["applied"] is False
        assert "link.py is a symbolic link to real.py" in done["failures"][0]["message"]
        assert (root / "real.py").read_text() == "one\n" and (root / "link.py").is_symlink()


async def test_what_is_no_text_or_has_more_lines_stays(root: Path, state: Path) -> None:
    (root / "raw").write_bytes(b"\0\1")
    (root / "old.py").write_text("one\ntwo\n")
    making = patch("*** Add File: raw", "+x")
    removal = "--- a/old.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n"
    async with person(root, state) as one:
        for text, code in ((making, "unknown_file"), (removal, "conflict")):
            done = await edit(one, "apply", text=text)
            assert done["applied"] is False
            assert [failure["code"] for failure in done["failures"]] == [code], done
        assert (root / "raw").read_bytes() == b"\0\1"
        assert (root / "old.py").read_text() == "one\ntwo\n"


async def test_a_file_that_moves_keeps_its_mode(root: Path, state: Path) -> None:
    (root / "old.py").write_text("one\n")
    (root / "old.py").chmod(0o600)
    async with person(root, state) as one:
        assert (await edit(one, "apply", text=patch(*MOVED)))["applied"] is True
        assert (root / "new.py").read_text() == "two\n"
        assert (root / "new.py").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"text": "nothing of the kind"}, "parse"),
        ({"text": BLOCK.replace("app.py", "../outside.py")}, "failed"),
        ({"text": BLOCK.replace("app.py", "gone.py")}, "unknown_file"),
        ({"text": BLOCK.replace("line 3", "line 99")}, "not_found"),
        ({"text": BLOCK.replace("line 3", "line 1")}, "ambiguous"),
        ({"text": PATCH, "seen": TEXT}, "failed"),
    ],
)
async def test_what_does_not_fit_is_said(
    root: Path, state: Path, path: Path, params: dict[str, Any], code: str
) -> None:
    path.write_text(TEXT + "line 1\n")
    async with person(root, state) as one:
        found = await edit(one, "apply", **params)
        assert found["applied"] is False
        assert found["failures"][0]["code"] == code, found
        assert found["failures"][0]["message"]
        assert path.read_text() == TEXT + "line 1\n"


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"text": BLOCK, "edits": []},
        {"text": BLOCK, "format": "nonsense"},
        {"edits": [{}], "format": "v4a"},
        {"text": BLOCK, "uri": "untitled:x"},
        {"text": BLOCK, "cwd": "relative"},
    ],
)
async def test_wrong_parameters(root: Path, state: Path, params: dict[str, Any]) -> None:
    async with person(root, state) as one:
        with pytest.raises(RpcError) as error:
            await edit(one, "preview", **params)
        assert error.value.code == -32602, error.value


@pytest.mark.req("G014")
async def test_a_turn_is_taken_back_and_brought_back(root: Path, state: Path, path: Path) -> None:
    async with person(root, state, TWO) as one:
        await worked(one)
        after = path.read_text()
        (point,) = (await one.request("checkpoint/list"))["checkpoints"]
        assert (point["turnId"], point["prompt"], point["state"]) == ("p1", "Go", "applied")
        path.write_text(after + "mine\n")
        shown = await one.request("checkpoint/preview", turnId="p1")
        (file,) = shown["files"]
        assert (file["action"], file["conflict"]) == ("change", "")
        assert "+line 3\n" in file["diff"] and path.read_text() == after + "mine\n"
        key = {"requestKey": "r1", "turnId": "p1"}
        back = await one.request("checkpoint/restore", **key)
        assert path.read_text() == TEXT + "mine\n" and back["prompt"] == "Go"
        assert await one.request("checkpoint/restore", **key) == back
        await one.request("checkpoint/restore", requestKey="r2", undoes=back["restoreId"])
        assert path.read_text() == after + "mine\n"
        newest = await one.request("checkpoint/preview")
        assert newest["turnId"] == "p1"
        for wrong in ({"turnId": "p1", "undoes": "r1"}, {"undoes": ""}, {"turnId": ""}):
            for verb, more in (("preview", {}), ("restore", {"requestKey": "r3"})):
                with pytest.raises(RpcError) as error:
                    await one.request(f"checkpoint/{verb}", **wrong, **more)
                assert error.value.code == -32602
        assert path.read_text() == after + "mine\n"


async def test_a_copy_says_which_turns_it_inherited(root: Path, state: Path, path: Path) -> None:
    async with person(root, state, TWO) as one:
        await worked(one)
        copy = "s-copy"
        await one.request("session/fork", newSessionId=copy)
        (own,) = (await one.request("checkpoint/list"))["checkpoints"]
        (theirs,) = (await one.request("checkpoint/list", sessionId=copy))["checkpoints"]
        assert (own["inherited"], theirs["inherited"]) == (False, True)


async def test_a_file_and_a_directory_change_places(root: Path, state: Path) -> None:
    """The removal comes first, and each of the two is rejected when there is room for it."""
    (root / "e").write_text("one\n")
    text = patch("*** Add File: e/y", "+y", "*** Delete File: e")
    async with person(root, state) as one:
        done = await edit(one, "apply", text=text)
        assert done["applied"] is True, done
        assert (root / "e/y").read_text() == "y\n"
        with pytest.raises(RpcError, match="is a directory"):
            await reject(one, root / "e")
        await reject(one, root / "e/y")
        assert (root / "e").is_dir()
        await reject(one, root / "e")
        assert (root / "e").read_text() == "one\n"
        assert (await review(one, "list"))["files"] == []


async def reject(one: Person, path: Path) -> Any:
    uri = path.as_uri()
    return await review(one, "resolve", uri=uri, decision="reject", all=True, requestKey=uri)
