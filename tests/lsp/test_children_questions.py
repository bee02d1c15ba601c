"""What children ask: seen in the child and in its parents, by every kind of client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import RpcError, person
from tests.lsp.family import SCRIPT, SESSION, Parent, parent

OPENED = "magy/interaction/changed"


async def opened(one: Parent) -> dict[str, Any]:
    """The next question, as it is announced."""
    changed = await one.client.wait_for(OPENED, lambda params: params["opened"])
    found: dict[str, Any] = changed["opened"][0]
    return found


def timeless(questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The list's time is that of the entry before, as it is written in the same transaction."""
    return [{**question, "createdAt": ""} for question in questions]


@pytest.mark.req("G022")
async def test_a_childs_question_names_it_and_its_parents(root: Path, state: Path) -> None:
    async with parent(root, state) as one:
        middle = await one.spawn("middle", "quick", agent="general", name="In the middle")
        await one.wait()
        await one.client.request("magy/session/set_config_option", {
            "sessionId": SESSION, "configId": "title", "value": "The whole"})  # fmt: skip
        low = await one.spawn("low", "asks", parent=middle, agent="build", name="Down below")
        question = await opened(one)
        assert (question["sessionId"], question["parentSessionId"]) == (low, middle)
        assert question["path"] == [
            {"sessionId": SESSION, "agent": "build", "name": "The whole"},
            {"sessionId": middle, "agent": "general", "name": "In the middle"},
            {"sessionId": low, "agent": "build", "name": "Down below"},
        ]
        assert question["rule"] and question["agent"] == "build"
        # Seen from the root: among its questions, in its summary, in how its children are.
        listed = await one.request("interaction/list", sessionId=SESSION)
        assert timeless(listed["interactions"]) == timeless([question])
        summary = (await one.request("session/subscribe"))["summary"]
        assert timeless(summary["interactions"]) == timeless([question])
        assert (await one.state(low, "waiting"))["questions"] == 1
        counted = await one.client.wait_for(
            "magy/child/changed",
            lambda p: p["child"]["sessionId"] == middle and p["child"]["questions"] == 1,
        )
        assert counted["child"]["state"] == "completed"
        # Refused with a reason, which reaches the model that asked.
        answer = await one.client.request("magy/interaction/respond", {
            "sessionId": low, "interactionId": question["interactionId"], "outcome": "refuse",
            "reason": "Not this file."})  # fmt: skip
        assert answer == {"accepted": True, "winner": None}
        resolved = await one.client.wait_for(OPENED, lambda params: params["resolved"])
        assert resolved["resolved"] == [question["interactionId"]]
        await one.state(low, "completed")
        entries = await one.client.request("magy/session/events", {"sessionId": low, "after": 0})
        told = [e["update"] for e in entries["events"] if e["update"].get("status") == "failed"]
        assert "Not this file." in told[0]["content"][0]["content"]["text"]
        assert (root / "app.py").read_text() == "def greet():\n    return 'hello'\n"


async def test_a_childs_question_survives_a_restart(root: Path, state: Path) -> None:
    async with parent(root, state) as one:
        id = await one.spawn("one", "asks")
        question = await opened(one)
        await one.state(id, "waiting")
        one.client.process.kill()
    async with parent(root, state, new=False) as one:
        listed = await one.request("interaction/list", sessionId=SESSION)
        assert [q["interactionId"] for q in listed["interactions"]] == [question["interactionId"]]
        await one.client.request("magy/interaction/respond", {
            "sessionId": id, "interactionId": question["interactionId"],
            "outcome": "allow"})  # fmt: skip
        waited = await one.wait()
        assert [r["text"] for r in waited["results"]] == ["Asked and done."]
        assert (root / "app.py").read_text() == "def greet():\n    return 'bye'\n"


async def test_another_process_is_told_how_the_children_are(root: Path, state: Path) -> None:
    async with parent(root, state) as one, person(root, state, SCRIPT) as second:
        other = Parent(second.client, root)
        await other.request("session/subscribe")
        id = await one.spawn("one", "asks")
        question = await opened(one)
        there = await other.state(id, "waiting")  # the tree runs in the first one's process
        assert there["questions"] == 1
        listed = await other.request("interaction/list", sessionId=SESSION)
        assert timeless(listed["interactions"]) == timeless([question])
        (change,) = question["content"]
        assert "+++ b/app.py" in change["patch"]["text"], "all that would change is told, too"
        await other.client.request("magy/interaction/respond", {
            "sessionId": id, "interactionId": question["interactionId"],
            "outcome": "allow"})  # fmt: skip
        await one.state(id, "completed")
        done = await other.state(id, "completed")
        assert done["said"] == "Asked and done."


async def test_who_watches_another_tree_is_told_nothing(root: Path, state: Path) -> None:
    async with parent(root, state) as one:
        await one.client.request("magy/session/new", {"sessionId": "aside", "cwd": str(root)})
        await one.client.request("magy/session/unsubscribe", {"sessionId": SESSION})
        await one.client.request("magy/session/subscribe", {"sessionId": "aside"})
        await one.spawn("one", "quick")
        await one.wait()
        near = await one.spawn("near", "quick", parent="aside")
        await one.state(near, "completed")
        told = one.client.notifications("magy/child/changed")
        assert {change["child"]["sessionId"] for change in told} == {near}


