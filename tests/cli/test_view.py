"""What a terminal shows of session updates: pictures that are kept as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from magy_server.cli.screen.text import ASCII, UNICODE, Span, plain
from magy_server.cli.screen.updates_view import View
from magy_server.core.events import (
    Answered,
    Asked,
    Ended,
    Entry,
    Finished,
    Judged,
    Planned,
    Prompted,
    Replied,
)
from magy_server.core.reviews.review_events import Noted
from magy_server.core.text.columns import width_of
from magy_server.core.updates import notice, tool_call, updates
from magy_server.core.values import Call, Decision, Embedded, Facts, Grant, Task, Text, Thinking

PATCH = "--- a/app.py\n+++ b/app.py\n@@ -1,2 +1,2 @@\n def greet():\n-    return 1\n+    return 2\n"
WIDTH = 60


def logged(*events: Any) -> list[dict[str, Any]]:
    """The updates of these entries; `p` names the one diff there is."""
    return [
        update
        for seq, event in enumerate(events, 1)
        for update in updates(Entry(stream="session/s", seq=seq, at=0.0, event=event), {"p": PATCH})
    ]


def text_of(id: str, text: str) -> dict[str, Any]:
    return {"sessionUpdate": "agent_message_chunk", "messageId": id,
            "content": {"type": "text", "text": text}}  # fmt: skip


def thought_of(id: str, text: str) -> dict[str, Any]:
    return {**text_of(f"{id}.thought", text), "sessionUpdate": "agent_thought_chunk"}


def output_of(call: str, text: str) -> dict[str, Any]:
    content = {"type": "content", "content": {"type": "text", "text": text}}
    return {"sessionUpdate": "tool_call_content_chunk", "toolCallId": call, "content": content}


def call(id: str, name: str, **arguments: Any) -> Replied:
    made = Call(id=id, name=name, arguments=arguments)
    return Replied(request="3", model="m", content=(made,), stop="tool_use")


def judged(id: str, title: str, kind: str, action: Any = "allow", **facts: Any) -> Judged:
    decision = Decision(action=action, rule=f"agent build: {kind} -> {action}")
    return Judged(call=id, facts=Facts(title=title, kind=kind, **facts), decision=decision)


def finished(id: str, text: str = "", status: Any = "completed", **fields: Any) -> Finished:
    return Finished(call=id, status=status, for_model=text, **fields)


def picture(spans: Iterable[Span]) -> str:
    """Styles as `‹style|text›`; each line by itself."""
    shown = []
    for text, style in spans:
        for line in text.splitlines(keepends=True):
            body = line.rstrip("\n")
            shown.append(f"‹{style}|{body}›" if style and body else body)
            shown.append(line[len(body) :])
    return "".join(shown)


def show(items: Iterable[dict[str, Any]], **options: Any) -> str:
    view = View(UNICODE, **options)
    spans = [span for item in items for span in view.update(item, WIDTH)]
    return picture(spans + view.close(WIDTH))


def test_a_whole_turn(snapshot: SnapshotAssertion) -> None:
    turn = [
        text_of("3", "# Plan\n\nI look at `app.py` first, "),
        text_of("3", "then I change **what it returns** and run the tests.\n"),
        *logged(call("3.0", "read_file", path="app.py"), judged("3.0", "Read app.py", "read")),
        *logged(finished("3.0", "1 def greet()", for_user="app.py: 2 lines")),
        *logged(Planned(tasks=(Task(content="change it", status="completed"),
                               Task(content="test it", status="in_progress"),
                               Task(content="tell"), Task(content="no", status="cancelled")))),
        *logged(call("3.1", "edit_file"), judged("3.1", "Edit app.py", "edit")),
        *logged(finished("3.1", for_user="app.py +1 -1", diff="p")),
        *logged(call("3.2", "bash", command="pytest"), judged("3.2", "Run pytest", "execute")),
        output_of("3.2", "collecting\n"),
        *logged(finished("3.2", "[exit code 1, 4 s]\n" + "\n".join(f"line {i}" for i in range(14)),
                         status="failed", duration=4.0)),
        *logged(call("3.3", "web_fetch"), judged("3.3", "Fetch x", "fetch", "deny")),
        *logged(finished("3.3", "Denied by agent build: web -> deny.", "denied")),
        notice("warning", "Model", "Overloaded. Trying again in 1 s (1)."),
        text_of("7", "Done."),
        *logged(Ended(turn="t", stop="max_requests", message="Stopped at the limit.\n- Edit")),
    ]  # fmt: skip
    assert show(turn) == snapshot


def test_what_the_agent_was_told_keeps_its_lines() -> None:
    text = "The user has not judged these yet:\n- doc.txt: 3 hunks\n- " + "long " * 16
    (told,) = logged(Noted(id="n", text=text))
    assert show([told]) == (
        "‹dim|! Told the agent: The user has not judged these yet:›\n"
        "‹dim|  - doc.txt: 3 hunks›\n"
        "‹dim|  - long long long long long long long long long long long›\n"
        "‹dim|    long long long long long›\n"
    )


def test_why_a_turn_failed_is_wrapped_between_words() -> None:
    (ended,) = logged(Ended(turn="t", stop="error", message="word " * 20 + "end."))
    lines = show([ended]).split("\n")
    assert [line.count("word") for line in lines] == [11, 9, 0]
    assert lines[0].startswith("‹red|✗ word") and lines[1].startswith("‹red|  word")


def test_why_a_call_failed_is_wrapped_between_words() -> None:
    shown = show([*logged(call("3.0", "spawn_agent"), judged("3.0", "Spawn", "other")),
                  *logged(finished("3.0", "argument " * 9, "failed"))])  # fmt: skip
    lines = [line for line in shown.split("\n") if "argument" in line]
    assert [line.count("argument") for line in lines] == [6, 3]


def test_a_notice_is_not_said_twice_in_a_row() -> None:
    again = notice("info", "Resumed", "It goes on here.")
    assert show([again, again]) == "‹dim|! Resumed: It goes on here.›\n"
    assert show([again, text_of("3", "word"), again]).count("Resumed") == 2


def test_a_task_passes_for_nothing_but_a_task() -> None:
    """Its lines are told from those of the question."""
    task = "    asked because: all is well\x1b[2J\n\n? Another question"
    items = logged(
        call("3.0", "spawn_agent"),
        judged("3.0", "Spawn general: Nice", "other", "ask", preview="p", code=True),
        question("3.0", "Spawn general: Nice"),
    )
    for item in items:
        for block in item.get("content", ()):
            block["content"]["text"] = task
    assert show(items) == (
        "‹question|? Spawn general: Nice›\n"
        "    │     asked because: all is well<U+001B>[2J\n    │ \n    │ ? Another question\n"
        "‹dim|    asked because: agent build: edit -> ask›\n"
        "‹dim|    no lasting yes: Magy cannot tell what it would allow›\n"
    )


def question(call_id: str, title: str, *grants: tuple[str, str]) -> Asked:
    remember = tuple(
        Grant(id=f"g{n}", key=key, pattern=pattern, scope="session")
        for n, (key, pattern) in enumerate(grants)
    )
    return Asked(id=f"s/{call_id}", call=call_id, title=title, rule="agent build: edit -> ask",
                 remember=remember)  # fmt: skip


@pytest.mark.parametrize("allow", [True, False])
def test_a_question_shows_what_would_be_done(snapshot: SnapshotAssertion, allow: bool) -> None:
    status, text = ("completed", "") if allow else ("denied", "The user refused this call.")
    turn = logged(
        call("3.0", "edit_file"),
        judged("3.0", "Edit app.py", "edit", "ask", preview="p"),
        question("3.0", "Edit app.py", ("edit", "src/**")),
        Answered(id="s/3.0", allow=allow, reason="" if allow else "not now", scope="session"),
        finished("3.0", text, status, diff="p" if allow else None),
    )
    assert show(turn) == snapshot


def test_a_question_about_a_command_of_several_lines(snapshot: SnapshotAssertion) -> None:
    turn = logged(
        call("3.0", "bash", command="set -e\nrm -rf build\x1b[2K\n"),
        judged("3.0", "Run set -e", "execute", "ask"),
        question("3.0", "Run set -e", ("bash", "rm *")),
    )
    assert show(turn) == snapshot


def test_a_transcript_has_what_people_said_and_leaves_nothing_out(
    snapshot: SnapshotAssertion,
) -> None:
    said = (Text(text="Why?\nSay it."), Embedded(uri="stdin:", text="a\nb\nc"))
    turn = logged(
        Prompted(id="p", content=said),
        Replied(request="3", model="m", stop="end_turn",
                content=(Thinking(text="They ask."), Text(text="Because."), Text(text="So."))),
        call("3.0", "bash", command="seq 14"),
        judged("3.0", "Run seq 14", "execute"),
        finished("3.0", "[exit code 0]\n" + "\n".join(map(str, range(14)))),
    )  # fmt: skip
    assert show(turn, whole=True, thinking=True) == snapshot


def test_an_event_adds_only_what_had_not_streamed() -> None:
    reply = Replied(request="3", model="m", content=(Text(text="one two three"),), stop="end_turn")
    assert show([text_of("3", "one "), *logged(reply)]) == "one two three\n"
    assert show([text_of("3", "one two three"), *logged(reply)]) == "one two three\n"
    assert show(logged(reply)) == "one two three\n"
    assert show([text_of("3", "other"), *logged(reply)]) == "other\none two three\n"


def test_a_reply_that_is_tried_again_begins_anew() -> None:
    emptied = {"sessionUpdate": "agent_message", "messageId": "3", "content": []}
    shown = show([text_of("3", "half a"), emptied, text_of("3", "whole")])
    assert shown == "half a\n\n‹dim|(cut off; started again)›\n\nwhole\n"


def test_thinking_is_dim_and_shown_only_when_asked_for() -> None:
    turn = [thought_of("3", "hm "), text_of("3", "Yes.")]
    assert show(turn) == "Yes.\n"
    assert show(turn, thinking=True) == "‹dim|hm›\n\nYes.\n"


def test_controls_from_model_and_tools_are_harmless() -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\u202etxt\x9b"
    turn = [
        text_of("3", "a\x1b]0;ow"),
        text_of("3", "ned\x07b\n"),
        *logged(call("3.0", evil, x=evil), judged("3.0", f"Run {evil}", "execute")),
        output_of("3.0", f"{evil}\n"),
        *logged(finished("3.0", f"[exit code 0]\n{evil}\r\n{evil}")),
        *logged(Planned(tasks=(Task(content=evil),)), Ended(turn="t", stop="error", message=evil)),
        notice("error", evil, evil),
        *logged(Prompted(id="p", content=(Text(text=evil), Embedded(uri=evil, text="x")))),
        *logged(question("3.0", evil, (evil, evil))),
        *logged(Answered(id="s/3.0", allow=False, reason=evil)),
    ]
    view = View(UNICODE, whole=True)
    text = plain([span for item in turn for span in view.update(item, WIDTH)])
    assert not set(text) & set("\x1b\x07\x9b\u202e\r")
    assert "ab" in text
    assert "<U+202E>txt" in text


@pytest.mark.parametrize(
    ("items", "live"),
    [
        ([], ""),
        ([{"sessionUpdate": "state_update", "state": "running"}], "waiting for the model"),
        ([thought_of("3", "hm")], "thinking"),
        ([text_of("3", "word ")], ""),
        ([text_of("3", "word "), tool_call("3.0", name="bash", title="bash")], "bash"),
        (logged(call("3.0", "x", a=1)), 'x {"a": 1}'),
        (logged(call("3.0", "bash"), judged("3.0", "Run a", "execute")), "Run a"),
        ([*logged(call("3.0", "bash"), judged("3.0", "Run a", "execute")),
          output_of("3.0", "one\ntw"), output_of("3.0", "o\n50 %\r60 %")], "Run a │ 3 lines: 60 %"),
        ([*logged(call("3.0", "a")), *logged(call("3.1", "b"))], "b (and 1 more)"),
        (logged(call("3.0", "a"), finished("3.0")), "waiting for the model"),
        (logged(Ended(turn="t", stop="end_turn")), ""),
    ],
)  # fmt: skip
def test_what_is_under_way(items: list[dict[str, Any]], live: str) -> None:
    view = View(UNICODE)
    for item in items:
        view.update(item, WIDTH)
    assert view.live(WIDTH) == live


def test_without_unicode_there_are_other_marks() -> None:
    view = View(ASCII)
    turn = logged(call("3.0", "a"), finished("3.0", "no\n" * 9, "failed"))
    text = plain([span for item in turn for span in view.update(item, WIDTH)])
    assert text.isascii()
    assert text.startswith("x a  failed\n")
    assert "... 3 more lines" in text


def test_updates_of_a_later_version_are_passed_over() -> None:
    assert show([{"sessionUpdate": "something_new", "content": 1}]) == ""


def test_a_question_with_a_long_diff_fits_on_the_screen() -> None:
    patch = "--- a/app.py\n+++ b/app.py\n@@ -1 +1,99 @@\n" + "".join(
        f"+line {number} {'wide ' * 20}\n" for number in range(99)
    )
    view = View(UNICODE)
    view.height = 24
    asked = Asked(id="q", call="3.0", title="Edit app.py", rule="agent build: edit")
    facts = judged("3.0", "Edit app.py", "edit", "ask", preview="p")
    items = logged(call("3.0", "edit_file", path="app.py"), facts, asked)
    for item in items:
        for block in item.get("content", ()):
            block["patch"]["text"] = patch
    text = plain([span for item in items for span in view.update(item, WIDTH)])
    rows = sum(max(1, -(-len(line) // WIDTH)) for line in text.splitlines())
    assert 12 <= rows <= 22, text
    assert "line 0 " in text and "more lines of the diff" in text
    assert text.splitlines()[-3] == "? Edit app.py  +99 -0"
    assert view.folded("q")
    assert not view.folded("another")
    whole = plain(view.unfold("q", WIDTH))
    assert all(f"+line {number} " in whole for number in range(99))
    assert whole.endswith("\n? Edit app.py  +99 -0\n")


@pytest.mark.parametrize("width", [None, 300])
def test_a_title_made_of_arguments_is_clipped(width: int | None) -> None:
    view = View(UNICODE)
    items = logged(call("3.0", "odd", text="x" * 5000), finished("3.0", "no", "failed"))
    first = plain([span for item in items for span in view.update(item, width)]).splitlines()[0]
    assert first.startswith('✗ odd {"text": "xxx')
    assert len(first) < 125


def test_a_title_of_wide_characters_leaves_its_beginning_on_the_screen() -> None:
    view = View(UNICODE)
    view.height = 24
    asked = question("3.0", f"babble of the MCP server rude: {'界' * 960} end")
    shown = "".join(text for text, _ in view.update(logged(asked)[0], 80))
    rows = sum(max(1, -(-width_of(line) // 80)) for line in shown.splitlines())
    assert rows < 24 and "? babble of the MCP server rude" in shown and "end\n" in shown
    assert view.folded(asked.id)


def test_a_card_that_goes_on_leaves_the_uppermost_row_of_the_screen() -> None:
    """What is wiped from the very top, tmux keeps: each card would stay in what scrolled by."""
    view = View(UNICODE, wraps=True)
    shown = {"box": [f"| {n} |" for n in range(40)], "rows": ["one"]}
    view.update({
        "sessionUpdate": "tool_call_update", "toolCallId": "1.0", "name": "deliberate",
        "title": "MAGI", "status": "in_progress", "_meta": {"magy": {"deliberation": shown}},
    }, 80)  # fmt: skip
    rows = plain(view.draft(80, 24)).split("\n")
    assert rows == [*shown["box"][:22], ""]
