"""The log consists of these events: everything durable that can happen in a session.

A session is an append-only list of `Entry`; everything else is a function of that list.
Deltas (text so far, tool output so far) are not here: they pass over the bus and are never stored.

Streams are named `session/<id>` (a session's log), `project/<hash>` (what belongs to a workspace
root and no single session: remembered permissions, trust), `edit/<hash>` (edits below a root that
no agent made: `Started` and `Finished` of each), `review/...` or `proposal/...` (what agents did to
a file, see `review_events.py`), `completion/<day>` (what inline completion took on that day),
`reputation/<agent>` (how good its work was, see `reputation.py`).
Large payloads are blobs, named by the SHA-256 of their bytes in lower-case hex; an event carries
the hash.
"""

from typing import Annotated, Literal

from pydantic import Field

from magy_server.core.agents.mail import Closed, Mailed, Rated
from magy_server.core.agents.tree import Stream
from magy_server.core.reviews.review_events import Noted, Restored, Restoring, Reviewed
from magy_server.core.values import (
    Call,
    CallId,
    Content,
    Decision,
    Evidence,
    Facts,
    FileChange,
    Form,
    FormValue,
    GivenCall,
    Grant,
    Hash,
    Image,
    Limits,
    Part,
    Section,
    Seen,
    SkillUse,
    Task,
    Text,
    Usage,
    Value,
    Worktree,
)

# --- the events ---------------------------------------------------------------------------------


class Opened(Value):
    """First event of a session. `root` is the workspace root, None for a global session."""

    type: Literal["opened"] = "opened"
    root: str | None
    cwd: str
    agent: str
    model: str
    title: str = ""
    forked_from: tuple[str, int] | None = None
    parent: str | None = None
    """Session id. What follows is of children only."""
    call: str = ""
    """The parent's call that spawned it; "" when a person did."""
    rules: Hash | None = None
    """The narrowing rules that it was spawned with, a `Ruleset` as JSON."""
    limits: Limits | None = None
    """Caps that it was spawned with, beside the configured ones: the lower holds."""
    skills: tuple[SkillUse, ...] = ()
    """Those that were at work where an agent spawned it: they are at work in it for good."""
    place: str = ""
    """Where its tools work instead of `root`: the same directory in a git worktree."""
    worktree: Worktree | None = None
    """The worktree, for the child that it is made for."""
    plugin: str = ""
    """The only plugin of which it has anything; "": it has what its agent has."""


class Configured(Value):
    """A person changed a session option."""

    type: Literal["configured"] = "configured"
    option: Literal["agent", "model", "bypass", "title", "review"]
    value: str


class Briefed(Value):
    """What enters every prompt from here on: agent text and context sections, tool schemas, model
    settings, the agent's permission rules. Written before the first request and when it changes."""

    type: Literal["briefed"] = "briefed"
    agent: str
    model: str
    sections: tuple[Section, ...]
    tools: tuple[Section, ...]
    seldom: tuple[str, ...] = ()
    """The tools that are not shown to the model: it finds and calls them with other tools."""
    readers: tuple[str, ...]
    """The tools without effects: calls of them run side by side."""
    final: tuple[str, ...] = ()
    """The tools that end the turn when they run."""
    rules: Hash
    max_tokens: int
    """Most tokens of one reply; 0 leaves it to the provider."""
    window: int = 0
    """Tokens that the model can hold, prompt and reply together; 0: not known."""
    compact_at: int = 0
    """Tokens from which on the conversation is compacted; 0: never by itself."""
    thinking_tokens: int = 0
    temperature: float | None = None
    limits: Limits = Limits.usual()

    @property
    def shown(self) -> tuple[Section, ...]:
        """Returns the tools whose schemas are in every request."""
        return tuple(tool for tool in self.tools if tool.name not in self.seldom)


