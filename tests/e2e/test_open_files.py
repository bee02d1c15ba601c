"""Files that are open in the editor while they come and go on disk: whether there is one, the disk
says; what the person typed is never lost; of a move both ends are taken back, or neither."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .harness import Person, RpcError, person

TEXT = "one\ntwo\nthree\n"
NEW = TEXT.replace("two", "TWO")
PATCHES = {
    "edits": {"style": "patch"},
    "permission": {"edit": "allow", "write": "allow", "bash": "allow"},
}
END = "---\ntext: Done.\n"


def patch(*lines: str) -> str:
    text = "\n".join(["*** Begin Patch", *lines, "*** End Patch", ""])
    return f"call: apply_patch {json.dumps({'patch': text})}\n"


MOVE = patch("*** Update File: a.txt", "*** Move to: b.txt", "@@", " one", "-two", "+TWO") + END
DELETE = patch("*** Delete File: a.txt") + END
READ = f"call: read_file {json.dumps({'path': 'a.txt'})}\n"
CREATE = patch("*** Add File: n.txt", "+x", "+y") + END


def tree(root: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in root.glob("*.txt")}


def modes(root: Path) -> dict[str, int]:
    return {file.name: file.stat().st_mode & 0o777 for file in root.glob("*.txt")}


async def review(one: Person, method: str, **params: Any) -> Any:
    return await one.client.request(f"magy/review/{method}", params)


async def listed(one: Person) -> dict[str, str]:
    return {Path(file["uri"]).name: file["status"] for file in (await review(one, "list"))["files"]}


async def reject(one: Person, file: Path, key: str = "k") -> Any:
    uri = file.as_uri()
    return await review(one, "resolve", uri=uri, decision="reject", all=True, requestKey=key)


async def restore(one: Person, key: str, **params: Any) -> dict[str, tuple[str, str]]:
    about = {"conversation": False, "requestKey": key, **params}
    answer = await one.request("checkpoint/restore", **about)
    return {Path(f["path"]).name: (f["action"], f["conflict"]) for f in answer["files"]}


@pytest.mark.req("G014")
async def test_a_rename_of_an_open_file_is_undone_and_redone(root: Path, state: Path) -> None:
    a = root / "a.txt"
    a.write_text(TEXT)
    async with person(root, state, MOVE, settings=PATCHES) as one:
        one.editor.open(a)
        await one.new()
        await one.turn("Go")
        assert tree(root) == {"b.txt": NEW}
        back = await restore(one, "r1", turnId="p1")
        assert back == {"a.txt": ("rename", "")}
        assert tree(root) == {"a.txt": TEXT} and one.editor.text(a) == TEXT
        await restore(one, "r2", undoes="r1")
        assert tree(root) == {"b.txt": NEW}


async def test_a_rename_of_an_open_file_is_rejected(root: Path, state: Path) -> None:
    a = root / "a.txt"
    a.write_text(TEXT)
    async with person(root, state, MOVE, settings=PATCHES) as one:
        one.editor.open(a)
        await one.new()
        await one.turn("Go")
        await reject(one, root / "b.txt")
        assert tree(root) == {"a.txt": TEXT}
        assert await listed(one) == {}


async def test_a_removal_of_an_open_file_is_reviewed_and_undone(root: Path, state: Path) -> None:
    a = root / "a.txt"
    a.write_text(TEXT)
    a.chmod(0o600)
    async with person(root, state, DELETE, settings=PATCHES) as one:
        one.editor.open(a)
        await one.new()
        await one.turn("Go")
        assert await listed(one) == {"a.txt": "deleted"}
        assert await restore(one, "r1", turnId="p1") == {"a.txt": ("create", "")}
        assert tree(root) == {"a.txt": TEXT} and modes(root) == {"a.txt": 0o600}
        await restore(one, "r2", undoes="r1")
        assert tree(root) == {} and await listed(one) == {"a.txt": "deleted"}
        await reject(one, a)
        assert tree(root) == {"a.txt": TEXT} and modes(root) == {"a.txt": 0o600}


async def test_what_was_removed_is_known_after_a_restart(root: Path, state: Path) -> None:
    """The editor still has the text, which is on record: nothing of the person's is in it."""
    a = root / "a.txt"
    a.write_text(TEXT)
    async with person(root, state, DELETE, settings=PATCHES) as one:
        one.editor.open(a)
        await one.new()
        await one.turn("Go")
    async with person(root, state, settings=PATCHES) as one:
        one.editor.open(a, TEXT)
        await one.request("session/resume")
        assert await listed(one) == {"a.txt": "deleted"}
        assert await restore(one, "r1", turnId="p1") == {"a.txt": ("create", "")}
        assert tree(root) == {"a.txt": TEXT}


