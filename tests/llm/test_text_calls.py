"""Tool calls and thinking that models write into their text."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.core.events import Replied
from magy_server.core.ports import Delta, ToolSchema
from magy_server.core.values import Call, Text
from magy_server.llm.anthropic import AnthropicProvider
from magy_server.llm.http_provider import HttpProvider
from magy_server.llm.openai import ChatProvider, ResponsesProvider
from magy_server.llm.text_calls import Holding, Tools, calls_in, stray
from magy_server.llm.thoughts import Thoughts
from tests.loopback import (
    AnthropicServer,
    ChatServer,
    ModelServer,
    Part,
    ResponsesServer,
    call,
    text,
    thinking,
)

from .conversations import ask, request
from .talking import talking


def schema(name: str, required: list[str], **types: str) -> ToolSchema:
    properties = {key: {"type": type} for key, type in types.items()}
    parameters = {"type": "object", "properties": properties, "required": required}
    return ToolSchema(name, "One.", parameters)


SCHEMAS = (
    schema("read_file", ["path"], path="string", limit="integer"),
    schema("write_file", [], text="string"),
)
TOOLS = Tools(SCHEMAS)
READ = '{"name": "read_file", "arguments": {"path": "a.py"}}'
BARE = '{"path": "a.py"}'
TRICKY = '{"name":"write_file","arguments":{"text":"}\\"]```</tool_call>\\\\"}}'
A = ("read_file", {"path": "a.py"})
OTHER = '{"name": "delete_all", "arguments": {"really": true}}'


def shown(*pieces: str) -> str:
    """What is shown while it streams."""
    holding = Holding(TOOLS)
    return "".join(map(holding.feed, pieces))


ARE_CALLS = [
    (READ, [A]),
    (f"\n\n{READ}\n", [A]),
    (f"```json\n{READ}\n```", [A]),
    (f"```\n{READ}\n```\n", [A]),
    (f"```tool_call\n{READ}\n```\n", [A]),
    (f"```json\n{READ}", [A]),
    (f"```json\n{READ}\n```\n\n```json\n{READ}\n```", [A, A]),
    (f"<tool_call>\n{READ}\n</tool_call>", [A]),
    (f"<tool_call>\n```json\n{READ}\n```\n</tool_call>", [A]),
    (f"<tools>\n{READ}\n</tools>", [A]),
    (f"<function_call> {READ} </function_call>", [A]),
    (f"<functioncall> {READ}", [A]),
    (f"<|tool_call|>[{READ}]<|/tool_call|>", [A]),
    (f"<tool_call>{READ}</tool_call>\n<tool_call>{READ}</tool_call>", [A, A]),
    (f"<tool_call>{READ}", [A]),
    (f"<|python_tag|>{READ}; {READ}", [A, A]),
    (f"[TOOL_CALLS] [{READ}, {READ}]", [A, A]),
    (f"[TOOL_CALLS]read_file[ARGS]{BARE}", [A]),
    (f"[TOOL_CALLS]read_file{BARE}", [A]),
    (f"[TOOL_REQUEST]{READ}[END_TOOL_REQUEST]", [A]),
    (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.read_file:0"
        f"<|tool_call_argument_begin|>{BARE}<|tool_call_end|><|tool_calls_section_end|>",
        [A],
    ),
    (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read_file\n"
        f"```json\n{BARE}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        [A],
    ),
    (
        "<|channel|>commentary to=functions.read_file <|constrain|>json<|message|>"
        f"{BARE}<|call|>",
        [A],
    ),
    ("<function=read_file>" + BARE + "</function>", [A]),
    (
        "<tool_call>\n<function=read_file>\n<parameter=path>\na.py\n</parameter>\n"
        "<parameter=limit>\n5\n</parameter>\n</function>\n</tool_call>",
        [("read_file", {"path": "a.py", "limit": 5})],
    ),
    (
        '<function_calls>\n<invoke name="read_file">\n<parameter name="path">a.py</parameter>\n'
        "</invoke>\n</function_calls>",
        [A],
    ),
    ('read_file(path="a.py")', [A]),
    ('[read_file(path="a.py"), read_file("b.py", limit=3)]',
     [A, ("read_file", {"path": "b.py", "limit": 3})]),
    ('```tool_code\nprint(default_api.read_file(path="a.py"))\n```', [A]),
    (f"[{READ}]", [A]),
    (READ.replace("arguments", "parameters"), [A]),
    (READ.replace("arguments", "input").replace('"name"', '"type": "tool_use", "name"'), [A]),
    (READ.replace('"name"', '"tool"').replace("arguments", "args"), [A]),
    (READ.replace('"name"', '"action"').replace("arguments", "action_input"), [A]),
    (READ.replace('"name"', '"function"'), [A]),
    (READ.replace("read_file", "functions.read_file"), [A]),
    (f'{{"thought": "I read it.", {READ[1:]}', [A]),
    (f'{{"type": "function", "function": {READ}}}', [A]),
    (f'{{"tool_calls": [{READ}, {{"type": "function", "function": {READ}}}]}}', [A, A]),
    (f'{{"function_call": {READ}}}', [A]),
    ('{"name": "read_file", "arguments": "{\\"path\\": \\"a.py\\"}"}', [A]),
    ('{"name": "read_file", "path": "a.py"}', [A]),
    ('{"read_file": {"path": "a.py"}}', [A]),
    ('{"name": "write_file"}', [("write_file", {})]),
    (f'{{"type": "function", {READ[1:]}', [A]),
    ('{"name": "read_file", "arguments": {}}', [("read_file", {})]),
    ('{"name": "write_file", "arguments": {"text": "a\nb"}}', [("write_file", {"text": "a\nb"})]),
    (TRICKY, [("write_file", {"text": '}"]```</tool_call>\\'})]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "calls"), ARE_CALLS)
def test_what_is_a_call(text: str, calls: list[object]) -> None:
    assert calls_in(text, TOOLS) == calls
    assert shown(text) == shown(*text) == "", "nobody sees it as text"


ARE_TEXT = [
    "",
    "  \n",
    "Hello",
    "```python\nprint()\n```",
    "```",
    "`read_file`",
    "<tool_call>",
    "The tag `<tool_call>` begins a call.",
    "<tool_",
    "{}",
    "[]",
    "[1, 2]",
    '["a"]',
    '{"result": {"path": "a.py"}}',
    '{"type": "object", "name": "read_file", "parameters": {"type": "object"}}',
    f'{{"type": "example", "function": {READ}}}',
    f'{{"type": null, {READ[1:]}',
    '{"name": "my-package", "version": "1.0"}',
    '{"name": "ada", "path": "a.py"}',
    f"A call looks like this:\n```json\n{OTHER}\n```\n" + "It names a tool of yours. " * 9,
    "I use read_file(path) for that.",
    "}{",
    "{" * 5000,
    "<" * 32_000,
    "[" * 32_000,
]


@pytest.mark.parametrize("text", ARE_TEXT)
def test_what_is_text(text: str) -> None:
    assert calls_in(text, TOOLS) == []
    assert not stray(text, TOOLS)


ARE_STRAY = [
    "I call " + READ,
    READ + " and more",
    f"I read it first.\n\n```json\n{READ}\n```",
    f"```json\n{READ}\n```\nThis reads the file.",
    f"<tool_call>{READ}</tool_call> so",
    f"I look.\n<tool_call>\n{OTHER}\n</tool_call>",
    "<tool_call>{'name': 'read_file'}</tool_call>",
    "<tool_call><function=read_all></function></tool_call>",
    OTHER,
    f"```json\n{OTHER}\n```",
    f"I delete it all.\n{OTHER}",
    f"[{READ}, {OTHER}]",
    f"{READ}\n{READ[:-3]}",
    '{"name": "read_file"}',
    '{"name": "read_file", "arguments": ["a"]}',
    '{"name": "read_file", "arguments": "a"}',
    '{"name": "read_file", "arguments": {"path": "a.py"}',
    '{"name": "read_file", "arguments": {}, "version": "1.0"}',
    '{"name": "read_file", "arguments": {"path": a.py}}',
]


@pytest.mark.parametrize("text", ARE_STRAY)
def test_a_call_that_nobody_makes(text: str) -> None:
    assert calls_in(text, TOOLS) == []
    assert stray(text, TOOLS)


@pytest.mark.parametrize(
    "begins",
    [
        "Hello",
        "`x",
        "<b",
        '{"result"',
        '{"name": "my-package"',
        "{1",
        "[1",
        "```jsx",
        "readme",
        "| a | b |",
    ],
)
def test_text_is_shown_as_soon_as_it_cannot_be_a_call(begins: str) -> None:
    holding = Holding(TOOLS)
    assert "".join(map(holding.feed, begins)) == begins
    assert holding.feed(READ) == READ


def test_nothing_is_a_call_when_no_tools_are_offered() -> None:
    none = Tools([])
    assert Holding(none).feed(READ) == READ
    assert calls_in(READ, none) == [] and not stray(READ, none)


pieces = st.sampled_from(
    [READ, READ[:20], READ[20:], TRICKY, "```json\n", "```", "<tool_call>", "</tool_call>", "\n",
     " ", "{", "}", "[", "]", '"', "\\", "text", "<|python_tag|>", '"name"', ":", ";", OTHER,
     "<function=read_file>", "</function>", "read_file(", ")", "[TOOL_CALLS]", "read_file"]
)  # fmt: skip


@given(st.lists(pieces, max_size=8))
def test_nothing_of_a_text_is_lost(parts: list[str]) -> None:
    """However it is cut; and with an offered tool in it a call is made, or it is an error."""
    text = "".join(parts)
    for cut in (parts, [text], list(text)):
        holding = Holding(TOOLS)
        assert "".join(map(holding.feed, cut)) + holding.release() == text
    if READ in text and not set('"{\\') & set(text.replace(READ, "")):
        assert calls_in(text, TOOLS) or stray(text, TOOLS)


def test_a_long_call_costs_no_more_than_its_length() -> None:
    given = json.dumps({"name": "write_file", "arguments": {"text": '}{\\" x' * 200_000}})
    cuts = range(0, len(given), 5)
    assert shown(*(given[at : at + 5] for at in cuts)) == ""
    assert len(calls_in(given, TOOLS)) == 1


# --- on every wire -------------------------------------------------------------------------------

WIRES: list[tuple[type[ModelServer], type[HttpProvider]]] = [
    (AnthropicServer, AnthropicProvider),
    (ResponsesServer, ResponsesProvider),
    (ChatServer, ChatProvider),
]


async def asked(
    wire: tuple[type[ModelServer], type[HttpProvider]], *parts: Part
) -> tuple[list[Delta], Replied]:
    server = wire[0]()
    server.reply(*parts)
    offered = replace(request("Go on"), tools=SCHEMAS)
    async with talking(server, wire[1]) as provider:
        return await ask(provider, offered)


@pytest.mark.req("G031")
@pytest.mark.parametrize("wire", WIRES)
async def test_a_call_in_the_text_is_made(wire: Any) -> None:
    deltas, replied = await asked(wire, thinking("Hm.", "c2ln"), text(f"```json\n{READ}\n```"))
    [made] = [part for part in replied.content if isinstance(part, Call)]
    assert (made.name, made.arguments, replied.stop) == (*A, "tool_use")
    assert not any(delta.kind == "text" for delta in deltas)
    assert not any(isinstance(part, Text) for part in replied.content)


@pytest.mark.parametrize("wire", WIRES)
async def test_a_call_beside_other_text_is_no_end(wire: Any) -> None:
    _, replied = await asked(wire, text(f"I read it.\n{READ}"))
    assert replied.stop == "stray_call"
    assert replied.content == (Text(text=f"I read it.\n{READ}"),)


@pytest.mark.parametrize("wire", WIRES)
async def test_text_beside_a_real_call_is_text(wire: Any) -> None:
    _, replied = await asked(wire, text(READ), call("read_file", {"path": "b.py"}))
    [text_, made] = replied.content
    assert (text_, replied.stop) == (Text(text=READ), "tool_use")
    assert isinstance(made, Call) and made.arguments == {"path": "b.py"}


# --- thinking -----------------------------------------------------------------------------------


def think(*pieces: str) -> tuple[str, str]:
    thoughts = Thoughts()
    found = [thoughts.feed(piece) for piece in pieces] + [thoughts.finish()]
    return "".join(t for t, _ in found), "".join(t for _, t in found)


@pytest.mark.parametrize(
    ("said", "thinking", "text"),
    [
        ("<think>\nHm.\n</think>\n\nYes.", "Hm.\n", "Yes."),
        ("\n<think></think>Yes.", "", "Yes."),
        ("<think>a < b </thin</think>c", "a < b </thin", "c"),
        ("<think>never closed", "never closed", ""),
        ("<thinking about it", "", "<thinking about it"),
        ("<th", "", "<th"),
        ("  Yes <think>no</think>", "", "  Yes <think>no</think>"),
        ("", "", ""),
        (" \n", "", " \n"),
    ],
)
def test_thinking_at_the_beginning(said: str, thinking: str, text: str) -> None:
    assert think(*said) == think(said) == (thinking, text)
