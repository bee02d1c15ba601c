"""What is sent again, what is deleted, and what is too much: commands and actions of any editor."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from magy_server.lsp.plain.actions import OFFERED, ROOTS, Known
from tests.patience import PATIENCE

from .harness import RpcError, person
from .test_plain_actions import SLOW, TEXT, Editor, plain, ranged

HELLO = "prompt:\ntext: A secret answer.\n"


@pytest.fixture
def path(root: Path) -> Path:
    path = root / "app.py"
    path.write_text(TEXT)
    return path


async def answered(one: Any, editor: Editor, session: str, count: int = 1) -> None:
    uri = f"magy:/transcript/{session}.md"
    async with asyncio.timeout(PATIENCE):
        while (await editor.text(uri)).count("A secret answer.") < count:
            await asyncio.sleep(0.05)


async def killed(one: Any) -> None:
    one.client.process.kill()
    await one.client.process.wait()


# --- again ---------------------------------------------------------------------------------------


async def test_a_rewrite_asked_for_again_is_the_same(root: Path, state: Path, path: Path) -> None:
    place = {"uri": path.as_uri(), "range": ranged((4, 0), (6, 0))}
    async with plain(root, state, SLOW + SLOW) as one:
        editor = Editor(one)
        one.editor.open(path)

        async def refactor(message: str | None, action: str = "refactor") -> str:
            asked = await editor.command(
                "magy.action.run", action=action, **place, messageId=message
            )
            return str(asked["sessionId"])

        first = await refactor("m1")
        assert [await refactor("m1"), await refactor("m1")] == [first, first]
        others = {await refactor("m2"), await refactor("m1", "document"), await refactor(None),
                  await refactor(None)}  # fmt: skip
        assert len(others) == 4 and first not in others


@pytest.mark.req("G001")
async def test_a_prompt_sent_again_to_the_next_process_runs_once(
    root: Path, state: Path, path: Path
) -> None:
    """To a new session, and to one that was used before."""
    asked: dict[str, Any] = {"text": "Deploy it", "uri": path.as_uri()}
    async with plain(root, state, HELLO) as one:
        editor = Editor(one)
        first = await editor.command("magy.prompt", **asked, messageId="m1")
        await answered(one, editor, first["sessionId"])
        await killed(one)
    async with plain(root, state, HELLO) as one:
        editor = Editor(one)
        assert await editor.command("magy.prompt", **asked, messageId="m1") == first
        second = await editor.command("magy.prompt", **asked, messageId="m2")
        assert second["sessionId"] == first["sessionId"]
        await answered(one, editor, first["sessionId"], 2)
        made = await editor.command("magy.session.new", uri=path.as_uri())
        assert await editor.command("magy.prompt", **asked, messageId="m2") == second
        await killed(one)
    async with plain(root, state, HELLO) as one:
        editor = Editor(one)
        again = await editor.command(
            "magy.action.run", action="explain", uri=path.as_uri(), range=ranged((3, 0)),
            messageId="m2",
        )  # fmt: skip
        assert again == second
        # Behind what would have run if it had been taken for another.
        await editor.command("magy.prompt", **asked, messageId="m3", sessionId=first["sessionId"])
        await answered(one, editor, first["sessionId"], 3)
        text = await editor.text(f"magy:/transcript/{first['sessionId']}.md")
        assert text.count("A secret answer.") == 3
        sessions = (await one.request("session/list", cwd=str(root)))["sessions"]
        assert {s["sessionId"] for s in sessions} == {first["sessionId"], made["sessionId"]}


# --- deleted -------------------------------------------------------------------------------------


@pytest.mark.parametrize("texts", [True, False])
async def test_nothing_of_a_deleted_session_stays(
    root: Path, state: Path, path: Path, texts: bool
) -> None:
    async with plain(root, state, HELLO, texts=texts) as one:
        editor = Editor(one)
        asked = await editor.command("magy.prompt", text="Tell me", uri=path.as_uri())
        session = asked["sessionId"]
        uri = f"magy:/transcript/{session}.md"
        await answered(one, editor, session)
        shown = await editor.command("magy.transcript.show", sessionId=session)
        assert texts or "A secret answer." in Path(shown["path"]).read_text()
        await one.client.request("magy/session/delete", {"sessionId": session})
        assert list(state.rglob("*.md")) == []
        with pytest.raises(RpcError, match="no session"):
            await editor.text(uri)
        again = {"sessionId": session, "cwd": str(root)}
        await one.client.request("magy/session/new", again)
        text = await editor.text(uri)
        assert "Tell me" not in text and "secret" not in text


async def test_a_session_that_is_deleted_elsewhere(root: Path, state: Path, path: Path) -> None:
    async with plain(root, state, HELLO, texts=False) as one:
        editor = Editor(one)
        sessions = []
        for _ in range(2):
            await editor.command("magy.session.new", uri=path.as_uri())
            asked = await editor.command("magy.prompt", text="Tell me", uri=path.as_uri())
            sessions.append(asked["sessionId"])
            await answered(one, editor, sessions[-1])
            await editor.command("magy.transcript.show", sessionId=sessions[-1])
            await one.client.request("magy/session/close", {"sessionId": sessions[-1]})
        mine, later = sessions
        async with person(root, state) as other:
            await other.client.request("magy/session/delete", {"sessionId": mine})
            await other.client.request("magy/session/new", {"sessionId": mine, "cwd": str(root)})
            text = await editor.text(f"magy:/transcript/{mine}.md")
            assert "secret" not in text, "another session with the same id"
    # No editor that writes transcripts is there to hear of it.
    folder = state / "transcripts"
    kept = {path.name for path in folder.iterdir()}
    assert f"{later}.md" in kept
    (folder / "gone-before.md").write_text("A secret answer.")
    async with plain(root, state, HELLO):
        async with asyncio.timeout(PATIENCE):
            while (folder / "gone-before.md").exists():
                await asyncio.sleep(0.05)
    assert (folder / f"{later}.md").exists()


# --- too much ------------------------------------------------------------------------------------


@pytest.mark.req("G001")
async def test_no_more_actions_than_a_person_can_read(root: Path, state: Path, path: Path) -> None:
    agents = state / "agent"
    agents.mkdir(parents=True)
    for agent in range(20):
        actions = "".join(
            f"  act{n}:\n    title: Do {n} of {agent} to {{symbol}}\n    when: symbol\n"
            "    prompt: x\n"
            for n in range(10)
        )
        front = f"---\ndescription: d\nmode: primary\nactions:\n{actions}---\nHi\n"
        (agents / f"a{agent:02}.md").write_text(front)
    async with plain(root, state) as one:
        editor = Editor(one)
        one.editor.open(path)
        place = {"uri": path.as_uri(), "range": ranged((4, 6))}
        with pytest.raises(RpcError, match="There is no action 'none' here") as refused:
            await editor.command("magy.action.run", action="none", **place)
        assert len(str(refused.value)) < 2_000
        found = list(await editor.offered(path, (4, 6)))
        assert len(found) == OFFERED
        assert found[0] == "Magy: Explain this code" and found[-1].endswith("of 4 to text")
        last = await editor.command("magy.action.run", action="a19.act9", **place)
        assert last["sessionId"], "what is not offered can be run"


async def test_looking_for_actions_keeps_nobody_waiting() -> None:
    """It ends only after something else was done."""
    done, tasks = threading.Event(), []

    def look(root: str | None) -> dict[str, Any]:
        assert done.wait(60)
        return {}

    def spawn(work: Any) -> asyncio.Task[None]:
        tasks.append(asyncio.ensure_future(work))
        return tasks[-1]

    known = Known(look, spawn)
    assert known.of(None) == {}
    asyncio.get_running_loop().call_later(0.01, done.set)
    await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE)


async def test_what_is_known_of_many_places_is_bounded() -> None:
    known = Known(lambda root: {"one": root}, None)  # type: ignore[arg-type,dict-item]
    for n in range(ROOTS * 2):
        assert await known.named(f"/{n}", "one") == f"/{n}"
    assert len(known._found) == ROOTS
