"""Examples of every kind of update, made by the code that makes the real ones: for the page.

One short session: a prompt, an edit, a refused command, a child's result, and so on. No text here
is shown to users of Magy.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from magy_server.api.sessions.pages import page, stamped
from magy_server.core import updates
from magy_server.core.agents.child import ChildInfo
from magy_server.core.agents.mail import Closed, DataPayload, Mailed, Report, TextPayload
from magy_server.core.events import (
    Admitted,
    Answered,
    Asked,
    Briefed,
    CompactAsked,
    Compacted,
    Configured,
    Ended,
    Entry,
    Event,
    Finished,
    Judged,
    Opened,
    Planned,
    Prompted,
    Replied,
    Requeued,
    Started,
)
from magy_server.core.graphs.graph import GraphTask
from magy_server.core.graphs.progress import Attempt, GraphProgress
from magy_server.core.graphs.shown import as_text
from magy_server.core.graphs.shown import shown as graph_shown
from magy_server.core.magi.card import as_text as in_json
from magy_server.core.magi.card import card
from magy_server.core.magi.case import Case
from magy_server.core.magi.deliberation import Attempt as Try
from magy_server.core.magi.deliberation import Ballot, Deliberation, attempt
from magy_server.core.reviews.review_events import Restored
from magy_server.core.values import (
    Call,
    Decision,
    Facts,
    FileChange,
    Grant,
    Resource,
    Task,
    Text,
    Thinking,
    Usage,
)

ROOT = "/home/you/greeter"
FILE = f"{ROOT}/app.py"
BEGAN = 1_764_000_000.0
_DIFF = (
    "--- a/app.py\n+++ b/app.py\n@@ -1,2 +1,2 @@\n def greet():\n"
    "-    return 'hello'\n+    return 'good morning'\n"
)
_TEXTS: Mapping[str, str] = {"diff": _DIFF}
_WORDS = {"path": "app.py", "old_text": "'hello'", "new_text": "'good morning'"}
_EDITED = FileChange(path=FILE, before="one", after="two", via="editor")


def _judged(call: str, kind: str, title: str, decision: Decision, preview: str | None) -> Judged:
    resource = Resource(kind="write", subject=FILE)
    facts = Facts(resources=(resource,), kind=kind, title=title, preview=preview)
    return Judged(call=call, facts=facts, decision=decision)


def _turn() -> Sequence[Event]:
    """A prompt, an edit and a refused command."""
    allowed = Decision(action="allow", rule="agent build: edit -> allow")
    asking = Decision(action="ask", rule="agent build: bash `*` -> ask")
    remember = (Grant(id="g", key="bash", pattern="rm -rf build", scope="session"),)
    edit = Call(id="4.0", name="edit_file", arguments=_WORDS)
    command = Call(id="4.1", name="bash", arguments={"command": "rm -rf build"})
    said = (Thinking(text="I should edit."), Text(text="I will greet politely."), edit, command)
    return (
        Opened(root=ROOT, cwd=ROOT, agent="build", model=""),
        Prompted(id="m1", content=(Text(text="Be polite"),)),
        Briefed(agent="build", model="mine/qwen", sections=(), tools=(), readers=(), rules="r",
                max_tokens=0, window=32768),
        Admitted(turn="m1", prompts=("m1",), first=2),
        Replied(request="4", model="mine/qwen", content=said, stop="tool_use", cost=0.0042,
                usage=Usage(input=1164, output=61)),
        _judged("4.0", "edit", "Edit app.py", allowed, "diff"),
        Started(call="4.0"),
        Finished(call="4.0", status="completed", for_model="", for_user="app.py +1 -1",
                 diff="diff", changes=(_EDITED,), duration=0.007),
        _judged("4.1", "execute", "Run rm -rf build", asking, None),
        Asked(id="s1/4.1", call="4.1", title="Run rm -rf build", rule=asking.rule,
              remember=remember),
        Answered(id="s1/4.1", allow=False, reason="It takes long to build.", by="mine"),
        Finished(call="4.1", status="denied",
                 for_model="The user refused this call. Reason: It takes long to build."),
        Ended(turn="m1", stop="end_turn"),
    )  # fmt: skip


def _more() -> Sequence[Event]:
    """What else may be in a log."""
    report = Report(turn="s1/tests:task", status="completed", stop="end_turn", requests=2,
                    usage=Usage(input=900, output=40), cost=0.002, seconds=3.2)  # fmt: skip
    mail = {"sender": "s1/tests", "agent": "general", "name": "write tests", "to": "s1"}
    result = TextPayload(text="The test is in test_app.py.")
    return (
        Configured(option="title", value="Polite greetings"),
        Configured(option="review", value="propose"),
        Planned(tasks=(Task(content="Greet politely", status="completed"),
                       Task(content="Write a test", status="in_progress", priority="high"))),
        Prompted(id="m2", content=(Text(text="And say goodbye"),), delivery="queue"),
        Prompted(id="m3", content=(Text(text="And wave"),), delivery="queue"),
        Requeued(order=("m3",), dropped=("m2",)),
        Mailed(id="01K0000000000000000000000A", payload=result, report=report, **mail),
        Mailed(id="01K0000000000000000000000B", payload=DataPayload(data={"passed": 3}), **mail),
        CompactAsked(resting=True),
        Compacted(dropped=12, resting=True),
        Closed(mode="finish"),
        Restored(id="r1", turn="m1", files=True, conversation=True, changes=(_EDITED,)),
        Opened(root=ROOT, cwd=ROOT, agent="general", model="", title="write tests", parent="s1",
               call="4.0"),
        Ended(turn="m4", stop="error", message="The provider refused the key. Set another one."),
    )  # fmt: skip


def _graph() -> str:
    """A graph of which the first task is at work."""
    child = ChildInfo("s1/9.0.north.1", "s1", "north", "explore", "mine/qwen", "running", 1)
    tasks = (GraphTask(id="north", agent="explore", prompt="What does a ton cost in the north?"),
             GraphTask(id="draft", prompt="Write report.md.", needs=("north",)))  # fmt: skip
    tries = {"north": [Attempt(child, 1, "running", None)]}
    return as_text(graph_shown(GraphProgress("9.0", tasks, tries)))


def _deliberation() -> str:
    """A deliberation in which the first node has voted."""
    vote = {"verdict": "CAVEATED", "confidence": 70, "summary": "It held for a week of load.",
            "caveats": {"preconditions": ["A backup exists."]}}  # fmt: skip
    voted = (attempt("melchior", "mine/qwen", json.dumps(vote)),)
    live = (Try("mine/qwen", "live"),)
    ballots = (Ballot("melchior", voted), Ballot("balthasar", live), Ballot("casper", live))
    case = Case(question="Should the store move to Postgres?")
    return in_json(card(Deliberation("s1/10.0", case, ballots)))


_DELTAS = (
    ("text", "4", "I will "),
    ("thinking", "4", "I should "),
    ("output", "4.1", "12 passed\n"),
    ("graph", "9.0", _graph()),
    ("deliberation", "10.0", _deliberation()),
    ("progress", "4", "loading the model: 40 %"),
    ("notice", "notice", "The provider is overloaded; next try in 2 s.\n"),
)


@cache
def samples() -> Sequence[Mapping[str, Any]]:
    """Updates as `magy/session/update` carries them: those of a log, then deltas."""
    entries = [
        Entry(stream="session/s1", seq=seq, at=BEGAN + seq, event=event)
        for seq, event in enumerate((*_turn(), *_more()), 1)
    ]
    logged = [stamped(item) for item in page(entries, _TEXTS)]
    streamed = [updates.chunk(kind, id, text) for kind, id, text in _DELTAS]
    anew = [updates.emptied("text", "4"), updates.emptied("thinking", "4")]
    call = updates.chunk("call", "4.0", "", "edit_file")
    return [*logged, *filter(None, [*streamed, call]), *anew]