@pytest.mark.req("G001")
async def test_a_plain_client_is_asked_in_a_window_that_names_them(root: Path, state: Path) -> None:
    windows: list[str] = []
    answers = {"title": "Allow once"}

    def ask(params: Any) -> Any:
        windows.append(params["message"])
        return answers

    async with person(root, state, SCRIPT, knows_magy=False) as plain:
        plain.client.handlers["window/showMessageRequest"] = ask
        plain.client.handlers["workspace/applyEdit"] = lambda params: {"applied": True}
        made = await command(plain, "magy.session.new")
        spawned = await command(
            plain, "magy.child.spawn", text="asks", name="Change it", requestKey="one"
        )
        assert spawned["parentSessionId"] == made["sessionId"]
        await plain.client.wait_until(lambda: windows, why="a question in a window")
        who, what, rule, covers = windows[0].split("\n")
        assert who == "build (Change it), child of build asks:"
        assert "app.py" in what and rule.startswith("(")
        assert covers == f"“Allow for this session” covers: edit `{root / 'app.py'}`"


async def command(one: Any, name: str, /, **argument: Any) -> Any:
    about = {"command": name, "arguments": [argument] if argument else []}
    return await one.client.request("workspace/executeCommand", about)


async def test_a_plain_client_has_commands_and_texts_for_children(root: Path, state: Path) -> None:
    shown: list[str] = []
    async with person(root, state, SCRIPT, knows_magy=False) as plain:
        client = plain.client
        parent_id = (await command(plain, "magy.session.new"))["sessionId"]
        again = {"text": "quick", "name": "Have a look", "requestKey": "one"}
        id = (await command(plain, "magy.child.spawn", **again))["sessionId"]
        assert (await command(plain, "magy.child.spawn", **again))["sessionId"] == id
        away = {"text": "x", "uri": (state / "away.py").as_uri()}
        where = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
        for wrong, why in (
            (away, "not in an open project"),
            ({"text": "x", "range": where}, "needs a file"),
        ):
            with pytest.raises(RpcError, match=why):
                await command(plain, "magy.child.spawn", **wrong)
        message = await client.wait_for(
            "window/showMessage", lambda p: "Quick is done." in p["message"]
        )
        assert message["message"].startswith("Magy: Quick is done.")
        listed = await command(plain, "magy.child.list")
        assert [child["sessionId"] for child in listed["children"]] == [id]
        said = await client.wait_for("window/showMessage", lambda p: "Have a look" in p["message"])
        assert said["message"] == f"Magy: build (Have a look): completed [{id}]"
        # From the parent's text to the child's, and back.
        up = await text(client, parent_id)
        link = f"magy:/transcript/{id.replace('/', '%2F')}.md"
        assert f"## Children\n\n- [build: Have a look]({link}) · completed · {id}\n" in up
        assert "## Result of build (Have a look)" in up and "Quick is done." in up
        below = await text(client, id)
        assert f"- [{parent_id}](magy:/transcript/{parent_id}.md)\n" in below
        closed = await command(plain, "magy.child.close", sessionId=id)
        assert closed == {"previousState": "completed", "closed": [id]}
        shown.append(await text(client, parent_id))
        assert f"· closed · {id}" in shown[0]


async def test_a_plain_client_gives_a_task_in_a_prompt(root: Path, state: Path) -> None:
    async with person(root, state, SCRIPT, knows_magy=False) as plain:
        parent = (await command(plain, "magy.session.new"))["sessionId"]
        task = {"text": "@spawn general quick", "messageId": "m1"}
        given = await command(plain, "magy.prompt", **task)
        child = given["sessionId"]
        assert child.startswith(f"{parent}/") and given["messageId"] == f"{child}:task"
        assert await command(plain, "magy.prompt", **task) == given
        await plain.client.wait_for(
            "window/showMessage", lambda p: "Quick is done." in p["message"]
        )
        listed = (await command(plain, "magy.child.list"))["children"]
        assert [(one["sessionId"], one["agent"]) for one in listed] == [(child, "general")]
        for half in ("@spawn", "@spawn general", " @spawn general \n"):
            with pytest.raises(RpcError, match="@spawn AGENT TASK"):
                await command(plain, "magy.prompt", text=half)


async def test_a_plain_client_gives_a_task_on_a_branch_of_its_own(root: Path, state: Path) -> None:
    async with person(root, state, SCRIPT, knows_magy=False) as plain:
        await command(plain, "magy.session.new")
        for name, about in (
            ("magy.prompt", {"text": "@spawn general --worktree quick", "messageId": "m1"}),
            ("magy.child.spawn", {"text": "quick", "worktree": True}),
        ):
            with pytest.raises(RpcError, match="No worktree can be made"):
                await command(plain, name, **about)


async def text(client: Any, session_id: str) -> str:
    uri = f"magy:/transcript/{session_id.replace('/', '%2F')}.md"
    found: str = (await client.request("workspace/textDocumentContent", {"uri": uri}))["text"]
    return found
