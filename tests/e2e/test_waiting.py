"""While the editor has not answered to an edit (some ask the person first), or the process that
made one has died: what waits for it, what does not, and to whom it belongs in the end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from .harness import Person, RpcError, person

TEXT = "".join(f"line {n}\n" for n in range(1, 21))
END = "---\ntext: Done.\n"


def edit(path: str, old: str, new: str) -> str:
    about = {"path": path, "old_text": old, "new_text": new}
    return f"call: edit_file {json.dumps(about)}\n"


def git(root: Path, *words: str) -> None:
    subprocess.check_call(["git", "-C", root, *words], stdout=subprocess.DEVNULL)


async def allowed(one: Person) -> None:
    await one.new()
    await one.request("session/set_config_option", configId="bypass", value="on")


async def review(one: Person, method: str, **params: Any) -> Any:
    return await one.client.request(f"magy/review/{method}", params)


async def listed(one: Person) -> list[tuple[str, int]]:
    files = (await review(one, "list"))["files"]
    return [(Path(file["path"]).name, file["pending"]) for file in files]


async def hunks(one: Person, path: Path) -> list[Any]:
    found: list[Any] = (await review(one, "get", uri=path.as_uri()))["file"]["hunks"]
    return found


async def asked(one: Person, count: int = 1) -> None:
    """The editor has got this many edits."""
    await one.client.wait_until(lambda: len(one.editor.edits) >= count, why=f"{count} edits")


def start(one: Person, path: Path, **which: Any) -> tuple[int, asyncio.Future[Any]]:
    """A rejection, which is not waited for."""
    about = {"uri": path.as_uri(), "decision": "reject", "requestKey": "k", **which}
    return one.client.start("magy/review/resolve", about)


@pytest.mark.needs("git")
async def test_nothing_waits_for_a_decision_that_waits(root: Path, state: Path) -> None:
    """Not even where a commit decides about another hunk of the same file."""
    path = root / "a.txt"
    path.write_text(TEXT)
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    changes = edit("a.txt", "line 3\n", "LINE 3\n") + edit("a.txt", "line 13\n", "LINE 13\n")
    script = f"prompt: Go\n{changes}{END}prompt: talk\ntext: hi\n"
    async with person(root, state, script) as one:
        one.editor.open(path)
        await allowed(one)
        await one.turn("Go")
        one.editor.hold = asyncio.Event()
        first = (await hunks(one, path))[0]["hunkId"]
        count = len(one.editor.edits)
        _, rejecting = start(one, path, hunkIds=[first])
        await asked(one, count + 1)
        git(root, "commit", "-qam", "second")
        await listed(one)
        assert (await one.turn("talk", "p2"))["stopReason"] == "end_turn"
        assert not rejecting.done()
        one.editor.hold.set()
        assert (await rejecting)["results"] == [{"hunkId": first, "state": "rejected"}]
        assert await listed(one) == []
        assert one.editor.text(path) == TEXT.replace("line 13", "LINE 13")


async def test_a_lost_answer_is_of_one_document(root: Path, state: Path) -> None:
    a, b = root / "a.txt", root / "b.txt"
    script = "".join(
        f"prompt: {one}\n{edit(f'{one}.txt', 'line 3', 'LINE 3')}{END}" for one in "ab"
    )
    for path in (a, b):
        path.write_text(TEXT)
    async with person(root, state, script) as one:
        for path in (a, b):
            one.editor.open(path)
        await allowed(one)
        await one.turn("a")
        one.editor.never_answer = True
        count = len(one.editor.edits)
        _, rejecting = start(one, a, all=True)
        await asked(one, count + 1)
        one.editor.never_answer = False
        assert (await one.turn("b", "p2"))["stopReason"] == "end_turn"
        assert "LINE 3" in one.editor.text(b) and not rejecting.done()
        one.editor.close(a)
        with pytest.raises(RpcError):
            await rejecting
        assert await listed(one) == [("a.txt", 1), ("b.txt", 1)]


async def killed_in_the_middle(root: Path, state: Path) -> None:
    """Of two files of one request the first is changed, for the second the editor is asked."""
    for name in "ab":
        (root / f"{name}.txt").write_text(TEXT)
    with contextlib.suppress(ConnectionError, ExceptionGroup):
        async with person(root, state) as one:
            one.editor.open(root / "b.txt")
            one.editor.hold = asyncio.Event()
            edits = [
                {"path": f"{name}.txt", "old_text": "line 3\n", "new_text": "LINE 3\n"}
                for name in "ab"
            ]
            about = {"edits": edits, "cwd": str(root), "requestKey": "k"}
            _, applying = one.client.start("magy/edit/apply", about)
            await asked(one)
            one.client.process.kill()
            with pytest.raises(ConnectionError):
                await applying


@pytest.mark.parametrize("where", ["above", "below", "at once"])
async def test_what_an_edit_did_that_died_is_seen_from_other_folders(
    root: Path, state: Path, where: str
) -> None:
    inner = root / "inner"
    inner.mkdir()
    died, other = (root, inner) if where == "below" else (inner, root)
    await killed_in_the_middle(died, state)
    first = died / "a.txt"
    assert "LINE 3" in first.read_text()
    async with person(other, state) as one:
        if where == "at once":  # nothing was looked at before
            change = {"path": "inner/a.txt", "old_text": "line 9\n", "new_text": "LINE 9\n"}
            about = {"edits": [change], "cwd": str(root), "requestKey": "k2"}
            assert (await one.client.request("magy/edit/apply", about))["applied"]
        await listed(one)
    async with person(died, state) as one:
        found = [hunk["oldText"] for hunk in await hunks(one, first)]
        assert found == ["line 3\n", *(["line 9\n"] if where == "at once" else [])]


async def test_what_could_not_be_brought_back_is_said(root: Path, state: Path) -> None:
    paths = [root / f"{name}.txt" for name in "ab"]
    for path in paths:
        path.write_text(TEXT)
    async with person(root, state) as one:
        for path in paths:
            one.editor.open(path)
        apply = one.client.handlers["workspace/applyEdit"]

        made: list[str] = []

        async def first_made_alone(params: Any) -> Any:
            (change,) = params["edit"]["documentChanges"]
            if not made and change["textDocument"]["uri"] == paths[0].as_uri():
                made.append(change["textDocument"]["uri"])
                return await apply(params)
            return {"applied": False, "failureReason": "no"}

        one.client.handlers["workspace/applyEdit"] = first_made_alone
        edits = [{"path": p.name, "old_text": "line 3\n", "new_text": "3\n"} for p in paths]
        about = {"edits": edits, "cwd": str(root), "requestKey": "k"}
        answer = await one.client.request("magy/edit/apply", about)
        assert "b.txt: no. These files could not be restored" in answer["message"]
        assert await listed(one) == [("a.txt", 1)]


@pytest.mark.parametrize("yes", [True, False])
async def test_an_edit_that_is_made_after_its_turn_was_stopped(
    root: Path, state: Path, yes: bool
) -> None:
    """The editor asks the person, who stops the turn, and only then answers."""
    a, b = root / "a.txt", root / "b.txt"
    for path in (a, b):
        path.write_text(TEXT)
    changes = edit("a.txt", "line 3\n", "LINE 3\n")
    script = f"prompt: Go\n{changes}{END}prompt: More\n{edit('b.txt', 'line 3', 'LINE 3')}{END}"
    async with person(root, state, script) as one:
        one.editor.open(a)
        await allowed(one)
        one.editor.hold = asyncio.Event()
        apply = one.client.handlers["workspace/applyEdit"]

        async def asks(params: Any) -> Any:
            if yes:
                return await apply(params)
            one.editor.edits.append(params)
            await one.editor.hold.wait()
            return {"applied": False, "failureReason": "The person said no."}

        one.client.handlers["workspace/applyEdit"] = asks
        await one.ask("Go")
        await asked(one)
        await one.request("session/cancel")
        assert (await one.end())["stopReason"] == "cancelled"
        assert await listed(one) == []
        one.editor.hold.set()
        if not yes:
            await one.turn("More", "p2")
            assert await listed(one) == [("b.txt", 1)] and one.editor.text(a) == TEXT
            return
        while await listed(one) != [("a.txt", 1)]:
            await asyncio.sleep(0.02)
        assert (await hunks(one, a))[0]["origins"][0]["turnId"] == "p1"
        await one.request("checkpoint/restore", turnId="p1", conversation=False, requestKey="u")
        assert one.editor.text(a) == TEXT and await listed(one) == []
        told = (await one.turn("More", "p2"))["stopReason"]
        assert told == "end_turn" and "LINE 3" in b.read_text()
