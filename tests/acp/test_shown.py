"""What a client of version 1 is shown of plans, usage, commands, notices and forks."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from magy_server.acp.content import locations, of_call
from magy_server.acp.conversation import Conversation

from .harness import FS, client
from .schema import problems

SCRIPT = """prompt: plan
call: update_plan {"tasks": [{"content": "Look", "status": "completed"}, \
{"content": "Write", "status": "in_progress"}, {"content": "Nothing", "status": "cancelled"}]}
---
text: Planned.
usage: input=1200 output=80
prompt: run
call: bash {"command": "for i in 1 2 3; do echo line $i; sleep 0.2; done"}
---
text: Ran.
prompt: slow
speed: 40
text: This is said slowly, and the client leaves before it has heard all of it, but not the log.
"""


@pytest.mark.req("G028")
async def test_a_plan_is_shown(root: Path, state: Path) -> None:
    async with client(root, state, SCRIPT) as one:
        await one.initialize()
        session = await one.new()
        await one.turn(session, "plan")
        last = one.updates("plan", session)[-1]
        assert problems(last, "SessionUpdate") == []
        assert [(e["content"], e["status"]) for e in last["entries"]] == [
            ("Look", "completed"), ("Write", "in_progress"),
        ]  # fmt: skip


async def test_a_running_command_shows_what_it_writes(root: Path, state: Path) -> None:
    async with client(root, state, SCRIPT) as one:
        await one.initialize()
        session = await one.new()
        await one.turn(session, "run")
        shown = [
            part["content"]["text"]
            for update in one.updates("tool_call_update", session)
            for part in update.get("content", ())
            if part["type"] == "content"
        ]
        assert any("line 1" in text and "line 3" not in text for text in shown), "while it runs"
        assert "line 3" in shown[-1]


async def test_a_fork_goes_its_own_way(root: Path, state: Path) -> None:
    async with client(root, state, SCRIPT) as one:
        await one.initialize()
        session = await one.new()
        await one.turn(session, "plan")
        made = await one.request("session/fork", sessionId=session, cwd=str(root))
        assert problems(made, "ForkSessionResponse") == []
        assert made["sessionId"] != session
        await one.turn(made["sessionId"], "run")
        listed = await one.request("session/list", cwd=str(root))
        assert {s["sessionId"] for s in listed["sessions"]} == {session, made["sessionId"]}
        one.received.clear()
        await one.request("session/load", sessionId=session, cwd=str(root), mcpServers=[])
        assert one.said(session) == "Planned.", "nothing of the fork's"


@pytest.mark.req("G020")
async def test_a_turn_goes_on_for_who_comes_back(root: Path, state: Path) -> None:
    """The client went away in the middle: its turn stays open in the log."""
    async with client(root, state, SCRIPT) as one:
        await one.initialize()
        session = await one.new()
        prompt = one.ask(session, "slow")
        await one.until(lambda: one.said(session))
        assert await one.leave() == 0
        await asyncio.wait({prompt})
    async with client(root, state, SCRIPT) as two:
        await two.initialize()
        await two.request("session/load", sessionId=session, cwd=str(root), mcpServers=[])
        await two.until(lambda: two.said(session).endswith("but not the log."))


async def test_who_reads_nothing_for_a_while_misses_nothing(root: Path, state: Path) -> None:
    many = "prompt: much\n" + "".join(f"text: word{n} \n" for n in range(2000)) + SCRIPT
    async with client(root, state, many) as one:
        await one.initialize(**FS)
        session = await one.new()
        one.process.stdout._transport.pause_reading()
        prompt = one.ask(session, "much")
        other = one.ask(session, "plan")  # it is read all the same
        await asyncio.sleep(0.5)
        one.process.stdout._transport.resume_reading()
        async with asyncio.timeout(60):
            assert (await prompt)["stopReason"] == (await other)["stopReason"] == "end_turn"
        assert "word1999" in one.said(session)


def conversation(**about: Any) -> Conversation:
    return Conversation("s", "/p", [], notices=False, **about)


def chunk(text: str) -> dict[str, Any]:
    content = {"type": "text", "text": text}
    return {"sessionUpdate": "agent_message_chunk", "messageId": "4", "content": content}


def whole(text: str) -> dict[str, Any]:
    content = [{"type": "text", "text": text}] if text else []
    return {"sessionUpdate": "agent_message", "messageId": "4", "content": content}


def said(talk: Conversation, *updates: dict[str, Any]) -> list[tuple[str, str]]:
    told = [one for update in updates for one in talk.told(update)]
    assert not [p for one in told for p in problems(one, "SessionUpdate")]
    return [(one["messageId"], one["content"]["text"]) for one in told]


def test_a_whole_message_adds_what_has_not_streamed() -> None:
    talk = conversation()
    assert said(talk, chunk("Hel"), whole("Hello")) == [("4", "Hel"), ("4", "lo")]
    assert said(talk, whole("Hello")) == [("4", "Hello")], "it had been replaced by the log"


def test_a_reply_that_begins_anew_is_another_message() -> None:
    talk = conversation()
    told = said(talk, chunk("Helx"), whole(""), chunk("Good"), whole("Goodbye"))
    assert told[0] == ("4", "Helx")
    assert "".join(text for id, text in told if id != "4").strip() == "Goodbye"


def test_a_patch_becomes_a_text_before_and_after_for_each_hunk() -> None:
    patch = (
        "--- a/one.py\n+++ b/one.py\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n@@ -9 +9,2 @@\n x\n+y\n"
        "\\ No newline at end of file\n--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+n\n"
        "--- a/old.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-o\n"
        "diff --git a/x.png b/x.png\nindex 1..2 100644\nBinary files a/x.png and b/x.png differ\n"
        'diff --git "a/a \\"b\\".sql" "b/a \\"b\\".sql"\n--- "a/a \\"b\\".sql"\n'
        '+++ "b/a \\"b\\".sql"\n@@ -3,2 +3,2 @@\n--- old\n+++ new\n x\n'
    )
    part = {"type": "diff", "changes": [{"operation": "modify", "path": "/else/one.py"}],
            "patch": {"format": "git_patch", "text": patch}}  # fmt: skip
    found = [(d["path"], d.get("oldText"), d["newText"]) for d in of_call([part], "/p")]
    assert found == [
        ("/else/one.py", "a\nb\n", "a\nc\n"),
        ("/else/one.py", "x\n", "x\ny"),
        ("/p/new.py", None, "n\n"),
        ("/p/old.py", "o\n", ""),
        ('/p/a "b".sql', "-- old\nx\n", "++ new\nx\n"),
    ]
    lines = [place["line"] for place in locations(of_call([part], "/p"))["locations"]]
    assert lines == [1, 9, 1, 1, 3]


async def test_a_client_that_knows_magy_gets_its_messages_too(root: Path, state: Path) -> None:
    call = 'write_file {"path": "new.py", "content": "x = 1\\n"}'
    edit = f"prompt: edit\ncall: {call}\n---\ntext: Done.\n"
    async with client(root, state, edit) as one:
        await one.initialize(_meta={"magy": {"custom": True, "settings": {"titles": False}}})
        session = await one.new()
        await one.request("_magy/session/subscribe", sessionId=session)
        await one.turn(session, "edit")
        told = await one.until(lambda: one.asked("_magy/review/changed"))
        assert [f["path"] for f in told[-1]["params"]["files"]] == [str(root / "new.py")]
        kinds = {m["params"]["update"]["sessionUpdate"] for m in one.asked("_magy/session/update")}
        assert {"state_update", "agent_message", "tool_call_update"} <= kinds
        assert one.said(session) == "Done.", "and those of the protocol, once"
        file = (await one.request("_magy/review/get", uri=(root / "new.py").as_uri()))["file"]
        assert [hunk["state"] for hunk in file["hunks"]] == ["pending"]
