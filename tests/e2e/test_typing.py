"""Typing at the moment at which Magy changes the very buffer: no key is lost, none is taken back
with what Magy did, and all hunks stay whose they are."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from .harness import Person, person
from .test_edit_wire import edit
from .test_review import TEXT, TWO, decide, edits, get, ids, path, review, worked

__all__ = ["path"]

KEY = "# typed\n"


@pytest.mark.parametrize("when", ["type_before", "type_after"])
async def test_what_is_typed_during_a_decision_survives_its_undo(
    root: Path, state: Path, path: Path, when: str
) -> None:
    async with person(root, state, TWO) as one:
        one.editor.open(path)
        await worked(one)
        both = one.editor.text(path)
        first = ids(await get(one, path))[0]
        typed = _once(one, when)
        done = await decide(one, path, "reject", "k1", hunkIds=[first])
        assert typed() == KEY + both.replace("LINE 3\n", "line 3\n")
        await review(one, "undo", decisionId=done["decisionId"], requestKey="k2")
        assert one.editor.text(path) == KEY + both
        assert ids(await get(one, path))[0] == first


def _once(one: Person, when: str) -> object:
    """Types at the next edit that comes, and not again."""
    uri = next(iter(one.editor.texts))
    setattr(one.editor, when, KEY)
    apply = one.client.handlers["workspace/applyEdit"]

    async def applied(params: object) -> object:
        answer = await apply(params)
        setattr(one.editor, when, "")
        return answer

    one.client.handlers["workspace/applyEdit"] = applied
    return lambda: one.editor.texts[uri]


@pytest.mark.parametrize("way", ["apply", "reject", "restore"])
async def test_who_types_a_key_a_millisecond_is_not_refused(
    root: Path, state: Path, path: Path, way: str
) -> None:
    async with person(root, state, TWO) as one:
        one.editor.open(path)
        await worked(one)
        both = one.editor.text(path)
        typing = asyncio.create_task(_type(one, path))
        if way == "apply":
            change = [{"old_text": "line 15\n", "new_text": "LINE 15\n"}]
            done = await edit(one, "apply", uri=path.as_uri(), edits=change)
            wanted = both.replace("line 15\n", "LINE 15\n")
            assert done["applied"] is True, done
        elif way == "reject":
            await decide(one, path, "reject", "k1", all=True)
            wanted = TEXT
        else:
            await one.request("checkpoint/restore", turnId="p1", requestKey="r1")
            wanted = TEXT
        typing.cancel()
        await asyncio.gather(typing, return_exceptions=True)
        text = one.editor.text(path)
        keys = text.removesuffix(wanted)
        assert keys + wanted == text and keys == "x" * (len(keys) - 1) + "\n", text
        assert len(keys) > 2


async def test_an_agent_that_writes_over_what_was_typed_into_its_hunk(
    root: Path, state: Path, path: Path
) -> None:
    """Rejecting takes back what agents wrote, not what the person had typed."""
    async with person(root, state) as one:
        one.editor.open(path)
        uri = path.as_uri()
        for key, old, new in (
            ("k1", "line 3\n", "line 3, agent\n"),
            ("k2", "line 3, agent and me\n", "line 3, agent again\n"),
        ):
            change = [{"old_text": old, "new_text": new}]
            assert (await edit(one, "apply", uri=uri, edits=change, requestKey=key))["applied"]
            if key == "k1":
                at = one.editor.text(path).index(", agent") + len(", agent")
                one.editor.type(path, at, at, " and me")
        await decide(one, path, "reject", "k3", all=True)
        text = one.editor.text(path)
        assert "line 3, agent and me\n" in text and "again" not in text


async def _type(one: Person, path: Path) -> None:
    """As fast as a machine that is busy with other things lets the server hear of it."""
    one.editor.type(path, 0, 0, "\n")
    while True:
        for _ in range(100):
            one.editor.type(path, 0, 0, "x")
            await asyncio.sleep(0.001)
        await one.client.request("magy/review/get", {"uri": path.as_uri()})


# --- turns that are undone and done again ---------------------------------------------------------

TURNS = "".join(
    f"prompt: {ask}\n{edits((old, new))}---\ntext: Done.\n"
    for ask, old, new in (
        ("more of it", "LINE 3\n", "LINE 3, twice\n"),
        ("it", "line 3\n", "LINE 3\n"),
    )
)


async def test_a_turn_that_is_done_again_is_to_be_decided_again(
    root: Path, state: Path, path: Path
) -> None:
    async with person(root, state, TURNS) as one:
        one.editor.open(path)
        await worked(one, "Do it")
        (before,) = (await get(one, path))["hunks"]
        await one.request("checkpoint/restore", turnId="p1", requestKey="r1")
        assert await get(one, path) is None
        at = TEXT.index("3\n")
        one.editor.type(path, at, at, "and ")
        assert await get(one, path) is None  # what is typed there now is no agent's
        one.editor.type(path, at, at + 4, "")
        await one.request("checkpoint/restore", undoes="r1", requestKey="r2")
        (after,) = (await get(one, path))["hunks"]
        assert (after["hunkId"], after["origins"]) == (before["hunkId"], before["origins"])


async def test_what_an_undone_turn_leaves_is_still_the_agents(
    root: Path, state: Path, path: Path
) -> None:
    async with person(root, state, TURNS) as one:
        one.editor.open(path)
        await worked(one, "Do it")
        await worked(one, "Do more of it", "p2")
        await one.request("checkpoint/restore", turnId="p2", requestKey="r1")
        (hunk,) = (await get(one, path))["hunks"]
        assert (hunk["newText"], hunk["amended"]) == ("LINE 3\n", False)
        assert [origin["turnId"] for origin in hunk["origins"]] == ["p1"]
        await decide(one, path, "reject", "k1", all=True)
        assert one.editor.text(path) == TEXT


# --- at once --------------------------------------------------------------------------------------


async def test_a_save_during_an_edit_gives_the_hunk_to_nobody_else(
    root: Path, state: Path, path: Path
) -> None:
    async with person(root, state, TWO) as one:
        one.editor.open(path)
        await worked(one)
        uri = path.as_uri()
        changes = [
            edit(one, "apply", uri=uri, requestKey=f"e{n}", edits=[_change(n)])
            for n in (6, 14, 17, 20)
        ]
        first = ids(await get(one, path))[0]
        work = asyncio.gather(*changes, decide(one, path, "reject", "k1", hunkIds=[first]))
        while not work.done():
            one.client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
            await asyncio.sleep(0.002)
        await work
        hunks = (await get(one, path))["hunks"]
        news = [hunk["newText"] for hunk in hunks]
        assert news == ["LINE 6\n", "LINE 10\nand more\n", "LINE 14\n", "LINE 17\n", "LINE 20\n"]
        assert one.editor.text(path).count("LINE") == 5


def _change(n: int) -> dict[str, str]:
    return {"old_text": f"line {n}\n", "new_text": f"LINE {n}\n"}


@pytest.mark.parametrize("way", ["apply", "reject", "agent"])
async def test_what_is_typed_and_saved_right_after_a_save_stays_the_persons(
    root: Path, state: Path, path: Path, way: str
) -> None:
    async with person(root, state, TWO) as one:
        one.editor.open(path)
        if way != "agent":
            await worked(one)
        _type_after_saves(one, path)
        if way == "agent":
            await worked(one)
        elif way == "apply":
            await edit(one, "apply", uri=path.as_uri(), requestKey="e1", edits=[_change(15)])
        else:
            done = await decide(one, path, "reject", "k1", all=True)
            await review(one, "undo", decisionId=done["decisionId"], requestKey="k2")
        keys = one.editor.text(path).count(KEY)
        assert keys
        hunks = (await get(one, path))["hunks"]
        assert all(KEY not in hunk["newText"] + hunk["oldText"] for hunk in hunks)
        await decide(one, path, "reject", "k3", all=True)
        assert one.editor.text(path).replace(KEY, "") == TEXT
        assert one.editor.text(path).count(KEY) >= keys


def _type_after_saves(one: Person, path: Path) -> None:
    """The next key follows each answer that something was saved, and is saved at once."""
    save = one.client.handlers["magy/editor/save"]

    def type_on() -> None:
        one.editor.type(path, 0, 0, KEY)
        path.write_text(one.editor.text(path))
        uri = path.as_uri()
        one.client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})

    def saved(params: object) -> object:
        answer = save(params)
        if answer["saved"]:
            asyncio.get_running_loop().call_soon(type_on)
        return answer

    one.client.handlers["magy/editor/save"] = saved


async def test_a_file_that_the_editor_is_just_writing_is_still_a_text(
    root: Path, state: Path, path: Path
) -> None:
    async with person(root, state, TWO) as one:
        one.editor.open(path)
        await worked(one)
        before = ids(await get(one, path))
        whole = one.editor.text(path).encode() + "⟦1⟧".encode()
        one.editor.type(path, len(one.editor.text(path)), len(one.editor.text(path)), "⟦1⟧")
        path.write_bytes(whole[:-2])
        asyncio.get_running_loop().call_later(0.03, path.write_bytes, whole)
        assert ids(await get(one, path)) == before
