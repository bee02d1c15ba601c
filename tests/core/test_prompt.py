"""What the model sees, as pictures of whole requests."""

from __future__ import annotations

import json

from magy_server.core import prompt
from magy_server.core.events import Admitted, Ended, Entry, Prompted
from magy_server.core.ports import ModelRequest, ToolOutput
from magy_server.core.state.fold import apply
from magy_server.core.state.state import State
from magy_server.core.values import Call, Embedded, Link, Section, Text, Thinking

from .build import STREAM, Log, briefed, call, finished, judged, prompted

TEXTS = {
    "h1": "You are the agent.",
    "h2": "Root: /w",
    "h3": "Root: /elsewhere",
    "t1": json.dumps({"name": "read_file", "description": "Reads.", "parameters": {}}),
}


def picture(request: ModelRequest) -> str:
    """One line an item."""
    lines = [f"request {request.id} to {request.model}"]
    lines += [f"system: {text}" for text in request.system]
    lines += [f"tool: {tool.name}: {tool.description}" for tool in request.tools]
    for message in request.messages:
        for part in message.parts:
            match part:
                case Text():
                    about = part.text.replace("\n", "\\n")
                case Thinking():
                    about = f"<thinking {part.text!r} signed {part.signature!r}>"
                case Call():
                    about = f"<call {part.id} {part.name} {json.dumps(part.arguments)}>"
                case ToolOutput():
                    error = " error" if part.error else ""
                    about = f"<output {part.call} for {part.provider_id}{error}: {part.text}>"
            lines.append(f"{message.role}: {about}")
    return "\n".join(lines)


def conversation() -> Log:
    log = Log()
    log.add(briefed(sections=(Section(name="agent", hash="h1"),),
                    tools=(Section(name="read_file", hash="t1"),)))  # fmt: skip
    log.begin("Fix it")
    log.reply(Thinking(text="Hm.", signature="sig"), Text(text="Looking."),
              call("1.0", path="a"), call("1.1", path="b"))  # fmt: skip
    log.add(judged("1.0"), judged("1.1"), prompted("Only a!", "p2"))
    log.add(finished("1.1", "B"), finished("1.0", "A"))
    return log.add(Admitted(turn="p1", prompts=("p2",), opens=False))


def test_a_tool_round_with_a_steering_prompt() -> None:
    request = prompt.build(conversation().state, TEXTS)
    assert (
        picture(request)
        == """\
request 12 to scripted/x
system: You are the agent.
tool: read_file: Reads.
user: Fix it
assistant: <thinking 'Hm.' signed 'sig'>
assistant: Looking.
assistant: <call 1.0 read_file {"path": "a"}>
assistant: <call 1.1 read_file {"path": "b"}>
user: <output 1.0 for toolu_1.0: A>
user: <output 1.1 for toolu_1.1: B>
user: Only a!"""
    )


def test_a_changed_section_is_said_where_it_happened_and_the_prefix_stays() -> None:
    sections = (Section(name="agent", hash="h1"), Section(name="environment", hash="h2"))
    log = Log(briefed(sections=sections)).begin("One").reply(Text(text="1"))
    before = prompt.build(log.state, TEXTS)
    log.add(Ended(turn="p1", stop="end_turn"))
    moved = (Section(name="agent", hash="h1"), Section(name="environment", hash="h3"))
    log.add(briefed(sections=moved)).begin("Two", "p2")
    after = prompt.build(log.state, TEXTS)
    assert after.system == before.system
    assert picture(after).splitlines()[-2:] == [
        'user: <updated section="environment">\\nRoot: /elsewhere\\n</updated>',
        "user: Two",
    ]


def test_another_model_starts_a_new_prefix() -> None:
    log = Log().begin("One").reply(Text(text="1")).add(Ended(turn="p1", stop="end_turn"))
    log.add(briefed(model="other/y", sections=(Section(name="agent", hash="h2"),)))
    request = prompt.build(log.begin("Two", "p2").state, TEXTS)
    assert (request.model, request.system) == ("other/y", ("Root: /w",))


