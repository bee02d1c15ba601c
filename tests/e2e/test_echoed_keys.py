"""A key that comes back, from a provider or out of a command, is neither shown nor stored."""

from __future__ import annotations

import base64
import json
import urllib.parse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.loopback import AnthropicServer, ChatServer, Fault, ModelServer, ResponsesServer
from tests.loopback.parts import ErrorEvent, call, text, thinking

from .harness import Person, person

KEY = "sk-live-Ab3/dE-" + "f0G+" * 8
FORMS = [
    KEY,
    KEY.upper(),
    urllib.parse.quote(KEY, safe=""),
    base64.b64encode(b"user:" + KEY.encode()).decode(),
    base64.b64encode(KEY.encode()).decode(),
    KEY.encode().hex(),
]
PARTS = [KEY[12:28], KEY[12:28].upper(), KEY[12:28].replace("+", "%2B").replace("/", "%2F"),
         FORMS[3][24:40], FORMS[4][12:30], KEY.encode().hex()[30:60]]  # fmt: skip
WIRES = {"openai-chat": ChatServer, "anthropic": AnthropicServer, "openai": ResponsesServer}


@asynccontextmanager
async def talking(
    root: Path, state: Path, server: ModelServer, kind: str = "openai-chat"
) -> AsyncIterator[Person]:
    provider = {"name": "corp", "kind": kind, "base_url": server.base_url, "api_key_env": "CORP"}
    settings: dict[str, Any] = {
        "provider": [provider],
        "model": {"default": "corp/test-model", "retries": 0},
        "permission": {},
    }
    async with person(root, state, env={"CORP": KEY}, settings=settings) as one:
        await one.new()
        yield one


def nowhere(one: Person, state: Path, root: Path) -> None:
    """In nothing that the client was sent, that the log of the process holds, or that is stored."""
    told = {"the client": json.dumps(one.client.received), "stderr": str(one.client.log)}
    for path in state.rglob("*"):
        if path.is_file():
            told[path.name] = path.read_bytes().decode("latin-1")
    for where, said in told.items():
        for part in PARTS:
            assert part not in said, where


@pytest.mark.parametrize("kind", WIRES)
async def test_of_a_reply_in_pieces(root: Path, state: Path, kind: str) -> None:
    async with WIRES[kind]() as server, talking(root, state, server, kind) as one:
        for form in FORMS:
            pieces = tuple(form[at : at + 5] for at in range(0, len(form), 5))
            server.reply(text(f"You sent {form}!", pieces=("You sent ", *pieces, "!")))
        server.reply(call("bash", {"command": f"make {KEY}"}))
        server.reply(text("Done."))
        for number, _ in enumerate(FORMS):
            await one.turn("Which key?", id=f"p{number}")
        await one.ask("Echo it", id="p9")
        question = await one.question()
        assert "make [redacted]" in json.dumps(question)
        await one.respond(question["interactionId"])
        await one.update("state_update", lambda u: u["state"] == "idle")
        assert one.said().count("You sent ") == len(FORMS) and "[redacted]!" in one.said()
        assert len(server.asked) == len(FORMS) + 2
        nowhere(one, state, root)
    nowhere(one, state, root)


@pytest.mark.parametrize("kind", WIRES)
@pytest.mark.parametrize("before", [0, 100, 470, 485])
async def test_of_an_error(root: Path, state: Path, kind: str, before: int) -> None:
    """Long words of a provider are cut, perhaps in the middle of the key."""
    async with WIRES[kind]() as server, talking(root, state, server, kind) as one:
        said = f"{'x' * before} Incorrect API key provided: {KEY}. Or {FORMS[3]}, {FORMS[2]}"
        server.fault("401", message=said)
        server.reply(text("Well"), ErrorEvent("overloaded_error", said))
        for number in range(2):
            ended = await one.turn("Go", id=f"p{number}")
            assert KEY[:8] not in json.dumps(ended)
        nowhere(one, state, root)
    nowhere(one, state, root)


async def test_of_thinking_that_was_signed(root: Path, state: Path) -> None:
    async with AnthropicServer() as server, talking(root, state, server, "anthropic") as one:
        server.reply(thinking(f"They use {KEY}."), call("list_dir", {"path": "."}))
        server.reply(text("Done."))
        ended = await one.turn("Go")
        assert ended["stopReason"] == "end_turn", ended
        assert KEY not in json.dumps(server.requests[-1].body)
        nowhere(one, state, root)


async def test_of_a_command_and_of_a_file(root: Path, state: Path) -> None:
    """At once and in pieces, whole and encoded, to the person, the model and the log."""
    (root / "key.txt").write_text(f"the key is {KEY}\n")
    slow = f"for i in {' '.join(KEY)}; do printf %s $i; sleep 0.02; done; echo; "
    line = slow + "cat key.txt; base64 key.txt; base64 -w0 key.txt; xxd -p key.txt | tr -d '\\n'"
    long = "seq 20000; cat key.txt; seq 20000"
    async with ChatServer() as server, talking(root, state, server) as one:
        server.reply(call("bash", {"command": line}), call("bash", {"command": long}))
        server.reply(call("grep", {"pattern": "the key"}))
        server.reply(text("Done."))
        server.reply(call("read_file", {"path": "key.txt"}))
        server.reply(text("Done."))
        await one.ask("Go")
        await one.answer()
        await one.end()
        nowhere(one, state, root)
        await one.turn("Read it", id="p2")  # now the text of the file is kept, for merging edits
        told = json.dumps([request.body for request in server.asked])
        assert told.count("the key is [redacted]") >= 2
        told += json.dumps(one.client.received)
        assert not [part for part in PARTS if part in told]
    assert KEY in (root / "key.txt").read_text()


async def test_of_a_list_of_models_to_the_doctor(root: Path, state: Path) -> None:
    fault = Fault("401", message=f"Incorrect API key provided: {KEY}")
    async with ChatServer(models=fault) as server, talking(root, state, server) as one:
        (state / "magy.toml").write_text(
            f'[[provider]]\nname = "corp"\nkind = "openai-chat"\napi_key_env = "CORP"\n'
            f'base_url = "{server.base_url}"\n'
        )
        found = await one.client.request("magy/doctor/run", {"cwd": str(root)})
        assert "[redacted]" in json.dumps(found)
        assert not [part for part in PARTS if part in json.dumps(found)]