async def test_what_a_command_removed_comes_back(root: Path, state: Path) -> None:
    a = root / "a.txt"
    a.write_text(TEXT)
    git(root)
    script = f"call: bash {json.dumps({'command': 'rm a.txt'})}\n" + END
    async with person(root, state, script, settings=PATCHES) as one:
        one.editor.open(a)
        await one.new()
        await one.request("session/set_config_option", configId="bypass", value="on")
        await one.turn("Go")
        assert not a.exists() and await listed(one) == {"a.txt": "deleted"}
        assert await restore(one, "r1", turnId="p1") == {"a.txt": ("create", "")}
        assert tree(root) == {"a.txt": TEXT}


def git(root: Path) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "x"]):
        subprocess.run(["git", "-C", str(root), *words], check=True)


async def test_what_was_typed_into_a_removed_file_stays(root: Path, state: Path) -> None:
    a = root / "a.txt"
    a.write_text(TEXT)
    async with person(root, state, DELETE, settings=PATCHES) as one:
        one.editor.open(a)
        await one.new()
        await one.turn("Go")
        one.editor.type(a, 0, 0, "mine\n")
        action, conflict = (await restore(one, "r1", turnId="p1"))["a.txt"]
        assert action == "nothing" and conflict
        assert one.editor.text(a) == f"mine\n{TEXT}" and tree(root) == {}
        one.editor.close(a)
        await restore(one, "r2", turnId="p1")
        assert tree(root) == {"a.txt": TEXT}


async def undo_again(one: Person, root: Path, name: str) -> None:
    for key in ("r1", "r2"):  # what is refused puts what it found on record
        action, conflict = (await restore(one, key, turnId="p1"))["a.txt"]
        assert action == "nothing" and conflict


async def refuse_to_reject(one: Person, root: Path, name: str) -> None:
    await restore(one, "r1", turnId="p1")
    with pytest.raises(RpcError, match=r"unsaved changes|another file"):
        await reject(one, root / name)


TAKING_BACK = pytest.mark.parametrize("taken_back", [undo_again, refuse_to_reject])
Way = Callable[[Person, Path, str], Any]


@TAKING_BACK
async def test_what_was_typed_where_a_file_was_is_never_overwritten(
    root: Path, state: Path, taken_back: Way
) -> None:
    """Also when the agent has read it: that a text is on record does not make it the file's."""
    a = root / "a.txt"
    a.write_text(TEXT)
    script = f"prompt: Go\n{DELETE}prompt: Read\n{READ}{END}"
    async with person(root, state, script, settings=PATCHES) as one:
        one.editor.open(a)
        await one.new()
        await one.turn("Go")
        one.editor.type(a, 0, 0, "mine\n")
        assert await listed(one) == {"a.txt": "deleted"}
        await one.turn("Read", "p2")
        assert await listed(one) == {"a.txt": "deleted"}
        await taken_back(one, root, "a.txt")
        assert one.editor.text(a) == f"mine\n{TEXT}" and tree(root) == {}
        await review(one, "resolve", uri=a.as_uri(), decision="accept", all=True, requestKey="a")
        assert await listed(one) == {} and one.editor.text(a) == f"mine\n{TEXT}"


@TAKING_BACK
async def test_what_was_not_saved_when_a_command_removed_the_file_stays(
    root: Path, state: Path, taken_back: Way
) -> None:
    a = root / "a.txt"
    a.write_text(TEXT)
    git(root)
    script = f"{READ}---\ncall: bash {json.dumps({'command': 'rm a.txt'})}\n{END}"
    async with person(root, state, script, settings=PATCHES) as one:
        one.editor.open(a)
        one.editor.type(a, 0, 0, "mine\n")
        await one.new()
        await one.request("session/set_config_option", configId="bypass", value="on")
        await one.turn("Go")
        assert await listed(one) == {"a.txt": "deleted"}
        await taken_back(one, root, "a.txt")
        assert one.editor.text(a) == f"mine\n{TEXT}" and tree(root) == {}