def test_each_request_extends_the_one_before() -> None:
    log = Log().begin("Go")
    earlier = prompt.build(log.state, TEXTS)
    for round in range(5):
        id = f"{len(log.entries)}.0"
        log.reply(call(id, path=str(round))).add(judged(id), finished(id, f"text {round}"))
        later = prompt.build(log.state, TEXTS)
        assert later.messages[: len(earlier.messages)] == earlier.messages
        assert (later.system, later.tools) == (earlier.system, earlier.tools)
        earlier = later


def test_every_call_has_an_output_even_in_a_log_that_stops_in_the_middle() -> None:
    log = Log().begin("Go").reply(call("1.0"), call("1.1")).add(judged("1.0"), finished("1.0"))
    last = prompt.build(log.state, TEXTS).messages[-1]
    assert [(part.call, part.error) for part in last.parts] == [("1.0", False), ("1.1", True)]


def test_attached_text_and_mentions_are_told_with_their_place() -> None:
    content = (Text(text="See"), Link(uri="file:///w/a.py", name="a.py"),
               Embedded(uri="file:///w/b.py", text="x = 1"))  # fmt: skip
    log = Log(Prompted(id="p", content=content), Admitted(turn="p", prompts=("p",)))
    assert picture(prompt.build(log.state, TEXTS)).splitlines()[-3:] == [
        "user: See",
        "user: [The user mentions the file a.py (file:///w/a.py)]",
        'user: <context from="file:///w/b.py">\\nx = 1\\n</context>',
    ]


def test_replay_gives_back_every_request_that_was_sent() -> None:
    log = Log().begin("Go")
    sent = []
    for _ in range(3):
        sent.append(prompt.build(log.state, TEXTS))
        id = f"{len(log.entries)}.0"
        log.reply(call(id)).add(prompted("noise", f"n{id}", delivery="queue"))
        log.add(judged(id), finished(id))
    entries: list[Entry] = log.entries
    assert [request for request, _ in prompt.requests(entries, State(STREAM), TEXTS)] == sent


def test_what_was_built_stays_built() -> None:
    """Each request made of what the one before left is the request that is made anew, with the same
    messages up to the last reply: the very objects."""
    log = conversation()
    log.reply(Text(text="Read."), call("2.0", path="c"))
    log.add(judged("2.0"), finished("2.0", "C"))
    log.add(briefed(sections=(Section(name="agent", hash="h1"), Section(name="root", hash="h2")),
                    tools=(Section(name="read_file", hash="t1"),)))  # fmt: skip
    log.reply().reply(Text(text="Done.")).add(Ended(turn="p1", stop="end_turn"))
    log.begin("And now?", "p3").reply(Thinking(text="Hm.", signature="s"), Text(text="Nothing."))
    log.add(Ended(turn="p3", stop="end_turn")).begin("Sure?", "p4")
    state, built, requests = State(STREAM), None, 0
    for entry in log.entries:
        state = apply(state, entry)
        if state.conversation.prefix is None or state.conversation.briefing is None:
            continue
        begun = prompt.begun(state, built)
        assert prompt.needed(begun, state) <= TEXTS.keys()
        request, built = prompt.build_on(begun, state, TEXTS, {})
        assert request == prompt.build(state, TEXTS)
        assert built.messages == request.messages[: request.so_far.settled]
        kept = request.messages[: len(begun.messages)]
        assert all(one is other for one, other in zip(kept, begun.messages, strict=True))
        assert request.so_far.settled in (0, *range(len(request.messages) - 1, 99))
        requests += 1
    assert requests > 15 and len(begun.messages) > 6


def test_what_was_taken_back_is_built_anew() -> None:
    log = conversation()
    log.reply(Text(text="Read."))
    _, built = prompt.build_on(prompt.begun(log.state, None), log.state, TEXTS, {})
    other = conversation().reply(Text(text="Something else.")).begin("Why?", "p3")
    begun = prompt.begun(other.state, built)
    assert begun.messages == ()
    assert prompt.build_on(begun, other.state, TEXTS, {})[0] == prompt.build(other.state, TEXTS)
    again = prompt.begun(log.begin("More", "p4").state, built)
    assert again is built
