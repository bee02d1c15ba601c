"""A session is a conversation with an agent. It is kept as a log of numbered entries, and all that
clients see of it comes from that log. The client chooses the id of a session (`magy/session/new`)
and of each message (`magy/session/prompt`). So a client need not wait for one answer before it
sends the next request: requests that name a session wait until it is made.

**Repeating is harmless.** A request that changes something has an id or a `requestKey` that the
client chose. Sent again with the same content, it changes nothing; after a lost connection a client
repeats what was not answered. Other content under a used id or key is refused (`key_used`); only
of edits, rewrites and restores the first request counts, and is answered once more.

### Attaching

`magy/session/subscribe` returns what the session is now (`summary`) and the newest part of its log
(`events`): the last 20 turns, or what `from` asks for. After that, `magy/session/update` tells what
happens, without a gap; if something streams at the moment, the first deltas carry all of it so far.
An answer has all that was told of the session before it, and what is told after it is new.
A client that was connected before passes the last `seq` that it has seen, `"from": {"seq": 41}`,
and gets what came after it. An answer holds the newest 500 entries at most, from `floorSeq` on;
older ones come from `magy/session/events`. With `more`, later ones follow as updates. Subscribing
again starts anew from the given place.

### Subscribe, resume and takeover

A session belongs to no connection. Any number of clients, of one Magy process or of several on the
same machine, may subscribe to it, prompt it and answer its questions, and see the same updates. One
process at a time runs its turn, with the editor of the client that prompted.

- `subscribe` looks, and changes nothing. A turn that a crash interrupted stays as it is, and the
  state of its session is still `running` or `requires_action`.
- `resume` subscribes. In addition, if a turn was left open and no living process runs it, this
  process continues it. If a process runs it, that one goes on: `resume` takes nothing away from
  anybody.
- Takeover happens by itself. When the client goes away, its process ends and leaves its turns open.
  A process that starts continues the sessions of its workspace folders that were left open in the
  last hour. A new prompt to a session continues the turn that was left open there, and joins it.
  Another process that has worked with the session, or with another of its tree, and not only
  watched it, takes over within seconds when the one that ran it dies.

A turn that continues says so with a `notice` titled `Resumed`. Before that, Magy ends the programs
that the dead process left running. A call that had begun is done again only if that is safe;
otherwise the model is told what is known of it. A reply that was still streaming begins anew, under
another `messageId`.

### Turns

A prompt opens a turn, or joins the one that runs. A turn ends when the agent has nothing more to
do. `magy/session/prompt` answers at once, with an `outcome`; updates tell the rest, and the first
of them may come before the answer.

| `delivery` | no turn runs | a turn runs |
|---|---|---|
| `auto`, `steer` | `started` | `steered`: the prompt joins the turn before its next request |
| `queue` | `started` | `queued`: the prompt opens a turn of its own after this one |
| `interrupt` | `started` | `queued`: the turn is cancelled, and this prompt is the next |

`known` means that this message was sent before, and that nothing was done now.

**How a client knows that its turn is over.** The outcome is a forecast: a prompt that is to join a
turn may come just as that ends, and then opens its own; and of several prompts that are sent before
the first turn has begun, each may be told `started`. The updates are certain:

1. A `_magy_queue` update has the prompt's `messageId` in `admitted`.
2. The next `state_update`, with the same `seq`, has the state `running` and names the turn in
   `_meta.magy.turnId`. The turn has the id of the message that opened it.
3. The turn is over when a `state_update` has the state `idle` and the same `_meta.magy.turnId`.
   `_meta.magy.stop` says how it ended, and `message` what the person should know.

A client that attaches in the middle finds the first two in `events`, where the `seq` stands beside
the update. Do not take any `idle` for your own: other clients' turns end, too, and an `idle`
without a `turnId` ends a compaction. A prompt that appears in `dropped` of a `_magy_queue` update
has no turn. A turn that could not even begin, because no model is configured, say, ends in the same
way, with `stop` `error`.

`magy/session/cancel` with a `turnId` cancels that turn and no other; without one, whatever runs.
What the model had said by then comes as its `agent_message`, and the turn ends with `stop`
`cancelled`. The prompts that wait have their turns then.

`magy/session/close` and `delete` cancel, too, and unsubscribe the client that asked: no `idle`
tells it that the turn is over. Nothing tells other subscribers that a turn ended with its session's
deletion; `magy/session/listChanged` names the session, which is no longer found. A session that was
closed is there as before, and a prompt goes on with it.

STOPS

### Questions

When the rules say *ask*, the agent's call waits for a person. No request waits: the question is an
entry of the log, the session's state becomes `requires_action`, and the question stays open, over a
restart too, until somebody answers it or the call is cancelled. There is no time-out and no default
answer: to dismiss a question is to send nothing.

A client that announced `interactions` hears of all questions of its workspace from
`magy/interaction/changed`, children's too, and of those of a subscribed session also from
`_magy_interaction`. `magy/interaction/list` names those that are open, also those that were asked
before the client came. It shows `title` as it is, the `rule` that asks, and `content` when the
person wants to see all of it. It answers with `magy/interaction/respond`, to the `sessionId` of the
question:

| | | |
|---|---|---|
| `outcome` | `allow` | the call runs |
| | `refuse` | it does not; the model reads `reason` and goes on |
| `scope` | `once` | this call alone (the default); about agents: until the next prompt |
| | `session` | also what `remember` names, in this session |
| | `project` | also what `remember` names, in all sessions of the project |

An MCP server may ask, too, in the middle of a call: the question's `kind` is `form`. The client
shows `content`, has the person fill in the `fields` of `form` one after the other (`label`, `hint`;
`default` to begin with), and sends what they said with `allow`, as `content`, by the names of the
fields. `refuse` tells the server that they do not want to. Without fields it is about the address
`url`, which the client does not open.

Show `covers` before the person chooses `session` or `project`; where it is empty, offer only
`once`. A `scope` has no meaning with `refuse`. The first answer wins: a later one gets `accepted:
false`, and `winner` says how the question was resolved: `allowed`, `refused`, or `closed`, with its
call.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from magy_server.api.wire.forms import Form
from magy_server.api.wire.shapes import Id, Prompt, Prose, RootId, SessionParams, Wire


class ConfigOption(Wire):
    config_id: str
    name: str = Field(description="For people")
    current_value: str
    options: list[str] = Field(default=[], description="The values to choose from")


class SessionInfo(Wire):
    session_id: str
    parent_session_id: str | None = Field(default=None, description="Of a child")
    cwd: str
    root: str | None = Field(default=None, description="Workspace root; null: a global session")
    title: str | None = None
    agent: str = Field(default="", description="`rewrite`: of a magy/rewrite/start")
    updated_at: str | None = Field(default=None, description="ISO 8601, UTC")
    state: str = Field(default="idle", description="idle | running | requires_action")
    turns: int = 0
    head_seq: int = 0


class Waiting(Wire):
    message_id: str
    delivery: str
    text: str


class PathStep(Wire):
    session_id: str
    agent: str
    name: str = Field(description="The name of a child's task, or of the session")


class Interaction(Wire):
    interaction_id: str
    session_id: str
    parent_session_id: str | None = Field(default=None, description="Set when a child asks")
    path: list[PathStep] = Field(
        default=[], description="The sessions from the root of the tree to the one that asks"
    )
    kind: Literal["permission", "form"] = Field(
        description="`form`: the call runs, and its MCP server asks for something: see `form`"
    )
    tool_call_id: str
    title: str = Field(
        description="One line, to show unchanged: `⏎` is a line end, `<U+202E>` a character "
        "that does not show, `⟨300 spaces⟩` or `⟨39 empty lines⟩` much white space, "
        "`… (+812 characters, 9 lines) …` what is left out in the middle"
    )
    content: list[dict[str, Any]] = Field(
        default=[],
        description="All that would run or change, as the content of a tool call, where the title "
        "does not say it: a person can see it before they answer",
    )
    form: Form | None = Field(
        default=None,
        description="What is to be filled in; `content` has all of it as text",
    )
    rule: str = Field(description="The rule that made Magy ask")
    remember: list[dict[str, str]] = Field(
        default=[],
        description='What "session" and "project" would allow: {key, pattern}; none: not offered',
    )
    covers: list[str] = Field(
        default=[], description="The same as text, to show unchanged before the person chooses one"
    )
    agent: str = ""
    created_at: str


class Summary(Wire):
    """A session at a glance; what a client shows around the transcript."""

    session: SessionInfo
    config_options: list[ConfigOption]
    waiting: list[Waiting] = Field(default=[], description="Prompts and messages that wait")
    interactions: list[Interaction] = Field(
        default=[], description="Its open questions, and those of all below it"
    )
    plan: list[dict[str, str]] = Field(default=[], description="Each a `PlanEntry`")
    usage: dict[str, int] = Field(default={})
    cost: dict[str, Any] = Field(
        default={},
        description="{amount, currency, unpriced}: US dollars; `unpriced` counts the requests "
        "whose price is not known",
    )
    tree_usage: dict[str, int] = Field(
        default={}, description="Including what all children below it used"
    )
    tree_cost: dict[str, Any] = Field(default={})
    context: dict[str, int] = Field(
        default={},
        description="{tokens, window}: how full the context window is, roughly; window 0: unknown",
    )


class Update(Wire):
    """One update of a page: what `magy/session/update` would have carried, with `seq` and `at`
    beside it."""

    seq: int
    at: float
    update: dict[str, Any]


# --- requests -----------------------------------------------------------------------------------


class NewParams(Wire):
    session_id: RootId = Field(
        description="Chosen by the client, without a `/`; repeating a request has no effect, and "
        "another request under the same id is refused (`key_used`)"
    )
    cwd: str | None = Field(
        default=None,
        description="Absolute path of a directory. The session belongs to the innermost workspace "
        "folder around it, else to this directory; null: to no project",
    )
    agent: str | None = Field(default=None, description="null: `default_agent` of the settings")
    model: str | None = Field(
        default=None,
        description="`provider/model`; null: the agent's, or the configured one. One that cannot "
        "be asked ends a turn, not this request",
    )


class NewResult(Wire):
    session_id: str
    config_options: list[ConfigOption]


class ListParams(Wire):
    cwd: str | None = Field(
        default=None, description="Sessions of this directory's project come first"
    )
    only: bool = Field(default=False, description="List only that project's sessions")
    cursor: str | None = Field(default=None, description="`nextCursor` of the page before")
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class ListResult(Wire):
    sessions: list[SessionInfo]
    next_cursor: str | None = Field(default=None, description="null: this is the last page")


class From(Wire):
    """Where to begin: after the entry `seq`, which the client has, or else with the last `tail`
    turns."""

    seq: Annotated[int, Field(ge=0)] | None = None
    tail: Annotated[int, Field(ge=0, le=1000)] | None = None


class SubscribeParams(SessionParams):
    start: From = Field(default=From(tail=20), alias="from")


class SubscribeResult(Wire):
    head_seq: int = Field(
        description="Seq of the last entry of the log. If the client has a later one, that was of "
        "another session with the same id"
    )
    floor_seq: int = Field(
        description="Seq of the first entry of `events`: 500 entries at most, so it may lie above "
        "what was asked for; older ones by magy/session/events. Without any: `headSeq` + 1"
    )
    summary: Summary
    events: list[Update]
    more: bool = Field(default=False, description="Later entries follow as magy/session/update")


class EventsParams(SessionParams):
    """With `after`, the first entries after that one; else the last ones, before `before`."""

    before: Annotated[int, Field(ge=1)] | None = Field(default=None, description="A `seq`")
    after: Annotated[int, Field(ge=0)] | None = Field(default=None, description="A `seq`")
    limit: Annotated[int, Field(ge=1, le=1000)] = 200


class EventsResult(Wire):
    events: list[Update] = Field(description="The oldest first")
    head_seq: int = Field(description="Seq of the last entry of the log")
    more: bool = Field(
        description="There are later ones in the range that was asked for; without `after`: earlier"
    )


class PromptParams(SessionParams):
    message_id: Id = Field(description="Chosen by the client; also the turn's id if it opens one")
    prompt: Prompt
    delivery: Literal["auto", "steer", "queue", "interrupt"] = Field(
        default="auto", description="What it does to a running turn; see [Turns](#turns)"
    )


class PromptResult(Wire):
    message_id: str
    outcome: Literal["started", "steered", "queued", "known"] = Field(
        description="See [Turns](#turns)"
    )


class CancelParams(SessionParams):
    turn_id: str | None = Field(default=None, description="null: whatever runs")


class CancelResult(Wire):
    cancelled: bool = Field(description="false: no such turn was running")


class ForkParams(SessionParams):
    new_session_id: RootId = Field(
        description="Repeating a request has no effect; the id of another session is refused "
        "(`key_used`)"
    )
    seq: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="The last entry that the fork keeps; null: all"
    )


class DeleteResult(Wire):
    deleted: bool


class OptionsParams(Wire):
    cwd: str | None = Field(default=None, description="As of magy/session/new; null: to no project")


class ConfigParams(SessionParams):
    config_id: Literal["agent", "model", "review", "bypass", "title"]
    value: Prose


class ConfigResult(Wire):
    config_options: list[ConfigOption]


class ReorderParams(SessionParams):
    order: list[str] = Field(
        description="Message ids in the new order; those left out follow in their old order"
    )


class DropParams(SessionParams):
    message_ids: list[str]


class QueueResult(Wire):
    waiting: list[Waiting]


class CompactParams(SessionParams):
    focus: Prose = Field(default="", max_length=10_000, description="What the summary must keep")


class SummaryResult(Wire):
    text: str = Field(description="Markdown")


class InteractionsParams(Wire):
    session_id: Id | None = Field(
        default=None, description="The session's own questions and those of all below it"
    )
    root: str | None = Field(
        default=None, description="A workspace root: only the questions of its sessions"
    )


class InteractionsResult(Wire):
    interactions: list[Interaction]


class RespondParams(Wire):
    interaction_id: str
    session_id: Id = Field(description="`sessionId` of the question")
    outcome: Literal["allow", "refuse"]
    scope: Literal["once", "session", "project"] = Field(
        default="once", description="See [Questions](#questions)"
    )
    reason: Prose = Field(
        default="", max_length=10_000, description="Reaches the model; of a form, nobody"
    )
    content: dict[str, bool | int | float | Prose | list[Prose] | None] | None = Field(
        default=None,
        description="What was filled in, by field. Texts do for all types: `yes`, `3`, and `a, b` "
        "where several are chosen; what does not fit is an error that says why, and the question "
        "stays open",
    )


class RespondResult(Wire):
    accepted: bool = Field(description="false: it was answered before; see `winner`")
    winner: str | None = Field(default=None, description="allowed | refused | closed")


# --- server to client ---------------------------------------------------------------------------


class SessionUpdate(Wire):
    """An update from the log (`_meta.magy` has `seq` and `at`), or a delta (it has not)."""

    session_id: str
    update: dict[str, Any]


class InteractionChanged(Wire):
    session_id: str
    opened: list[Interaction] = Field(default=[])
    resolved: list[str] = Field(default=[])


class ListChanged(Wire):
    session_id: str


class SaveParams(Wire):
    uri: str
    version: int = Field(
        description="The version to save; when the person has typed since, do not save"
    )


class SaveResult(Wire):
    saved: bool