class Prompted(Value):
    """Inbox. A prompt arrived; it waits until an `Admitted` names it. A known `id` is ignored."""

    type: Literal["prompted"] = "prompted"
    id: str
    content: tuple[Content, ...]
    delivery: Literal["steer", "queue"] = "steer"
    by: str = ""
    """The process that prompted; the turn uses the editor of that process."""
    run: str = ""
    """A child's task: the run of the parent that it belongs to."""
    call: GivenCall | None = None
    """A call that the person makes: it opens the turn, which ends with it, and no model is
    asked."""
    untrusted: tuple[str, ...] = ()
    """Where what is attached comes from, as far as nobody vouches for it
    (`core/policy/strangers.py`)."""


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
    """A whole model reply; when `cancelled`, what had been said of it. `request` is the seq of the
    last entry the request was built from, in decimal: the id under which its deltas were streamed.
    `model` "": no model was asked, a person made the call. `stray_call`: its text holds a tool call
    that nobody can make.
    """

    type: Literal["replied"] = "replied"
    request: str
    model: str
    content: tuple[Part, ...]
    stop: Literal["end_turn", "tool_use", "max_tokens", "refusal", "cancelled", "stray_call"]
    usage: Usage = Usage.usual()
    cost: float | None = None
    """US dollars, by the price table of that day; None: the price is not known."""

    @property
    def text(self) -> str:
        """Returns the text of the reply."""
        return "\n\n".join(part.text for part in self.content if isinstance(part, Text)).strip()

    @property
    def calls(self) -> tuple[Call, ...]:
        return tuple(part for part in self.content if isinstance(part, Call))


class Judged(Value):
    type: Literal["judged"] = "judged"
    call: CallId
    facts: Facts
    decision: Decision


class Asked(Value):
    """A question to the person. `remember` proposes the narrow grants that "always" would make;
    `preview` and `code` are those of the call's facts. With a `form` it is not about whether the
    call may run: it runs, and its MCP server asks for something."""

    type: Literal["asked"] = "asked"
    id: str
    call: CallId
    title: str
    rule: str
    remember: tuple[Grant, ...] = ()
    preview: Hash | None = None
    code: bool = False
    form: Form | None = None


NOBODY = "nobody"
"""Who answers where nobody can: a run without a terminal refuses."""
OVER = "the end of the call"
"""Who answers what the server of a call asked, when the call is over before anybody has."""


class Answered(Value):
    """Inbox. The first answer to a question; later ones are ignored. `reason` reaches the model.
    `by`: the client, `NOBODY` or `OVER`. `content`: what was filled in, by field; only the server
    that asked gets it."""

    type: Literal["answered"] = "answered"
    id: str
    allow: bool
    reason: str = ""
    scope: Literal["once", "session", "project"] = "once"
    by: str = ""
    content: dict[str, FormValue] | None = None


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


class Reconsidered(Value):
    """Stream of a decision. The ruling `of` is reviewed; `ruling` is the id of what comes of it."""

    type: Literal["reconsidered"] = "reconsidered"
    ruling: str
    of: str


class Started(Value):
    """The effect of a call begins now. Committed before the effect; read calls have none."""

    type: Literal["started"] = "started"
    call: CallId
    evidence: Evidence = Evidence.usual()


class Finished(Value):
    """The end of a call. `for_model` is what the model reads, `for_user` what a person is shown."""

    type: Literal["finished"] = "finished"
    call: CallId
    status: Literal["completed", "failed", "denied", "cancelled", "unknown", "not_run"]
    for_model: str
    for_user: str = ""
    diff: Hash | None = None
    output: Hash | None = None
    """The whole output, when `for_model` holds only a part of it."""
    graph: Hash | None = None
    """How the graph of tasks is that it ran, as JSON for clients."""
    deliberation: Hash | None = None
    """How the deliberation went that it was, as JSON for clients."""
    images: tuple[Image, ...] = ()
    """Pictures that the model gets besides `for_model`."""
    changes: tuple[FileChange, ...] = ()
    seen: tuple[Seen, ...] = ()
    """The texts of files that the model knows from this."""
    background: int | None = None
    """The process group of a command that goes on in the background."""
    duration: float = 0.0
    """Seconds."""


