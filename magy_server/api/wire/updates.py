"""Updates tell what happens in a session. They come as `magy/session/update` for each session that
the client subscribed to, and in the pages that `magy/session/subscribe`, `resume` and `events`
return. `sessionUpdate` says of which kind an update is. A client ignores kinds and fields that it
does not know.

**Entries and deltas.** Most updates come from an entry of the session's log. Entries are permanent:
they are sent again to every client that attaches. Deltas carry what streams: the kinds that end
with `_chunk`, `_magy_progress`, a first `tool_call_update`, a `notice` of the title `Model`. Magy
never stores deltas, and merges or drops them when a client reads slowly. A client may ignore all of
them and misses nothing in the end.

**`seq` and `at`.** An update from the log has both: `seq` is the number of its entry, from 1, and
`at` is its time in seconds since 1970, UTC. In a notification they stand in `update._meta.magy`. In
a page they stand beside `update`. A delta has neither. One entry may give several updates, which
have the same `seq` and come directly after each other. Some entries give none, so numbers may be
missing.

**Text.** Chunks of a message or thought arrive under a `messageId`. Then the whole of it arrives
under the same `messageId`, from the log, and replaces the chunks. A whole message with empty
`content` and no `seq` is a delta: the model begins its reply again, and the client removes what it
showed of that message. The `messageId` of a reply is a number, so choose other ids for prompts.
What a delta showed and no entry replaced, of a call too, is void when the turn ends, when a
`notice` titled `Resumed` comes, and when the client attaches again: it removes that.

**Calls.** `tool_call_update` is the only kind that reports a tool call, and there is no `tool_call`
that introduces one: the first update with an unknown `toolCallId` does. Each update carries what is
new; a field that is left out stays as it was. `status` goes from `pending` over `in_progress` to
`completed`, `failed` or `cancelled`. The calls of one reply are named by the reply: `4.0`, `4.1`.
"""

from typing import Annotated, Any, Generic, Literal, TypeVar, get_args

from pydantic import Field

from magy_server.api.wire.graphs import Graph
from magy_server.api.wire.magi import Deliberation
from magy_server.api.wire.shapes import LinkBlock, ResourceBlock, TextBlock, Wire

S = TypeVar("S")
State = Literal["running", "requires_action", "idle"]
STOPS = {
    "end_turn": "The agent finished its reply, or a tool ended the turn.",
    "cancelled": "Somebody cancelled the turn.",
    "error": "Something failed. `message` says what; `error` has the same sentence.",
    "refusal": "The model refused to answer.",
    "max_tokens": "The model's reply reached the provider's or the configured length.",
    "max_requests": "The turn made as many requests as it may. `stopReason` has ACP's word for it: "
    "`max_turn_requests`.",
    "max_turn_tokens": "The turn used as many tokens as it may.",
    "max_cost": "The turn cost as much as it may.",
    "max_run": "The agent and its children together used or cost as much as they may.",
    "max_time": "The turn took as long as it may.",
    "loop": "The agent repeated the same call again and again.",
    "stray_call": "The model wrote a tool call as text, where nobody can carry it out.",
}
"""How a turn may end, as `stop` in `_meta.magy`; `stopReason` says the same but for one word."""


class Stamp(Wire):
    """Where an update stands in the log."""

    seq: int | None = None
    at: float | None = None


class Meta(Wire, Generic[S]):
    magy: S


class Update(Wire, Generic[S]):
    """One kind of update. `S` is what `_meta.magy` holds beside `seq` and `at`."""

    session_update: str
    meta: Meta[S] | None = Field(default=None, alias="_meta")


# --- parts --------------------------------------------------------------------------------------


class NamedLink(LinkBlock):
    """A link to a file, or a picture of a prompt (`magy-blob:HASH`; its bytes are not sent)."""

    mime_type: str | None = None


Shown = Annotated[TextBlock | NamedLink | ResourceBlock, Field(discriminator="type")]


class Output(Wire):
    type: Literal["content"]
    content: TextBlock


class ChangedPath(Wire):
    operation: Literal["add", "modify", "delete", "move"]
    path: str = Field(description="Absolute")
    old_path: str | None = Field(default=None, description="Of a move; absolute")


class Patch(Wire):
    format: Literal["git_patch"]
    text: str


class Diff(Wire):
    type: Literal["diff"]
    changes: list[ChangedPath]
    patch: Patch


CallContent = Annotated[Output | Diff, Field(discriminator="type")]


class Place(Wire):
    path: str


class Judgement(Wire):
    """What the rules say of a call."""

    action: Literal["allow", "ask", "deny"]
    rule: str = Field(description="The rule that decided, for people")
    firm: bool = Field(description="Only a person may answer: no remembered answer, no bypass")
    proposed: bool = Field(description="Allowed because the change is only proposed")


class PlanEntry(Wire):
    content: str
    status: Literal["pending", "in_progress", "completed", "cancelled"]
    priority: Literal["high", "medium", "low"]


