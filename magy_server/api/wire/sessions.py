"""The shapes of the `magy/*` wire, defined once; `methods.py` has the methods.

`docs/protocol.md` is generated from both (`make docs`).

Where the Agent Client Protocol has the method, name and shapes are its own (`session/prompt` is
`magy/session/prompt`). Clients make session and message ids, so nothing depends on message order;
a mutating request whose id was seen before changes nothing and may be retried; another message
under the id of one that was sent is refused.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from magy_server.api.wire.shapes import Id, Prompt, Prose, RootId, SessionParams, Wire


class ConfigOption(Wire):
    config_id: str
    name: str
    current_value: str
    options: list[str] = Field(default=[])


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
    kind: str
    tool_call_id: str
    title: str = Field(
        description="One line, to show unchanged: `⏎` is a line end, `<U+202E>` a character "
        "that does not show, `… (+812 characters, 9 lines) …` what is left out in the middle"
    )
    content: list[dict[str, Any]] = Field(
        default=[],
        description="All that would run or change, as the content of a tool call, where the title "
        "does not say it: a person can see it before they answer",
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
    waiting: list[Waiting] = Field(default=[])
    interactions: list[Interaction] = Field(
        default=[], description="The number of its open questions, and of those of all below it"
    )
    plan: list[dict[str, str]] = Field(default=[])
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
    """One update of a page: what `magy/session/update` would have carried."""

    seq: int
    at: float
    update: dict[str, Any]


# --- requests -----------------------------------------------------------------------------------


class NewParams(Wire):
    session_id: RootId = Field(
        description="Chosen by the client, without a `/`; repeating a request has no effect, and "
        "another request under the same id is refused (`key_used`)"
    )
    cwd: str | None = Field(default=None, description="Absolute path; null: a global session")
    agent: str | None = None
    model: str | None = None


class NewResult(Wire):
    session_id: str
    config_options: list[ConfigOption]


class ListParams(Wire):
    cwd: str | None = Field(
        default=None, description="Sessions of this directory's project come first"
    )
    only: bool = Field(default=False, description="List only that project's sessions")
    cursor: str | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class ListResult(Wire):
    sessions: list[SessionInfo]
    next_cursor: str | None = None


class From(Wire):
    """Where to begin: after an entry the client has, or with the last `tail` turns."""

    seq: Annotated[int, Field(ge=0)] | None = None
    tail: Annotated[int, Field(ge=0, le=1000)] | None = None


class SubscribeParams(SessionParams):
    start: From = Field(default=From(tail=20), alias="from")


class SubscribeResult(Wire):
    head_seq: int
    floor_seq: int = Field(
        description="Seq of the first entry of `events`: 500 entries at most, so it may lie above "
        "what was asked for; older ones by magy/session/events"
    )
    summary: Summary
    events: list[Update]
    more: bool = Field(default=False, description="Later entries follow as magy/session/update")


class EventsParams(SessionParams):
    before: Annotated[int, Field(ge=1)] | None = None
    after: Annotated[int, Field(ge=0)] | None = None
    limit: Annotated[int, Field(ge=1, le=1000)] = 200


class EventsResult(Wire):
    events: list[Update]
    head_seq: int
    more: bool


class PromptParams(SessionParams):
    message_id: Id = Field(description="Chosen by the client; also the turn's id if it opens one")
    prompt: Prompt
    delivery: Literal["auto", "steer", "queue", "interrupt"] = "auto"


class PromptResult(Wire):
    message_id: str
    outcome: Literal["started", "steered", "queued", "known"]


class CancelParams(SessionParams):
    turn_id: str | None = None


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


class AgentsParams(Wire):
    cwd: str | None = Field(
        default=None,
        description="The directory whose project's agents to list; null: the first folder",
    )


class AgentInfo(Wire):
    name: str
    description: str
    mode: str
    model: str | None = None


class AgentsResult(Wire):
    agents: list[AgentInfo]


class InteractionsParams(Wire):
    session_id: Id | None = Field(
        default=None, description="The session's own questions and those of all below it"
    )


class InteractionsResult(Wire):
    interactions: list[Interaction]


class RespondParams(Wire):
    interaction_id: str
    session_id: Id
    outcome: Literal["allow", "refuse"]
    scope: Literal["once", "session", "project"] = "once"
    reason: Prose = Field(default="", max_length=10_000, description="Reaches the model")


class RespondResult(Wire):
    accepted: bool = Field(description="false: it was answered before; see `winner`")
    winner: str | None = Field(default=None, description="allowed | refused | closed")


class GrantsParams(Wire):
    session_id: Id


class GrantInfo(Wire):
    grant_id: str
    key: str
    pattern: str
    scope: str


class GrantsResult(Wire):
    grants: list[GrantInfo]


class WithdrawParams(SessionParams):
    grant_id: str


class WithdrawResult(Wire):
    withdrawn: bool


class TrustParams(Wire):
    root: str
    trusted: bool | None = Field(default=None, description="Null only asks")


class TrustResult(Wire):
    root: str
    trusted: bool
    ignored: list[str] = Field(
        default=[], description="Settings of the project that Magy ignores until it is trusted"
    )


# --- server to client ---------------------------------------------------------------------------


class SessionUpdate(Wire):
    """An event of the log (then `_meta.magy` has its seq and time) or a delta (then it has not)."""

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
