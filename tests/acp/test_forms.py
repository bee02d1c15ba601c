"""A form of an MCP server is filled in where the client can: `elicitation/create`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from magy_server.acp.elicitation import asking
from magy_server.api.wire.forms import Form, FormChoice, FormField
from magy_server.api.wire.sessions import Interaction
from tests.lsp.client import RpcError
from tests.mcp.test_servers import HERE

from .harness import ASKING, GONE, AcpClient, client
from .schema import problems

METHOD = "elicitation/create"
SCRIPT = """prompt: wait
text: Waited.
prompt: fill
call: call_tool {"name": "mcp__rude__form", "arguments": {}}
---
text: Over.
"""
FORMS: dict[str, Any] = {"elicitation": {"form": {}}}
FIELDS = [
    FormField(name="branch", label="branch", hint="text", type="string", required=True, low=1,
              high=20, title="Branch", about="Where it goes"),
    FormField(name="at", label="at", hint="a date", type="string", format="date"),
    FormField(name="size", label="size", hint="a number", type="integer", low=1, high=9, default=3),
    FormField(name="rate", label="rate", hint="a number", type="number", low=0.5),
    FormField(name="push", label="push", hint="yes or no", type="boolean", default=False),
    FormField(name="one", label="one", hint="one of these", type="string",
              choices=[FormChoice(value="a", name="First"), FormChoice(value="b")]),
    FormField(name="some", label="some", hint="any", type="string", many=True, high=2,
              choices=[FormChoice(value="a"), FormChoice(value="b", name="Second")]),
]  # fmt: skip


@asynccontextmanager
async def filling(
    root: Path, state: Path, answer: Callable[[dict[str, Any]], Any], version: int = 1,
    **capabilities: Any,
) -> AsyncIterator[tuple[AcpClient, str]]:  # fmt: skip
    """A client that answers a form so, and its session, in which the server is connected."""
    words = () if version == 1 else ("--acp-v2",)
    async with client(root, state, SCRIPT, words=words) as one:
        one.handlers[METHOD] = answer
        held = {**ASKING, "permission": {"mcp__rude": "allow"}, "sandbox": {"level": "off"}}
        about: dict[str, Any] = {"_meta": {"magy": {"settings": held}}}
        if version == 1:
            await one.initialize(**about, **capabilities)
        else:
            await one.request("initialize", protocolVersion=2, info={"name": "t", "version": "1"},
                              capabilities={**about, **capabilities})  # fmt: skip
        server = {"name": "rude", "command": sys.executable, "env": [],
                  "args": [str(HERE / "rude_server.py"), "form"]}  # fmt: skip
        if version == 2:
            server["type"] = "stdio"
        made = await one.request("session/new", cwd=str(root), mcpServers=[server])
        yield one, made["sessionId"]


async def fill(one: AcpClient, session: str) -> str:
    """What the calls of the turn say in which the server asks; it may be a while until the server
    is there."""
    for _ in range(50):
        one.received.clear()
        await one.turn(session, "fill")
        said = str(one.updates("tool_call_update", session))
        if '"action"' in said:
            return said
    raise AssertionError(one.received)


@pytest.mark.req("G040", "G022")
async def test_a_form_is_filled_in_until_it_fits(root: Path, state: Path) -> None:
    answers = [{"branch": ""}, {"branch": "main", "push": "perhaps"}, {"branch": "main"}]
    asked: list[dict[str, Any]] = []

    def answer(params: dict[str, Any]) -> Any:
        asked.append(params)
        return {"action": "accept", "content": answers[len(asked) - 1]}

    async with filling(root, state, answer, **FORMS) as (one, session):
        said = await fill(one, session)
        assert '"action": "accept"' in said and '"branch": "main"' in said
        assert len(asked) == len(answers)
        assert asked[0]["message"].startswith("The MCP server rude asks: Which branch?")
        assert asked[1]["message"].startswith("branch is missing: text.")
        assert "push" in asked[2]["message"].splitlines()[0]
        assert asked[0]["sessionId"] == session and asked[0]["mode"] == "form"
        assert asked[0]["requestedSchema"]["required"] == ["branch"]
        assert [problems(one, "CreateElicitationRequest") for one in asked] == [[], [], []]
        assert not one.asked("session/request_permission")


def cannot(params: dict[str, Any]) -> Any:
    raise RpcError({"code": -32601, "message": "no such method"})


def unfit(params: dict[str, Any]) -> Any:
    return {"action": "accept", "content": {"colour": "red"}}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda params: {"action": "decline"}, ""),
        (lambda params: {"action": "cancel"}, "dismissed"),
        (lambda params: {"action": "maybe"}, "action must be one of accept, decline, cancel"),
        (lambda params: None, "action must be one of"),
        (lambda params: {"action": "accept", "content": [1]}, "content must be an object"),
        (unfit, "The form is not filled in. branch is missing"),
        (cannot, "no such method"),
    ],
    ids=["declined", "dismissed", "unknown", "null", "no object", "never fits", "no such method"],
)
async def test_what_fills_nothing_in_is_a_no(
    root: Path, state: Path, answer: Callable[[dict[str, Any]], Any], said: str
) -> None:
    async with filling(root, state, answer, **FORMS) as (one, session):
        assert '"action": "decline"' in await fill(one, session)
        await one.until(lambda: said in one.stderr.decode())
        assert (len(one.asked(METHOD)) == 3) is (answer is unfit)


async def test_who_cannot_show_forms_is_not_asked(root: Path, state: Path) -> None:
    capabilities: dict[str, Any] = {"elicitation": {"form": None, "url": {}}}
    async with filling(root, state, cannot, **capabilities) as (one, session):
        assert '"action": "decline"' in await fill(one, session)
        assert not one.asked(METHOD)
        assert "this editor cannot show one" in one.stderr.decode()


async def test_a_form_that_nobody_fills_in_stays_open_for_others(root: Path, state: Path) -> None:
    async with filling(root, state, lambda params: GONE, **FORMS) as (one, session):
        turn = one.ask(session, "fill")
        while not one.asked(METHOD):  # until the server is there
            await asyncio.wait([turn], timeout=0.1)
            if turn.done():
                turn = one.ask(session, "fill")
        listed = await one.request("_magy/interaction/list", sessionId=session)
        (question,) = listed["interactions"]
        await one.request(
            "_magy/interaction/respond", sessionId=session, outcome="allow",
            interactionId=question["interactionId"], content={"branch": "elsewhere"},
        )  # fmt: skip
        assert (await turn)["stopReason"] == "end_turn"
        assert "elsewhere" in str(one.updates("tool_call_update", session))


async def test_the_draft_has_forms_too(root: Path, state: Path) -> None:
    def answer(params: dict[str, Any]) -> Any:
        assert not problems(params, "CreateElicitationRequest", 2)
        return {"action": "accept", "content": {"branch": "main"}}

    async with filling(root, state, answer, version=2, **FORMS) as (one, session):
        while not one.asked(METHOD):
            one.received.clear()
            await one.request("session/prompt", sessionId=session,
                              prompt=[{"type": "text", "text": "fill"}])  # fmt: skip
            await one.until(lambda: "idle" in str(one.received) or one.asked(METHOD))
        await one.until(lambda: '"branch": "main"' in str(one.received))


@pytest.mark.parametrize("version", [1, 2])
def test_every_field_has_a_schema_that_the_protocol_knows(version: int) -> None:
    form = Form(server="s", message="Fill in", fields=FIELDS)
    question = Interaction.model_construct(
        session_id="s-1", interaction_id="s-1/4.0", tool_call_id="4.0", rule="asked", form=form,
        kind="form", title="?", created_at="",
    )  # fmt: skip
    asked = asking(question, form, "")
    assert not problems(asked, "CreateElicitationRequest", version)
    of = asked["requestedSchema"]["properties"]
    assert of["branch"] == {"type": "string", "title": "Branch", "description": "Where it goes",
                            "minLength": 1, "maxLength": 20}  # fmt: skip
    assert of["at"] == {"type": "string", "format": "date"}
    assert of["size"] == {"type": "integer", "minimum": 1, "maximum": 9, "default": 3}
    assert of["rate"] == {"type": "number", "minimum": 0.5}
    assert of["push"] == {"type": "boolean", "default": False}
    choices = [{"const": "a", "title": "First"}, {"const": "b", "title": "b"}]
    assert of["one"] == {"type": "string", "oneOf": choices}
    assert of["some"]["items"]["anyOf"][1] == {"const": "b", "title": "Second"}
    assert of["some"]["maxItems"] == 2
