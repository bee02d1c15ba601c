"""Sessions that last: list, resume, attach, fork, replay, delete, and a second editor."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.loopback import ChatServer, hang, text

from .harness import SESSION, Person, RpcError, person, served

TALK = "".join(f"prompt: say {n}.\ntext: This is {n}.\n" for n in range(10))
EDIT = """
prompt: change
call: edit_file {"path": "app.py", "old_text": "'hello'", "new_text": "'goodbye'"}
---
text: Changed.
"""


async def test_a_session_goes_on_in_a_new_process(root: Path, state: Path) -> None:
    async with person(root, state, TALK) as one:
        await one.new()
        await one.turn("say 1.")
    async with person(root, state, TALK) as one:
        attached = await one.request("session/resume")
        kinds = [event["update"]["sessionUpdate"] for event in attached["events"]]
        assert "user_message" in kinds and "agent_message" in kinds
        assert attached["summary"]["session"]["title"] == "say 1."
        await one.turn("say 2.", "p2")
        assert one.said() == "This is 2."


@pytest.mark.req("E073")
async def test_a_session_comes_back_as_it_was(root: Path, state: Path) -> None:
    """Its transcript to the last word, its agent, its title and its child agents."""
    task = '{"agent": "explore", "task_name": "Look", "prompt": "say 2."}'
    script = (
        f"prompt: delegate\ncall: spawn_agent {task}\n---\ncall: wait_agent {{}}\n---\n"
        "text: Seen.\n" + TALK
    )
    kept = ("title", "agent", "root", "turns", "usage", "cost")

    async def seen(one: Person) -> tuple[Any, Any, Any]:
        attached = await one.request("session/subscribe", **{"from": {"seq": 0}})
        listed = await one.client.request("magy/child/list", {"parentSessionId": SESSION})
        about = attached["summary"]["session"]
        options = {o["configId"]: o["currentValue"] for o in attached["summary"]["configOptions"]}
        return (
            attached["events"],
            ({key: about.get(key) for key in kept}, options),
            [(c["sessionId"], c["agent"], c["state"], c["said"]) for c in listed["children"]],
        )

    async with person(root, state, script) as one:
        await one.new()
        await one.request("session/set_config_option", configId="bypass", value="on")
        await one.turn("say 1.")
        await one.turn("delegate", "p2")
        await one.request("session/set_config_option", configId="agent", value="plan")
        before = await seen(one)
    async with person(root, state, script) as one:
        after = await seen(one)
    assert after == before
    events, (_, options), children = before
    assert len(events) > 10 and options["agent"] == "plan"
    assert [child[1:3] for child in children] == [("explore", "completed")]


@pytest.mark.req("G004")
async def test_attach_is_bounded_and_older_pages_come_on_demand(root: Path, state: Path) -> None:
    async with person(root, state, TALK) as one:
        await one.new()
        for n in range(6):
            await one.turn(f"say {n}.", f"p{n}")
        attached = await one.request("session/subscribe", **{"from": {"tail": 2}})
        users = [e["update"] for e in attached["events"]
                 if e["update"]["sessionUpdate"] == "user_message"]  # fmt: skip
        assert [u["messageId"] for u in users] == ["p4", "p5"]
        floor = attached["floorSeq"]
        older = await one.request("session/events", before=floor, limit=5)
        assert older["more"] and older["events"][-1]["seq"] == floor - 1
        all_of_it = await one.request("session/events", after=0, before=floor + 1000, limit=1000)
        assert not all_of_it["more"] and all_of_it["events"][-1]["seq"] == all_of_it["headSeq"]
        caught_up = await one.request("session/subscribe", **{"from": {"seq": floor}})
        assert caught_up["events"][0]["seq"] == floor + 1


@pytest.mark.req("E072", "F013")
async def test_the_list_has_the_current_project_first_then_the_global_ones(
    root: Path, state: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    async with person(root, state, TALK) as one:
        await one.new("mine")
        await one.request("session/new", sessionId="theirs", cwd=str(other))
        await one.request("session/new", sessionId="global")
        listed = await one.request("session/list", cwd=str(root))
        found = [(s["sessionId"], s["root"]) for s in listed["sessions"]]
        assert found[0] == ("mine", str(root))
        assert set(found[1:]) == {("theirs", str(other)), ("global", None)}
        only = await one.request("session/list", cwd=str(root), only=True)
        assert [s["sessionId"] for s in only["sessions"]] == ["mine"]


@pytest.mark.req("G025")
async def test_fork_and_exact_replay(root: Path, state: Path) -> None:
    async with person(root, state, TALK) as one:
        await one.new()
        await one.turn("say 1.", "p1")
        first_end = max(u["_meta"]["magy"]["seq"] for u in one.updates("state_update"))
        await one.turn("say 2.", "p2")
        await one.request("session/fork", newSessionId="s2", seq=first_end)
        listed = {"sessionId": "s2"}
        assert await one.client.wait_for("magy/session/listChanged", listed.__eq__)
        await one.request("session/subscribe", sessionId="s2")
        prompt = [{"type": "text", "text": "say 3."}]
        await one.request("session/prompt", sessionId="s2", messageId="p3", prompt=prompt)
        await one.end("s2")
        assert await one.request("session/delete") == {"deleted": True}
        with pytest.raises(RpcError, match="no session"):
            await one.request("session/subscribe")
        attached = await one.request("session/subscribe", sessionId="s2")
        assert attached["summary"]["session"]["turns"] == 2
    done = subprocess.run(
        [sys.executable, "-m", "magy_server", "replay", "s2"],
        env={**os.environ, "MAGY_STATE_DIR": str(state)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    pairs = [json.loads(line) for line in done.stdout.splitlines()]
    said = [pair["reply"]["content"][0]["text"] for pair in pairs]
    assert said == ["This is 1.", "This is 3."]
    texts = [part["text"] for message in pairs[1]["request"]["messages"]
             for part in message["parts"]]  # fmt: skip
    assert texts == ["say 1.", "This is 1.", "say 3."]


@pytest.mark.req("G003")
async def test_a_second_process_attaches_live_and_answers(root: Path, state: Path) -> None:
    async with person(root, state, EDIT) as one, person(root, state, EDIT) as two:
        await one.new()
        await two.request("session/subscribe")
        await one.ask("change it")
        question = await two.question()
        first = await one.question()
        assert question["interactionId"] == first["interactionId"]
        assert (await two.respond(question["interactionId"]))["accepted"] is True
        late = await one.respond(question["interactionId"], allow=False)
        assert late == {"accepted": False, "winner": "allowed"}
        await one.end()
        await two.end()
        assert two.said() == one.said() == "Changed."


@pytest.mark.req("A011")
async def test_who_attaches_in_the_middle_of_a_stream_gets_what_has_streamed(
    root: Path, state: Path
) -> None:
    attached = asyncio.Event()
    async with (
        ChatServer() as server,
        person(root, state, settings=served(server)) as one,
        person(root, state, settings=served(server)) as two,
    ):
        server.reply(text("The beginning.\n"), hang(until=attached), text("The end."))
        await one.new()
        await one.ask("Go")
        await one.update("agent_message_chunk")
        await two.request("session/subscribe")
        chunk = await two.update("agent_message_chunk")
        assert chunk["content"]["text"].startswith("The")
        attached.set()
        await two.end()
        assert two.said() == "The beginning.\nThe end."


@pytest.mark.req("G020", "G022")
async def test_an_open_question_survives_sigkill(root: Path, state: Path) -> None:
    async with person(root, state, EDIT) as one:
        await one.new()
        await one.ask("change it")
        before = await one.question()
        one.client.process.kill()
        await one.client.exit_code()
    async with person(root, state, EDIT) as one:
        await one.client.wait_for("magy/interaction/changed", lambda p: p["opened"])
        (open_,) = (await one.request("interaction/list"))["interactions"]
        assert open_["interactionId"] == before["interactionId"]
        await one.request("session/resume")
        await one.respond(before["interactionId"])
        await one.end()
        assert "goodbye" in (root / "app.py").read_text()


@pytest.mark.req("G023")
async def test_remembered_permissions_are_narrow_listed_and_withdrawn(
    root: Path, state: Path
) -> None:
    script = "".join(
        f'prompt: run {n}\ncall: bash {{"command": "{command}"}}\n---\ntext: ran {n}\n'
        for n, command in enumerate(["touch a.txt", "touch a.txt", "touch b.txt", "touch a.txt"])
    )
    async with person(root, state, script) as one:
        await one.new()
        await one.ask("run 0", "p0")
        await one.answer(scope="project")
        await one.end()
        await one.turn("run 1", "p1")
        decisions = [u["_meta"]["magy"]["decision"] for u in one.updates("tool_call_update")
                     if "decision" in u.get("_meta", {}).get("magy", {})]  # fmt: skip
        assert decisions[-1]["action"] == "allow" and "touch a.txt" in decisions[-1]["rule"]
        await one.ask("run 2", "p2")
        asked = await one.question()
        for where, count in ((root, 1), (state, 0)):
            found = await one.request("interaction/list", sessionId=None, root=str(where))
            assert len(found["interactions"]) == count
        with pytest.raises(RpcError, match="A question is open: answer it or cancel the turn"):
            await one.request("checkpoint/preview", turnId="p1")
        await one.respond(asked["interactionId"], False)
        await one.end()
        grants = (await one.request("permission/list"))["grants"]
        of_root = await one.request("permission/list", sessionId=None, root=str(root))
        assert of_root["grants"] == grants
        with pytest.raises(RpcError, match="give `sessionId` or `root`"):
            await one.request("permission/list", root=str(root))
        assert {grant["scope"] for grant in grants} == {"project"}
        assert ("bash", "touch a.txt") in [(g["key"], g["pattern"]) for g in grants]
        assert all("a.txt" in grant["pattern"] for grant in grants)
        first, *rest = (grant["grantId"] for grant in grants)
        of_project = {"sessionId": None, "root": str(root), "grantId": first}
        for again in (True, False):
            withdrawn = await one.request("permission/withdraw", **of_project)
            assert withdrawn == {"withdrawn": again}
        for grant in rest:
            withdrawn = await one.request("permission/withdraw", grantId=grant)
            assert withdrawn == {"withdrawn": True}
        assert (await one.request("permission/list"))["grants"] == []
        await one.ask("run 3", "p3")
        await one.answer()
        await one.end()


@pytest.mark.req("G023")
async def test_a_remembered_path_is_that_path_alone_in_every_later_process(
    root: Path, state: Path
) -> None:
    notes, other = root / "notes.txt", root / "other.txt"
    asking: Any = {"permission": {"write": {"*.txt": "ask"}}}
    script = "".join(
        f'prompt: {file.name}\ncall: write_file {{"path": "{file}", "content": "x"}}\n'
        f"---\ntext: wrote {file.name}\n"
        for file in (notes, other)
    )
    async with person(root, state, script, settings=asking) as one:
        await one.new()
        await one.ask("notes.txt")
        await one.answer(scope="project")
        await one.end()
    notes.unlink()
    async with person(root, state, script, settings=asking) as one:
        await one.new("later")
        await one.ask("notes.txt", "p2", sessionId="later")
        await one.end("later")
        assert notes.read_text() == "x", "nobody was asked"
        await one.ask("other.txt", "p3", sessionId="later")
        asked = await one.update("_magy_interaction", lambda u: "open" in u, "later")
        refused = asked["open"]["interactionId"]
        await one.respond(refused, False, sessionId="later")
        await one.end("later")
        assert not other.exists()
        grants = (await one.request("permission/list", sessionId="later"))["grants"]
        assert [str(notes)] == [grant["pattern"] for grant in grants]
        assert not [grant for grant in grants if "other.txt" in grant["pattern"]]
        for grant in grants:
            await one.request("permission/withdraw", grantId=grant["grantId"], sessionId="later")
    async with person(root, state, script, settings=asking) as one:
        await one.new("last")
        await one.ask("notes.txt", "p4", sessionId="last")
        await one.update("_magy_interaction", lambda u: "open" in u, "last")


@pytest.mark.req("E071", "E128", "E127")
async def test_the_audit_names_what_was_decided_and_keeps_no_payload(
    root: Path, state: Path
) -> None:
    long = "x" * 300
    script = f"""
