"""Review through the wire: what an agent changed is decided about hunk by hunk, while the person
types, after a restart, and from another editor."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from .harness import SESSION, Person, RpcError, person

LINES = [f"line {n}\n" for n in range(1, 21)]
TEXT = "".join(LINES)


def edits(*pairs: tuple[str, str], path: str = "app.py") -> str:
    """A script whose model makes these replacements, one call each, in one reply."""
    calls = [{"path": path, "old_text": old, "new_text": new} for old, new in pairs]
    return "".join(f"call: edit_file {json.dumps(call)}\n" for call in calls)


TWO = edits(("line 3\n", "LINE 3\n"), ("line 10\n", "LINE 10\nand more\n")) + "---\ntext: Done.\n"


@pytest.fixture
def path(root: Path) -> Path:
    path = root / "app.py"
    path.write_text(TEXT)
    return path


async def worked(one: Person, ask: str = "Go", id: str = "p1", **options: str) -> None:
    """One turn in which nothing is asked."""
    if id == "p1":
        await one.new()
        for name, value in {"bypass": "on", **options}.items():
            await one.request("session/set_config_option", configId=name, value=value)
    assert (await one.turn(ask, id))["stopReason"] == "end_turn", one.client.log


async def review(one: Person, method: str, **params: Any) -> Any:
    return await one.client.request(f"magy/review/{method}", params)


async def get(one: Person, path: Path, **params: Any) -> Any:
    return (await review(one, "get", uri=path.as_uri(), **params))["file"]


async def decide(one: Person, path: Path, decision: str, key: str, **params: Any) -> Any:
    about = {"uri": path.as_uri(), "decision": decision, "requestKey": key}
    return await review(one, "resolve", **about, **params)


def ids(file: Any) -> list[str]:
    return [hunk["hunkId"] for hunk in file["hunks"]]


# --- deciding -----------------------------------------------------------------------------------


WORDS = (
    ("return sum(a) / len(a)", "return round(sum(a) / len(a), 2)", ["+round(", "+, 2)"]),
    ("    go(a, b)", "    go(a)", ["-, b"]),
    (
        "def go(a):\n    return sum(a)",
        "def go(a):\n    if a:\n        return sum(a, 1)",
        ["-    ", "+        ", "+, 1"],
    ),
    ("the quick brown fox", "the slow brown dog", ["-quick", "+slow", "-fox", "+dog"]),
    ("x = 'ä', 1", "x = 'ä', 'ö', 1", ["+'ö', "]),
    ("one line", "nothing like that", []),
    ("row 7", "ROW 7", ["-row", "+ROW"]),
)


@pytest.mark.parametrize(("old", "new", "marked"), WORDS)
async def test_the_words_that_differ(
    root: Path, state: Path, path: Path, old: str, new: str, marked: list[str]
) -> None:
    path.write_text(f"{TEXT}{old}\n{TEXT}")
    async with person(root, state, edits((old, new)) + "---\ntext: Done.\n") as one:
        await worked(one)
        (hunk,) = (await get(one, path))["hunks"]
    lines = {"old": hunk["oldText"].split("\n"), "new": hunk["newText"].split("\n")}
    signs = {"old": "-", "new": "+"}
    found = [
        signs[word["side"]] + lines[word["side"]][word["line"]][word["start"] : word["end"]]
        for word in hunk["words"]
    ]
    assert found == marked


@pytest.mark.req("G010", "F004")
async def test_accept_one_hunk_and_reject_another(root: Path, state: Path, path: Path) -> None:
    async with person(root, state, TWO) as one:
        one.editor.open(path)
        await worked(one)
        (entry,) = (await review(one, "list"))["files"]
        assert (entry["pending"], entry["status"], entry["mode"]) == (2, "modified", "applied")
        assert (entry["added"], entry["removed"], entry["sessions"]) == (3, 2, [SESSION])
        file = await get(one, path)
        first, second = file["hunks"]
        assert (first["kind"], first["oldText"], first["newText"]) == (
            "change", "line 3\n", "LINE 3\n",
        )  # fmt: skip
        assert second["range"] == {
            "start": {"line": 9, "character": 0}, "end": {"line": 11, "character": 0},
        }  # fmt: skip
        assert second["baseRange"]["end"] == {"line": 10, "character": 0}
        (origin,) = first["origins"]
        assert (origin["sessionId"], origin["agent"], origin["turnId"]) == (SESSION, "build", "p1")
        assert origin["toolCallId"]

        accepted = await decide(one, path, "accept", "k1", hunkIds=[first["hunkId"]])
        assert accepted["results"] == [{"hunkId": first["hunkId"], "state": "accepted"}]
        assert accepted["applied"] is False and ids(accepted["file"]) == [second["hunkId"]]
        rejected = await decide(
            one, path, "reject", "k2", hunkIds=[second["hunkId"]], reason="Leave it."
        )
        assert rejected["results"][0]["state"] == "rejected"
        assert rejected["applied"] is True and rejected["file"] is None
        assert one.editor.text(path) == TEXT.replace("line 3\n", "LINE 3\n")
        edit = one.editor.edits[-1]["edit"]["documentChanges"][0]
        assert edit["textDocument"]["version"] == one.editor.versions[path.as_uri()] - 1
        assert await get(one, path) is None
        assert (await review(one, "list"))["files"] == []


@pytest.mark.req("G010")
async def test_decisions_may_be_sent_again_and_taken_back(
    root: Path, state: Path, path: Path
) -> None:
    async with person(root, state, TWO) as one:
        one.editor.open(path)
        await worked(one)
        after = one.editor.text(path)
        both = ids(await get(one, path))
        first = await decide(one, path, "reject", "k1", hunkIds=both[:1])
        again = await decide(one, path, "reject", "k1", hunkIds=both[:1])
        assert again["decisionId"] == first["decisionId"]
        assert "line 3\n" in one.editor.text(path)
        later = await decide(one, path, "accept", "k2", all=True)
        assert later["file"] is None
        undo = {"decisionId": first["decisionId"], "requestKey": "k3"}
        back = await review(one, "undo", **undo)
        assert back["applied"] is True
        assert one.editor.text(path) == after
        assert ids(await get(one, path)) == both[:1]


async def test_another_decision_under_a_used_key_is_refused(
    root: Path, state: Path, path: Path
) -> None:
    async with person(root, state, TWO) as one:
        one.editor.open(path)
        await worked(one)
        first, second = ids(await get(one, path))
        await decide(one, path, "accept", "k1", hunkIds=[first])
        said = {"uri": path.as_uri(), "hunkId": first, "text": "Why?", "requestKey": "k1"}
        for other in (
            decide(one, path, "accept", "k1", hunkIds=[second]),
            decide(one, path, "accept", "k1", hunkIds=[first], reason="Good."),
            decide(one, path, "reject", "k1", hunkIds=[first]),
            review(one, "comment", **said),
            review(one, "undo", decisionId="k1", requestKey="k1"),
        ):
            with pytest.raises(RpcError) as used:
                await other
            assert (used.value.code, used.value.reason) == (-32602, "key_used")
        assert ids(await get(one, path)) == [second]
        back = {"decisionId": "k1", "requestKey": "k2"}
        for _ in range(2):
            assert (await review(one, "undo", **back))["decisionId"] == "k2"
        assert ids(await get(one, path)) == [first, second]


async def test_an_editor_that_says_no_is_asked_once(root: Path, state: Path, path: Path) -> None:
    """It may have asked the person."""
    async with person(root, state, TWO) as one:
        one.editor.open(path)
        await worked(one)
        after = one.editor.text(path)
        asked: list[Any] = []

        def no(params: Any) -> Any:
            asked.append(params)
            return {"applied": False, "failureReason": "The person said no."}

        one.client.handlers["workspace/applyEdit"] = no
        with pytest.raises(RpcError) as refused:
            await decide(one, path, "reject", "k1", all=True)
        assert (refused.value.code, refused.value.reason) == (-32803, "edit_refused")
        edits = [{"path": path.name, "old_text": "line 1\n", "new_text": "1\n"}]
        about = {"edits": edits, "cwd": str(root), "requestKey": "k2"}
        done = await one.client.request("magy/edit/apply", about)
        assert "The person said no." in done["failures"][0]["message"]
        about = {"sessionId": SESSION, "requestKey": "k3"}
        back = await one.client.request("magy/checkpoint/restore", about)
        assert "The person said no." in back["files"][0]["conflict"]
        assert len(asked) == 3 and one.editor.text(path) == after


async def test_part_of_a_hunk(root: Path, state: Path, path: Path) -> None:
    """Lines are of the text that was seen: with another revision, the request is stale."""
    script = edits(("line 3\nline 4\nline 5\n", "3!\n4!\n5!\n")) + "---\ntext: Done.\n"
    async with person(root, state, script) as one:
        one.editor.open(path)
        await worked(one)
        file = await get(one, path)
        assert len(file["hunks"]) == 1
        lines = {"start": 3, "end": 4}
        with pytest.raises(RpcError) as stale:
            await decide(one, path, "reject", "k1", lines=lines, revision="older")
        assert (stale.value.code, stale.value.reason) == (-32801, "stale")
        first = await decide(one, path, "reject", "k1", lines=lines, revision=file["revision"])
        assert "3!\nline 4\n5!\n" in one.editor.text(path)
        again = await decide(one, path, "reject", "k1", lines=lines, revision=file["revision"])
        assert again["decisionId"] == first["decisionId"]
        assert "3!\nline 4\n5!\n" in one.editor.text(path)


REJECTED = (
    ("a b c", "a b X Y c", {
        (2, 3): "a b Y c", (3, 4): "a b X c", (2, 4): "a b c", (0, 3): "a b Y c",
        (3, 5): "a b X c",
    }),
    ("a b c", "a X Y Z c", {
        (1, 2): "a b Y Z c", (2, 3): "a X Z c", (3, 4): "a X Y c", (1, 3): "a b Z c",
        (2, 4): "a X c", (1, 4): "a b c",
    }),
    ("a b c d e", "a X Y e", {(1, 2): "a b Y e", (2, 3): "a X c d e", (1, 3): "a b c d e"}),
    ("a b c d", "a d", {(1, 1): "a b c d", (0, 2): "a b c d"}),
    ("a b c d e", "a X c Y e", {
        (1, 2): "a b c Y e", (3, 4): "a X c d e", (1, 3): "a b c Y e", (2, 4): "a X c d e",
        (1, 4): "a b c d e",
    }),
    ("a b|", "a b X Y|", {
        (1, 2): "a b X Y|", (2, 3): "a b Y|", (3, 4): "a b X", (1, 3): "a b Y|", (2, 4): "a b",
        (1, 4): "a b|",
    }),
)  # fmt: skip
"""Lines before and after a change; and what is left, by the lines of it that are rejected. "|": no
line end."""


def lines_of(words: str) -> str:
    return "".join(f"{word}\n" for word in words.split()).replace("|\n", "")


@pytest.mark.parametrize("shown", [True, False], ids=["open", "closed"])
async def test_any_lines_of_a_hunk_go_alone(root: Path, state: Path, shown: bool) -> None:
    """Line n of a hunk has replaced line n, its last one all the rest."""
    wanted: dict[Path, tuple[dict[str, int], str]] = {}
    reads, writes = "", ""
    for number, (old, new, cases) in enumerate(REJECTED):
        for (start, end), left in cases.items():
            file = root / f"{number}-{start}-{end}.txt"
            file.write_text(lines_of(old))
            wanted[file] = {"start": start, "end": end}, lines_of(left)
            change = {"path": file.name, "content": lines_of(new)}
            reads += f"call: read_file {json.dumps({'path': file.name})}\n"
            writes += f"call: write_file {json.dumps(change)}\n"
    async with person(root, state, f"{reads}---\n{writes}---\ntext: Done.\n") as one:
        for file in wanted if shown else ():
            one.editor.open(file)
        await worked(one)
        for file, (about, left) in wanted.items():
            revision = (await get(one, file))["revision"]
            done = await decide(one, file, "reject", file.name, lines=about, revision=revision)
            assert done["results"][0]["state"] == "rejected", file.name
            assert (one.editor.text(file) if shown else file.read_text()) == left, file.name


async def test_one_of_two_new_lines(root: Path, state: Path, path: Path) -> None:
    """The other one stays under review, and the agent is told which one went."""
    new = root / "new.py"
    added = edits(("line 3\n", "line 3\nfirst\nsecond\n"))
    written = json.dumps({"path": new.name, "content": "first\nsecond\n"})
    script = f"{added}call: write_file {written}\n---\ntext: Done.\n"
    async with person(root, state, script) as one:
        one.editor.open(path)
        await worked(one)
        for file, start in ((path, 3), (new, 0)):
            about = {"start": start, "end": start + 1}
            revision = (await get(one, file))["revision"]
            done = await decide(one, file, "reject", file.name, lines=about, revision=revision)
            assert [hunk["newText"] for hunk in done["file"]["hunks"]] == ["second\n"]
        assert one.editor.text(path) == TEXT.replace("line 3\n", "line 3\nsecond\n")
        assert new.read_text() == "second\n"
        log = json.dumps(await one.request("session/events", after=0))
        assert "app.py.\\nline 4:\\n+first\\nThe" in log
        assert "new.py.\\nline 1:\\n+first\\nThe" in log


@pytest.mark.req("G010")
async def test_amend_and_comment(root: Path, state: Path, path: Path) -> None:
    async with person(root, state, TWO) as one:
        one.editor.open(path)
        await worked(one)
        first, second = ids(await get(one, path))
        said = {"uri": path.as_uri(), "hunkId": second, "text": "Why?", "requestKey": "k1"}
        noted = await review(one, "comment", **said)
        assert [c["text"] for h in noted["file"]["hunks"] for c in h["comments"]] == ["Why?"]
        amended = await decide(one, path, "amend", "k2", hunkIds=[first], text="Third line\n")
        assert amended["results"] == [{"hunkId": first, "state": "amended"}]
        assert one.editor.text(path).startswith("line 1\nline 2\nThird line\nline 4\n")


async def test_what_is_not_there_is_stale_and_never_guessed(
    root: Path, state: Path, path: Path
) -> None:
    async with person(root, state, TWO) as one:
        one.editor.open(path)
        await worked(one)
        before = one.editor.text(path)
        found = await decide(one, path, "reject", "k1", hunkIds=["000000000000"])
        assert found["results"] == [{"hunkId": "000000000000", "state": "stale"}]
        assert found["decisionId"] is None and len(found["file"]["hunks"]) == 2
        assert one.editor.text(path) == before
        for wrong in ({}, {"all": True, "hunkIds": []}, {"lines": {"start": 1, "end": 2}},
                      {"lines": {"start": 2, "end": 1}, "revision": "x"}):  # fmt: skip
            with pytest.raises(RpcError) as error:
                await decide(one, path, "accept", "k2", **wrong)
            assert error.value.code == -32602
        with pytest.raises(RpcError) as error:
            await review(one, "get", uri="untitled:x")
        assert error.value.code == -32602


# --- typing -------------------------------------------------------------------------------------


@pytest.mark.req("G011")
async def test_hunks_survive_typing_and_are_told_when_it_pauses(
    root: Path, state: Path, path: Path
) -> None:
    async with person(root, state, TWO) as one:
        one.editor.open(path)
        await worked(one)
        before = await get(one, path)
        await asyncio.sleep(0.3)
        told = len(one.client.notifications("magy/review/changed"))
        for _ in range(30):
            one.editor.type(path, 0, 0, "x")
        change = await one.client.wait_for(
            "magy/review/changed",
            lambda p: (
                p["files"][0]["pending"] == 2 and p["files"][0]["revision"] != before["revision"]
            ),
        )
        assert len(one.client.notifications("magy/review/changed")) - told < 5
        assert change["files"][0]["uri"] == path.as_uri()
        one.editor.type(path, 0, 0, "\n")
        file = await get(one, path)
        assert ids(file) == ids(before)
        assert [h["range"]["start"]["line"] for h in file["hunks"]] == [3, 10]
        assert file["docVersion"] == one.editor.versions[path.as_uri()]
        await decide(one, path, "reject", "k1", all=True, revision=before["revision"])
        assert one.editor.text(path) == "\n" + "x" * 30 + TEXT


async def test_typing_within_a_hunk_amends_it(root: Path, state: Path, path: Path) -> None:
    async with person(root, state, TWO) as one:
        one.editor.open(path)
        await worked(one)
        at = one.editor.text(path).index("LINE 3")
        one.editor.type(path, at, at + 4, "Line")
        first, second = (await get(one, path))["hunks"]
        assert (first["amended"], first["newText"]) == (True, "Line 3\n")
        assert second["amended"] is False


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
async def test_ranges_in_the_negotiated_encoding(root: Path, state: Path, encoding: str) -> None:
    """A hunk that ends with a last line without line end ends behind its last character."""
    path = root / "app.py"
    path.write_text("one\nlast 😋é")
    script = edits(("last 😋é", "last 😋ü𝄞")) + "---\ntext: Done.\n"
    capabilities = {"general": {"positionEncodings": [encoding]}}
    async with person(root, state, script, capabilities=capabilities) as one:
        one.editor.encoding = encoding
        one.editor.open(path)
        await worked(one)
        (hunk,) = (await get(one, path))["hunks"]
        start, old, new = {"utf-8": (9, 11, 15), "utf-16": (7, 8, 10), "utf-32": (6, 7, 8)}[
            encoding
        ]
        assert hunk["range"]["end"] == {"line": 1, "character": new}
        assert hunk["baseRange"]["end"] == {"line": 1, "character": old}
        assert hunk["words"] == [
            {"side": "old", "line": 0, "start": start, "end": old},
            {"side": "new", "line": 0, "start": start, "end": new},
        ]


# --- lasting ------------------------------------------------------------------------------------


@pytest.mark.req("G015")
async def test_a_review_survives_a_restart(root: Path, state: Path, path: Path) -> None:
    async with person(root, state, TWO) as one:
        await worked(one)
        before = await get(one, path)
        await decide(one, path, "accept", "k1", hunkIds=ids(before)[:1])
    path.write_text("# mine\n" + path.read_text())  # meanwhile
    async with person(root, state, TWO) as one:
        (entry,) = (await review(one, "list"))["files"]
        assert entry["pending"] == 1
        file = await get(one, path)
        assert ids(file) == ids(before)[1:]
        assert file["docVersion"] is None
        await decide(one, path, "reject", "k2", all=True)
        assert path.read_text() == "# mine\n" + TEXT.replace("line 3\n", "LINE 3\n")


@pytest.mark.req("G015")
async def test_two_editors_see_one_review(root: Path, state: Path, path: Path) -> None:
    async with person(root, state, TWO) as one, person(root, state, TWO) as other:
        assert (await review(other, "list"))["files"] == []
        await worked(one)
        await other.client.wait_for("magy/review/changed", lambda p: p["files"][0]["pending"] == 2)
        file = await get(other, path)
        assert ids(file) == ids(await get(one, path))
        await decide(other, path, "reject", "k1", all=True)
        gone = await one.client.wait_for(
            "magy/review/changed", lambda p: p["files"][0]["pending"] == 0
        )
        assert gone["files"][0]["uri"] == path.as_uri()
        assert await get(one, path) is None
        assert path.read_text() == TEXT


async def test_navigation_goes_from_file_to_file(root: Path, state: Path, path: Path) -> None:
    (root / "b.py").write_text(TEXT)
    script = TWO.replace("---", edits(("line 5\n", "LINE 5\n"), path="b.py") + "---")
    async with person(root, state, script) as one:
        await worked(one)
        seen = []
        at: dict[str, Any] = {}
        for _ in range(4):
            found = await review(one, "navigate", **at)
            line = found["range"]["start"]["line"]
            seen.append((Path(found["uri"]).name, line))
            at = {"uri": found["uri"], "line": line}
        assert sorted(seen[:3]) == [("app.py", 2), ("app.py", 9), ("b.py", 4)]
        assert seen[3] == seen[0]
        back = await review(one, "navigate", direction="previous", **at)
        assert (Path(back["uri"]).name, back["range"]["start"]["line"]) == seen[2]
        assert back["hunkId"] in ids(await get(one, Path(root, Path(back["uri"]).name)))


async def test_the_list_has_pages(root: Path, state: Path, path: Path) -> None:
    for n in range(5):
        (root / f"f{n}.py").write_text(TEXT)
    calls = "".join(edits(("line 5\n", "5\n"), path=f"f{n}.py") for n in range(5))
    async with person(root, state, calls + "---\ntext: Done.\n") as one:
        await worked(one)
        found, cursor = [], None
        while True:
            page = await review(one, "list", limit=2, cursor=cursor, sessionId=SESSION)
            found += [Path(entry["path"]).name for entry in page["files"]]
            if (cursor := page["nextCursor"]) is None:
                break
        assert found == [f"f{n}.py" for n in range(5)]
        assert (await review(one, "list", sessionId="other"))["files"] == []
        (root.parent / "other").mkdir()
        assert (await review(one, "list", cwd=str(root.parent / "other")))["files"] == []
        around = await review(one, "list", cwd=str(root.parent))
        assert [Path(entry["path"]).name for entry in around["files"]] == found


# --- the other modes ----------------------------------------------------------------------------


async def test_what_is_proposed_is_applied_when_accepted(
    root: Path, state: Path, path: Path
) -> None:
    async with person(root, state, TWO) as one:
        one.editor.open(path)
        await worked(one, review="propose")
        assert one.editor.text(path) == TEXT == path.read_text()
        assert await get(one, path) is None
        file = await get(one, path, proposed=True)
        assert file["mode"] == "proposed" and len(file["hunks"]) == 2
        one.editor.type(path, 0, 0, "# typed\n")
        done = await decide(one, path, "accept", "k1", hunkIds=ids(file)[:1], proposed=True)
        assert done["applied"] is True
        assert one.editor.text(path) == "# typed\n" + TEXT.replace("line 3\n", "LINE 3\n")
        await decide(one, path, "reject", "k2", all=True, proposed=True)
        assert await get(one, path, proposed=True) is None
        assert one.editor.text(path) == "# typed\n" + TEXT.replace("line 3\n", "LINE 3\n")


async def test_in_auto_nothing_is_under_review(root: Path, state: Path, path: Path) -> None:
    async with person(root, state, TWO) as one:
        await worked(one, review="auto")
        assert "LINE 3" in path.read_text()
        assert (await review(one, "list"))["files"] == []


async def test_a_rejected_new_file_goes(root: Path, state: Path) -> None:
    script = 'call: write_file {"path": "new.py", "content": "a\\nb\\n"}\n---\ntext: Done.\n'
    async with person(root, state, script) as one:
        await worked(one)
        path = root / "new.py"
        file = await get(one, path)
        assert file["status"] == "created"
        await decide(one, path, "reject", "k1", all=True)
        assert not path.exists()


# --- what is rejected is not there ----------------------------------------------------------------

WHOLE = "call: write_file " + json.dumps({"path": "app.py", "content": f"{TEXT}x\n"}) + "\n"
AGAIN = "".join(
    f"prompt: {ask}\n{call}---\ntext: Done.\n"
    for ask, call in (
        ("again as a whole", WHOLE),
        ("again as an edit", edits(("line 3\n", "LINE 3\n"))),
        ("a whole", WHOLE),
        ("an edit", edits(("line 3\n", "LINE 3\n"))),
    )
)


async def test_an_edit_that_was_rejected_can_be_made_again(
    root: Path, state: Path, path: Path
) -> None:
    async with person(root, state, AGAIN) as one:
        one.editor.open(path)
        await worked(one, "an edit")
        await decide(one, path, "reject", "k1", all=True)
        assert one.editor.text(path) == TEXT
        await worked(one, "again as an edit", "p2")
        assert one.editor.text(path) == TEXT.replace("line 3\n", "LINE 3\n"), one.outputs()
        assert len(ids(await get(one, path))) == 1


async def test_a_text_that_was_rejected_is_not_said_to_be_there(
    root: Path, state: Path, path: Path
) -> None:
    async with person(root, state, AGAIN) as one:
        one.editor.open(path)
        await worked(one, "a whole")
        await decide(one, path, "reject", "k1", all=True)
        await worked(one, "again as a whole", "p2")
        assert one.editor.text(path) == TEXT
        assert "-x\n" in one.outputs()[-1] and "already" not in one.outputs()[-1]