@TAKING_BACK
async def test_what_was_typed_where_a_file_was_moved_away_stays(
    root: Path, state: Path, taken_back: Way
) -> None:
    a = root / "a.txt"
    a.write_text(TEXT)
    async with person(root, state, MOVE, settings=PATCHES) as one:
        one.editor.open(a)
        await one.new()
        await one.turn("Go")
        one.editor.type(a, 0, 0, "mine\n")
        await taken_back(one, root, "b.txt")
        assert one.editor.text(a) == f"mine\n{TEXT}" and tree(root) == {"b.txt": NEW}


@pytest.mark.parametrize("way", ["undo", "reject"])
@pytest.mark.parametrize("gone", [("*** Delete File: a.txt",), ("*** Move to: b.txt",)])
async def test_a_file_edited_and_then_removed_comes_back_after_a_restart(
    root: Path, state: Path, way: str, gone: tuple[str, ...]
) -> None:
    """The editor shows what it held last, which is neither what is accepted nor what comes back."""
    a = root / "a.txt"
    a.write_text(TEXT)
    update = "*** Update File: a.txt"
    moved = "Move" in gone[0]
    more = (update, *gone, "@@", "-three", "+THREE") if moved else gone
    script = patch(update, "@@", "-two", "+TWO") + "---\n" + patch(*more) + END
    async with person(root, state, script, settings=PATCHES) as one:
        one.editor.open(a)
        await one.new()
        await one.turn("Go")
        assert one.editor.text(a) == NEW and not a.exists()
    async with person(root, state, settings=PATCHES) as one:
        one.editor.open(a, NEW)
        await one.request("session/resume")
        name = "b.txt" if moved else "a.txt"
        assert await listed(one) == {name: "renamed" if moved else "deleted"}
        if way == "undo":
            await restore(one, "r1", turnId="p1")
        else:
            await reject(one, root / name)
        assert tree(root) == {"a.txt": TEXT} and one.editor.text(a) == TEXT


async def test_a_buffer_is_left_as_it_was_when_the_disk_refuses(root: Path, state: Path) -> None:
    a = root / "d" / "a.txt"
    a.parent.mkdir()
    a.write_text(TEXT)
    write = f"call: write_file {json.dumps({'path': 'd/a.txt', 'content': NEW})}\n" + END
    script = f"prompt: Go\n{patch('*** Delete File: d/a.txt')}{END}prompt: Write\n{write}"
    async with person(root, state, script, settings=PATCHES) as one:
        one.editor.open(a)
        await one.new()
        await one.turn("Go")
        a.parent.rmdir()
        a.parent.write_text("now a file")
        await one.turn("Write", "p2")
        assert one.editor.text(a) == TEXT
        with pytest.raises(RpcError):
            await reject(one, a)
        assert (await restore(one, "r1", turnId="p1"))["a.txt"][0] == "nothing"
        assert one.editor.text(a) == TEXT and await listed(one) == {"a.txt": "deleted"}


async def test_a_new_file_that_is_open_is_undone_and_redone(root: Path, state: Path) -> None:
    n = root / "n.txt"
    async with person(root, state, CREATE, settings=PATCHES) as one:
        await one.new()
        await one.turn("Go")
        one.editor.open(n)
        assert await restore(one, "r1", turnId="p1") == {"n.txt": ("remove", "")}
        assert tree(root) == {} and await listed(one) == {}
        assert await restore(one, "r2", undoes="r1") == {"n.txt": ("create", "")}
        assert tree(root) == {"n.txt": "x\ny\n"}


async def test_a_rejected_new_file_that_is_open_comes_back(root: Path, state: Path) -> None:
    n = root / "n.txt"
    async with person(root, state, CREATE, settings=PATCHES) as one:
        await one.new()
        await one.turn("Go")
        one.editor.open(n)
        done = await reject(one, n)
        assert tree(root) == {} and await listed(one) == {}
        await review(one, "undo", uri=n.as_uri(), decisionId=done["decisionId"], requestKey="u")
        assert tree(root) == {"n.txt": "x\ny\n"} and await listed(one) == {"n.txt": "created"}