class Moved(Value):
    """Commands of the session begin in another directory from here on: `cwd`, a canonical absolute
    path. `call` asked for it."""

    type: Literal["moved"] = "moved"
    call: CallId
    cwd: str


class SkillRead(Value):
    """The model has read a skill, which is at work from here on, until the turn ends."""

    type: Literal["skill_read"] = "skill_read"
    call: CallId
    skill: SkillUse


class Exited(Value):
    """A background command ended. `code` None: it was lost with the process that ran it."""

    type: Literal["exited"] = "exited"
    call: CallId
    code: int | None
    output: Hash | None = None


class Planned(Value):
    type: Literal["planned"] = "planned"
    tasks: tuple[Task, ...]


class Consulted(Value):
    """A hidden agent (title, summary) was asked about the session, outside the conversation.
    `request` is the text it was given."""

    type: Literal["consulted"] = "consulted"
    agent: str
    model: str
    request: Hash
    text: str
    usage: Usage = Usage.usual()
    cost: float | None = None


class Suggested(Value):
    """A model was asked for an inline completion. What it was sent and what it wrote are not kept:
    both are of one keystroke, and enter no conversation. `cost` is in US dollars; of a request that
    was cancelled it is an estimate. `why`: of one that failed, a sentence."""

    type: Literal["suggested"] = "suggested"
    root: str | None
    model: str
    outcome: Literal["text", "nothing", "cancelled", "failed"]
    usage: Usage = Usage.usual()
    cost: float | None = None
    why: str = ""


class CompactAsked(Value):
    """Inbox. The conversation shall be compacted, by a person's word (`focus` says what matters) or
    because the provider found it too long. `resting`: no turn was running."""

    type: Literal["compact_asked"] = "compact_asked"
    why: Literal["user", "too_long"] = "user"
    focus: str = ""
    resting: bool = False


class Compacted(Value):
    """The first `dropped` items of the conversation are replaced by the text `summary`, and the
    briefing of this moment starts a new prefix. With a `problem`, a sentence, nothing is replaced.
    `request` is the text that asked for the summary."""

    type: Literal["compacted"] = "compacted"
    dropped: int = 0
    summary: Hash | None = None
    written: bool = True
    """False: the model could not sum up, and the text is only what the log knows."""
    problem: str = ""
    resting: bool = False
    request: Hash | None = None
    model: str = ""
    usage: Usage = Usage.usual()
    cost: float | None = None


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
    "max_requests", "max_turn_tokens", "max_cost", "max_run", "max_time", "loop",
    "stray_call",
]  # fmt: skip


class Ended(Value):
    """The turn is over. `message` is for the person: the error, at a limit the partial work, and
    what became of the session's worktree. `changes` are then what could not be merged, for review.
    """

    type: Literal["ended"] = "ended"
    turn: str
    stop: Stop
    message: str = ""
    changes: tuple[FileChange, ...] = ()


Event = Annotated[
    Opened | Configured | Briefed | Prompted | Requeued | Admitted | Replied | Judged | Asked
    | Answered | Granted | Mailed | Closed | Withdrawn | Trusted | Started | Finished | Exited
    | Planned | Consulted | CompactAsked | Compacted | CancelAsked | Resumed | Ended | Noted
    | Restored | Restoring | Reviewed | Suggested | SkillRead | Moved | Rated | Reconsidered,
    Field(discriminator="type"),
]  # fmt: skip

INBOX = (
    Prompted, Requeued, Mailed, Closed, Answered, CompactAsked, CancelAsked, Configured, Consulted,
    Granted, Withdrawn, Trusted, Reconsidered, Noted, Restored, Restoring,
)  # fmt: skip
"""Events that any process may append; all others need the lease of its tree."""


class Entry(Value):
    """One line of a log. `seq` counts from 1 without gaps; `at` is seconds since the epoch, UTC."""

    stream: Stream
    seq: int
    at: float
    event: Event
