"""Tool calls and thinking that models write into their text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.llm.text_calls import TextCalls, Thoughts

NAMES = ["read_file", "write_file"]
READ = '{"name": "read_file", "arguments": {"path": "a.py"}}'
TRICKY = '{"name":"write_file","arguments":{"text":"}\\"]```</tool_call>\\\\"}}'
A = ("read_file", {"path": "a.py"})


def read(*pieces: str) -> tuple[str, list[tuple[str, dict[str, object]]]]:
    """(text shown, calls)"""
    held = TextCalls(NAMES)
    shown = "".join(map(held.feed, pieces))
    calls, rest = held.finish()
    return shown + rest, calls


ARE_CALLS = [
    (READ, [A]),
    (f"\n\n{READ}\n", [A]),
    (f"```json\n{READ}\n```", [A]),
    (f"```\n{READ}\n```\n", [A]),
    (f"```json\n{READ}", [A]),
    (f"```json\n{READ}\n```\n\n```json\n{READ}\n```", [A, A]),
    (f"<tool_call>\n{READ}\n</tool_call>", [A]),
    (f"<tool_call>{READ}</tool_call>\n<tool_call>{READ}</tool_call>", [A, A]),
    (f"<tool_call>{READ}", [A]),
    (f"<|python_tag|>{READ}; {READ}", [A, A]),
    (f"[TOOL_CALLS] [{READ}, {READ}]", [A, A]),
    (f"[{READ}]", [A]),
    (READ.replace("arguments", "parameters"), [A]),
    (f'{{"type": "function", "function": {READ}}}', [A]),
    ('{"name": "read_file", "arguments": "{\\"path\\": \\"a.py\\"}"}', [A]),
    (f'{{"type": "function", {READ[1:]}', [A]),
    ('{"name": "read_file", "arguments": {}}', [("read_file", {})]),
    (TRICKY, [("write_file", {"text": '}"]```</tool_call>\\'})]),
]


@pytest.mark.parametrize(("text", "calls"), ARE_CALLS)
def test_what_is_a_call(text: str, calls: list[object]) -> None:
    assert read(text) == ("", calls)
    assert read(*text) == ("", calls), "piece by piece"


ARE_TEXT = [
    "",
    "  \n",
    "Hello",
    "I call " + READ,
    READ + " and more",
    f"```json\n{READ}\n```\nThis reads the file.",
    f"<tool_call>{READ}</tool_call> so",
    "```python\nprint()\n```",
    "```",
    "`read_file`",
    "<tool_call>",
    "<tool_",
    "<tool_call><function=read_file></function></tool_call>",
    "{}",
    "[]",
    "[1, 2]",
    '["a"]',
    '{"result": {"path": "a.py"}}',
    '{"type": "object", "name": "read_file", "parameters": {"type": "object"}}',
    f'{{"type": "example", "function": {READ}}}',
    f'{{"type": null, {READ[1:]}',
    '{"name": "my-package", "version": "1.0"}',
    '{"name": "delete_all", "arguments": {}}',
    '{"name": "read_file"}',
    '{"name": "read_file", "arguments": ["a"]}',
    '{"name": "read_file", "arguments": "a"}',
    '{"name": "read_file", "arguments": {"path": "a.py"}',
    '{"name": "read_file", "arguments": {}, "version": "1.0"}',
    '{"name": "read_file", "arguments": {"path": a.py}}',
    f'[{READ}, {{"name": "nothing", "arguments": {{}}}}]',
    f"{READ}\n{READ[:-3]}",
    "}{",
]


@pytest.mark.parametrize("text", ARE_TEXT)
def test_what_is_text_and_none_of_it_is_lost(text: str) -> None:
    assert read(text) == (text, [])
    assert read(*text) == (text, []), "piece by piece"


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
        "```python",
        "```jsx",
        f"```json\n{READ}\n``` T",
        f"{READ} T",
    ],
)
def test_text_is_shown_as_soon_as_it_cannot_be_a_call(begins: str) -> None:
    held = TextCalls(NAMES)
    assert "".join(map(held.feed, begins)) == begins
    assert held.feed(READ) == READ


def test_nothing_is_held_back_when_no_tools_are_offered() -> None:
    assert TextCalls([]).feed(READ) == READ


pieces = st.sampled_from(
    [READ, READ[:20], READ[20:], TRICKY, "```json\n", "```", "<tool_call>", "</tool_call>", "\n",
     " ", "{", "}", "[", "]", '"', "\\", "text", "<|python_tag|>", '"name"', ":", ";"]
)  # fmt: skip


@given(st.lists(pieces, max_size=8))
def test_everything_becomes_calls_or_stays_text(parts: list[str]) -> None:
    text = "".join(parts)
    shown, calls = read(text)
    assert (shown, calls) == read(*parts) == read(*text)
    assert (shown == text) if not calls else (shown == "")


def test_a_long_call_costs_no_more_than_its_length() -> None:
    given = json.dumps({"name": "write_file", "arguments": {"text": '}{\\" x' * 200_000}})
    cuts = range(0, len(given), 5)
    shown, calls = read(*(given[at : at + 5] for at in cuts))
    assert shown == "" and len(calls) == 1


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