class Plan(Wire):
    type: Literal["items"]
    plan_id: str
    entries: list[PlanEntry]


class Failure(Wire):
    code: int
    message: str


class ChangedOption(Wire):
    """A `ConfigOption` without the values to choose from."""

    config_id: str
    name: str
    current_value: str


class Grantable(Wire):
    key: str
    pattern: str


class OpenQuestion(Wire):
    """An `Interaction` of the session of this update, in short."""

    interaction_id: str
    kind: Literal["permission"]
    tool_call_id: str
    title: str
    rule: str
    remember: list[Grantable]
    covers: list[str]
    content: list[CallContent]


class ClosedQuestion(Wire):
    interaction_id: str
    outcome: Literal["allowed", "refused"]
    reason: str
    scope: Literal["once", "session", "project"]
    by: str = Field(
        description="`client.name` of the client that answered; `nobody` where nobody could"
    )


class Mail(Wire):
    id: str
    sender: str = Field(description="Session id")
    agent: str = Field(description="The sender's agent")
    name: str = Field(description="The name of the sender's task")
    to: str = Field(description="Session id")
    delivery: Literal["steer", "queue"]
    wakes: bool = Field(description="It opens a turn if none runs")
    run: str
    correlation: str | None
    metadata: dict[str, str]
    payload: Literal["text", "data", "signal"]


# --- what _meta.magy holds ----------------------------------------------------------------------


class ChildStamp(Stamp):
    parent_session_id: str | None = Field(default=None, description="Only of a child")
    tool_call_id: str | None = Field(
        default=None, description="Only of a child: the call that spawned it; null: a person did"
    )


class OptionStamp(Stamp):
    window: int | None = Field(
        default=None, description="With `model`: tokens that the model can hold; 0: unknown"
    )


class CallStamp(Stamp):
    decision: Judgement | None = None
    status: Literal["completed", "failed", "denied", "cancelled", "unknown", "not_run"] | None = (
        Field(default=None, description="At the end: how it ended, more exactly than `status`")
    )
    duration: float | None = Field(default=None, description="At the end: seconds")
    graph: Graph | None = Field(
        default=None, description="The graph of tasks that the call runs, as it is now"
    )
    deliberation: Deliberation | None = Field(
        default=None, description="The deliberation that the call is, as it is now"
    )


class StateStamp(Stamp):
    turn_id: str | None = Field(
        default=None, description="The turn that began, that got another prompt, or that ended"
    )
    opens: bool | None = Field(
        default=None, description="true: the turn begins here; false: a prompt joins it"
    )
    stop: str | None = Field(default=None, description="With `idle`: how the turn ended")
    message: str | None = Field(
        default=None, description="With `idle`: a message for the person; empty after a usual end"
    )


class UsageStamp(Stamp):
    request: str = Field(description="`messageId` of the reply, or `compaction`, `title`, ...")
    model: str
    usage: dict[str, int]
    cost: float | None = Field(description="US dollars; null: the price is unknown")


# --- the kinds ----------------------------------------------------------------------------------


class UserMessage(Update[Stamp]):
    """A person's prompt arrived. It enters the conversation when `_magy_queue` says `admitted`."""

    session_update: Literal["user_message"]
    message_id: str
    content: list[Shown]


class AgentMessage(Update[Stamp]):
    """The whole text of a reply. It replaces the chunks that had the same `messageId`."""

    session_update: Literal["agent_message"]
    message_id: str
    content: list[TextBlock]


class AgentThought(Update[Stamp]):
    """The same for what the model thought, where its provider shows that."""

    session_update: Literal["agent_thought"]
    message_id: str
    content: list[TextBlock]


class AgentMessageChunk(Update[Stamp]):
    """A delta: more text of a reply, to be appended."""

    session_update: Literal["agent_message_chunk"]
    message_id: str
    content: TextBlock


class AgentThoughtChunk(Update[Stamp]):
    """A delta: more of what the model thinks, to be appended."""

    session_update: Literal["agent_thought_chunk"]
    message_id: str
    content: TextBlock


class ToolCallUpdate(Update[CallStamp]):
    """News of a tool call. The model made it (`name`, `rawInput`); the rules judged it (`kind`,
    `locations`, `_meta.magy.decision`, a better `title`, and a preview as `content`); it started;
    it ended (`content`). Calls that only read are not reported as started."""

    session_update: Literal["tool_call_update"]
    tool_call_id: str
    name: str | None = Field(default=None, description="The tool")
    title: str | None = Field(default=None, description="One line for people")
    kind: str | None = Field(default=None, description="ACP's word: read | edit | execute | ...")
    status: Literal["pending", "in_progress", "completed", "failed", "cancelled"] | None = None
    raw_input: dict[str, Any] | str | None = Field(
        default=None, description="The arguments; a string where they are not a JSON object"
    )
    locations: list[Place] | None = Field(default=None, description="Files, absolute")
    content: list[CallContent] | None = Field(
        default=None, description="Replaces the content that came before"
    )


