"""The vocabulary of the log: everything durable that can happen in a session.

A session is an append-only list of `Entry`; everything else is a function of that list.
Deltas (text so far, tool output so far) are not here: they pass over the bus and are never stored.

Streams are named `session/<id>` (a session's log) or `project/<hash>` (what belongs to a workspace
root and no single session: remembered permissions, trust). Large payloads are blobs, named by the
SHA-256 of their bytes in lower-case hex; an event carries the hash.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

Hash = str
"""SHA-256 of a blob's bytes, lower-case hex."""
CallId = str
"""`<request>.<n>`: the n-th tool call (from 0) of the reply to that request."""
Effect = Literal["read", "write", "exec", "net", "agent"]
Action = Literal["allow", "ask", "deny"]


class Value(BaseModel):
    """An immutable value that Magy owns; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


# --- what people and models say ---------------------------------------------------------------


class Text(Value):
    type: Literal["text"] = "text"
    text: str


class Link(Value):
    """A file mentioned by the user; the model is told its name, and may read it."""

    type: Literal["link"] = "link"
    uri: str
    name: str


class Embedded(Value):
    """Text that the user attached (a selection, a buffer), with where it came from."""

    type: Literal["embedded"] = "embedded"
    uri: str
    text: str


Content = Annotated[Text | Link | Embedded, Field(discriminator="type")]


class Thinking(Value):
    """A thinking block. `signature` (or, for a redacted block, `data`) is the provider's proof and
    must be echoed byte for byte while the tool round lasts."""

    type: Literal["thinking"] = "thinking"
    text: str = ""
    signature: str = ""
    data: str = ""


class Call(Value):
    """A tool call as the model made it. `id` is ours; `provider_id` is the provider's own.
    `invalid` holds the raw argument text when it is not a JSON object."""

    type: Literal["call"] = "call"
    id: CallId
    name: str
    arguments: dict[str, Any]
    provider_id: str = ""
    invalid: str | None = None


Part = Annotated[Text | Thinking | Call, Field(discriminator="type")]


class Usage(Value):
    """Tokens. `input` excludes what was read from or written to the prompt cache."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output + self.cache_read + self.cache_write

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
        )


class Task(Value):
    """One entry of the agent's plan, in ACP's plan shape."""

    content: str
    status: Literal["pending", "in_progress", "completed", "cancelled"] = "pending"
    priority: Literal["high", "medium", "low"] = "medium"


# --- permission ---------------------------------------------------------------------------------


class Resource(Value):
    """One thing a call would touch, as found by I/O; what the rules are matched against.

    For files `subject` is the canonical absolute path and `relative` the path below the workspace
    root (None outside). For commands `subject` is the simple command on one line and `argv` its
    words. `opaque` marks a command part that could not be understood: no allow pattern matches it.
    """

    kind: Effect
    subject: str
    relative: str | None = None
    argv: tuple[str, ...] = ()
    opaque: bool = False
    exists: bool = True


class Facts(Value):
    """What I/O found out about a call before it was judged; the tool runs from these same facts."""

    resources: tuple[Resource, ...] = ()
    cwd: str = ""
    kind: str = "other"
    """The tool's ACP kind."""
    title: str = ""
    """One line for a person: "Edit src/app.py", "Run pytest -q"."""
    preview: Hash | None = None
    """What would change, as a unified diff, where that is known beforehand."""
    problem: str | None = None
    """Why the call cannot run at all (bad arguments, outside the workspace, unknown tool)."""


class Decision(Value):
    """`rule` names what decided, for people: "agent build: bash `git status*` is allow".
    A `firm` ask is answered only by a person, never by a remembered answer or by bypass."""

    action: Action
    rule: str
    firm: bool = False


class Grant(Value):
    """A remembered answer: allows what matches `pattern` under permission key `key`."""

    id: str
    key: str
    pattern: str
    scope: Literal["session", "project"]


