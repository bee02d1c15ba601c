"""The conversation at the top of docs/protocol.md takes place, message by message."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from magy_server.api.wire.updates import UPDATES, kind_of
from tests.e2e.harness import MAGY
from tests.lsp.client import GONE, Client

PAGE = Path(__file__).parents[2] / "docs" / "protocol.md"
FENCE = re.compile(r"^```(frame|wire|script)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HOME = "/home/you/greeter"
LEFT_OUT = "…"
UNKNOWN = ("at", "createdAt", "updatedAt", "duration")
"""Nobody knows them beforehand."""
LEARNT = ("hunkId", "revision")
"""They depend on where the project is, and the client sends them again."""
Message = dict[str, Any]


def conversation() -> Iterator[tuple[str, Message]]:
    """(-> or <-, message) in the order of the page."""
    for kind, body in FENCE.findall(PAGE.read_text("utf-8")):
        if kind == "frame":
            header, _, frame = body.partition("\n\n")
            frame = frame.removesuffix("\n")
            assert header == f"Content-Length: {len(frame.encode())}"
            yield "->", json.loads(frame)
        elif kind == "wire":
            for part in re.split(r"^(?=-> |<- )", body, flags=re.MULTILINE)[1:]:
                yield part[:2], {"jsonrpc": "2.0", **json.loads(part[3:])}


def same(told: Any, real: Any, key: str = "") -> bool:
    """Whether this is what the page tells, but for what it leaves out and cannot know."""
    if told == LEFT_OUT:
        return True
    if key in (*UNKNOWN, *LEARNT):
        return type(told) is type(real) or None not in (told, real)
    if isinstance(told, dict) and isinstance(real, dict):
        if LEFT_OUT not in told and told.keys() != real.keys():
            return False
        return all(
            name == LEFT_OUT or (name in real and same(value, real[name], name))
            for name, value in told.items()
        )
    if isinstance(told, list) and isinstance(real, list):
        some = LEFT_OUT in told
        return (some or len(told) == len(real)) and all(map(same, told, real))
    return bool(told == real)


def learnt(told: Any, real: Any) -> Iterator[tuple[str, str]]:
    """What stands on the page, and what it really is."""
    if isinstance(told, dict):
        for name, value in told.items():
            if name in LEARNT:
                yield value, real[name]
            elif name != LEFT_OUT:
                yield from learnt(value, real[name])
    elif isinstance(told, list):
        for pair in zip(told, real, strict=False):
            yield from learnt(*pair)


def cut(message: Message) -> Message:
    """The message without the text of a chunk: how a stream is cut differs from run to run."""
    if "_chunk" not in str(message.get("params")):
        return message
    update = {**message["params"]["update"], "content": LEFT_OUT}
    return {**message, "params": {**message["params"], "update": update}}


def as_known(message: Message, known: Mapping[str, str]) -> Message:
    text = json.dumps(message)
    for told, real in known.items():
        text = text.replace(told, real)
    found: Message = json.loads(text)
    return found


async def test_the_conversation_takes_place(root: Path, state: Path) -> None:
    (script,) = [body for kind, body in FENCE.findall(PAGE.read_text("utf-8")) if kind == "script"]
    state.mkdir()
    (state / "model.script").write_text(script, encoding="utf-8")
    env = {"MAGY_STATE_DIR": str(state), "MAGY_CONFIG_DIR": str(state),
           "MAGY_SCRIPT": str(state / "model.script")}  # fmt: skip
    told = json.dumps(list(conversation()), ensure_ascii=False).replace(HOME, str(root))
    async with Client.spawn(MAGY, cwd=root, env=env) as client:
        for method in ("workspace/applyEdit", "magy/editor/save"):
            client.handlers[method] = lambda params: GONE  # the page has the answers
        used: set[int] = set()
        known: dict[str, str] = {}
        text = ""

        def came(message: Message) -> bool:
            for place, real in enumerate(client.received):
                if place not in used and same(cut(message), cut(real)):
                    used.add(place)
                    known.update(learnt(cut(message), cut(real)))
                    return True
            return False

        for way, line in json.loads(told):
            message = as_known(line, known)
            params = message.get("params") or {}
            if way == "<-":
                why = f"{message}; there were {client.received[-5:]}"
                await client.wait_until(lambda message=message: came(message), why=why)
                continue
            if message.get("method") == "textDocument/didChange":
                text = params["contentChanges"][0]["text"]
            if message.get("result") == {"saved": True}:
                (root / "app.py").write_text(text, encoding="utf-8")
            client.send(message)
        assert await client.exit_code() == 0
        updates = [said["update"] for said in client.notifications("magy/session/update")]
    shapes = {kind_of(model): model for model in UPDATES}
    for update in updates:
        shapes[update["sessionUpdate"]].model_validate(update, strict=True)
    assert (root / "app.py").read_text() == "def greet():\n    return 'good morning'\n"
