"""What a commit decides about hunks, and what it does not; that a review is of the file alone,
whichever folder it is looked at from; that what the person wrote into a hunk is theirs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from .harness import SESSION, Person, person

needs_git = pytest.mark.needs("git")
TEXT = "one\ntwo\nthree\n"
MINE = "one\nmine, not committed\ntwo\nthree\n"
END = "---\ntext: Done.\n"
PATCHES = {"edits": {"style": "patch"}}


def call(name: str, **arguments: Any) -> str:
    return f"call: {name} {json.dumps(arguments)}\n"


def patch(*lines: str) -> str:
    text = "\n".join(["*** Begin Patch", *lines, "*** End Patch", ""])
    return call("apply_patch", patch=text)


def edit(old: str, new: str, path: str = "a.txt") -> str:
    return call("edit_file", path=path, old_text=old, new_text=new)


def git(folder: Path, *words: str) -> None:
    subprocess.check_call(["git", "-C", folder, *words], stdout=subprocess.DEVNULL)


def committed(folder: Path) -> None:
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")


@pytest.fixture
def path(root: Path) -> Path:
    path = root / "a.txt"
    path.write_text(TEXT)
    return path


async def worked(one: Person, session: str = SESSION, ask: str = "Go") -> None:
    """One turn in which nothing is asked."""
    await one.new(session)
    about = {"sessionId": session, "configId": "bypass", "value": "on"}
    await one.client.request("magy/session/set_config_option", about)
    prompt = [{"type": "text", "text": ask}]
    asked = {"sessionId": session, "messageId": f"p-{session}", "prompt": prompt}
    await one.client.request("magy/session/prompt", asked)
    assert (await one.end(session))["stopReason"] == "end_turn", one.client.log


async def listed(one: Person) -> list[tuple[str, str, int]]:
    files = (await one.client.request("magy/review/list", {}))["files"]
    return [(Path(file["path"]).name, file["status"], file["pending"]) for file in files]


async def reject(one: Person, path: Path, key: str = "k") -> Any:
    about = {"uri": path.as_uri(), "decision": "reject", "all": True, "requestKey": key}
    return await one.client.request("magy/review/resolve", about)


# --- commits ------------------------------------------------------------------------------------


@needs_git
@pytest.mark.parametrize(
    "script",
    [edit("mine, not committed\n", ""), call("bash", command="git checkout -- a.txt")],
    ids=["edit", "checkout"],
)
async def test_a_commit_from_before_a_change_does_not_accept_it(
    root: Path, state: Path, path: Path, script: str
) -> None:
    committed(root)
    path.write_text(MINE)
    async with person(root, state, script + END) as one:
        await worked(one)
        assert path.read_text() == TEXT
        assert await listed(one) == [("a.txt", "modified", 1)]
        (root / "other.txt").write_text("x\n")
        git(root, "add", "other.txt")
        git(root, "commit", "-qm", "another file")
        assert await listed(one) == [("a.txt", "modified", 1)]
        await reject(one, path)
        assert path.read_text() == MINE


@needs_git
async def test_only_what_a_new_commit_has_is_accepted(root: Path, state: Path, path: Path) -> None:
    more = "four\nfive\nsix\n"
    path.write_text(TEXT + more)
    committed(root)
    path.write_text(MINE + more)
    script = edit("mine, not committed\n", "") + "---\n" + edit("five\n", "5\n") + END
    async with person(root, state, script) as one:
        await worked(one)
        assert await listed(one) == [("a.txt", "modified", 2)]
        git(root, "commit", "-qam", "second")
        about = {"uri": path.as_uri()}
        file = (await one.client.request("magy/review/get", about))["file"]
        assert [hunk["oldText"] for hunk in file["hunks"]] == ["mine, not committed\n"]


@needs_git
async def test_a_committed_deletion_is_accepted_also_after_a_restart(
    root: Path, state: Path, path: Path
) -> None:
    committed(root)
    script = patch("*** Delete File: a.txt") + END
    async with person(root, state, script, settings=PATCHES) as one:
        await worked(one)
        assert await listed(one) == [("a.txt", "deleted", 1)]
    git(root, "commit", "-qam", "gone")
    async with person(root, state) as one:
        assert await listed(one) == []


@needs_git
async def test_a_committed_executable_bit_is_accepted(root: Path, state: Path, path: Path) -> None:
    committed(root)
    async with person(root, state, call("bash", command="chmod +x a.txt") + END) as one:
        await worked(one)
        assert await listed(one) == [("a.txt", "modified", 1)]
        git(root, "commit", "-qam", "executable")
        assert await listed(one) == []


@needs_git
async def test_a_repository_in_the_project_has_commits_of_its_own(root: Path, state: Path) -> None:
    inner = root / "inner"
    inner.mkdir()
    (inner / "a.txt").write_text(TEXT)
    committed(inner)
    committed(root)
    async with person(root, state, edit("two\n", "2\n", "inner/a.txt") + END) as one:
        await worked(one)
        git(root, "commit", "-q", "--allow-empty", "-m", "not this one")
        assert await listed(one) == [("a.txt", "modified", 1)]
        git(inner, "commit", "-qam", "second")
        assert await listed(one) == []


@needs_git
async def test_of_many_hunks_a_decision_comes_back_with_their_number(
    root: Path, state: Path, path: Path
) -> None:
    lines = [f"line {n}\n" for n in range(1_800)]
    path.write_text("".join(lines))
    committed(root)
    lines[::3] = [line.upper() for line in lines[::3]]
    async with person(
        root, state, call("write_file", path="a.txt", content="".join(lines)) + END
    ) as one:
        await worked(one)
        about = {"uri": path.as_uri()}
        file = (await one.client.request("magy/review/get", about))["file"]
        assert len(file["hunks"]) == 600
        first = [file["hunks"][0]["hunkId"]]
        about |= {"decision": "reject", "requestKey": "k"}
        done = await one.client.request("magy/review/resolve", {**about, "hunkIds": first})
        assert (done["results"], done["pending"], done["file"]) == (
            [{"hunkId": first[0], "state": "rejected"}], 599, None,
        )  # fmt: skip
        lines[0] = "line 0\n"
        path.write_text("".join([*lines[:900], *(line.lower() for line in lines[900:])]))
        git(root, "commit", "-qam", "the first half")
        path.write_text("".join(lines))
        assert await listed(one) == [("a.txt", "modified", 300)]


@needs_git
async def test_a_look_in_the_middle_of_a_change_does_not_hide_what_a_commit_has(
    root: Path, state: Path, path: Path
) -> None:
    """A program that writes the file empties it first."""
    committed(root)
    async with person(root, state, edit("two\n", "2\n") + END) as one:
        await worked(one)
        written = path.read_text()
        git(root, "commit", "-qam", "second")
        path.write_text(written.replace("2\n", "2 and\n"))
        assert await listed(one) == [("a.txt", "modified", 1)]
        path.write_text(written)
        assert await listed(one) == []


# --- one file, one review -----------------------------------------------------------------------


async def test_a_file_has_one_review_in_folders_within_each_other(root: Path, state: Path) -> None:
    folder = root / "sub"
    folder.mkdir()
    path = folder / "a.txt"
    text = "".join(f"line {n}\n" for n in range(20))
    path.write_text(text)
    async with person(root, state, edit("line 3\n", "LINE 3\n", "sub/a.txt") + END) as one:
        await worked(one)
        second = edit("line 10\n", "LINE 10\n") + END
        async with person(folder, state, second) as two:
            await worked(two, "second")
            about = {"uri": path.as_uri()}
            file = (await two.client.request("magy/review/get", about))["file"]
            found = [(h["newText"], [o["sessionId"] for o in h["origins"]]) for h in file["hunks"]]
            assert found == [("LINE 3\n", [SESSION]), ("LINE 10\n", ["second"])]
            assert await listed(two) == await listed(one) == [("a.txt", "modified", 2)]
            await reject(two, path)
            assert path.read_text() == text
            assert await listed(two) == await listed(one) == []


# --- the person's own lines ---------------------------------------------------------------------


async def test_a_rejection_leaves_what_the_person_wrote_into_the_hunk(
    root: Path, state: Path, path: Path
) -> None:
    async with person(root, state, edit("two\n", "A\nB\nC\n") + END) as one:
        await worked(one)
        path.write_text("one\nA\nmine\nB\nC\nthree\n")
        assert (await reject(one, path))["message"] == ""
        assert path.read_text() == "one\ntwo\nmine\nthree\n"
        assert await listed(one) == []


# --- calls that wrote nothing -------------------------------------------------------------------


async def test_a_refused_edit_is_not_in_the_way_of_an_undo(
    root: Path, state: Path, path: Path
) -> None:
    script = edit("two\n", "2\n") + "---\n" + edit("2\n", "3\n") + END
    async with person(root, state, script) as one:
        one.editor.open(path)
        carry_out = one.client.handlers["workspace/applyEdit"]

        async def once(params: Any) -> Any:
            one.editor.refuse = "a dialog is open" if one.editor.edits else None
            return await carry_out(params)

        one.client.handlers["workspace/applyEdit"] = once
        await worked(one)
        assert one.editor.text(path) == "one\n2\nthree\n"
        one.client.handlers["workspace/applyEdit"] = carry_out
        one.editor.refuse = None
        about = {"turnId": f"p-{SESSION}", "requestKey": "r"}
        done = await one.request("checkpoint/restore", **about)
        assert [file["conflict"] for file in done["files"]] == [""]
        assert one.editor.text(path) == TEXT
