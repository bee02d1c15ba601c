"""These events carry mail between agents, close an agent, or rate one.

A message is an event in the inbox of who gets it; its id is made of who sent it and of what it was
sent by, so the same message sent again, after a crash say, is known and ignored. It is kept in the
log like all else: what a crash interrupts is found there again.
"""

import hashlib
from collections.abc import Collection, Iterable
from typing import Annotated, Any, Literal

from pydantic import Field

from magy_server.core.values import SkillUse, Text, Usage, Value
from magy_server.regex import regex

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ULID = regex(f"[0-7][{_CROCKFORD}]{{25}}")
_TIME = 10
"""Characters of an id that are the time; the others are of the key."""


class TextPayload(Value):
    """Natural language: what the agent's model reads."""

    kind: Literal["text"] = "text"
    text: str


class DataPayload(Value):
    """Data for programs; no model reads it."""

    kind: Literal["data"] = "data"
    data: dict[str, Any]


class SignalPayload(Value):
    """A control signal. A `ping` is answered with a `heartbeat`, without a model; `cancel` stops
    the running turn; `shutdown` closes the agent."""

    kind: Literal["signal"] = "signal"
    signal: Literal["ping", "heartbeat", "cancel", "shutdown"]


Payload = Annotated[TextPayload | DataPayload | SignalPayload, Field(discriminator="kind")]
"""What streams is no mail: it passes over the bus, and the next event replaces it."""

Status = Literal["queued", "running", "waiting", "completed", "failed", "closed", "cancelled"]
"""Of a child: it waits to begin; it works; it waits for a person; how its latest turn ended; it
takes nothing more."""


class Report(Value):
    """How a child's turn ended, and what it took."""

    turn: str
    status: Status
    stop: str
    requests: int = 0
    usage: Usage = Usage.usual()
    cost: float = 0.0
    """US dollars, of the requests whose price is known."""
    unpriced: int = 0
    seconds: float = 0.0


class Mailed(Value):
    """Inbox. A message from another agent; if it is text it waits, like a prompt, until an
    `Admitted` names it. A known `id` (a ULID) is ignored. With a `report` it is the result of a
    child's turn. `run`: the run that it belongs to, see `Turn`."""

    type: Literal["mailed"] = "mailed"
    id: str
    sender: str
    """Session id."""
    agent: str
    """The sender's agent."""
    name: str = ""
    """The name of the sender's task."""
    to: str
    """Session id."""
    payload: Payload
    delivery: Literal["steer", "queue"] = "queue"
    wakes: bool = True
    """The message opens a turn by itself when nothing runs; without this it comes along with the
    next prompt."""
    run: str = ""
    correlation: str | None = None
    report: Report | None = None
    metadata: dict[str, str] = Field(default_factory=dict)
    untrusted: tuple[str, ...] = ()
    """Where texts come from that nobody vouches for and that the sender has read."""
    skills: tuple[SkillUse, ...] = ()
    """Those at work where a task comes from: they are at work in the turn that it opens."""

    @property
    def by(self) -> str:
        """No process's: whoever runs the tree opens the turn."""
        return ""

    @property
    def tasks(self) -> bool:
        """Returns whether the message comes from above and so is a task: a turn begins for it,
        whatever ended the one before."""
        return self.to.startswith(f"{self.sender}/")

    @property
    def is_signal(self) -> bool:
        return isinstance(self.payload, SignalPayload)

    @property
    def content(self) -> tuple[Text, ...]:
        """Returns what the model reads. Raises ValueError for what no model may read."""
        if not isinstance(self.payload, TextPayload):
            raise ValueError(f"mail {self.id} is {self.payload.kind}: not for a model")
        return (Text(text=self.payload.text),)


class Closed(Value):
    """Inbox. The child takes no more prompts. `finish`: what runs and waits is still done;
    `cancel`: it is not. `reason` is for people."""

    type: Literal["closed"] = "closed"
    mode: Literal["finish", "cancel"] = "finish"
    reason: str = ""
    by: str = ""


class Rated(Value):
    """Somebody or something shows how good an agent is. `score`: 0 bad to 1 good. `capability`: at
    what; "": at all that it does. `session`: the work that is rated. `by`: the session of the agent
    that rates; "" for what tasks came to and for what a person decided about changes."""

    type: Literal["rated"] = "rated"
    agent: str
    score: float = Field(ge=0, le=1)
    capability: str = ""
    weight: float = Field(default=1.0, gt=0, le=10)
    session: str
    why: Literal["task", "changes", "rating"]
    by: str = ""
    reason: str = ""


def ulid(at: float, key: str) -> str:
    """The ULID of what `key` names, at this time (seconds since the epoch): the same for the same,
    where others draw lots."""
    digest = int.from_bytes(hashlib.sha256(key.encode()).digest()[:10])
    number = (int(at * 1000) & (1 << 48) - 1) << 80 | digest
    return "".join(_CROCKFORD[number >> shift & 31] for shift in range(125, -1, -5))


def known(ids: Collection[str], id: str) -> bool:
    """Returns whether a message with this id came before: with the same id, or with a ULID of the
    same key that was made at another time."""
    return id in ids or bool(_ULID.fullmatch(id) and id[_TIME:] in keys(ids))


def keys(ids: Iterable[str]) -> frozenset[str]:
    """What names the messages among these, whenever they were made: what `key_of` gives for each.
    For asking after many of them."""
    return frozenset(one[_TIME:] for one in ids if _ULID.fullmatch(one))


def key_of(id: str) -> str:
    """Returns the part of a ULID that is the same whenever it was made."""
    return id[_TIME:]