async def test_a_removed_file_that_is_open_can_be_made_anew(root: Path, state: Path) -> None:
    """On disk, and in the buffer."""
    a = root / "a.txt"
    a.write_text(TEXT)
    again = patch("*** Delete File: a.txt") + "---\n"
    again += patch("*** Add File: a.txt", "+other") + END
    async with person(root, state, again, settings=PATCHES) as one:
        one.editor.open(a)
        await one.new()
        await one.turn("Go")
        assert tree(root) == {"a.txt": "other\n"} and one.editor.text(a) == "other\n"
        await restore(one, "r1", turnId="p1")
        assert tree(root) == {"a.txt": TEXT} and one.editor.text(a) == TEXT


async def test_a_buffer_that_was_never_saved_is_edited_and_undone(root: Path, state: Path) -> None:
    n = root / "a.txt"
    change = patch("*** Update File: a.txt", "@@", " one", "-two", "+TWO") + END
    async with person(root, state, change, settings=PATCHES) as one:
        one.editor.open(n, TEXT)
        await one.new()
        await one.turn("Go")
        assert one.editor.text(n) == NEW
        await restore(one, "r1", turnId="p1")
        assert one.editor.text(n) == TEXT
        await restore(one, "r2", undoes="r1")
        assert one.editor.text(n) == NEW and tree(root) == {}


async def refuse_reject(one: Person, root: Path) -> None:
    with pytest.raises(RpcError, match="unsaved changes"):
        await reject(one, root / "b.txt")


async def refuse_undo(one: Person, root: Path) -> None:
    left = await restore(one, "r1", turnId="p1")
    assert set(left) == {"a.txt", "b.txt"}
    for action, conflict in left.values():
        assert action == "nothing" and "unsaved changes" in conflict


@pytest.mark.parametrize("refused", [refuse_reject, refuse_undo])
async def test_a_move_whose_file_cannot_go_is_left_whole(
    root: Path, state: Path, refused: Callable[[Person, Path], Any]
) -> None:
    """And taken back whole, once it can go."""
    (root / "a.txt").write_text(TEXT)
    b = root / "b.txt"
    async with person(root, state, MOVE, settings=PATCHES) as one:
        await one.new()
        await one.turn("Go")
        one.editor.open(b)
        one.editor.type(b, 0, 0, "mine\n")
        await refused(one, root)
        assert tree(root) == {"b.txt": NEW} and one.editor.text(b) == f"mine\n{NEW}"
        assert await listed(one) == {"b.txt": "renamed"}
        one.editor.close(b)
        await restore(one, "r2", turnId="p1")
        assert tree(root) == {"a.txt": TEXT}
        await restore(one, "r3", undoes="r2")
        assert tree(root) == {"b.txt": NEW}


@pytest.mark.parametrize("way", ["undo", "reject"])
async def test_a_move_keeps_the_mode(root: Path, state: Path, way: str) -> None:
    a = root / "a.txt"
    a.write_text(TEXT)
    a.chmod(0o600)
    async with person(root, state, MOVE, settings=PATCHES) as one:
        await one.new()
        await one.turn("Go")
        assert modes(root) == {"b.txt": 0o600}
        if way == "undo":
            await restore(one, "r1", turnId="p1")
        else:
            await reject(one, root / "b.txt")
        assert modes(root) == {"a.txt": 0o600}


@pytest.mark.parametrize("before", [b"\x00\x01\xff", TEXT.encode()])
async def test_what_is_shown_of_a_file_that_is_no_text_does_not_count(
    root: Path, state: Path, before: bytes
) -> None:
    """It was none before, or is none any more; the person's bytes come back whole, and go again."""
    a = root / "a.txt"
    a.write_bytes(before)
    git(root)
    command = {"command": "head -c 4 /dev/zero > a.txt"}
    script = f"call: bash {json.dumps(command)}\n{END}"
    async with person(root, state, script, settings=PATCHES) as one:
        one.editor.open(a, before.decode("utf-8", "replace"))
        await one.new()
        await one.request("session/set_config_option", configId="bypass", value="on")
        await one.turn("Go")
        assert await listed(one) == {"a.txt": "modified"}
        done = await reject(one, a)
        assert a.read_bytes() == before
        await review(one, "undo", decisionId=done["decisionId"], uri=a.as_uri(), requestKey="u")
        assert a.read_bytes() == bytes(4)
        assert (await restore(one, "r1", turnId="p1")) == {"a.txt": ("change", "")}
        assert a.read_bytes() == before