prompt: Hello
text: hi

prompt: Go
call: bash {{"command": "API_KEY=hunter2secret echo {long}"}}
---
call: write_file {{"path": "b.py", "content": "a private text"}}
---
call: edit_file {{"path": "b.py", "old_text": "private", "new_text": "secret"}}
---
call: spawn_agent {{"agent": "general", "task_name": "Greet", "prompt": "Hello"}}
---
text: ok
"""
    async with person(root, state, script) as one:
        await one.new()
        await one.ask("Go")
        await one.answer(False, reason="a private reason")
        for _ in range(3):
            await one.answer()
        await one.end()
    (file,) = (state / "audit").glob("audit-*.jsonl")
    assert file.stat().st_mode & 0o777 == 0o600
    text = file.read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    own = [line for line in lines if line["session_id"] == SESSION]
    refused = ["judged", "asked", "answered", "finished"]
    assert [line["event"] for line in own][:4] == refused
    for tool in ("write_file", "edit_file", "spawn_agent"):
        found = {line["event"] for line in own if line.get("tool") == tool}
        assert found >= {"judged", "asked", "started", "finished"}, tool
    (opened,) = [line for line in lines if line["event"] == "opened"]
    assert (opened["parent_session_id"], opened["task"]) == (SESSION, "Greet")
    assert "hunter2secret" not in text and "private" not in text and "secret" not in text
    assert "x" * 50 in text and "x" * 121 not in text and "x…" in text


@pytest.mark.req("E100", "E099")
async def test_bypass_answers_asks_but_never_a_deny(root: Path, state: Path) -> None:
    script = """
