"""`magy mcp serve` as its clients see it: the SDK's client speaks with the real process, in the
protocol of today and in that of the handshake."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from tests import nursery
from tests.cli.harness import COMMAND, Magy
from tests.patience import PATIENCE

STUB = Path(nursery.__file__).parent / "clients" / "stub.py"
TODAY, HANDSHAKE = "auto", "legacy"
APP = "def greet():\n    return 'hello'\n"
EDIT = """prompt: greet
call: edit_file {"path": "app.py", "old_text": "hello", "new_text": "good day"}
---
text: It greets politely now.
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (project / "app.py").write_text(APP)
    return project.resolve()


@pytest.fixture
def magy(root: Path, tmp_path: Path) -> Magy:
    return Magy(root, tmp_path / "state")


class Agent:
    """A client. What its person is asked is kept in `asked`."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.asked: list[str] = []

    async def call(self, name: str, /, **given: Any) -> tuple[str, dict[str, Any]]:
        """Text and data of the answer."""
        result = await self.client.call_tool(name, given, read_timeout_seconds=PATIENCE)
        assert not result.is_error, result.content
        return _text(result), dict(result.structured_content or {})

    async def refused(self, name: str, /, **given: Any) -> str:
        result = await self.client.call_tool(name, given, read_timeout_seconds=PATIENCE)
        assert result.is_error, result.content
        return _text(result)


def _text(result: Any) -> str:
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


@asynccontextmanager
async def agent(
    magy: Magy, mode: Any = TODAY, says: types.ElicitResult | None = None
) -> AsyncIterator[Agent]:
    """`says`: what its person answers; None: it asks nobody."""
    # In one of the two protocols it is started as people start it.
    born = () if mode == HANDSHAKE else ("-I", "-S", str(STUB))
    server = StdioServerParameters(
        command=COMMAND[0],
        args=[*born, *COMMAND[1:], "mcp", "serve", "--root", str(magy.root)],
        env=magy.env({"NURSERY": nursery.address(), nursery.ALSO: "magy_server.mcp_server.door"}),
        cwd=magy.root,
    )
    asked: list[str] = []

    async def ask(context: Any, params: Any) -> types.ElicitResult:
        asked.append(params.message)
        assert says is not None
        return says

    given: dict[str, Any] = {"elicitation_callback": ask} if says else {}
    async with Client(server, mode=mode, read_timeout_seconds=PATIENCE, **given) as client:
        one = Agent(client)
        one.asked = asked
        yield one


@pytest.mark.parametrize("mode", [TODAY, HANDSHAKE])
async def test_a_session_is_started_asked_about_answered_and_reviewed(
    magy: Magy, mode: str
) -> None:
    magy.script(EDIT)
    yes = types.ElicitResult(action="accept", content={"allow": True})
    async with agent(magy, mode, yes) as one:
        text, data = await one.call("session_start", prompt="greet", wait_seconds=PATIENCE)
        assert text.startswith("It greets politely now.\n")
        assert data["state"] == "idle" and data["stop"] == "end_turn"
        assert data["changed"] == [{"path": "app.py", "operation": "modify"}]
        (question,) = one.asked
        assert "app.py" in question and "edit" in question
        _, listed = await one.call("review_list")
        (file,) = listed["files"]
        assert (file["path"], file["pending"]) == ("app.py", 1)
        text, got = await one.call("review_get", path="app.py")
        assert "-    return 'hello'\n+    return 'good day'" in text
        (hunk,) = got["hunks"]
        assert hunk["sessions"] == [data["session"]]
        _, outcome = await one.call(
            "review_resolve", path="app.py", decision="reject", hunks=[hunk["hunk"]]
        )
        assert outcome["results"][0]["state"] == "rejected" and outcome["pending"] == 0
        assert (magy.root / "app.py").read_text() == APP
        _, sessions = await one.call("session_list")
        assert [one["session"] for one in sessions["sessions"]] == [data["session"]]
        text, _ = await one.call("session_read", session=data["session"])
        assert "It greets politely now." in text


@pytest.mark.parametrize("mode", [TODAY, HANDSHAKE])
async def test_what_the_person_refuses_is_not_done(magy: Magy, mode: str) -> None:
    magy.script(EDIT)
    async with agent(magy, mode, types.ElicitResult(action="decline")) as one:
        _, data = await one.call("session_start", prompt="greet", wait_seconds=PATIENCE)
        assert data["state"] == "idle" and data["changed"] == []
        assert len(one.asked) == 1
        assert (magy.root / "app.py").read_text() == APP


async def test_where_nobody_can_be_asked_that_is_said_and_the_question_stays(magy: Magy) -> None:
    magy.script(EDIT)
    async with agent(magy) as one:
        text, data = await one.call("session_start", prompt="greet", wait_seconds=PATIENCE)
        assert data["state"] == "waiting" and "Nobody can answer now" in text
        assert f"magy sessions resume {data['session']}" in text
        (question,) = data["questions"]
        assert "app.py" in question["title"]
    assert (magy.root / "app.py").read_text() == APP
    async with agent(magy) as one:
        text, _ = await one.call("session_wait", session=data["session"], wait_seconds=1)
        assert "waits for a person" in text
        await one.call("session_cancel", session=data["session"])
        text, data = await one.call("session_wait", session=data["session"])
        assert data["state"] == "idle" and data["stop"] == "cancelled"


async def test_waiting_ends_and_the_session_goes_on(magy: Magy) -> None:
    magy.script("prompt: go\ndelay: 1.5\ntext: Done.\n")
    async with agent(magy) as one:
        text, data = await one.call("session_start", prompt="go", wait_seconds=0)
        assert data["state"] == "running" and "session_wait" in text
        text, data = await one.call("session_wait", session=data["session"], wait_seconds=PATIENCE)
        assert text.startswith("Done.")


async def test_children_are_spawned_waited_for_and_closed(magy: Magy) -> None:
    magy.script(
        "prompt: lead\ntext: I lead.\n\nprompt: look\ntext: I looked.\n\nprompt: again\n"
        "text: I looked again.\n"
    )
    async with agent(magy) as one:
        _, data = await one.call("session_start", prompt="lead", wait_seconds=PATIENCE)
        parent = data["session"]
        _, child = await one.call("child_spawn", session=parent, prompt="look", name="looks")
        own = {"session": parent, "prompt": "look", "worktree": True}
        assert "No worktree can be made:" in await one.refused("child_spawn", **own)
        text, waited = await one.call("child_wait", session=parent, wait_seconds=PATIENCE)
        assert "I looked." in text and waited["results"][0]["state"] == "completed"
        await one.call("child_send", child=child["child"], prompt="again")
        text, _ = await one.call(
            "child_wait", session=parent, after=waited["seq"], wait_seconds=PATIENCE
        )
        assert "I looked again." in text
        _, closed = await one.call("child_close", child=child["child"])
        assert closed["closed"] == [child["child"]]
        _, listed = await one.call("child_list", session=parent)
        assert [(c["name"], c["state"]) for c in listed["children"]] == [("looks", "closed")]


async def test_an_edit_is_made_with_its_proof_or_not_at_all(magy: Magy) -> None:
    block = "app.py\n<<<<<<< SEARCH\n  return 'hello'\n=======\n  return 'hi'\n>>>>>>> REPLACE\n"
    yes = types.ElicitResult(action="accept", content={"allow": True})
    async with agent(magy, says=yes) as one:
        text, data = await one.call("edit_apply", text=block, check=True)
        assert "+    return 'hi'" in text and not data["applied"] and not one.asked
        assert (magy.root / "app.py").read_text() == APP
        text, data = await one.call("edit_apply", text=block)
        assert data["applied"] and "found by" in text and "+    return 'hi'" in text
        assert "return 'hi'" in (magy.root / "app.py").read_text()
        assert len(one.asked) == 1  # the settings say that edits are asked about
        _, listed = await one.call("review_list")
        assert listed["files"][0]["pending"] == 1
        said = await one.refused("edit_apply", text=block)
        assert "Nothing was changed." in said
        said = await one.refused("edit_apply", text="A=1\n", format="whole", path=".env")
        assert "a rule says no" in said and not (magy.root / ".env").exists()
        said = await one.refused("edit_apply", text="A=1\n", format="whole", path="../out")
        assert "is not in" in said
        for path in ("magy.toml", ".magy/agents/a.md", ".mcp.json", "Magy.toml"):
            said = await one.refused("edit_apply", text="x = 1\n", format="whole", path=path)
            assert "tells Magy what it may do" in said and not (magy.root / path).exists()
        (magy.root / ".env").write_text("K=s3cr3t\n")
        for text in ("x\n", "K=s3cr3t\n"):
            whole = {"text": text, "format": "whole", "path": ".env", "check": True}
            said = await one.refused("edit_apply", **whole)
            assert "a rule says no" in said and "s3cr3t" not in said
        wrong = block.replace("app.py", ".env").replace("hello", "K=s3")
        assert "a rule says no" in await one.refused("edit_apply", text=wrong, check=True)
    async with agent(magy) as one:
        other = block.replace("hello", "hi").replace("'hi'\n>>>", "'hey'\n>>>")
        assert "a person must allow it" in await one.refused("edit_apply", text=other)


async def test_what_is_asked_wrongly_is_said(magy: Magy) -> None:
    async with agent(magy) as one:
        tools = {tool.name: tool for tool in (await one.client.list_tools()).tools}
        assert tools["review_resolve"].input_schema["required"] == ["path", "decision"]
        said = await one.refused("session_start", promt="x")
        assert "promt" in said and "prompt" in said
        assert "There is no session 'none'" in await one.refused("session_read", session="none")
        assert "there are session_start, " in await one.refused("nothing")
        assert "is not in" in await one.refused("review_get", path="/etc/passwd")
        assert "is not a child" not in await one.refused("child_send", child="x/y", prompt="p")


async def test_sessions_of_other_projects_are_not_served(magy: Magy, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    elsewhere = Magy(other, magy.state)
    elsewhere.script("prompt: go\ntext: Gone.\n")
    done = elsewhere("run", "--json", "--root", str(other), "go")
    session = json.loads(done.stdout.splitlines()[-1])["sessionId"]
    async with agent(magy) as one:
        assert "is of another project" in await one.refused("session_read", session=session)
        _, listed = await one.call("session_list")
        assert session not in json.dumps(listed)
