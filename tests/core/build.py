"""Short ways to write a log by hand."""

from __future__ import annotations

from typing import Any

from magy_server.core.events import (
    Admitted,
    Briefed,
    Entry,
    Event,
    Finished,
    Judged,
    Opened,
    Prompted,
    Replied,
    Started,
)
from magy_server.core.state.fold import fold
from magy_server.core.state.state import State
from magy_server.core.values import (
    Call,
    Decision,
    Facts,
    Limits,
    Part,
    Resource,
    Section,
    Text,
    Usage,
)

STREAM = "session/s"
READERS = ("read_file",)


class Log:
    """Appends events and folds them."""

    def __init__(self, *events: Event, limits: Limits | None = None) -> None:
        self.entries: list[Entry] = []
        self.add(Opened(root="/w", cwd="/w", agent="build", model="scripted/x"))
        self.add(briefed(limits=limits or Limits()))
        self.add(*events)

    def add(self, *events: Event) -> Log:
        for event in events:
            seq = len(self.entries) + 1
            self.entries.append(Entry(stream=STREAM, seq=seq, at=float(seq), event=event))
        return self

    @property
    def state(self) -> State:
        return fold(self.entries, State(STREAM))

    def begin(self, text: str = "do it", id: str = "p1") -> Log:
        self.add(prompted(text, id))
        return self.add(Admitted(turn=id, prompts=(id,), first=len(self.entries)))

    def reply(self, *parts: Part, stop: Any = None, tokens: int = 10) -> Log:
        kind = "tool_use" if any(isinstance(p, Call) for p in parts) else "end_turn"
        usage = Usage(input=tokens, output=tokens)
        return self.add(Replied(request=str(len(self.entries)), model="scripted/x", content=parts,
                                stop=stop or kind, usage=usage))  # fmt: skip


def briefed(**fields: Any) -> Briefed:
    about: dict[str, Any] = {
        "agent": "build", "model": "scripted/x", "sections": (Section(name="agent", hash="h1"),),
        "tools": (), "readers": READERS, "rules": "r", "max_tokens": 100,
    }  # fmt: skip
    return Briefed(**{**about, **fields})


def prompted(text: str, id: str, **fields: Any) -> Prompted:
    return Prompted(id=id, content=(Text(text=text),), **fields)


def call(id: str, name: str = "read_file", **arguments: Any) -> Call:
    return Call(id=id, name=name, arguments=arguments, provider_id=f"toolu_{id}")


def judged(id: str, action: Any = "allow", kind: Any = "read") -> Judged:
    facts = Facts(title=f"Do {id}", resources=(Resource(kind=kind, subject="/w/a"),))
    return Judged(call=id, facts=facts, decision=Decision(action=action, rule="a rule"))


def started(id: str) -> Started:
    return Started(call=id)


def finished(id: str, text: str = "done", status: Any = "completed") -> Finished:
    return Finished(call=id, status=status, for_model=text)