call: bash {"command": "touch made"}
---
call: write_file {"path": ".env", "content": "KEY=1"}
---
text: {{last}}
"""
    async with person(root, state, script) as one:
        await one.new()
        await one.request("session/set_config_option", configId="bypass", value="on")
        assert (await one.turn("Go"))["stopReason"] == "end_turn"
        assert (root / "made").exists() and not (root / ".env").exists()
        assert ".env" in one.said()


async def test_an_untrusted_project_may_only_narrow(root: Path, state: Path) -> None:
    (root / "magy.toml").write_text(
        '[permission]\nbash = "allow"\nnet = "deny"\n[model]\ndefault = "evil/x"\n'
    )
    script = 'call: bash {"command": "touch made"}\n---\ntext: ok\n'
    async with person(root, state, script) as one:
        shown = await one.client.wait_for("window/showMessage", lambda p: "trusted" in p["message"])
        assert "permission.bash" in shown["message"] and "model" in shown["message"]
        await one.new()
        await one.ask("Go")
        await one.answer(False)
        await one.end()
        trust = await one.client.request("magy/workspace/trust", {"root": str(root)})
        assert trust["trusted"] is False and len(trust["ignored"]) == 2
        trust = await one.client.request("magy/workspace/trust",
                                         {"root": str(root), "trusted": True})  # fmt: skip
        assert trust == {"root": str(root), "trusted": True, "ignored": []}


async def test_session_ids_are_idempotent(root: Path, state: Path) -> None:
    async with person(root, state, TALK) as one:
        await one.new()
        await one.turn("say 1.")
        again = await one.request("session/new", cwd=str(root))
        assert again["sessionId"] == SESSION
        assert (await one.ask("say 1."))["outcome"] == "known"


async def test_a_configuration_that_was_mended_is_read_without_a_restart(
    root: Path, state: Path
) -> None:
    state.mkdir(parents=True, exist_ok=True)
    (state / "magy.toml").write_text("[modle]\n")
    async with person(root, state, "text: Hello.\n") as one:
        for _ in range(2):
            with pytest.raises(RpcError, match="unknown key 'modle'"):
                await one.new()
        (state / "magy.toml").write_text("[model]\n")
        await one.new()
        await one.turn("Hello", "p1")
        shown = one.client.notifications("window/showMessage")
        assert len([told for told in shown if "modle" in told["message"]]) == 1
