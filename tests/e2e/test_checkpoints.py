"""Undo and redo of turns in an editor: through open buffers, with a person who goes on typing."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from .harness import SESSION, Person, RpcError, person

SCRIPT = """
prompt: politely
call: edit_file {"path": "app.py", "old_text": "'hello'", "new_text": "'good day'"}
---
text: Now it is polite.
prompt: file
call: write_file {"path": "more.py", "content": "MORE = 1\\n"}
---
text: There is another file.
prompt: wait
call: bash {"command": "sleep 600", "timeout": 600}
prompt: and now
text: You see me.
"""
START = "def greet():\n    return 'hello'\n"


async def begin(one: Person) -> None:
    await one.new()
    await one.request("session/set_config_option", configId="bypass", value="on")


def found(answer: dict[str, Any]) -> dict[str, str]:
    return {Path(file["path"]).name: file["action"] for file in answer["files"]}


@pytest.mark.req("G014")
async def test_undo_and_redo_go_through_the_open_buffer(root: Path, state: Path) -> None:
    async with person(root, state, SCRIPT) as one:
        await begin(one)
        app = root / "app.py"
        one.editor.open(app)
        await one.turn("Say it politely", "p1")
        await one.turn("Make a file", "p2")
        one.editor.type(app, 0, 0, "# mine\n")
        preview = await one.request("checkpoint/preview", turnId="p1")
        assert found(preview) == {"app.py": "change", "more.py": "remove"}
        assert (
            preview["turns"] == ["p1", "p2"]
            and "+    return 'hello'" in preview["files"][0]["diff"]
        )
        assert "good day" in one.editor.text(app)
        done = await one.request("checkpoint/restore", turnId="p1", requestKey="r1")
        assert done["prompt"] == "Say it politely" and found(done) == found(preview)
        assert one.editor.text(app) == "# mine\n" + START
        assert not (root / "more.py").exists()
        told = await one.update("_magy_restored")
        assert (told["turnId"], told["conversation"], told["undoes"]) == ("p1", True, None)
        one.editor.type(app, len(one.editor.text(app)), len(one.editor.text(app)), "# end\n")
        await one.request("checkpoint/restore", undoes="r1", requestKey="r2")
        polite = START.replace("hello", "good day")
        assert one.editor.text(app) == f"# mine\n{polite}# end\n"
        assert (root / "more.py").read_text() == "MORE = 1\n"


@pytest.mark.req("G014")
async def test_lines_that_the_person_changed_are_a_conflict(root: Path, state: Path) -> None:
    async with person(root, state, SCRIPT) as one:
        await begin(one)
        app = root / "app.py"
        one.editor.open(app)
        await one.turn("Say it politely", "p1")
        text = one.editor.text(app)
        at = text.index("good day")
        one.editor.type(app, at, at + len("good day"), "servus")
        done = await one.request("checkpoint/restore", turnId="p1", requestKey="r1")
        assert "same lines" in done["files"][0]["conflict"]
        assert "servus" in one.editor.text(app)


async def test_the_model_is_told_of_files_and_forgets_conversations(
    root: Path, state: Path
) -> None:
    async with person(root, state, SCRIPT) as one:
        await begin(one)
        await one.turn("Say it politely", "p1")
        await one.turn("Make a file", "p2")
        await one.request("checkpoint/restore", turnId="p1", requestKey="r1", conversation=False)
        assert (root / "app.py").read_text() == START
        await one.turn("and now?", "p3")
        await one.request("checkpoint/restore", turnId="p2", requestKey="r2", files=False)
        await one.turn("and now!", "p4")
    env = {"MAGY_STATE_DIR": str(state), "MAGY_CONFIG_DIR": str(state)}
    replay = subprocess.run([sys.executable, "-m", "magy_server", "replay", SESSION], env=env,
                            capture_output=True, text=True, check=True)  # fmt: skip
    requests = [json.loads(line)["request"]["messages"] for line in replay.stdout.splitlines()]
    told, forgot = json.dumps(requests[-2]), json.dumps(requests[-1])
    assert "The user undid your changes to these files: app.py, more.py." in told
    assert "Make a file" in told and "and now?" in told
    assert "Make a file" not in forgot and "Say it politely" in forgot and "and now!" in forgot


async def test_a_running_turn_is_cancelled_first(root: Path, state: Path) -> None:
    async with person(root, state, SCRIPT) as one:
        await begin(one)
        await one.turn("Say it politely", "p1")
        await one.ask("wait", "p2")
        await one.update("_magy_queue", lambda u: "p2" in u.get("admitted", ()))
        with pytest.raises(RpcError, match="cancel it first"):
            await one.request("checkpoint/preview", turnId="p1")
        with pytest.raises(RpcError, match="cancel it first"):
            await one.request("checkpoint/restore", turnId="p1", requestKey="r1")
        await one.request("session/cancel")
        await one.update("state_update", lambda u: u.get("stopReason") == "cancelled")
        await one.request("checkpoint/restore", turnId="p1", requestKey="r1")
        assert (root / "app.py").read_text() == START


async def test_undo_after_a_restart(root: Path, state: Path) -> None:
    async with person(root, state, SCRIPT) as one:
        await begin(one)
        await one.turn("Say it politely", "p1")
    async with person(root, state, SCRIPT) as one:
        (point,) = (await one.request("checkpoint/list"))["checkpoints"]
        assert (point["turnId"], point["prompt"]) == ("p1", "Say it politely")
        await one.request("checkpoint/restore", turnId="p1", requestKey="r1")
        assert (root / "app.py").read_text() == START
    async with person(root, state, SCRIPT) as one:
        (point,) = (await one.request("checkpoint/list"))["checkpoints"]
        assert (point["state"], point["restoreId"]) == ("undone", "r1")
        await one.request("checkpoint/restore", undoes="r1", requestKey="r2")
        assert "good day" in (root / "app.py").read_text()


def patches(*turns: tuple[str, ...]) -> str:
    calls = []
    for number, lines in enumerate(turns, 1):
        text = "\n".join(["*** Begin Patch", *lines, "*** End Patch", ""])
        calls.append(f"prompt: turn {number}\ncall: apply_patch {json.dumps({'patch': text})}\n")
    return "---\ntext: Done.\n".join([*calls, ""])


EDIT = ("*** Update File: a.txt", "@@", "-two", "+TWO")
MOVE = ("*** Update File: a.txt", "*** Move to: b.txt", "@@", "-three", "+THREE")
PATCHES = {"edits": {"style": "patch"}}


async def test_a_review_goes_where_an_undo_moves_the_file(root: Path, state: Path) -> None:
    """What an earlier turn did to it is still to be decided, and is still of that turn."""
    file = root / "a.txt"
    file.write_text("one\ntwo\n\n\n\nthree\n")
    async with person(root, state, patches(EDIT, MOVE), settings=PATCHES) as one:
        await begin(one)
        await one.turn("turn 1", "p1")
        await one.turn("turn 2", "p2")
        for at, undo in ((file, {"turnId": "p2"}), (root / "b.txt", {"undoes": "r0"})):
            number = 1 if "undoes" in undo else 0
            await one.request(
                "checkpoint/restore", requestKey=f"r{number}", conversation=False, **undo
            )
            (listed,) = (await one.client.request("magy/review/list", {}))["files"]
            assert listed["uri"] == at.as_uri() and at.exists()
            review = (await one.client.request("magy/review/get", {"uri": at.as_uri()}))["file"]
            (hunk,) = [hunk for hunk in review["hunks"] if hunk["newText"] == "TWO\n"]
            assert [origin["turnId"] for origin in hunk["origins"]] == ["p1"]


@pytest.mark.parametrize(
    ("patch", "name"),
    [
        (("*** Add File: new.txt", "+NEW"), "new.txt"),
        (("*** Delete File: a.txt",), "a.txt"),
        (MOVE, "b.txt"),
    ],
)
async def test_who_shows_reviews_hears_what_an_undo_made_of_them(
    root: Path, state: Path, patch: tuple[str, ...], name: str
) -> None:
    """A file that is not open, and that comes or goes."""
    (root / "a.txt").write_text("one\ntwo\nthree\n")
    async with person(root, state, patches(patch), settings=PATCHES) as one:
        await begin(one)
        uri = (root / name).as_uri()
        for number, undo in enumerate((None, {"turnId": "p1"}, {"undoes": "r1"})):
            pending = 0 if number == 1 else 2 if patch is MOVE else 1
            old = one.client.notifications("magy/review/changed")
            if undo is None:
                await one.turn("turn 1", "p1")
            else:
                await one.request("checkpoint/restore", requestKey=f"r{number}", **undo)
            await one.client.wait_for(
                "magy/review/changed", partial(_tells, old=old, file=(uri, pending))
            )


def _tells(told: dict[str, Any], *, old: list[Any], file: tuple[str, int]) -> bool:
    """Whether what is told is none of the old, and of this file that so much is pending."""
    files = [(one["uri"], one["pending"]) for one in told["files"]]
    return all(told is not one for one in old) and file in files


async def test_why_a_rejected_rename_stays_rejected(root: Path, state: Path) -> None:
    (root / "a.txt").write_text("one\ntwo\nthree\n")
    async with person(root, state, patches(MOVE), settings=PATCHES) as one:
        await begin(one)
        await one.turn("turn 1", "p1")
        about = {"uri": (root / "b.txt").as_uri()}
        decided = {**about, "decision": "reject", "all": True, "requestKey": "k"}
        assert (await one.client.request("magy/review/resolve", decided))["applied"]
        wish = {**about, "decisionId": "k", "requestKey": "k2"}
        undone = await one.client.request("magy/review/undo", wish)
        assert not undone["applied"] and "rename that was rejected" in undone["message"]
        assert (root / "a.txt").exists() and not (root / "b.txt").exists()


async def hunks(one: Person, app: Path) -> list[tuple[str, str]]:
    file = (await one.client.request("magy/review/get", {"uri": app.as_uri()}))["file"]
    return [(hunk["oldText"], hunk["newText"]) for hunk in (file or {"hunks": []})["hunks"]]


async def test_undoing_what_was_accepted_is_no_hunk_beside_another_change(
    root: Path, state: Path
) -> None:
    async with person(root, state, SCRIPT) as one:
        await begin(one)
        app = root / "app.py"
        app.write_text(START + "\n\n\ndef part():\n    pass\n")
        one.editor.open(app)
        other = [{"old_text": "    pass", "new_text": "    leave()"}]
        about = {"uri": app.as_uri()}
        await one.client.request("magy/edit/apply", {**about, "edits": other, "requestKey": "a1"})
        await one.turn("Say it politely", "p1")
        file = (await one.client.request("magy/review/get", about))["file"]
        ids = [hunk["hunkId"] for hunk in file["hunks"] if "good day" in hunk["newText"]]
        accepted = {**about, "decision": "accept", "hunkIds": ids, "requestKey": "d1"}
        await one.client.request("magy/review/resolve", accepted)
        left = [("    pass\n", "    leave()\n")]
        assert await hunks(one, app) == left
        await one.request("checkpoint/restore", turnId="p1", requestKey="r1")
        assert "hello" in one.editor.text(app)
        assert await hunks(one, app) == left, "the person undid it: that is nobody's hunk"
