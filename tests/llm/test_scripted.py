"""The scripted provider. What the examples of its page show is in test_script_docs.py."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.core.errors import InvalidConfig, ProviderError
from magy_server.core.ports import Delta, Message, Picture
from magy_server.core.values import Call, Text, Thinking, Usage
from magy_server.llm.script_format import EXHAUSTED, UNKNOWN, parse
from magy_server.llm.scripted import ScriptedProvider, pieces
from tests.patience import PATIENCE

from .conversations import ask, assistant, calling, joined, output, request, user

WORK = """
prompt: work
text: first
call: read_file {"path": "a"}
call: list_files
---
text: second
call: read_file {"path": "b"}
---
text: third

prompt: other
text: other

prompt:
text: fallback
call: read_file
---
text: fallback again
"""
CALL = calling("3.0")


async def said(script: str, *messages: Message | str) -> str:
    deltas, replied = await ask(ScriptedProvider(script), request(*messages))
    text = "".join(part.text for part in replied.content if isinstance(part, Text))
    assert joined(deltas, "text") == text
    return text


async def test_a_reply_has_all_parts_in_order() -> None:
    provider = ScriptedProvider(WORK.replace("text: first", "think: hm\ntext: a b\nthink: ok"))
    deltas, replied = await ask(provider, request("work", id="12"))
    assert replied.content == (
        Thinking(text="hm"),
        Text(text="a b"),
        Thinking(text="ok"),
        Call(id="12.0", name="read_file", arguments={"path": "a"}, provider_id="call_12_0"),
        Call(id="12.1", name="list_files", arguments={}, provider_id="call_12_1"),
    )
    assert (replied.stop, replied.model) == ("tool_use", "test-model")
    assert [d.text for d in deltas if d.kind == "text"] == ["a ", "b"]
    assert joined(deltas, "call", 0) == '{"path": "a"}'
    assert {d.name for d in deltas if d.kind == "call" and d.index == 1} == {"list_files"}
    assert [d.index for d in deltas if d.done] == [0, 1]
    assert await provider.models() == ["script"]


async def test_a_note_of_magy_is_no_prompt() -> None:
    note = "<note>\nThe user rejected other work.\n</note>"
    assert await said(WORK, user(note, "hello")) == "fallback"
    assert await said(WORK, user("do other things", note)) == "other"
    mine = "<note>\nother\n</note> of mine"
    assert await said(WORK, user(mine)) == "other"


async def test_a_picture_in_the_conversation_is_no_hindrance() -> None:
    shown = Message("user", (Text(text="work"), Picture("image/png", b"...")))
    assert await said(WORK, shown) == "first"


async def test_the_reply_follows_from_the_conversation() -> None:
    """A new provider each time: nothing is remembered, so a restart changes nothing."""
    begun = [user("please WORK on it"), assistant("first", CALL), user(output(CALL))]
    assert await said(WORK, *begun[:1]) == "first"
    assert await said(WORK, *begun) == "second"
    more = [*begun, assistant("second", CALL), user(output(CALL))]
    assert await said(WORK, *more) == "third"
    assert await said(WORK, *more, assistant("third"), "no section knows this") == EXHAUSTED
    assert await said(WORK, *more, assistant("third"), "work more") == "first"
    assert await said(WORK, *more, assistant("third"), "the other thing") == "other"


async def test_steering_that_matches_nothing_does_not_disturb() -> None:
    steered = [user("work"), assistant("first", CALL), user(output(CALL), "hurry up")]
    assert await said(WORK, *steered) == "second"
    redirected = [user("work"), assistant("first", CALL), user(output(CALL), "the other way")]
    assert await said(WORK, *redirected) == "other"


async def test_the_fallback_counts_from_the_last_prompt() -> None:
    asked = [user("anything"), assistant("fallback", CALL), user(output(CALL), "a note")]
    assert await said(WORK, *asked[:1]) == "fallback"
    assert await said(WORK, *asked) == "fallback again"
    assert await said(WORK, *asked, assistant("fallback again"), "something else") == "fallback"
    assert await said("prompt: x\ntext: y\n", "anything") == UNKNOWN


async def test_usage_is_what_the_script_says_or_an_estimate() -> None:
    sent = request("work " * 20, system=("x" * 300,))
    _, replied = await ask(ScriptedProvider("text: " + "y" * 41), sent)
    assert replied.usage == Usage(input=100, output=11)
    script = "usage: input=1200 cache_read=900\nusage: cache_write=7\ntext: " + "y" * 40
    _, replied = await ask(ScriptedProvider(script), sent)
    assert replied.usage == Usage(input=1200, output=10, cache_read=900, cache_write=7)


@pytest.mark.parametrize("stop", ["max_tokens", "refusal", "end_turn"])
async def test_stop(stop: str) -> None:
    _, replied = await ask(ScriptedProvider(f"call: read_file\nstop: {stop}\n"), request())
    assert replied.stop == stop


async def test_an_error_is_raised_so_many_times_in_each_session_and_then_the_reply_goes_on() -> (
    None
):
    provider = ScriptedProvider(
        "text: half\nerror: overloaded times=2 retry_after=0.1\ntext: whole"
    )
    for session in ("one", "two"):
        for _ in range(2):
            seen: list[object] = []
            with pytest.raises(ProviderError) as caught:
                async for item in provider.stream(request(session=session)):
                    seen.append(item)
            assert seen == [Delta("text", "half")]
            error = caught.value
            assert (error.fault, error.retryable, error.retry_after) == ("overloaded", True, 0.1)
            assert "overloaded" in error.message and "line 2" in error.message
        deltas, replied = await ask(provider, request(session=session))
        assert replied.content == (Text(text="half\nwhole"),)
        assert joined(deltas, "text") == "half\nwhole"


async def test_an_error_that_no_retry_helps() -> None:
    with pytest.raises(ProviderError) as caught:
        await ask(ScriptedProvider("error: auth\ntext: x"), request())
    assert (caught.value.fault, caught.value.retryable) == ("auth", False)


async def test_delay_and_speed() -> None:
    async def seconds(script: str) -> float:
        start = time.monotonic()
        await ask(ScriptedProvider(script), request())
        return time.monotonic() - start

    assert await seconds("text: a\ndelay: 0.3\ntext: b") >= 0.3
    assert await seconds("speed: 50\ntext: 20 characters of text") >= 0.4
    assert await seconds("speed: 1\nspeed: 0\ntext: 20 characters of text") < 15
    assert await seconds("text: " + "word " * 20_000) < 15


async def test_closing_ends_it_at_once() -> None:
    stream = ScriptedProvider("text: now\ndelay: 30\ntext: later").stream(request())
    async with asyncio.timeout(PATIENCE), aclosing(stream):  # type: ignore[type-var]
        assert await anext(stream) == Delta("text", "now")


@given(st.text())
def test_pieces_are_the_whole_text(text: str) -> None:
    assert "".join(pieces(text)) == text
    assert all(pieces(text))


@pytest.mark.parametrize(
    ("script", "line", "words"),
    [
        ("", 1, "empty"),
        ("# only a comment\n", 1, "empty"),
        ("text: a\nnonsense\n", 2, "expected `directive: value`"),
        ("\n  text: a\n", 2, "an indented line continues"),
        ("text: a\nTEXT: b\n", 2, "found 'TEXT: b'"),
        ("say: a\n", 1, "unknown directive 'say'"),
        ("text: a\n---\n", 2, "this reply is empty"),
        ("prompt: a\nprompt: b\ntext: b\n", 1, "this reply is empty"),
        ("prompt: A\ntext: a\nprompt: a\ntext: b\n", 3, "was already given at line 1"),
        ("text: a\nprompt:\ntext: b\n", 2, "was already given at line 1"),
        ("call:\n", 1, "expected `call: tool_name"),
        ("call: read_file [1]\n", 1, "must be a JSON object"),
        ("text: a\ncall: read_file {\n  'a': 1}\n", 2, "not JSON"),
        ("usage: in=3\n", 1, "found 'in=3'"),
        ("usage: input=many\n", 1, "a whole number"),
        ("delay: soon\n", 1, "delay must be a number"),
        ("speed: -1\n", 1, "speed must be a number"),
        ("error: broken\n", 1, "known are no_key, auth"),
        ("error: server times=x\n", 1, "times must be a whole number"),
        ("error: server often\n", 1, "found 'often'"),
        ("stop: tool_use\n", 1, "end_turn | max_tokens | refusal"),
    ],
)
def test_mistakes_are_named_with_their_line(script: str, line: int, words: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        parse(script, "demo.script")
    assert caught.value.message.startswith(f"demo.script, line {line}: ")
    assert words in caught.value.message


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.script"
    path.write_text("text: ünï", encoding="utf-8")
    assert ScriptedProvider(path).script == parse("text: ünï")
    path.write_text("nonsense")
    with pytest.raises(InvalidConfig, match=r"a\.script, line 1"):
        ScriptedProvider(path)
    path.write_bytes(b"text: \xff")
    with pytest.raises(InvalidConfig, match="UTF-8"):
        ScriptedProvider(path)
    with pytest.raises(InvalidConfig, match=r"missing\.script cannot be read: No such file"):
        ScriptedProvider(tmp_path / "missing.script")