class FileChange(Value):
    """A file a tool changed. Hash None: the file did not exist. The blobs hold the whole bytes."""

    path: str
    before: Hash | None
    after: Hash | None
    via: Literal["editor", "disk"] = "disk"


# --- the events ---------------------------------------------------------------------------------


class Opened(Value):
    """First event of a session. `root` is the workspace root, None for a global session."""

    type: Literal["opened"] = "opened"
    root: str | None
    cwd: str
    agent: str
    model: str
    title: str = ""
    parent: str | None = None
    forked_from: tuple[str, int] | None = None


class Configured(Value):
    """A session option was changed by a person."""

    type: Literal["configured"] = "configured"
    option: Literal["agent", "model", "bypass", "title"]
    value: str


class Section(Value):
    """A named text that enters the prompt, by content hash."""

    name: str
    hash: Hash


class Limits(Value):
    """Caps on one turn; 0 is no cap. At a cap the turn ends and hands back what was done."""

    requests: int = 25
    tokens: int = 0
    seconds: float = 0
    repeats: int = 5
    """So many times the same call with the same outcome (or the same short cycle) is a loop."""


class Briefed(Value):
    """What enters every prompt from here on: agent text and context sections, tool schemas, model
    settings, the agent's permission rules. Written before the first request and when it changes."""

    type: Literal["briefed"] = "briefed"
    agent: str
    model: str
    sections: tuple[Section, ...]
    tools: tuple[Section, ...]
    readers: tuple[str, ...]
    """The tools without effects: their calls run side by side."""
    rules: Hash
    max_tokens: int
    thinking_tokens: int = 0
    temperature: float | None = None
    limits: Limits = Limits()


class Prompted(Value):
    """Inbox. A prompt arrived; it waits until an `Admitted` names it. A known `id` is ignored."""

    type: Literal["prompted"] = "prompted"
    id: str
    content: tuple[Content, ...]
    delivery: Literal["steer", "queue"] = "steer"
    by: str = ""
    """Which process prompted: its editor is the one the turn uses."""


class Requeued(Value):
    """Inbox. Waiting prompts were reordered (`order` first, the rest after) or dropped."""

    type: Literal["requeued"] = "requeued"
    order: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


class Admitted(Value):
    """Waiting prompts enter the conversation. With `opens`, they start turn `turn`."""

    type: Literal["admitted"] = "admitted"
    turn: str
    prompts: tuple[str, ...]
    first: int = 0
    """Seq of the earliest of these prompts: who shows the turn reads from there."""
    opens: bool = True


class Replied(Value):
    """A whole model reply. `request` is the seq of the last entry the request was built from, in
    decimal: the id under which its deltas were streamed."""

    type: Literal["replied"] = "replied"
    request: str
    model: str
    content: tuple[Part, ...]
    stop: Literal["end_turn", "tool_use", "max_tokens", "refusal"]
    usage: Usage = Usage()


class Judged(Value):
    type: Literal["judged"] = "judged"
    call: CallId
    facts: Facts
    decision: Decision


class Asked(Value):
    """A question to the person. `remember` proposes the narrow grants that "always" would make."""

    type: Literal["asked"] = "asked"
    id: str
    call: CallId
    title: str
    rule: str
    remember: tuple[Grant, ...] = ()


class Answered(Value):
    """Inbox. The first answer to a question; later ones are ignored. `reason` reaches the model."""

    type: Literal["answered"] = "answered"
    id: str
    allow: bool
    reason: str = ""
    scope: Literal["once", "session", "project"] = "once"
    by: str = ""


class Granted(Value):
    """A remembered permission, in the session's stream or in the project's."""

    type: Literal["granted"] = "granted"
    grant: Grant


class Withdrawn(Value):
    type: Literal["withdrawn"] = "withdrawn"
    grant: str


class Trusted(Value):
    """Project stream. A person trusts the root while its Magy files have this hash, or no more."""

    type: Literal["trusted"] = "trusted"
    root: str
    files: Hash
    trusted: bool = True


