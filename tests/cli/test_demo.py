"""`magy demo`: what it says is said to the end."""

from __future__ import annotations

import os

import pytest

from magy_server.demo.screen import Screen
from tests.cli.harness import Magy


@pytest.mark.needs("git")
def test_the_fast_demo_cuts_nothing_off(magy: Magy) -> None:
    done = magy("demo", "--fast", env={"NO_COLOR": "1", "PATH": os.environ["PATH"]})
    assert done.returncode == 0, done.stderr
    for sentence in (
        "thinks  An empty list means a division by zero. I should look at the code before I say",
        "magy  I'll look at `average` first.\n",
        "magy  Understood, `build` stays. Here is the fix.\n",
        "magy  Now the tests.\n",
        "your unsaved comment there is untouched.\n",
    ):
        assert done.stdout.count(sentence) == 1, sentence
    assert "│ Ran 2 tests in" in done.stdout
    assert "│ OK\n    completed" in done.stdout


def test_only_the_rest_of_a_message_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(pause=0)
    begun = {"type": "text", "text": "One "}
    screen.update({"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": begun})
    whole = [{"type": "text", "text": "One and "}, {"type": "text", "text": "two.\n"}]
    screen.update({"sessionUpdate": "agent_message", "messageId": "m", "content": whole})
    assert capsys.readouterr().out == "  magy  One and two.\n"


@pytest.mark.parametrize("streamed", ["", "----\n", "----\nOK", "----\nOK\n"])
def test_the_output_of_a_command_is_shown_once(
    capsys: pytest.CaptureFixture[str], streamed: str
) -> None:
    screen = Screen(pause=0)
    call = {"sessionUpdate": "tool_call_update", "toolCallId": "c"}
    screen.update({**call, "title": "Run it", "kind": "execute"})
    if streamed:
        piece = {"type": "content", "content": {"type": "text", "text": streamed}}
        screen.update({**call, "sessionUpdate": "tool_call_content_chunk", "content": piece})
    text = {"type": "text", "text": "[exit code 0, 0.1 s]\n----\nOK\n"}
    about = {"magy": {"status": "completed"}}
    content = [{"type": "content", "content": text}]
    screen.update({**call, "status": "completed", "content": content, "_meta": about})
    out = capsys.readouterr().out
    assert out.count("│ ----\n") == out.count("│ OK\n") == 1