class ToolCallContentChunk(Update[Stamp]):
    """A delta: more output of a running command, to be appended."""

    session_update: Literal["tool_call_content_chunk"]
    tool_call_id: str
    content: Output


class StateUpdate(Update[StateStamp]):
    """What the session does now. Only updates that begin, join or end a turn have a `turnId`; when
    a question is asked or answered, or when the conversation is compacted between turns, there is
    none."""

    session_update: Literal["state_update"]
    state: State = Field(description="requires_action: a question is open")
    stop_reason: str | None = Field(
        default=None, description="At the end of a turn: ACP's word for `_meta.magy.stop`"
    )
    error: Failure | None = Field(default=None, description="With the stop reason `error`")


class SessionInfoUpdate(Update[ChildStamp]):
    """The session was opened, or has another title."""

    session_update: Literal["session_info_update"]
    title: str | None
    updated_at: str = Field(description="ISO 8601, UTC")


class ConfigOptionUpdate(Update[OptionStamp]):
    """These options changed; the others stay."""

    session_update: Literal["config_option_update"]
    config_options: list[ChangedOption]


class UsageUpdate(Update[UsageStamp]):
    """What one request to a model took. Sums are in the session's `Summary`."""

    session_update: Literal["usage_update"]
    used: int = Field(description="Tokens, prompt and reply together")


class PlanUpdate(Update[Stamp]):
    """The agent's plan, as a whole."""

    session_update: Literal["plan_update"]
    plan: Plan


class Notice(Update[Stamp]):
    """A message for the person. It needs no answer."""

    session_update: Literal["notice"]
    severity: Literal["info", "warning"]
    title: str
    description: str


class Queue(Update[Stamp]):
    """The queue of waiting prompts changed. Exactly one of `added`, `admitted` and `order` is
    there."""

    session_update: Literal["_magy_queue"]
    added: str | None = Field(default=None, description="This message waits")
    delivery: Literal["steer", "queue"] | None = Field(default=None, description="With `added`")
    admitted: list[str] | None = Field(
        default=None,
        description="These messages wait no more: they enter the turn that the next `state_update` "
        "names, which has the same `seq`",
    )
    order: list[str] | None = Field(
        default=None, description="These wait first, in this order; the others follow"
    )
    dropped: list[str] | None = Field(
        default=None,
        description="With `order`: these were removed and will have no turn; of a child's result: "
        "the agent has read it already",
    )


class InteractionUpdate(Update[Stamp]):
    """A question was asked (`open`) or answered (`resolved`). A question that nobody answered
    closes when its call ends; then only the call's `tool_call_update` tells, and
    `magy/interaction/changed`."""

    session_update: Literal["_magy_interaction"]
    open: OpenQuestion | None = None
    resolved: ClosedQuestion | None = None


class ProgressUpdate(Update[Stamp]):
    """A delta: what goes on before a reply begins. The next one, or the reply, replaces it."""

    session_update: Literal["_magy_progress"]
    text: str


class MailUpdate(Update[Stamp]):
    """A message from another agent arrived; a child's result comes this way. A text waits like a
    prompt, under `messageId`, and `_magy_queue` names that. Data and signals have a `body`, and no
    model reads them."""

    session_update: Literal["_magy_mail"]
    mail: Mail
    message_id: str | None = None
    content: list[TextBlock] | None = None
    report: dict[str, Any] | None = Field(
        default=None, description="Of a child's result: a `ChildReport`"
    )
    body: dict[str, Any] | None = None


class ClosedUpdate(Update[Stamp]):
    """The session, a child, was closed: it accepts nothing more."""

    session_update: Literal["_magy_closed"]
    mode: Literal["finish", "cancel"]
    reason: str


class RestoredUpdate(Update[Stamp]):
    """A person went back to an earlier point. With `conversation`, a client marks as undone, or
    hides, all from the first prompt of turn `turnId` up to this update. With `undoes`, what that
    restore had marked counts again."""

    session_update: Literal["_magy_restored"]
    restore_id: str
    turn_id: str
    undoes: str | None = Field(description="The restore that this one takes back")
    files: bool
    conversation: bool
    changes: list[ChangedPath]
    conflicts: list[str] = Field(description="Files that were left alone")


UPDATES: tuple[type[Update[Any]], ...] = (
    UserMessage, AgentMessageChunk, AgentMessage, AgentThoughtChunk, AgentThought, ToolCallUpdate,
    ToolCallContentChunk, StateUpdate, Queue, InteractionUpdate, Notice, SessionInfoUpdate,
    ConfigOptionUpdate, UsageUpdate, PlanUpdate, ProgressUpdate, MailUpdate, ClosedUpdate,
    RestoredUpdate,
)  # fmt: skip
"""Every kind, in the order in which the documentation shows them."""


def kind_of(model: type[Update[Any]]) -> str:
    """The `sessionUpdate` of this kind."""
    name: str
    (name,) = get_args(model.model_fields["session_update"].annotation)
    return name