class Evidence(Value):
    """What `Recover` will need to find out whether an effect happened."""

    group: int | None = None
    """Process group of a command. Its processes carry `MAGY_CALL=<session>:<call>`."""
    changes: tuple[FileChange, ...] = ()


class Started(Value):
    """The effect of a call begins now. Committed before the effect; read calls have none."""

    type: Literal["started"] = "started"
    call: CallId
    evidence: Evidence = Evidence()


class Finished(Value):
    """The end of a call. `for_model` is what the model reads, `for_user` what a person is shown."""

    type: Literal["finished"] = "finished"
    call: CallId
    status: Literal["completed", "failed", "denied", "cancelled", "unknown", "not_run"]
    for_model: str
    for_user: str = ""
    diff: Hash | None = None
    output: Hash | None = None
    """The whole output, when `for_model` holds only a part."""
    changes: tuple[FileChange, ...] = ()
    background: int | None = None
    """Process group of a command that goes on in the background."""
    duration: float = 0.0
    """Seconds."""


class Exited(Value):
    """A background command ended. `code` None: it was lost with the process that ran it."""

    type: Literal["exited"] = "exited"
    call: CallId
    code: int | None
    output: Hash | None = None


class Planned(Value):
    type: Literal["planned"] = "planned"
    tasks: tuple[Task, ...]


class CancelAsked(Value):
    """Inbox. `turn` None cancels whatever runs; a limit (time) asks in the same way."""

    type: Literal["cancel_asked"] = "cancel_asked"
    turn: str | None = None
    why: Literal["user", "max_time", "closed"] = "user"


class Resumed(Value):
    """A process took over a session with an open turn. Calls started before and not finished are
    orphans: nothing here is running them."""

    type: Literal["resumed"] = "resumed"
    by: str


Stop = Literal[
    "end_turn", "cancelled", "error", "refusal", "max_tokens",
    "max_requests", "max_turn_tokens", "max_time", "loop",
]  # fmt: skip


class Ended(Value):
    """The turn is over. `message` is for the person: the error, or at a limit the partial work."""

    type: Literal["ended"] = "ended"
    turn: str
    stop: Stop
    message: str = ""


Event = Annotated[
    Opened | Configured | Briefed | Prompted | Requeued | Admitted | Replied | Judged | Asked
    | Answered | Granted | Withdrawn | Trusted | Started | Finished | Exited | Planned
    | CancelAsked | Resumed | Ended,
    Field(discriminator="type"),
]  # fmt: skip

INBOX = (Prompted, Requeued, Answered, CancelAsked, Configured, Granted, Withdrawn, Trusted)
"""Events that any process may append; all others need the session's lease."""


class Entry(Value):
    """One line of a log. `seq` counts from 1 without gaps; `at` is seconds since the epoch, UTC."""

    stream: str
    seq: int
    at: float
    event: Event


EVENT: TypeAdapter[Event] = TypeAdapter(Event, config=ConfigDict(defer_build=True))


def encode(event: Event) -> bytes:
    """One event as JSON."""
    return event.model_dump_json().encode()


def decode(data: bytes | str) -> Event:
    """Raises pydantic.ValidationError for an unknown kind or field."""
    return EVENT.validate_json(data)


def blobs(event: Event) -> tuple[Hash, ...]:
    """The blobs an event refers to; they live as long as some event does."""
    match event:
        case Briefed():
            return (*(s.hash for s in event.sections + event.tools), event.rules)
        case Judged(facts=Facts(preview=str(preview))):
            return (preview,)
        case Started(evidence=evidence):
            return _changed(evidence.changes)
        case Finished():
            own = tuple(h for h in (event.diff, event.output) if h)
            return own + _changed(event.changes)
        case Exited(output=str(output)):
            return (output,)
    return ()


def opens_turn(event: Event) -> bool:
    """Marked in the store, so that the last N turns are found without reading the log."""
    return isinstance(event, Admitted) and event.opens


def _changed(changes: tuple[FileChange, ...]) -> tuple[Hash, ...]:
    return tuple(h for c in changes for h in (c.before, c.after) if h)
